//! Rows 29 to 33 and 55: changes of providers.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_29_a_configuration_changed_in_place() {
    plays("provider-update, provider-config-in-place, provider-diff-unknown");
    see("provider-update/2", |seen| {
        assert_eq!(seen.calls("q"), "CheckConfig → DiffConfig → Configure", "no more DiffConfig for its resources");
        assert_eq!(seen.request("DiffConfig", "q")["oldInputs"]["zone"], "n");
        assert_eq!(seen.request("Configure", "q")["args"]["zone"], "s");
        assert_eq!(seen.steps("q"), "update");
        assert_eq!(seen.entry("q")["id"], seen.request("Configure", "q")["id"]);
        assert_eq!(seen.calls("a"), "Check → Diff");
    });
}

#[test]
fn row_30_a_provider_replaced_the_new_one_first() {
    plays("provider-replace, provider-config");
    see("provider-config/1", |seen| {
        assert_eq!(seen.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(seen.calls("a"), "Check → Check° → Create(preview)");
    });
    see("provider-config/2", |seen| {
        // DiffConfig of the provider; CheckConfig and Configure of its replacement; DiffConfig for the resource `a`;
        // Configure of the old one for the Delete.
        let calls = "CheckConfig → DiffConfig → CheckConfig → Configure → DiffConfig → Configure";
        assert_eq!(seen.calls("default"), calls);
        let checks = seen.requests("CheckConfig", "default");
        assert_ne!(checks[0]["olds"], json!({}));
        assert_eq!(checks[1]["olds"], json!({}));
        let diffs = seen.requests("DiffConfig", "default");
        assert_eq!(
            (&diffs[0]["oldInputs"], &diffs[0]["news"]),
            (&diffs[1]["oldInputs"], &diffs[1]["news"]),
            "the same data"
        );
        assert_eq!(seen.calls("a"), "Check → Check° → Create → Delete", "no Diff of its own");
        assert_eq!(seen.recorded("a"), "a-2");
    });
}

#[test]
fn row_31_a_provider_replaced_the_old_one_first() {
    plays("provider-replace-dbr");
    see("provider-replace-dbr/1", |seen| assert_eq!(seen.order(&["Delete"]), ""));
    see("provider-replace-dbr/2", |seen| {
        assert_eq!(seen.calls("a"), "Delete → Check° → Create", "what it serves is not probed");
        assert_eq!(seen.calls("b"), "Diff → Check → Diff → Update", "what depends on that is");
        assert_eq!(seen.order(&["Delete", "Create"]), "Delete c → Delete a → Create a → Create c");
    });
}

#[test]
fn row_32_a_default_provider_of_another_version() {
    plays("provider-version, provider-switched, provider-to-default");
    see("provider-version/2", |seen| {
        assert_eq!(seen.calls("default_1_0_1"), "CheckConfig → Configure → DiffConfig");
        assert_eq!(seen.calls("default_1_0_0"), "", "the old one is not started");
        assert_eq!(seen.calls("a"), "Check → Diff");
        assert_eq!((seen.steps("a"), seen.recorded("default_1_0_0")), ("same".to_owned(), String::new()));
        assert_eq!(
            seen.request("DiffConfig", "default_1_0_1")["oldInputs"]["version"],
            "1.0.0",
            "the old provider's data"
        );
    });
    see("provider-to-default/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Check° → Create → Delete", "where DiffConfig asks for it");
    });
}

#[test]
fn row_33_an_explicit_provider_of_another_version() {
    plays("provider-version-explicit");
    see("provider-version-explicit/2", |seen| {
        assert_eq!(seen.calls("q"), "CheckConfig → DiffConfig → Configure");
        let diff = seen.request("DiffConfig", "q");
        assert_eq!((&diff["olds"]["version"], &diff["news"]["version"]), (&json!("1.0.0"), &json!("1.0.1")));
        assert_eq!(seen.calls("a"), "Check → Diff");
    });
}

#[test]
fn row_55_a_configuration_that_is_not_known() {
    plays("provider-unknown/0, provider-unknown-update/1, provider-unknown-others/1");
    see("provider-unknown/0", |seen| {
        assert_eq!((seen.calls("q"), seen.calls("a")), ("CheckConfig".to_owned(), String::new()));
        assert_eq!(seen.steps("a"), "create");
    });
    see("provider-unknown-update/1", |seen| {
        assert_eq!((seen.calls("q"), seen.calls("a")), ("CheckConfig → DiffConfig".to_owned(), String::new()));
        assert_eq!(seen.request("DiffConfig", "q")["news"]["zone"], UNKNOWN_STRING);
        assert_eq!(seen.steps("a"), "update", "taken for changed");
    });
}
