//! Test of a stack from its first provision to its removal, with a rename in between.

use std::fs;

use crate::repository::{REC, Repository, Sections};

const TWO: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }";

#[test]
fn a_renamed_stack_goes_on_as_it_was_and_goes_once_it_is_empty() {
    let repository = Repository::new(Sections { plugins: REC, resources: TWO, outputs: "" });
    repository.ends(0, "provision");
    let before = repository.calls();
    repository.ends(0, "stack rename deep --yes");
    assert_eq!(repository.calls(), before, "no plugin is asked");
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();

    repository.ends(0, "preview --expect-no-changes");
    repository.ends(0, "provision --expect-no-changes");
    let history = repository.ends(0, "stack history --json");
    assert_eq!(history.matches(r#""kind":"update""#).count(), 2, "that under the old name, too: {history}");
    assert!(repository.refused("stack rm --yes").contains("still has 3 resources"));
    repository.ends(0, "destroy --parent --yes");
    repository.ends(0, "stack rm --yes");
    let mut left = repository.names("backend/.pulumi/stacks/tank");
    left.retain(|name| !name.ends_with(".attrs"));
    assert_eq!(left, ["deep", "reef"].map(|name| format!("backend/.pulumi/stacks/tank/{name}.json.bak")));
    assert!(repository.refused("stack rename reef --yes").contains("there is no state of organization/tank/deep"));
}
