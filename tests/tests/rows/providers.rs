//! Rows 29 to 33 and 55: changes of providers.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_29_provider_configuration_updated() {
    assert_replays("provider-update, provider-config-in-place, provider-diff-unknown");
    check_step("provider-update/2", |outcome| {
        assert_eq!(outcome.calls("q"), "CheckConfig → DiffConfig → Configure", "no DiffConfig for its resources");
        assert_eq!(outcome.request("DiffConfig", "q")["oldInputs"]["zone"], "n");
        assert_eq!(outcome.request("Configure", "q")["args"]["zone"], "s");
        assert_eq!(outcome.steps("q"), "update");
        assert_eq!(outcome.entry("q")["id"], outcome.request("Configure", "q")["id"]);
        assert_eq!(outcome.calls("a"), "Check → Diff");
    });
}

#[test]
fn row_30_provider_create_before_delete() {
    assert_replays("provider-replace, provider-config");
    check_step("provider-config/1", |outcome| {
        assert_eq!(outcome.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(outcome.calls("a"), "Check → Check° → Create(preview)");
    });
    check_step("provider-config/2", |outcome| {
        // DiffConfig of the provider; CheckConfig and Configure of its replacement; DiffConfig for the resource `a`;
        // Configure of the old provider for the Delete.
        let calls = "CheckConfig → DiffConfig → CheckConfig → Configure → DiffConfig → Configure";
        assert_eq!(outcome.calls("default"), calls);
        let checks = outcome.requests("CheckConfig", "default");
        assert_ne!(checks[0]["olds"], json!({}));
        assert_eq!(checks[1]["olds"], json!({}));
        let diffs = outcome.requests("DiffConfig", "default");
        assert_eq!(
            (&diffs[0]["oldInputs"], &diffs[0]["news"]),
            (&diffs[1]["oldInputs"], &diffs[1]["news"]),
            "the same data"
        );
        assert_eq!(outcome.calls("a"), "Check → Check° → Create → Delete", "no Diff of its own");
        assert_eq!(outcome.recorded("a"), "a-2");
    });
}

#[test]
fn row_31_provider_delete_before_replace() {
    assert_replays("provider-replace-dbr");
    check_step("provider-replace-dbr/1", |outcome| assert_eq!(outcome.order(&["Delete"]), ""));
    check_step("provider-replace-dbr/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Delete → Check° → Create", "no Diff for resources of the provider");
        assert_eq!(outcome.calls("b"), "Diff → Check → Diff → Update", "Diff for dependents of these");
        assert_eq!(outcome.order(&["Delete", "Create"]), "Delete c → Delete a → Create a → Create c");
    });
}

#[test]
fn row_32_default_provider_of_other_version() {
    assert_replays("provider-version, provider-switched, provider-to-default");
    check_step("provider-version/2", |outcome| {
        assert_eq!(outcome.calls("default_1_0_1"), "CheckConfig → Configure → DiffConfig");
        assert_eq!(outcome.calls("default_1_0_0"), "", "the old one is not started");
        assert_eq!(outcome.calls("a"), "Check → Diff");
        assert_eq!((outcome.steps("a"), outcome.recorded("default_1_0_0")), ("same".to_owned(), String::new()));
        assert_eq!(
            outcome.request("DiffConfig", "default_1_0_1")["oldInputs"]["version"],
            "1.0.0",
            "inputs of the old provider"
        );
    });
    check_step("provider-to-default/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Check° → Create → Delete", "DiffConfig replaces the resource");
    });
}

#[test]
fn row_33_explicit_provider_of_other_version() {
    assert_replays("provider-version-explicit");
    check_step("provider-version-explicit/2", |outcome| {
        assert_eq!(outcome.calls("q"), "CheckConfig → DiffConfig → Configure");
        let diff = outcome.request("DiffConfig", "q");
        assert_eq!((&diff["olds"]["version"], &diff["news"]["version"]), (&json!("1.0.0"), &json!("1.0.1")));
        assert_eq!(outcome.calls("a"), "Check → Diff");
    });
}

#[test]
fn row_55_unknown_provider_configuration() {
    assert_replays("provider-unknown/0, provider-unknown-update/1, provider-unknown-others/1");
    check_step("provider-unknown/0", |outcome| {
        assert_eq!((outcome.calls("q"), outcome.calls("a")), ("CheckConfig".to_owned(), String::new()));
        assert_eq!(outcome.steps("a"), "create");
    });
    check_step("provider-unknown-update/1", |outcome| {
        assert_eq!((outcome.calls("q"), outcome.calls("a")), ("CheckConfig → DiffConfig".to_owned(), String::new()));
        assert_eq!(outcome.request("DiffConfig", "q")["news"]["zone"], UNKNOWN_STRING);
        assert_eq!(outcome.steps("a"), "update", "treated as changed");
    });
}
