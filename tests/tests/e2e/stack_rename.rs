//! Test of a stack from its first provision to its removal, with a rename in between.

use std::fs;

use crate::repository::{REC, Repository, Sections};

const TWO: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }";

#[test]
fn renamed_stack_has_no_changes_and_can_be_removed_when_empty() {
    let repository = Repository::new(Sections { plugins: REC, resources: TWO, outputs: "" });
    repository.expect_exit(0, "provision");
    let before = repository.calls();
    repository.expect_exit(0, "stack rename deep --yes");
    assert_eq!(repository.calls(), before, "no plugin is called");
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();

    repository.expect_exit(0, "preview --expect-no-changes");
    repository.expect_exit(0, "provision --expect-no-changes");
    let history = repository.expect_exit(0, "stack history --json");
    assert_eq!(history.matches(r#""kind":"update""#).count(), 2, "with the update under the old name: {history}");
    assert!(repository.expect_rejected("stack rm --yes").contains("still has 3 resources"));
    repository.expect_exit(0, "destroy --parent --yes");
    repository.expect_exit(0, "stack rm --yes");
    let mut remaining = repository.names("backend/.pulumi/stacks/tank");
    remaining.retain(|name| !name.ends_with(".attrs"));
    assert_eq!(remaining, ["deep", "reef"].map(|name| format!("backend/.pulumi/stacks/tank/{name}.json.bak")));
    assert!(
        repository.expect_rejected("stack rename reef --yes").contains("there is no state of organization/tank/deep")
    );
}
