//! Rows 13 to 19: refresh.

use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_13_refresh_unchanged() {
    plays("refresh-same/1, destroy-preview/2, refresh-timeout/1");
    see("refresh-same/1", |seen| {
        assert_eq!((seen.calls("default"), seen.calls("a")), ("Configure".to_owned(), "Read → Diff".to_owned()));
        let read = seen.request("Read", "a");
        assert_eq!(
            (&read["id"], &read["inputs"], &read["properties"]["out"]),
            (&json!("a-1"), &json!({"v": 1}), &json!("o:1"))
        );
        assert_eq!(seen.recorded("a"), "a-1");
    });
    see("destroy-preview/2", |seen| assert_eq!(seen.calls("c"), "Read → Diff", "the same in a preview"));
    see("refresh-timeout/1", |seen| assert_eq!(seen.request("Read", "a")["timeout"], 420));
}

#[test]
fn row_14_refresh_changed() {
    plays("refresh-drift/1, refresh-drift-extra, refresh-new-id, refresh-no-inputs");
    see("refresh-drift/1", |seen| {
        assert_eq!(seen.calls("a"), "Read → Diff");
        let diff = seen.request("Diff", "a");
        assert_eq!(
            (&diff["olds"]["v"], &diff["oldInputs"]["v"]),
            (&json!(9), &json!(9)),
            "what was read is the old side"
        );
        assert_eq!(diff["news"], json!({"v": 1}), "what was recorded is the new one");
        assert_eq!(seen.entry("a")["inputs"]["v"], 9.0);
        assert_eq!(seen.entry("a")["outputs"]["out"], "o:9");
    });
    see("refresh-new-id/1", |seen| {
        assert_eq!(seen.request("Diff", "a")["id"], "a-1-new");
        assert_eq!(seen.recorded("a"), "a-1-new");
    });
}

#[test]
fn row_15_refresh_gone() {
    plays("refresh-gone/1, refresh-gone-parent, cbd-refresh-gone/2");
    see("refresh-gone/1", |seen| {
        assert_eq!(seen.calls("b"), "Read", "nobody is asked to compare it");
        assert_eq!(seen.recorded("b"), "");
        assert_eq!(seen.entry("c").get("dependencies"), None, "what referred to it does no more");
        assert_eq!(seen.entry("c").get("propertyDependencies"), None);
    });
    see("cbd-refresh-gone/2", |seen| {
        assert_eq!((seen.calls("a"), seen.recorded("a")), ("Read → Read".to_owned(), String::new()))
    });
}

#[test]
fn row_16_refresh_unhealthy() {
    plays("refresh-partial");
    see("refresh-partial/1", |seen| {
        assert_eq!(seen.calls("a"), "Read → Diff");
        assert!(seen.succeeded() && !seen.complains_of("a"), "only a warning");
        assert_eq!(seen.entry("a")["initErrors"], json!(["rec: not ready"]));
    });
    see("refresh-partial/3", |seen| {
        assert_eq!(seen.calls("a"), "Check → Diff → Update", "even when nothing changed");
        assert_eq!(seen.entry("a").get("initErrors"), None);
    });
}

#[test]
fn row_17_refresh_before_an_update() {
    plays("up-refresh, up-refresh-removed");
    see("up-refresh/2", |seen| {
        assert_eq!(
            seen.calls("default"),
            "Configure → CheckConfig → DiffConfig",
            "what the state describes stays at work"
        );
        assert_eq!(seen.calls("a"), "Read → Diff → Check → Diff → Update");
        assert_eq!(seen.request("Check", "a")["olds"], json!({"v": 9}), "as it was read");
        assert_eq!(seen.calls("c"), "Read → Check° → Create", "it was gone");
    });
}

#[test]
fn row_18_resources_that_are_read_before_each_update() {
    plays("refresh-before-update, refresh-before-destroy");
    for step in ["refresh-before-update/1", "refresh-before-update/2"] {
        see(step, |seen| {
            assert!(seen.calls("a").starts_with("Read → Diff → Check → Diff → Update"));
            assert_eq!(seen.calls("b"), "Check → Diff", "those that did not ask for it are not read");
        });
    }
    see("refresh-before-destroy/1", |seen| assert_eq!(seen.calls("a"), "Read → Diff"));
    see("refresh-before-destroy/3", |seen| {
        assert_eq!((seen.calls("a"), seen.calls("b")), ("Read".to_owned(), "Delete".to_owned()))
    });
}

#[test]
fn row_19_refresh_with_the_program() {
    plays("up-refresh-program, refresh-program, refresh-program-gone, refresh-program-provider");
    see("up-refresh-program/2", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(seen.calls("a"), "Read → Diff → Check → Diff → Update");
        assert_eq!(seen.calls("c"), "Read → Check° → Create", "it was gone");
        assert_eq!(seen.calls("d"), "Delete", "what the program has dropped is not read");
    });
    see("refresh-program/1", |seen| {
        for name in ["a", "b", "c"] {
            assert_eq!(seen.calls(name), "Read → Diff", "whether the program has it or not");
        }
        assert_eq!(seen.entry("b")["inputs"]["v"], 9.0);
    });
    see("refresh-program-gone/1", |seen| {
        assert_eq!((seen.calls("b"), seen.recorded("b")), ("Read".to_owned(), String::new()))
    });
}
