//! Rows 5 to 9, 48, 53, 54: replacements.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

/// Shows: engine.md#registration "Check is called a second time, with the same random seed and without old inputs"
#[test]
fn row_05_create_before_delete_replacement() {
    assert_replays("replace/1-2");
    check_step("replace/1", |outcome| assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create(preview)"));
    check_step("replace/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create → Delete");
        assert_eq!(
            outcome.order(&["Create", "Update", "Delete"]),
            "Create a → Update b → Delete a",
            "the rest of the program runs in between"
        );
        assert_eq!(outcome.request("Update", "b")["news"]["v"], "c:a-2");
        let delete = outcome.request("Delete", "a");
        assert_eq!((&delete["id"], &delete["oldInputs"]["k"]), (&json!("a-1"), &json!("x")));
        assert_eq!(delete["properties"]["cid"], "c:a-1", "the old outputs");
        assert_eq!(outcome.recorded("a"), "a-2");
    });
}

#[test]
fn row_06_delete_before_replace() {
    assert_replays("dbr/1-2, dbr-option/2");
    check_step("dbr/1", |outcome| assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create(preview)"));
    check_step("dbr/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Delete → Create");
        assert_eq!(outcome.steps("a"), "delete-replaced, replace, create-replacement");
        assert_eq!(outcome.recorded("a"), "a-2");
    });
    check_step("dbr-create-fails-destroy/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Delete → Create(fails)");
        assert_eq!(outcome.recorded("a"), "a-1 (pendingReplacement)", "the state between delete and create");
    });
}

/// Shows: engine.md#replacement "The dependent replacements are deleted in reverse order, then the old resource
///   itself."
#[test]
fn row_07_delete_before_replace_with_dependents() {
    assert_replays(
        "dbr-dependents/1-2, dbr-chain, dbr-deleted-with, dbr-dependent-gone, dbr-dependent-fails, dbr-dependent-protected",
    );
    assert_replays(
        "dbr-dependent-retained, dbr-dependent-ignores, dbr-dependent-replace-on-changes, dbr-alias, dbr-secret",
    );
    check_step("dbr-dependents/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create(preview)");
        assert_eq!(outcome.order(&["Delete"]), "");
    });
    check_step("dbr-dependents/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Delete → Create");
        assert_eq!(
            outcome.calls("b"),
            "Diff → Delete → Check° → Create",
            "Diff replaces it; deleted and created again"
        );
        assert_eq!(outcome.calls("c"), "Diff → Check → Diff → Update", "Diff does not replace it");
        assert_eq!(outcome.calls("d"), "Check → Diff", "no Diff for the replacement without an input from the root");
        assert!(
            outcome
                .order(&["Diff", "Delete", "Create"])
                .starts_with("Diff a → Diff c → Diff b → Diff e → Delete b → Delete a → Create a")
        );
        let diff = outcome.request("Diff", "b");
        assert_eq!(diff["oldInputs"]["k"], "c:a-1");
        assert_eq!(
            diff["news"]["k"], UNKNOWN_STRING,
            "old inputs, with those from the root unknown, in real runs, too"
        );
    });
    check_step("dbr-chain/2", |outcome| assert_eq!(outcome.order(&["Delete"]), "Delete d → Delete b → Delete a"));
}

#[test]
fn row_08_pending_replacement_is_resumed() {
    assert_replays("dbr-create-fails/1-2, dbr-back, dbr-continue/2");
    check_step("dbr-create-fails/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Delete → Create(fails)");
        assert_eq!(outcome.recorded("a"), "a-1 (pendingReplacement)");
    });
    check_step("dbr-create-fails/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create", "no second Delete");
        assert_eq!(outcome.request("Diff", "a")["id"], "a-1", "the id of the deleted resource");
        assert_eq!(outcome.requests("Diff", "c").len(), 2, "Diff is called for dependents again");
        assert_eq!(outcome.recorded("a"), "a-2");
    });
    check_step("dbr-back/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create", "even if the program reverted the change");
    });
}

#[test]
fn row_09_unregistered_pending_replacement_is_removed() {
    assert_replays("dbr-create-fails-dropped/2, dbr-create-fails-destroy/2, dbr-dependent-fails-dropped/2");
    assert_replays("refresh-pending-replacement");
    check_step("dbr-create-fails-dropped/2", |outcome| {
        assert_eq!(outcome.calls("a"), "");
        assert_eq!(outcome.steps("a"), "remove-pending-replace");
        assert_eq!(outcome.recorded("a"), "");
    });
    check_step("dbr-create-fails-destroy/2", |outcome| assert_eq!(outcome.calls("a"), ""));
    check_step("refresh-pending-replacement/2", |outcome| {
        assert_eq!(outcome.calls("a"), "", "a refresh makes no call");
        assert_eq!(outcome.recorded("a"), "a-1 (pendingReplacement)");
    });
}

/// Shows: engine.md#replacement "If that Delete fails, the end of the next run tries again."
#[test]
fn row_48_pending_delete_of_earlier_run() {
    assert_replays(
        "cbd-delete-fails/3, cbd-delete-fails-destroy, cbd-delete-fails-replace-again, cbd-delete-fails-twice, cbd-dropped",
    );
    check_step("cbd-delete-fails/1", |outcome| assert_eq!(outcome.recorded("a"), "a-2, a-1 (delete)"));
    check_step("cbd-delete-fails/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Delete");
        assert_eq!(
            (&outcome.request("Diff", "a")["id"], &outcome.request("Delete", "a")["id"]),
            (&json!("a-2"), &json!("a-1"))
        );
        assert_eq!(outcome.recorded("a"), "a-2");
    });
    check_step("cbd-delete-fails-destroy/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Delete → Delete", "both of them")
    });
    check_step("cbd-delete-fails-replace-again/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create → Delete → Delete");
    });
}

#[test]
fn row_53_tainted_or_replace_requested() {
    assert_replays("taint, replace-flag, target-replace");
    check_step("taint/2", |outcome| assert_eq!(outcome.calls("a"), "Check° → Create(preview)"));
    check_step("taint/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check° → Create → Delete", "no Diff, and one Check");
        assert_eq!(outcome.entry("a").get("taint"), None);
    });
    check_step("replace-flag/2", |outcome| assert_eq!(outcome.calls("a"), "Check° → Create → Delete"));
}

#[test]
fn row_54_replacement_trigger_or_replace_with() {
    assert_replays("replacement-trigger, trigger-unknown, replace-with, deleted-with-replaced");
    check_step("replacement-trigger/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Check° → Create → Delete", "no Diff")
    });
    check_step("replacement-trigger/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff", "no second replacement")
    });
    check_step("replace-with/2", |outcome| {
        assert_eq!(outcome.calls("b"), "Check → Check° → Create → Delete");
        assert_eq!(outcome.order(&["Delete"]), "Delete b → Delete a");
    });
    check_step("deleted-with-replaced/2", |outcome| {
        assert_eq!(
            outcome.calls("b"),
            "Check → Check° → Create",
            "no Delete, because its deletedWith resource is deleted"
        );
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create → Delete");
    });
}
