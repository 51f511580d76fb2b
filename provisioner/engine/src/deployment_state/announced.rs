//! Resources that the program will register, for deletions that precede the registrations.

use std::collections::BTreeSet;

use hashbrown::HashSet;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use state::ResourceState;

use super::DeploymentState;
use super::resource_record::{Announced, AnnouncedOptions};
use crate::decisions::{aliases, identity};
use crate::goal::Goal;

impl DeploymentState {
    /// Stores the resources that the program will register, under the URNs by which they may be recorded. Of the incomplete
    /// packages it may register others, too.
    pub(crate) fn announce(
        &mut self,
        goals: impl ExactSizeIterator<Item = (Urn, Goal)>,
        incomplete_packages: BTreeSet<String>,
    ) {
        let mut announced = Announced { incomplete_packages, ..Announced::default() };
        announced.resources.reserve(goals.len());
        for (urn, goal) in goals {
            let candidates = aliases::candidate_urns(&urn, &goal, |_| None);
            let (protect, retain_on_delete) = (goal.protect, goal.retain_on_delete);
            let parent = goal.parent.clone();
            let options = AnnouncedOptions { urn, parent, remote: goal.remote, protect, retain_on_delete };
            if goal.import_id.as_ref().is_some_and(|id| !self.is_recorded(&candidates, id)) {
                announced.imported_types.extend(candidates.iter().map(|urn| urn.type_token().to_owned()));
            }
            for recorded in candidates {
                announced.resources.entry(recorded).or_insert_with(|| options.clone());
            }
        }
        self.announced = Some(announced);
    }

    /// Returns whether a live entry with one of the URNs names the resource with an id.
    fn is_recorded(&self, urns: &[Urn], id: &ResourceId) -> bool {
        let mut entries = urns.iter().filter_map(|urn| self.old_or_removed(urn));
        entries.any(|(_, entry)| identity::ids(&entry).any(|recorded| recorded == id))
    }

    /// Returns whether the program will register a recorded entry, or a component around it, as protected.
    pub(crate) fn will_be_protected(&self, entry: &ResourceState) -> bool {
        self.announced_option(entry, |options| options.protect)
    }

    /// Returns whether the program will register a recorded entry, or a component around it, with `retainOnDelete`.
    pub(crate) fn will_be_retained(&self, entry: &ResourceState) -> bool {
        self.announced_option(entry, |options| options.retain_on_delete)
    }

    /// Returns whether the program will not register a live entry: it has announced its resources, and neither this one nor a
    /// component that could register it. False where this is not known, and where the program may import its resource under
    /// another name: the id may be another spelling of the recorded one.
    pub(super) fn will_not_be_registered(&self, loaded: &ResourceState, now: &ResourceState) -> bool {
        let Some(Announced { resources, incomplete_packages, imported_types }) = &self.announced else { return false };
        let is_known = |urn: &Urn| self.is_registered(urn) || resources.contains_key(urn);
        let is_local = |urn: &Urn| resources.get(urn).is_some_and(|options| !options.remote && options.urn == *urn);
        let registers_no_others = |urn: &Urn| urn.type_token() == ROOT_STACK_TYPE || !is_known(urn) || is_local(urn);
        let is_removable = !now.delete && !now.external && !now.pending_replacement && !now.is_provider();
        is_removable
            && loaded.type_token.as_str() != ROOT_STACK_TYPE
            && !incomplete_packages.contains(loaded.type_token.package())
            && !imported_types.contains(loaded.type_token.as_str())
            && ![&loaded.urn, &now.urn].into_iter().any(is_known)
            && self.ancestors(loaded).all(|urn| registers_no_others(&urn))
    }

    fn announced_option(&self, entry: &ResourceState, option: impl Fn(&AnnouncedOptions) -> Option<bool>) -> bool {
        let Some(Announced { resources, .. }) = &self.announced else { return false };
        // A resource inherits from its new parent, not from the recorded one.
        let parent_of = |urn: &Urn| match resources.get(urn) {
            Some(announced) => announced.parent.clone(),
            None if *urn == entry.urn => entry.parent.clone(),
            None => self.recorded_parent(urn),
        };
        let urns = std::iter::successors(Some(entry.urn.clone()), parent_of);
        // Aliases of a wrong program can make a cycle of parents.
        let mut visited = HashSet::new();
        let mut urns = urns.take_while(|urn| visited.insert(urn.clone()));
        urns.find_map(|urn| resources.get(&urn).and_then(&option)).unwrap_or_default()
    }

    /// Returns the recorded parent of an entry, the parent of that, and so on.
    fn ancestors(&self, entry: &ResourceState) -> impl Iterator<Item = Urn> {
        std::iter::successors(entry.parent.clone(), |urn| self.recorded_parent(urn))
    }

    fn recorded_parent(&self, urn: &Urn) -> Option<Urn> {
        self.old_or_removed(urn).and_then(|(_, entry)| entry.parent.clone())
    }
}
