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

/// Shows: state.md#stack-commands "every command on that name is refused and says what to rename"
/// Shows: state.md#stack-commands "`sc stack rename` back to the old name removes the mark, and so does `sc provision --new`"
#[test]
fn old_name_is_refused_until_it_is_taken_back_or_another_stack_begins_under_it() {
    let repository = Repository::new(Sections { plugins: REC, resources: TWO, outputs: "" });
    repository.expect_exit(0, "provision");
    repository.expect_exit(0, "stack rename deep --yes");
    let mut seen = repository.calls().len();
    let state = repository.files("backend");
    for command in [
        "provision --yes",
        "provision -S",
        "preview",
        "refresh --yes",
        "import bed--prod=x",
        "stack outputs",
        "stack export",
    ] {
        let output = repository.expect_exit(1, command);
        let reason = "error: organization/tank/reef is now organization/tank/deep: ";
        let hint = "hint: rename the folder of its server.yaml to deep before the next provision; `sc stack rename` takes the old name back";
        assert!(output.contains(reason) && output.contains(hint), "{command}: {output}");
    }
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
    assert!(repository.files("backend") == state);
    assert!(repository.expect_exit(0, "stack ls").contains("renamed to organization/tank/deep"));

    // Another stack begins under the old name.
    let other = repository.copy();
    other.expect_exit(0, "provision --new -P");
    other.expect_exit(1, "preview");
    other.expect_exit(0, "provision --new");
    other.expect_exit(0, "provision --expect-no-changes");

    // The old name is taken back.
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/deep")).unwrap();
    repository.expect_exit(0, "stack rename reef --yes");
    let output = repository.expect_exit(1, "provision");
    assert!(output.contains("organization/tank/deep is now organization/tank/reef"), "{output}");
    fs::rename(repository.path(".sc/stacks/deep"), repository.path(".sc/stacks/reef")).unwrap();
    repository.expect_exit(0, "provision --expect-no-changes");
}

/// Shows: server-yaml.md#a-second-copy-of-a-stack "On a terminal `sc provision` then warns and asks; without one it is refused"
#[test]
fn stack_that_exists_below_another_project_is_not_created_a_second_time() {
    let repository = Repository::new(Sections { plugins: REC, resources: TWO, outputs: "" });
    repository.expect_exit(0, "provision");
    repository.write(".sc/cfg.default.yaml", "projectName: pond\n");
    let before = repository.names("backend/.pulumi/stacks");
    let output = repository.expect_exit(1, "provision --yes");
    let warning = "organization/pond/reef would be a new stack, and organization/tank/reef in the same store has equal resources: bed--prod, \
                   plant--prod";
    assert!(output.contains(&format!("error: {warning}; nothing was changed")), "{output}");
    assert!(output.contains("set `projectName: tank` in the profile"), "{output}");
    assert!(repository.expect_exit(0, "preview").contains(&format!("warning: {warning}")));
    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown("Begin the new stack organization/pond/reef? [y/N]");
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1, "{}", terminal.screen());
    drop(terminal);
    assert_eq!(repository.names("backend/.pulumi/stacks"), before);
    repository.expect_exit(0, "provision --new");
    repository.expect_exit(0, "provision --expect-no-changes");
}
