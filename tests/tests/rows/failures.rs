//! Rows 25 to 28, 46, 47, 57: failed steps, killed runs, stopped runs.

use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_25_a_create_that_fails() {
    plays("create-fails, create-no-id");
    see("create-fails/1", |seen| {
        assert_eq!(seen.calls("b"), "Check° → Create(fails)");
        assert_eq!((seen.recorded("b"), seen.calls("c")), (String::new(), String::new()));
        assert!(!seen.succeeded());
    });
    see("create-fails/2", |seen| assert_eq!(seen.calls("b"), "Check° → Create"));
}

#[test]
fn row_26_a_create_that_does_not_come_up() {
    plays("create-partial, cbd-create-partial, dbr-create-partial");
    see("create-partial/0", |seen| {
        assert_eq!(seen.calls("a"), "Check° → Create(fails)");
        assert_eq!(
            (seen.recorded("a"), seen.calls("b")),
            ("a-1".to_owned(), String::new()),
            "dependents are not started"
        );
        assert_eq!(seen.entry("a")["initErrors"], json!(["rec: not ready"]));
        assert_eq!(seen.entry("a")["outputs"]["cid"], "c:a-1");
    });
    see("create-partial/2", |seen| assert_eq!(seen.calls("a"), "Check → Diff → Update", "though nothing changed"));
}

#[test]
fn row_27_an_update_that_does_not_come_up() {
    plays("update-partial, update-partial-back");
    see("update-partial/1", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update(fails)");
        assert_eq!(seen.entry("a")["inputs"]["v"], 1.0, "the old inputs");
        assert_eq!(seen.entry("a")["outputs"]["out"], "o:2", "the new outputs");
        assert_eq!(seen.entry("a")["initErrors"], json!(["rec: not ready"]));
    });
    see("update-partial/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update");
        assert_eq!(seen.entry("a").get("initErrors"), None);
    });
}

#[test]
fn row_28_inputs_that_check_refuses() {
    plays("check-failure, check-failure-existing");
    for step in ["check-failure/0", "check-failure/1"] {
        see(step, |seen| {
            assert_eq!(seen.calls("a"), "Check°");
            assert!(!seen.succeeded() && seen.complains_of("a"), "also in a preview");
        });
    }
    see("check-failure-existing/1", |seen| {
        assert_eq!((seen.calls("b"), seen.calls("c")), ("Check".to_owned(), String::new()));
        assert_eq!(seen.order(&["Delete"]), "");
        assert_eq!(seen.recorded("b"), "b-1");
    });
}

#[test]
fn row_46_killed_during_a_create() {
    plays("kill-create, kill-create-refresh");
    see("kill-create/0", |seen| assert_eq!((seen.recorded("a"), seen.pending()), (String::new(), vec!["creating"])));
    see("kill-create/1", |seen| {
        assert_eq!(seen.calls("a"), "Check° → Create", "it may be there twice now");
        assert_eq!((seen.recorded("a"), seen.pending()), ("a-2".to_owned(), vec!["creating"]), "it stays in the list");
    });
    see("kill-create-refresh/1", |seen| assert_eq!(seen.pending(), ["creating"], "also through a refresh"));
    see("kill-create-refresh/2", |seen| assert!(seen.pending().is_empty(), "until the user says so"));
}

#[test]
fn row_47_killed_during_an_update_or_a_delete() {
    plays("kill-update, kill-delete, kill-replace");
    see("kill-update/1", |seen| assert_eq!((seen.recorded("a"), seen.pending()), ("a-1".to_owned(), vec!["updating"])));
    see("kill-update/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update");
        assert!(seen.pending().is_empty());
    });
    see("kill-delete/1", |seen| assert_eq!((seen.recorded("a"), seen.pending()), ("a-1".to_owned(), vec!["deleting"])));
    see("kill-delete/2", |seen| {
        assert_eq!((seen.calls("a"), seen.recorded("a")), ("Delete".to_owned(), String::new()))
    });
}

/// The outcome of a stop between deletes (`signal-delete/1`) differs on purpose, and is a listed exception.
#[test]
fn row_57_the_first_signal() {
    plays("signal-create, signal-update, signal-delete, signals-create, signals-update");
    see("signal-create/0", |seen| {
        assert_eq!(seen.order(&["Create", "Cancel"]), "Create a → Cancel ", "while the Create is under way");
        assert!(!seen.succeeded());
        assert_eq!(seen.recorded("a"), "a-1", "its answer is recorded");
        assert_eq!((seen.calls("b"), seen.calls("c")), (String::new(), String::new()), "and nothing new begins");
    });
    see("signal-update/1", |seen| {
        assert_eq!(seen.order(&["Update", "Delete", "Cancel"]), "Update a → Cancel ", "nor is anything deleted");
        assert_eq!(seen.recorded("x"), "x-1");
    });
}
