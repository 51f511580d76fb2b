//! Stack that changes with each run, and the comparison of its state with the record of the provider.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::life::Repository;

/// Command that creates, updates and deletes a resource, and reads none.
pub(crate) const CHANGE: &str = "provision -S -R --parallel 4";

/// Repository whose provider records what exists.
pub(crate) struct Versions {
    pub(crate) repository: Repository,
    version: Cell<usize>,
}

impl Versions {
    /// Provisions the first version.
    pub(crate) fn new(repository: Repository) -> Self {
        fs::create_dir(repository.path("rec/ledger")).unwrap();
        let versions = Self { repository, version: Cell::default() };
        versions.change();
        versions.repository.sc(0, CHANGE);
        versions
    }

    /// Writes the next version: a resource is updated, one is created, one is deleted, and one is unchanged.
    pub(crate) fn change(&self) {
        let version = self.version.get() + 1;
        self.version.set(version);
        let (value, name) = (version.to_string(), format!("only{version}"));
        self.repository.write_things(&[("changed", &value), ("kept", "1"), (&name, "1")]);
    }

    /// Returns the ids of the existing resources.
    fn existing(&self) -> BTreeSet<String> {
        let names = fs::read_dir(self.repository.path("rec/ledger")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Returns the recorded ids, and the names of the pending creates.
    fn recorded(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let exported: Value = serde_json::from_str(&self.repository.sc(0, "stack export")).unwrap();
        let deployment = &exported["deployment"];
        let list = |key: &str| deployment[key].as_array().into_iter().flatten();
        let is_thing = |resource: &&Value| resource["type"] == "rec:index:Thing";
        let ids = list("resources").filter(is_thing).map(|resource| resource["id"].as_str().unwrap().to_owned());
        let creating = list("pending_operations").filter(|pending| pending["type"] == "creating");
        let name =
            |pending: &Value| pending["resource"]["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned();
        (ids.collect(), creating.map(name).collect())
    }

    /// Checks that each existing resource is recorded, or is a pending create.
    pub(crate) fn check_recorded(&self, at: &str) {
        let (ids, creating) = self.recorded();
        let is_lost = |id: &&String| !ids.contains(*id) && !creating.contains(id.rsplit_once('-').unwrap().0);
        let existing = self.existing();
        let lost: Vec<_> = existing.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "{at}: {lost:?} are not recorded");
    }

    /// Checks that the next run succeeds, that the one after it has no changes, and that the state is the provider's record.
    pub(crate) fn check_next_run(&self, at: &str) {
        let printed = self.repository.sc(0, CHANGE);
        let unchanged = self.repository.sc(0, "provision -S -R --expect-no-changes");
        let (ids, creating) = self.recorded();
        // A resource whose Create was interrupted may exist twice; it is a pending create then.
        let existing = self.existing();
        let is_recorded = |id: &String| ids.contains(id) || creating.contains(id.rsplit_once('-').unwrap().0);
        let is_equal = ids.is_subset(&existing) && existing.iter().all(is_recorded);
        assert!(is_equal, "{at}: {ids:?} and {creating:?} are recorded, {existing:?} exist: {printed}{unchanged}");
    }
}
