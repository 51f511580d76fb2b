//! Tests of a journal that is removed or cannot be written during a run: what was done is kept elsewhere, or printed.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crashes::chain;
use crate::repository::{CHECKPOINT, CommandOutput, Repository};

const LINE: &str = "urn:pulumi:reef::tank::rec:index:Thing::t0--prod = t0--prod-1";

/// Stops a run that has created `t0` and creates `t1`, after a change of its folders.
fn stopped(repository: &Repository, arguments: &str, change: impl FnOnce()) -> CommandOutput {
    repository.script(json!({"resources": {"t1--prod": {"hang": "create"}}}));
    let running = repository.start(&format!("provision -S --parallel 1 {arguments}"));
    repository.wait_until_called("Create t1--prod");
    change();
    running.signal(Signal::INT);
    let ended = running.wait();
    repository.script(json!({}));
    ended
}

/// Puts a file in the place of a folder, so that nothing can be written below it.
fn block(repository: &Repository, folder: &str) {
    fs::remove_dir_all(repository.path(folder)).ok();
    repository.write(folder, "");
}

fn unblock(repository: &Repository, folder: &str) {
    fs::remove_file(repository.path(folder)).unwrap();
}

/// Continues after a run whose state was not saved. `t0` must not be created again.
fn check_next_runs(repository: &Repository) {
    assert!(repository.is_locked());
    repository.expect_exit(0, "cancel --yes");
    let output = repository.expect_exit(0, "refresh");
    assert!(output.contains("the state includes the journal of the interrupted run"), "{output}");
    repository.expect_exit(0, "provision -S");
    let creates = repository.calls().iter().filter(|call| *call == "Create t0--prod").count();
    assert_eq!(creates, 1, "{:?}", repository.resources());
    repository.expect_exit(0, "provision --expect-no-changes");
}

#[test]
fn removed_journal_does_not_prevent_saving() {
    let repository = chain(2);
    let ended = stopped(&repository, "", || fs::remove_dir_all(repository.path("backend/.sc")).unwrap());
    assert_eq!(ended.status, "exit 130", "{}", ended.stderr);
    assert!(!repository.is_locked());
    assert!(repository.names("backend/.sc").is_empty());
    repository.expect_exit(0, "provision -S");
    assert_eq!(repository.resources().len(), 4);
}

/// Shows: state.md#the-checkpoint-could-not-be-saved "The error names the journal after its file was read and flushed
///   to disk"
#[test]
fn removed_journal_is_written_anew_before_the_message_names_it() {
    let repository = chain(2);
    let ended = stopped(&repository, "", || {
        fs::remove_dir_all(repository.path("backend/.sc")).unwrap();
        block(&repository, "backend/.pulumi/stacks");
    });
    assert_eq!(ended.status, "exit 1", "{}", ended.stderr);
    let [journal] = &repository.names("backend/.sc")[..] else { panic!("{}", ended.stderr) };
    let message = format!("its changes are kept in the journal {}", repository.path(journal).display());
    assert!(ended.stderr.contains(&message), "{}", ended.stderr);
    unblock(&repository, "backend/.pulumi/stacks");
    check_next_runs(&repository);
}

#[test]
fn journal_that_the_backend_cannot_store_is_kept_in_the_state_folder_of_the_user() {
    let repository = chain(2);
    let ended = stopped(&repository, "", || {
        block(&repository, "backend/.sc");
        block(&repository, "backend/.pulumi/stacks");
    });
    assert_eq!(ended.status, "exit 1", "{}", ended.stderr);
    let [journal] = &repository.names("home/.local/state/sc")[..] else { panic!("{}", ended.stderr) };
    let message = format!("its changes are kept in the journal {}", repository.path(journal).display());
    assert!(ended.stderr.contains(&message), "{}", ended.stderr);
    assert!(ended.stderr.contains("run `sc refresh` as the same user on this machine"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(LINE), "{}", ended.stderr);
    unblock(&repository, "backend/.sc");
    unblock(&repository, "backend/.pulumi/stacks");
    check_next_runs(&repository);
    assert!(repository.names("home/.local/state/sc").is_empty());
}

/// Shows: state.md#the-journal-could-not-be-written "prints a line `URN = id` for each such resource on standard error,
///   and an `unrecorded` event with `--json`"
#[test]
fn changes_that_no_disk_can_store_are_printed_as_lines_and_events() {
    for arguments in ["", "--json"] {
        let repository = chain(2);
        let ended = stopped(&repository, arguments, || {
            for folder in ["backend/.sc", "backend/.pulumi/stacks", "home/.local", "tmp"] {
                block(&repository, folder);
            }
        });
        assert_eq!(ended.status, "exit 1", "{}", ended.stderr);
        // The stopped create of `t1` succeeds, too.
        let lines = [LINE.to_owned(), LINE.replace("t0", "t1")];
        let end = format!("neither in the state nor in a journal:\n{}\n", lines.join("\n"));
        assert!(ended.stderr.ends_with(&end), "{}", ended.stderr);
        assert!(!ended.stderr.contains("kept in the journal"), "{}", ended.stderr);
        if arguments == "--json" {
            let mut events: Vec<&str> = ended.stdout.lines().collect();
            assert!(events.pop().is_some_and(|last| last.contains("\"event\":\"error\"")), "{}", ended.stdout);
            let last = events[events.len() - lines.len()..].iter();
            for (event, line) in last.zip(&lines) {
                let event: Value = serde_json::from_str(event).unwrap();
                let members = ["event", "stack", "change", "urn", "id"].map(|member| event[member].as_str().unwrap());
                let (urn, id) = line.split_once(" = ").unwrap();
                assert_eq!(members, ["unrecorded", "reef", "added", urn, id]);
            }
        }
    }
}

/// Shows: state.md#the-state-was-changed-during-a-run "At its end the run saves nothing and fails."
/// Shows: state.md#the-state-was-changed-during-a-run "If the run has recorded changes, its journal and the lock stay"
#[test]
fn state_that_another_program_has_changed_during_a_run_is_not_overwritten() {
    let repository = chain(2);
    // Of a program that does not respect the lock.
    let other = r#"{"version":3,"checkpoint":{"stack":"organization/tank/reef"}}"#;
    let ended = stopped(&repository, "", || repository.write(CHECKPOINT, other));
    assert_eq!(ended.status, "exit 1", "{}", ended.stderr);
    let [journal] = &repository.names("backend/.sc")[..] else { panic!("{}", ended.stderr) };
    for expected in [
        &format!("its changes are kept in the journal {}", repository.path(journal).display()),
        "organization/tank/reef: another program has changed its state at 20",
        " after this run had read it",
        "run `sc cancel` and `sc preview`: it lists what this run has created",
    ] {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    assert_eq!(repository.read(CHECKPOINT), other);
    repository.expect_exit(0, "cancel --yes");
    for command in ["preview", "provision -S", "refresh --yes"] {
        let output = repository.expect_rejected(command);
        assert!(output.contains(&format!("it had created {}", LINE.split(" = ").next().unwrap())), "{output}");
    }
}
