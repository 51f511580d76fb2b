//! `sc state journal`: the way out where the journal of a run cannot be merged.

use serde_json::{Value, json};

use crate::crashes::{chain, with_conflict};
use crate::repository::Repository;

fn listed(repository: &Repository) -> Vec<Value> {
    let output = repository.expect_exit(0, "state journal ls --json");
    output.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Shows: state.md#journals "each created resource that the state lacks becomes a pending create with its id"
#[test]
fn adopted_journal_gives_pending_creates_with_ids_which_the_next_run_reads() {
    let repository = with_conflict();
    repository.script(json!({}));
    let journals = listed(&repository);
    assert_eq!(journals.len(), 1, "{journals:?}");
    let journal = &journals[0];
    assert_eq!((&journal["status"], &journal["created"][0]["id"]), (&json!("conflict"), &json!("a--prod-1")));
    assert!(journal["creating"][0].as_str().unwrap().ends_with("::b--prod"), "{journal}");
    let shown = repository.expect_exit(0, "state journal show");
    assert!(shown.contains("created a--prod as a--prod-1") && shown.contains("may have created b--prod"), "{shown}");
    // Without a terminal and without `--yes` nothing is changed.
    repository.expect_exit(2, "state journal adopt");
    repository.expect_rejected("provision -S");
    let adopted = repository.expect_exit(0, "state journal adopt --yes");
    assert!(adopted.contains("recorded 1 pending create"), "{adopted}");
    assert!(listed(&repository).is_empty() && repository.names("backend/.sc").is_empty());
    // `b`, which may exist, is pending without an id, and `a` is read: it is not created a second time.
    let mut seen = repository.calls().len();
    let output = repository.expect_exit(0, "provision -S");
    assert!(output.contains("b--prod"), "{output}");
    // The scripted plugin reads another value than the one that was created.
    assert_eq!(repository.change_calls(&mut seen), ["Create b--prod", "Delete t0--prod", "Update a--prod"]);
    repository.expect_exit(0, "provision -S --expect-no-changes");
}

/// Shows: state.md#journals "also one that cannot be read"
#[test]
fn journal_that_cannot_be_read_is_listed_and_can_be_discarded() {
    let repository = chain(1);
    repository.expect_exit(0, "provision -S");
    repository.write("backend/.sc/journal/tank/reef/lost", "{\"journal\":9}\n");
    repository.expect_rejected("provision -S");
    let journals = listed(&repository);
    assert_eq!((&journals[0]["status"], &journals[0]["run"]), (&json!("unreadable"), &json!("lost")));
    assert!(journals[0]["reason"].as_str().unwrap().contains("format version 9"), "{journals:?}");
    repository.expect_rejected("state journal adopt lost --yes");
    repository.expect_rejected("state journal show other");
    repository.expect_exit(0, "state journal discard lost --yes");
    assert!(repository.expect_exit(0, "state journal ls").contains("no run has left a journal"));
    repository.expect_exit(0, "provision -S --expect-no-changes");
}
