//! Rows 34 to 36, 38 to 40, 44, 45, 49: options of resources and of runs.

use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_34_ignored_changes() {
    assert_replays(
        "ignore-changes, ignore-changes-nested, ignore-changes-replace, ignore-changes-secret, dbr-dependent-ignores",
    );
    assert_replays("provider-ignore-changes");
    check_step("ignore-changes/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff");
        assert_eq!(outcome.request("Check", "a")["news"]["v"], outcome.request("Check", "a")["olds"]["v"]);
        assert_eq!(outcome.request("Diff", "a")["ignoreChanges"], json!(["v"]));
    });
    check_step("ignore-changes/4", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update");
        assert_eq!(outcome.request("Update", "a")["ignoreChanges"], outcome.request("Diff", "a")["ignoreChanges"]);
    });
    check_step("ignore-changes-replace/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create → Delete");
        let checks = outcome.requests("Check", "a");
        assert_ne!(checks[0]["news"]["v"], checks[1]["news"]["v"], "the second Check has the inputs of the program");
    });
}

#[test]
fn row_35_unregistered_protected_resource() {
    assert_replays("protect/1-3, protect-dependency, destroy-preview-protected");
    for step in ["protect/1", "protect/2"] {
        check_step(step, |outcome| {
            assert_eq!((outcome.calls("a"), outcome.calls("b")), (String::new(), "Check → Diff".to_owned()));
            assert!(!outcome.succeeded() && outcome.has_error("a"), "also in a preview");
        });
    }
    check_step("protect/3", |outcome| {
        assert_eq!(outcome.order(&["Delete"]), "Delete b", "other resources are deleted");
        assert_eq!(outcome.recorded("a"), "a-1");
    });
    check_step("destroy-preview-protected/1", |outcome| assert!(!outcome.succeeded() && outcome.has_error("b")));
}

#[test]
fn row_36_replacement_of_protected_resource() {
    assert_replays("protect-replace");
    check_step("protect-replace/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create(preview)");
        assert!(!outcome.succeeded() && outcome.has_error("a"), "the preview reports it and continues");
    });
    check_step("protect-replace/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff");
        assert!(!outcome.succeeded() && outcome.has_error("a"));
    });
    check_step("protect-replace/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create → Delete", "unprotected")
    });
}

/// Shows: plugin-authoring.md#calls "`sc` removes the secret marks from a request and restores them in the response"
#[test]
fn row_38_provider_without_secret_support() {
    assert_replays("secrets-not-accepted, secrets-not-accepted-nested, refresh-secrets-not-accepted");
    check_step("secrets-not-accepted/0", |outcome| {
        assert_eq!(outcome.request("Check", "a")["news"], json!({"v": "s", "w": {"x": "t"}}), "plain values");
        assert_eq!(outcome.request("Create", "a")["properties"]["v"], "s");
        assert!(outcome.entry("a")["inputs"]["v"].get("plaintext").is_some(), "and secret again in the state");
        assert!(outcome.entry("a")["outputs"]["v"].get("plaintext").is_some());
    });
    check_step("secrets-not-accepted/1", |outcome| {
        for rpc in ["Diff", "Update"] {
            assert_eq!(outcome.request(rpc, "a")["oldInputs"]["v"], "s", "{rpc}");
        }
    });
    check_step("secrets-not-accepted/2", |outcome| {
        assert_eq!(outcome.request("Delete", "a")["oldInputs"]["w"]["x"], "t")
    });
    check_step("refresh-secrets-not-accepted/1", |outcome| {
        assert!(outcome.request("Read", "a")["inputs"]["v"].is_string());
        assert!(outcome.entry("a")["inputs"]["v"].get("plaintext").is_some());
    });
}

#[test]
fn row_39_targets() {
    assert_replays(
        "target, target-create, target-preview-create, target-replaced, target-replaced-dbr, target-provider, exclude",
    );
    check_step("target/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update");
        assert_eq!((outcome.calls("b"), outcome.calls("c")), (String::new(), String::new()));
        assert_eq!(outcome.calls("default"), "CheckConfig → DiffConfig → Configure", "providers are always in scope");
    });
    check_step("target-create/0", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.calls("b")), (String::new(), "Check°".to_owned()));
        assert!(!outcome.succeeded() && outcome.has_error("b"), "its dependency is not created");
    });
    check_step("target-preview-create/0", |outcome| {
        assert_eq!(outcome.calls("b"), "Check° → Create(preview)");
        assert!(!outcome.succeeded() && outcome.has_error("b"), "the preview reports it and continues");
    });
    check_step("target-provider/2", |outcome| {
        assert_eq!(outcome.calls("a"), "");
        assert!(!outcome.succeeded() && outcome.has_error("a"), "its provider was replaced");
    });
}

#[test]
fn row_40_destroy_with_targets() {
    assert_replays("target-destroy, target-parent");
    check_step("target-destroy/1", |outcome| {
        assert_eq!((outcome.calls("b"), outcome.order(&["Delete"])), ("Diff".to_owned(), String::new()));
        assert!(!outcome.succeeded() && outcome.has_error("b"));
    });
    check_step("target-destroy/2", |outcome| {
        assert_eq!(outcome.calls("default"), "Configure");
        assert_eq!(outcome.order(&["Diff", "Delete"]), "Diff b → Delete b → Delete a");
        assert_eq!(outcome.recorded("c"), "c-1");
    });
}

#[test]
fn row_44_retain_on_delete() {
    assert_replays("retain-on-delete, retain-on-delete-replace, dbr-dependent-retained");
    check_step("retain-on-delete/2", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.recorded("a")), (String::new(), String::new()))
    });
    check_step("retain-on-delete-replace/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Check° → Create");
        assert_eq!(outcome.recorded("a"), "a-2");
    });
}

#[test]
fn row_45_deleted_with() {
    assert_replays("deleted-with, deleted-with-destroy");
    check_step("deleted-with/2", |outcome| {
        assert_eq!(outcome.order(&["Delete"]), "Delete a");
        assert_eq!((outcome.steps("b"), outcome.recorded("b")), ("delete".to_owned(), String::new()));
    });
    check_step("deleted-with-destroy/1", |outcome| assert_eq!(outcome.order(&["Delete"]), "Delete a"));
}

#[test]
fn row_49_renamed_with_alias() {
    assert_replays(
        "rename-alias, reparent-alias, provider-renamed, alias-parent-inherited, alias-both, alias-prefix, alias-no-parent",
    );
    assert_replays("alias-dependents, alias-failure, alias-first, alias-second");
    check_step("rename-alias/2", |outcome| {
        assert_eq!(
            (outcome.calls("b"), outcome.calls("a")),
            ("Check → Diff".to_owned(), String::new()),
            "the new name"
        );
        assert_eq!(outcome.request("Diff", "b")["id"], "a-1", "the old id");
        assert_eq!((outcome.recorded("b"), outcome.recorded("a")), ("a-1".to_owned(), String::new()));
    });
    for step in ["alias-first/2", "alias-second/2"] {
        check_step(step, |outcome| {
            assert!(!outcome.succeeded() && outcome.order(&["Delete"]).is_empty(), "two resources with the same URN")
        });
    }
}
