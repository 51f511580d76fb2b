//! `sc stack migrate`: a stack moves to another folder and back, and is refused where it has moved away.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::crashes::chain;
use crate::processes::wait_until;
use crate::repository::{PROVISIONER, REC, Repository, Sections};

const NEW: &str = "file://new?create_dir=true";
/// Lock of another machine.
const LOCK: &str = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"2026-09-01T08:00:00Z"}"#;

/// Writes the server.yaml of a stack with one resource, whose state is at a URL.
fn write_stack(repository: &Repository, stack: &str, url: &str, value: &str) {
    let provisioner = PROVISIONER.replace("file://backend", &format!("{url:?}"));
    let resources = format!("bed: {{ type: rec:index:Thing, config: {{ v: '{value}' }} }}");
    repository.write_stack(stack, &provisioner, Sections { plugins: REC, resources: &resources, outputs: "" });
}

fn provisioned() -> Repository {
    let repository = Repository::new(Sections::default());
    write_stack(&repository, "reef", "file://backend", "1");
    repository.expect_exit(0, "provision -S");
    repository.expect_exit(0, "stack tag set owner ada");
    repository
}

/// Shows: state.md#migration-to-another-store "Each command on a stack that has a mark fails with exit code 1"
/// Shows: state.md#migration-to-another-store "A run on the new store has no changes then."
#[test]
fn migrated_stack_is_refused_in_the_old_store_and_has_no_changes_in_the_new_one() {
    let repository = provisioned();
    repository.expect_exit(0, "stack export --file export.json");
    let moved = repository.expect_exit(0, &format!("stack migrate --to {NEW} --yes"));
    for expected in [
        "moved organization/tank/reef to file://new?create_dir=true: 1 entry of its history, 2 earlier states, 1 tag",
        "state-storage: { type: fs, config: { path: \"file://new?create_dir=true\" } }",
    ] {
        assert!(moved.contains(expected), "{moved}");
    }
    let mut seen = repository.calls().len();
    for command in [
        "provision -S",
        "preview",
        "refresh --yes",
        "destroy --parent --yes",
        "import bed--prod=x",
        "stack export",
        "stack outputs",
        "doctor",
        "stack history",
        "stack restore",
        "stack restore bak --yes",
        "stack rename deep --yes",
        "stack rm --force --yes",
        "stack tag ls",
        "stack tag get owner",
        "stack tag set owner bob",
        "stack tag rm owner",
        "stack import --file export.json",
        "stack change-secrets-provider --yes",
        "stack migrate --to file://third?create_dir=true --yes",
        "state ls",
        "state show bed--prod",
        "state protect bed--prod --yes",
        "state taint bed--prod --yes",
        "state rename bed--prod deep --yes",
        "state rm bed--prod --yes",
        "state repair --yes",
    ] {
        let refused = repository.expect_rejected(command);
        let reason = "organization/tank/reef has moved to file://new?create_dir=true: ";
        let is_explained = refused.contains(reason) && refused.contains("set the state storage in server.yaml:");
        assert!(refused.starts_with("exit 1\n") && is_explained, "{command}: {refused}");
    }
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
    assert!(repository.expect_exit(0, "stack ls").contains("moved to file://new?create_dir=true"));
    assert!(repository.expect_exit(0, "stack ls --json").contains(r#""movedTo":"file://new?create_dir=true""#));
    repository.expect_exit(0, "cancel");
    let again = repository.expect_exit(0, "stack migrate --to file://new");
    assert!(again.contains("has moved to"), "{again}");

    write_stack(&repository, "reef", "file://new", "1");
    repository.expect_exit(0, "preview --expect-no-changes");
    repository.expect_exit(0, "provision --expect-no-changes");
    let history = repository.expect_exit(0, "stack history --json");
    assert_eq!(history.matches(r#""kind":"update""#).count(), 2, "{history}");
    assert!(repository.expect_exit(0, "stack tag ls").contains("ada"));

    // Back, with a change that was made meanwhile.
    write_stack(&repository, "reef", "file://new", "2");
    repository.expect_exit(0, "provision -S");
    repository.expect_exit(0, "stack migrate --to file://backend --yes");
    assert!(repository.expect_exit(1, "provision -S").contains("has moved to file://backend"));
    write_stack(&repository, "reef", "file://backend", "2");
    repository.expect_exit(0, "provision --expect-no-changes");
    let history = repository.expect_exit(0, "stack history --json");
    assert_eq!(history.matches(r#""kind":"update""#).count(), 4, "{history}");
}

/// Shows: state.md#migration-to-another-store "the stack is used in the old store, and refused in the new one; the next
///   `sc stack migrate` takes the locks over and continues"
/// Shows: state.md#migration-to-another-store "both stores have the same complete state and refuse it: run it again"
#[test]
fn migration_that_is_killed_is_continued() {
    let repository = provisioned();
    // The copies of many runs take time.
    let folder = repository.path("backend/.pulumi/backups/tank/reef");
    let backup = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let backup = backup.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "json")).unwrap();
    for time in 0..300_u64 {
        fs::copy(&backup, folder.join(format!("reef.{}.json", 1_700_000_000_000_000_000 + time))).unwrap();
    }
    let migrate = format!("stack migrate --to {NEW} --yes");
    let running = repository.start(&migrate);
    let mark = repository.path("new/.sc/moved/tank/reef.json");
    wait_until("the target is marked", || mark.exists());
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status, "killed by signal 9");
    write_stack(&repository, "reef", "file://new", "1");
    let refused = repository.expect_exit(1, "provision -S");
    assert!(refused.contains("organization/tank/reef is incomplete here: "), "{refused}");
    assert!(repository.expect_exit(0, "stack ls").contains("incomplete, migrated from file://backend"));
    write_stack(&repository, "reef", "file://backend", "1");
    repository.expect_exit(0, "provision --expect-no-changes");
    let moved = repository.expect_exit(0, &migrate);
    assert!(moved.contains("2 entries of its history, 305 earlier states"), "{moved}");
    write_stack(&repository, "reef", "file://new", "1");
    repository.expect_exit(0, "provision --expect-no-changes");
    assert_eq!(repository.names("new/.pulumi/locks"), [""; 0]);
    assert!(!repository.is_locked() && !mark.exists());
}

/// Shows: state.md#migration-to-another-store "The stack must have no journal, and the target must be another store and
///   have no other state of it."
/// Shows: state.md#migration-to-another-store "a mark that names the new one: URL (without passwords)"
#[test]
fn migration_that_cannot_be_done_changes_nothing() {
    let repository = provisioned();
    let before = repository.files("backend");
    for (url, code, expected) in [
        ("file://backend", 1, "both URLs lead to the same store"),
        ("file://./backend", 1, "both URLs lead to the same store"),
        ("file://missing", 1, "there is no folder"),
        ("file://new?colour=red", 1, "unknown parameter \"colour\""),
        ("file://${project:root}/new", 2, "a placeholder is not replaced on the command line"),
        ("azblob://reef?colour=red", 1, "has no parameter `colour`"),
        ("https://api.pulumi.com", 2, "Pulumi Cloud is not supported"),
        ("new", 2, "it has no supported scheme"),
        ("postgres://ada:otter@host/db?sslmode=perhaps&password=whelk", 1, "cannot be opened"),
    ] {
        let refused = repository.expect_rejected(&format!("stack migrate --yes --to {url}"));
        assert!(refused.starts_with(&format!("exit {code}\n")) && refused.contains(expected), "{url}: {refused}");
        assert!(!refused.contains("otter") && !refused.contains("whelk"), "{refused}");
    }
    assert!(!repository.path("new").exists());
    let refused = repository.expect_rejected(&format!("stack migrate --to {NEW}"));
    assert!(refused.starts_with("exit 2\n") && refused.contains("History, backups and tags move along."), "{refused}");
    assert_eq!(repository.files("new"), Default::default(), "without consent only the folder is created");

    // A state of another origin.
    repository.write("new/.pulumi/stacks/tank/reef.json", &repository.read("backend/.pulumi/meta.yaml"));
    let refused = repository.expect_rejected(&format!("stack migrate --to {NEW} --yes"));
    assert!(refused.contains("there is another state of organization/tank/reef in "), "{refused}");
    assert_eq!(repository.files("backend"), before);
}

/// Shows: state.md#migration-to-another-store "The stack must have no journal, and the target must be another store and
///   have no other state of it."
/// Shows: state.md#migration-to-another-store "a mark that names the new one: URL (without passwords)"
#[test]
fn stack_with_an_interrupted_run_is_not_moved() {
    let repository = chain(2);
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S --parallel 1");
    repository.wait_until_called("Create t1--prod");
    running.signal(Signal::KILL);
    running.wait();
    let refused = repository.expect_exit(1, &format!("stack migrate --to {NEW} --yes"));
    assert!(refused.contains("left the journal") && refused.contains("run `sc refresh`"), "{refused}");
    assert!(!repository.path("new/.pulumi/stacks").exists());
}

/// Shows: state.md#migration-to-another-store "The stack must have no journal, and the target must be another store and
///   have no other state of it."
/// Shows: state.md#migration-to-another-store "a mark that names the new one: URL (without passwords)"
#[test]
fn all_stacks_move_one_after_the_other_and_a_failure_does_not_stop_the_others() {
    let repository = provisioned();
    write_stack(&repository, "shore", "file://backend", "1");
    repository.expect_exit(0, "provision -S -s shore");
    write_stack(&repository, "west", "file://backend", "1");
    repository
        .write("backend/.pulumi/stacks/other/deep.json", &repository.read("backend/.pulumi/stacks/tank/shore.json"));
    let lock = "new/.pulumi/locks/organization/tank/reef/5cbf3a5e-51d4-4ac0-8c5d-1c9c7f3b8d1e.json";
    repository.write(lock, LOCK);
    let migrate = format!("stack migrate --all --to {NEW} --yes");
    let moved = repository.expect_exit(4, &migrate);
    for expected in [
        "moved organization/tank/shore to file://new",
        "organization/tank/west has no state yet",
        "the stack reef was not moved",
        "organization/tank/reef cannot be locked in file://",
        "because no server.yaml of this repository names them: organization/other/deep",
    ] {
        assert!(moved.contains(expected), "{expected}: {moved}");
    }
    fs::remove_file(repository.path(lock)).unwrap();
    let moved = repository.expect_exit(0, &format!("{migrate} --json"));
    let rows: Vec<serde_json::Value> =
        moved.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<_> =
        rows.iter().map(|row| format!("{} {}", row["stack"], row["result"]).replace('"', "")).collect();
    assert_eq!(results, ["shore moved", "west skipped", "reef moved"]);
    assert!(repository.expect_exit(0, "stack ls").matches("moved to file://new").count() == 2);
}
