//! Rows 20 to 24 and 41 to 43: imports and reads of existing resources.

use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_20_matching_import() {
    assert_replays("import, import-ignore");
    for step in ["import/0", "import/1"] {
        check_step(step, |outcome| {
            assert_eq!(outcome.calls("a"), "Read → Check → Diff");
            let read = outcome.request("Read", "a");
            assert_eq!((&read["id"], read.get("inputs")), (&json!("a-77"), None));
            assert_eq!(outcome.request("Check", "a")["olds"], json!({"v": "read"}), "the read inputs");
            assert_eq!(outcome.request("Diff", "a")["oldInputs"], json!({"v": "read"}));
        });
    }
    check_step("import/1", |outcome| assert_eq!(outcome.entry("a")["importID"], "a-77"));
    check_step("import/3", |outcome| assert_eq!(outcome.calls("a"), "Check → Diff", "imported only once"));
}

#[test]
fn row_21_differing_import() {
    assert_replays("import-mismatch, import-replace, import-partial");
    check_step("import-mismatch/0", |outcome| assert_eq!(outcome.calls("a"), "Read → Check → Diff → Update(preview)"));
    check_step("import-mismatch/1", |outcome| assert_eq!(outcome.calls("a"), "Read → Check → Diff → Update"));
    check_step("import-replace/0", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Check → Diff → Check° → Create(preview)");
        assert!(outcome.succeeded(), "a warning");
    });
    check_step("import-replace/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Check → Diff");
        assert!(!outcome.succeeded() && outcome.has_error("a"));
        assert_eq!(outcome.recorded("a"), "a-77", "the read state is recorded");
    });
}

#[test]
fn row_22_import_of_missing_resource() {
    assert_replays("import-gone, import-error, import-no-inputs");
    for step in ["import-gone/1", "import-no-inputs/0"] {
        check_step(step, |outcome| {
            assert_eq!(outcome.calls("a"), "Read");
            assert!(!outcome.succeeded() && outcome.has_error("a"));
            assert_eq!(outcome.recorded("a"), "");
        });
    }
}

#[test]
fn row_23_import_replaces_managed_resource() {
    assert_replays("import-managed, import-managed-protected, import-new-id/3, import-external, import-same-id");
    check_step("import-managed/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Check → Diff → Delete");
        assert_eq!(outcome.request("Delete", "a")["id"], "a-1");
        assert_eq!(outcome.recorded("a"), "a-77");
    });
    check_step("import-managed-protected/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Check → Diff → Update → Delete", "only live entries are protected");
    });
    check_step("import-new-id/3", |outcome| assert_eq!(outcome.request("Delete", "a")["id"], "a-77-new"));
    check_step("import-external/2", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.recorded("a")), ("Read → Check → Diff".to_owned(), "a-9".to_owned()));
        assert_eq!(outcome.entry("a").get("external"), None);
    });
    check_step("import-same-id/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff", "the recorded id: no Read");
        assert_eq!(outcome.entry("a")["importID"], "a-1");
    });
}

#[test]
fn row_24_import_command() {
    assert_replays(
        "import-command, import-command-first, import-command-gone, import-command-properties, import-command-parent",
    );
    check_step("import-command/1", |outcome| {
        assert_eq!(outcome.calls("default"), "Configure", "the recorded provider");
        assert_eq!(outcome.calls("a"), "Read → Check");
        let check = outcome.request("Check", "a");
        assert_eq!((&check["olds"], &check["news"]), (&json!({"v": "read"}), &json!({"v": "read"})));
        assert_eq!(outcome.entry("a").get("importID"), None);
        assert_eq!(outcome.calls("z"), "");
    });
    check_step("import-command-first/0", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → Configure", "no provider was recorded")
    });
    check_step("import-command-first/1", |outcome| assert_eq!(outcome.calls("a"), "", "the recorded id"));
    check_step("import-command-first/2", |outcome| {
        assert_eq!(outcome.calls("a"), "", "another id");
        assert!(!outcome.succeeded() && outcome.has_error("a"));
    });
    check_step("import-command-gone/1", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.recorded("a")), ("Read → Check".to_owned(), "a-77".to_owned()));
        assert!(outcome.succeeded(), "failures of Check are only warnings");
    });
}

#[test]
fn row_41_external_read() {
    assert_replays("get, get-state, get-dropped, get-new-id, get-partial, refresh-external, provider-unknown-others/1");
    check_step("get/0", |outcome| assert_eq!(outcome.calls("g"), "Read"));
    check_step("get/1", |outcome| {
        assert_eq!(outcome.calls("g"), "Read");
        let read = outcome.request("Read", "g");
        assert_eq!((&read["id"], &read["inputs"], &read["properties"]), (&json!("g-9"), &json!({}), &json!({})));
        assert_eq!(outcome.entry("g")["external"], true);
    });
    check_step("get-dropped/2", |outcome| {
        assert_eq!((outcome.calls("g"), outcome.steps("g")), (String::new(), "discard".to_owned()))
    });
    check_step("refresh-external/1", |outcome| {
        assert_eq!((outcome.calls("g"), outcome.calls("a")), ("Read".to_owned(), "Read → Diff".to_owned()))
    });
    check_step("provider-unknown-others/1", |outcome| {
        assert_eq!(
            (outcome.calls("g"), outcome.steps("g")),
            (String::new(), "read".to_owned()),
            "the provider is not configured yet"
        );
    });
}

#[test]
fn row_42_managed_resource_becomes_external() {
    assert_replays("managed-then-get, managed-then-get-same");
    check_step("managed-then-get/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Delete");
        assert_eq!(
            (&outcome.request("Read", "a")["id"], &outcome.request("Delete", "a")["id"]),
            (&json!("a-9"), &json!("a-1"))
        );
        assert_eq!(outcome.recorded("a"), "a-9");
    });
    check_step("managed-then-get-same/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Read", "not deleted");
        assert_eq!(outcome.entry("a")["external"], true);
    });
}

#[test]
fn row_43_external_resource_becomes_managed() {
    assert_replays("get-then-managed");
    check_step("get-then-managed/1", |outcome| assert_eq!(outcome.calls("a"), "Check° → Create(preview)"));
    check_step("get-then-managed/2", |outcome| {
        assert_eq!(outcome.calls("a"), "Check° → Create", "no Diff, and nothing is deleted");
        assert_eq!(outcome.steps("a"), "create-replacement, replace, discard-replaced");
        assert_eq!(outcome.recorded("a"), "a-1");
    });
}
