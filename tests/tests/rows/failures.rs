//! Rows 25 to 28, 46, 47, 57: failed steps, killed runs, stopped runs.

use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_25_failed_create() {
    assert_replays("create-fails, create-no-id");
    check_step("create-fails/1", |outcome| {
        assert_eq!(outcome.calls("b"), "Check° → Create(fails)");
        assert_eq!((outcome.recorded("b"), outcome.calls("c")), (String::new(), String::new()));
        assert!(!outcome.succeeded());
    });
    check_step("create-fails/2", |outcome| assert_eq!(outcome.calls("b"), "Check° → Create"));
}

/// Shows: plugin-authoring.md#calls "return the detail `ErrorResourceInitFailed` with its id"
#[test]
fn row_26_create_with_init_errors() {
    assert_replays("create-partial, cbd-create-partial, dbr-create-partial");
    check_step("create-partial/0", |outcome| {
        assert_eq!(outcome.calls("a"), "Check° → Create(fails)");
        assert_eq!(
            (outcome.recorded("a"), outcome.calls("b")),
            ("a-1".to_owned(), String::new()),
            "dependents are not started"
        );
        assert_eq!(outcome.entry("a")["initErrors"], json!(["rec: not ready"]));
        assert_eq!(outcome.entry("a")["outputs"]["cid"], "c:a-1");
    });
    check_step("create-partial/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update", "although the inputs are equal")
    });
}

#[test]
fn row_27_update_with_init_errors() {
    assert_replays("update-partial, update-partial-back");
    check_step("update-partial/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update(fails)");
        assert_eq!(outcome.entry("a")["inputs"]["v"], 1.0, "the old inputs");
        assert_eq!(outcome.entry("a")["outputs"]["out"], "o:2", "the new outputs");
        assert_eq!(outcome.entry("a")["initErrors"], json!(["rec: not ready"]));
    });
    check_step("update-partial/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update");
        assert_eq!(outcome.entry("a").get("initErrors"), None);
    });
}

#[test]
fn row_28_inputs_rejected_by_check() {
    assert_replays("check-failure, check-failure-existing");
    for step in ["check-failure/0", "check-failure/1"] {
        check_step(step, |outcome| {
            assert_eq!(outcome.calls("a"), "Check°");
            assert!(!outcome.succeeded() && outcome.has_error("a"), "also in a preview");
        });
    }
    check_step("check-failure-existing/1", |outcome| {
        assert_eq!((outcome.calls("b"), outcome.calls("c")), ("Check".to_owned(), String::new()));
        assert_eq!(outcome.order(&["Delete"]), "");
        assert_eq!(outcome.recorded("b"), "b-1");
    });
}

#[test]
fn row_46_killed_during_create() {
    assert_replays("kill-create, kill-create-refresh");
    check_step("kill-create/0", |outcome| {
        assert_eq!((outcome.recorded("a"), outcome.pending()), (String::new(), vec!["creating"]))
    });
    check_step("kill-create/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check° → Create", "a second resource may exist now");
        assert_eq!(
            (outcome.recorded("a"), outcome.pending()),
            ("a-2".to_owned(), vec!["creating"]),
            "the operation stays pending"
        );
    });
    check_step("kill-create-refresh/1", |outcome| assert_eq!(outcome.pending(), ["creating"], "a refresh keeps it"));
    check_step("kill-create-refresh/2", |outcome| assert!(outcome.pending().is_empty(), "until the user removes it"));
}

#[test]
fn row_47_killed_during_update_or_delete() {
    assert_replays("kill-update, kill-delete, kill-replace");
    check_step("kill-update/1", |outcome| {
        assert_eq!((outcome.recorded("a"), outcome.pending()), ("a-1".to_owned(), vec!["updating"]))
    });
    check_step("kill-update/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update");
        assert!(outcome.pending().is_empty());
    });
    check_step("kill-delete/1", |outcome| {
        assert_eq!((outcome.recorded("a"), outcome.pending()), ("a-1".to_owned(), vec!["deleting"]))
    });
    check_step("kill-delete/2", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.recorded("a")), ("Delete".to_owned(), String::new()))
    });
}

/// Tests a stop during a step. The outcome of a stop between deletes (`signal-delete/1`) differs on purpose, and is a
/// listed exception.
#[test]
fn row_57_first_signal() {
    assert_replays("signal-create, signal-update, signal-delete, signals-create, signals-update");
    check_step("signal-create/0", |outcome| {
        assert_eq!(outcome.order(&["Create", "Cancel"]), "Create a → Cancel ", "Cancel during the Create");
        assert!(!outcome.succeeded());
        assert_eq!(outcome.recorded("a"), "a-1", "its reply is recorded");
        assert_eq!((outcome.calls("b"), outcome.calls("c")), (String::new(), String::new()), "no new step begins");
    });
    check_step("signal-update/1", |outcome| {
        assert_eq!(outcome.order(&["Update", "Delete", "Cancel"]), "Update a → Cancel ", "no resource is deleted");
        assert_eq!(outcome.recorded("x"), "x-1");
    });
}
