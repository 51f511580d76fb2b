//! Rows 34 to 36, 38 to 40, 44, 45, 49: options of resources and of runs.

use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_34_changes_that_do_not_count() {
    plays(
        "ignore-changes, ignore-changes-nested, ignore-changes-replace, ignore-changes-secret, dbr-dependent-ignores",
    );
    plays("provider-ignore-changes");
    see("ignore-changes/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff");
        assert_eq!(seen.request("Check", "a")["news"]["v"], seen.request("Check", "a")["olds"]["v"]);
        assert_eq!(seen.request("Diff", "a")["ignoreChanges"], json!(["v"]));
    });
    see("ignore-changes/4", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update");
        assert_eq!(seen.request("Update", "a")["ignoreChanges"], seen.request("Diff", "a")["ignoreChanges"]);
    });
    see("ignore-changes-replace/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create → Delete");
        let checks = seen.requests("Check", "a");
        assert_ne!(checks[0]["news"]["v"], checks[1]["news"]["v"], "for the new one the program's inputs count");
    });
}

#[test]
fn row_35_protected_and_dropped() {
    plays("protect/1-3, protect-dependency, destroy-preview-protected");
    for step in ["protect/1", "protect/2"] {
        see(step, |seen| {
            assert_eq!((seen.calls("a"), seen.calls("b")), (String::new(), "Check → Diff".to_owned()));
            assert!(!seen.succeeded() && seen.complains_of("a"), "also in a preview");
        });
    }
    see("protect/3", |seen| {
        assert_eq!(seen.order(&["Delete"]), "Delete b", "others go");
        assert_eq!(seen.recorded("a"), "a-1");
    });
    see("destroy-preview-protected/1", |seen| assert!(!seen.succeeded() && seen.complains_of("b")));
}

#[test]
fn row_36_protected_and_to_be_replaced() {
    plays("protect-replace");
    see("protect-replace/1", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create(preview)");
        assert!(!seen.succeeded() && seen.complains_of("a"), "at the end");
    });
    see("protect-replace/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff");
        assert!(!seen.succeeded() && seen.complains_of("a"));
    });
    see("protect-replace/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create → Delete", "unprotected")
    });
}

#[test]
fn row_38_secrets_for_a_provider_that_takes_none() {
    plays("secrets-not-accepted, secrets-not-accepted-nested, refresh-secrets-not-accepted");
    see("secrets-not-accepted/0", |seen| {
        assert_eq!(seen.request("Check", "a")["news"], json!({"v": "s", "w": {"x": "t"}}), "plain");
        assert_eq!(seen.request("Create", "a")["properties"]["v"], "s");
        assert!(seen.entry("a")["inputs"]["v"].get("plaintext").is_some(), "and secret again in the state");
        assert!(seen.entry("a")["outputs"]["v"].get("plaintext").is_some());
    });
    see("secrets-not-accepted/1", |seen| {
        for rpc in ["Diff", "Update"] {
            assert_eq!(seen.request(rpc, "a")["oldInputs"]["v"], "s", "{rpc}");
        }
    });
    see("secrets-not-accepted/2", |seen| assert_eq!(seen.request("Delete", "a")["oldInputs"]["w"]["x"], "t"));
    see("refresh-secrets-not-accepted/1", |seen| {
        assert!(seen.request("Read", "a")["inputs"]["v"].is_string());
        assert!(seen.entry("a")["inputs"]["v"].get("plaintext").is_some());
    });
}

#[test]
fn row_39_targets() {
    plays(
        "target, target-create, target-preview-create, target-replaced, target-replaced-dbr, target-provider, exclude",
    );
    see("target/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update");
        assert_eq!((seen.calls("b"), seen.calls("c")), (String::new(), String::new()));
        assert_eq!(seen.calls("default"), "CheckConfig → DiffConfig → Configure", "providers are always in scope");
    });
    see("target-create/0", |seen| {
        assert_eq!((seen.calls("a"), seen.calls("b")), (String::new(), "Check°".to_owned()));
        assert!(!seen.succeeded() && seen.complains_of("b"), "it needs what is not made");
    });
    see("target-preview-create/0", |seen| {
        assert_eq!(seen.calls("b"), "Check° → Create(preview)");
        assert!(!seen.succeeded() && seen.complains_of("b"), "after it");
    });
    see("target-provider/2", |seen| {
        assert_eq!(seen.calls("a"), "");
        assert!(!seen.succeeded() && seen.complains_of("a"), "its provider was replaced");
    });
}

#[test]
fn row_40_destroy_with_targets() {
    plays("target-destroy, target-parent");
    see("target-destroy/1", |seen| {
        assert_eq!((seen.calls("b"), seen.order(&["Delete"])), ("Diff".to_owned(), String::new()));
        assert!(!seen.succeeded() && seen.complains_of("b"));
    });
    see("target-destroy/2", |seen| {
        assert_eq!(seen.calls("default"), "Configure");
        assert_eq!(seen.order(&["Diff", "Delete"]), "Diff b → Delete b → Delete a");
        assert_eq!(seen.recorded("c"), "c-1");
    });
}

#[test]
fn row_44_retained() {
    plays("retain-on-delete, retain-on-delete-replace, dbr-dependent-retained");
    see("retain-on-delete/2", |seen| assert_eq!((seen.calls("a"), seen.recorded("a")), (String::new(), String::new())));
    see("retain-on-delete-replace/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Check° → Create");
        assert_eq!(seen.recorded("a"), "a-2");
    });
}

#[test]
fn row_45_deleted_with_another_one() {
    plays("deleted-with, deleted-with-destroy");
    see("deleted-with/2", |seen| {
        assert_eq!(seen.order(&["Delete"]), "Delete a");
        assert_eq!((seen.steps("b"), seen.recorded("b")), ("delete".to_owned(), String::new()));
    });
    see("deleted-with-destroy/1", |seen| assert_eq!(seen.order(&["Delete"]), "Delete a"));
}

#[test]
fn row_49_renamed_with_an_alias() {
    plays(
        "rename-alias, reparent-alias, provider-renamed, alias-parent-inherited, alias-both, alias-prefix, alias-no-parent",
    );
    plays("alias-dependents, alias-failure, alias-first, alias-second");
    see("rename-alias/2", |seen| {
        assert_eq!((seen.calls("b"), seen.calls("a")), ("Check → Diff".to_owned(), String::new()), "the new name");
        assert_eq!(seen.request("Diff", "b")["id"], "a-1", "the old id");
        assert_eq!((seen.recorded("b"), seen.recorded("a")), ("a-1".to_owned(), String::new()));
    });
    for step in ["alias-first/2", "alias-second/2"] {
        see(step, |seen| assert!(!seen.succeeded() && seen.order(&["Delete"]).is_empty(), "two of one name"));
    }
}
