//! Rows 20 to 24 and 41 to 43: imports and reads of existing resources.

use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_20_import_that_matches() {
    plays("import, import-ignore");
    for step in ["import/0", "import/1"] {
        see(step, |seen| {
            assert_eq!(seen.calls("a"), "Read → Check → Diff");
            let read = seen.request("Read", "a");
            assert_eq!((&read["id"], read.get("inputs")), (&json!("a-77"), None));
            assert_eq!(seen.request("Check", "a")["olds"], json!({"v": "read"}), "what was read");
            assert_eq!(seen.request("Diff", "a")["oldInputs"], json!({"v": "read"}));
        });
    }
    see("import/1", |seen| assert_eq!(seen.entry("a")["importID"], "a-77"));
    see("import/3", |seen| assert_eq!(seen.calls("a"), "Check → Diff", "once"));
}

#[test]
fn row_21_import_that_differs() {
    plays("import-mismatch, import-replace, import-partial");
    see("import-mismatch/0", |seen| assert_eq!(seen.calls("a"), "Read → Check → Diff → Update(preview)"));
    see("import-mismatch/1", |seen| assert_eq!(seen.calls("a"), "Read → Check → Diff → Update"));
    see("import-replace/0", |seen| {
        assert_eq!(seen.calls("a"), "Read → Check → Diff → Check° → Create(preview)");
        assert!(seen.succeeded(), "a warning");
    });
    see("import-replace/1", |seen| {
        assert_eq!(seen.calls("a"), "Read → Check → Diff");
        assert!(!seen.succeeded() && seen.complains_of("a"));
        assert_eq!(seen.recorded("a"), "a-77", "it stays as it was read");
    });
}

#[test]
fn row_22_import_of_what_is_not_there() {
    plays("import-gone, import-error, import-no-inputs");
    for step in ["import-gone/1", "import-no-inputs/0"] {
        see(step, |seen| {
            assert_eq!(seen.calls("a"), "Read");
            assert!(!seen.succeeded() && seen.complains_of("a"));
            assert_eq!(seen.recorded("a"), "");
        });
    }
}

#[test]
fn row_23_import_of_another_one_in_place_of_a_managed_one() {
    plays("import-managed, import-managed-protected, import-new-id/3, import-external, import-same-id");
    see("import-managed/2", |seen| {
        assert_eq!(seen.calls("a"), "Read → Check → Diff → Delete");
        assert_eq!(seen.request("Delete", "a")["id"], "a-1");
        assert_eq!(seen.recorded("a"), "a-77");
    });
    see("import-managed-protected/2", |seen| {
        assert_eq!(seen.calls("a"), "Read → Check → Diff → Update → Delete", "protection is of what has its place");
    });
    see("import-new-id/3", |seen| assert_eq!(seen.request("Delete", "a")["id"], "a-77-new"));
    see("import-external/2", |seen| {
        assert_eq!((seen.calls("a"), seen.recorded("a")), ("Read → Check → Diff".to_owned(), "a-9".to_owned()));
        assert_eq!(seen.entry("a").get("external"), None);
    });
    see("import-same-id/2", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff", "the id it has: nothing is read");
        assert_eq!(seen.entry("a")["importID"], "a-1");
    });
}

#[test]
fn row_24_the_import_command() {
    plays(
        "import-command, import-command-first, import-command-gone, import-command-properties, import-command-parent",
    );
    see("import-command/1", |seen| {
        assert_eq!(seen.calls("default"), "Configure", "as it is recorded");
        assert_eq!(seen.calls("a"), "Read → Check");
        let check = seen.request("Check", "a");
        assert_eq!((&check["olds"], &check["news"]), (&json!({"v": "read"}), &json!({"v": "read"})));
        assert_eq!(seen.entry("a").get("importID"), None);
        assert_eq!(seen.calls("z"), "");
    });
    see("import-command-first/0", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → Configure", "there was none")
    });
    see("import-command-first/1", |seen| assert_eq!(seen.calls("a"), "", "the id it has"));
    see("import-command-first/2", |seen| {
        assert_eq!(seen.calls("a"), "", "another id");
        assert!(!seen.succeeded() && seen.complains_of("a"));
    });
    see("import-command-gone/1", |seen| {
        assert_eq!((seen.calls("a"), seen.recorded("a")), ("Read → Check".to_owned(), "a-77".to_owned()));
        assert!(seen.succeeded(), "what Check refuses does not matter");
    });
}

#[test]
fn row_41_external_read() {
    plays("get, get-state, get-dropped, get-new-id, get-partial, refresh-external, provider-unknown-others/1");
    see("get/0", |seen| assert_eq!(seen.calls("g"), "Read"));
    see("get/1", |seen| {
        assert_eq!(seen.calls("g"), "Read");
        let read = seen.request("Read", "g");
        assert_eq!((&read["id"], &read["inputs"], &read["properties"]), (&json!("g-9"), &json!({}), &json!({})));
        assert_eq!(seen.entry("g")["external"], true);
    });
    see("get-dropped/2", |seen| assert_eq!((seen.calls("g"), seen.steps("g")), (String::new(), "discard".to_owned())));
    see("refresh-external/1", |seen| {
        assert_eq!((seen.calls("g"), seen.calls("a")), ("Read".to_owned(), "Read → Diff".to_owned()))
    });
    see("provider-unknown-others/1", |seen| {
        assert_eq!(
            (seen.calls("g"), seen.steps("g")),
            (String::new(), "read".to_owned()),
            "its provider cannot be asked yet"
        );
    });
}

#[test]
fn row_42_managed_and_now_read() {
    plays("managed-then-get, managed-then-get-same");
    see("managed-then-get/2", |seen| {
        assert_eq!(seen.calls("a"), "Read → Delete");
        assert_eq!(
            (&seen.request("Read", "a")["id"], &seen.request("Delete", "a")["id"]),
            (&json!("a-9"), &json!("a-1"))
        );
        assert_eq!(seen.recorded("a"), "a-9");
    });
    see("managed-then-get-same/2", |seen| {
        assert_eq!(seen.calls("a"), "Read", "let go, not deleted");
        assert_eq!(seen.entry("a")["external"], true);
    });
}

#[test]
fn row_43_read_and_now_managed() {
    plays("get-then-managed");
    see("get-then-managed/1", |seen| assert_eq!(seen.calls("a"), "Check° → Create(preview)"));
    see("get-then-managed/2", |seen| {
        assert_eq!(seen.calls("a"), "Check° → Create", "no Diff, and nothing is deleted");
        assert_eq!(seen.steps("a"), "create-replacement, replace, discard-replaced");
        assert_eq!(seen.recorded("a"), "a-1");
    });
}
