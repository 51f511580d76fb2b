//! Rows 5 to 9, 48, 53, 54: replacements.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_05_replace_the_new_one_first() {
    plays("replace/1-2");
    see("replace/1", |seen| assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create(preview)"));
    see("replace/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create → Delete");
        assert_eq!(
            seen.order(&["Create", "Update", "Delete"]),
            "Create a → Update b → Delete a",
            "the rest of the program runs in between"
        );
        assert_eq!(seen.request("Update", "b")["news"]["v"], "c:a-2");
        let delete = seen.request("Delete", "a");
        assert_eq!((&delete["id"], &delete["oldInputs"]["k"]), (&json!("a-1"), &json!("x")));
        assert_eq!(delete["properties"]["cid"], "c:a-1", "the old outputs");
        assert_eq!(seen.recorded("a"), "a-2");
    });
}

#[test]
fn row_06_replace_the_old_one_first() {
    plays("dbr/1-2, dbr-option/2");
    see("dbr/1", |seen| assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create(preview)"));
    see("dbr/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Delete → Create");
        assert_eq!(seen.steps("a"), "delete-replaced, replace, create-replacement");
        assert_eq!(seen.recorded("a"), "a-2");
    });
    see("dbr-create-fails-destroy/1", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Delete → Create(fails)");
        assert_eq!(seen.recorded("a"), "a-1 (pendingReplacement)", "that is what it is in between");
    });
}

#[test]
fn row_07_replace_the_old_one_first_with_dependents() {
    plays(
        "dbr-dependents/1-2, dbr-chain, dbr-deleted-with, dbr-dependent-gone, dbr-dependent-fails, dbr-dependent-protected",
    );
    plays("dbr-dependent-retained, dbr-dependent-ignores, dbr-dependent-replace-on-changes, dbr-alias, dbr-secret");
    see("dbr-dependents/1", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create(preview)");
        assert_eq!(seen.order(&["Delete"]), "");
    });
    see("dbr-dependents/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Delete → Create");
        assert_eq!(seen.calls("b"), "Diff → Delete → Check° → Create", "probed, condemned, made again");
        assert_eq!(seen.calls("c"), "Diff → Check → Diff → Update", "probed and spared");
        assert_eq!(seen.calls("d"), "Check → Diff", "what only depends on it is not probed");
        assert!(
            seen.order(&["Diff", "Delete", "Create"])
                .starts_with("Diff a → Diff c → Diff b → Diff e → Delete b → Delete a → Create a")
        );
        let probe = seen.request("Diff", "b");
        assert_eq!(probe["oldInputs"]["k"], "c:a-1");
        assert_eq!(
            probe["news"]["k"], UNKNOWN_STRING,
            "the old inputs, what came from the root unknown: in real runs, too"
        );
    });
    see("dbr-chain/2", |seen| assert_eq!(seen.order(&["Delete"]), "Delete d → Delete b → Delete a"));
}

#[test]
fn row_08_the_create_failed_and_the_goal_is_still_there() {
    plays("dbr-create-fails/1-2, dbr-back, dbr-continue/2");
    see("dbr-create-fails/1", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Delete → Create(fails)");
        assert_eq!(seen.recorded("a"), "a-1 (pendingReplacement)");
    });
    see("dbr-create-fails/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create", "no second Delete");
        assert_eq!(seen.request("Diff", "a")["id"], "a-1", "which is gone already");
        assert_eq!(seen.requests("Diff", "c").len(), 2, "dependents are probed again");
        assert_eq!(seen.recorded("a"), "a-2");
    });
    see("dbr-back/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create", "even if the program went back");
    });
}

#[test]
fn row_09_the_create_failed_and_the_goal_is_gone() {
    plays("dbr-create-fails-dropped/2, dbr-create-fails-destroy/2, dbr-dependent-fails-dropped/2");
    plays("refresh-pending-replacement");
    see("dbr-create-fails-dropped/2", |seen| {
        assert_eq!(seen.calls("a"), "");
        assert_eq!(seen.steps("a"), "remove-pending-replace");
        assert_eq!(seen.recorded("a"), "");
    });
    see("dbr-create-fails-destroy/2", |seen| assert_eq!(seen.calls("a"), ""));
    see("refresh-pending-replacement/2", |seen| {
        assert_eq!(seen.calls("a"), "", "a refresh asks nothing either");
        assert_eq!(seen.recorded("a"), "a-1 (pendingReplacement)");
    });
}

#[test]
fn row_48_a_deletion_left_from_before() {
    plays(
        "cbd-delete-fails/3, cbd-delete-fails-destroy, cbd-delete-fails-replace-again, cbd-delete-fails-twice, cbd-dropped",
    );
    see("cbd-delete-fails/1", |seen| assert_eq!(seen.recorded("a"), "a-2, a-1 (delete)"));
    see("cbd-delete-fails/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Delete");
        assert_eq!(
            (&seen.request("Diff", "a")["id"], &seen.request("Delete", "a")["id"]),
            (&json!("a-2"), &json!("a-1"))
        );
        assert_eq!(seen.recorded("a"), "a-2");
    });
    see("cbd-delete-fails-destroy/2", |seen| assert_eq!(seen.calls("a"), "Delete → Delete", "both of them"));
    see("cbd-delete-fails-replace-again/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create → Delete → Delete");
    });
}

#[test]
fn row_53_tainted_or_named_by_replace() {
    plays("taint, replace-flag, target-replace");
    see("taint/2", |seen| assert_eq!(seen.calls("a"), "Check° → Create(preview)"));
    see("taint/3", |seen| {
        assert_eq!(seen.calls("a"), "Check° → Create → Delete", "no Diff, and one Check");
        assert_eq!(seen.entry("a").get("taint"), None);
    });
    see("replace-flag/2", |seen| assert_eq!(seen.calls("a"), "Check° → Create → Delete"));
}

#[test]
fn row_54_a_trigger_or_a_replaced_partner() {
    plays("replacement-trigger, trigger-unknown, replace-with, deleted-with-replaced");
    see("replacement-trigger/2", |seen| assert_eq!(seen.calls("a"), "Check → Check° → Create → Delete", "no Diff"));
    see("replacement-trigger/3", |seen| assert_eq!(seen.calls("a"), "Check → Diff", "once"));
    see("replace-with/2", |seen| {
        assert_eq!(seen.calls("b"), "Check → Check° → Create → Delete");
        assert_eq!(seen.order(&["Delete"]), "Delete b → Delete a");
    });
    see("deleted-with-replaced/2", |seen| {
        assert_eq!(seen.calls("b"), "Check → Check° → Create", "it went with the one it is tied to");
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create → Delete");
    });
}
