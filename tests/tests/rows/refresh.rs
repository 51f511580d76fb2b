//! Rows 13 to 19: refresh.

use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_13_refresh_unchanged() {
    assert_replays("refresh-same/1, destroy-preview/2, refresh-timeout/1");
    check_step("refresh-same/1", |outcome| {
        assert_eq!((outcome.calls("default"), outcome.calls("a")), ("Configure".to_owned(), "Read → Diff".to_owned()));
        let read = outcome.request("Read", "a");
        assert_eq!(
            (&read["id"], &read["inputs"], &read["properties"]["out"]),
            (&json!("a-1"), &json!({"v": 1}), &json!("o:1"))
        );
        assert_eq!(outcome.recorded("a"), "a-1");
    });
    check_step("destroy-preview/2", |outcome| assert_eq!(outcome.calls("c"), "Read → Diff", "the same in a preview"));
    check_step("refresh-timeout/1", |outcome| assert_eq!(outcome.request("Read", "a")["timeout"], 420));
}

#[test]
fn row_14_refresh_changed() {
    assert_replays("refresh-drift/1, refresh-drift-extra, refresh-new-id, refresh-no-inputs");
    check_step("refresh-drift/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Diff");
        let diff = outcome.request("Diff", "a");
        assert_eq!(
            (&diff["olds"]["v"], &diff["oldInputs"]["v"]),
            (&json!(9), &json!(9)),
            "the read state is the old side"
        );
        assert_eq!(diff["news"], json!({"v": 1}), "the recorded state is the new side");
        assert_eq!(outcome.entry("a")["inputs"]["v"], 9.0);
        assert_eq!(outcome.entry("a")["outputs"]["out"], "o:9");
    });
    check_step("refresh-new-id/1", |outcome| {
        assert_eq!(outcome.request("Diff", "a")["id"], "a-1-new");
        assert_eq!(outcome.recorded("a"), "a-1-new");
    });
}

#[test]
fn row_15_refresh_deleted() {
    assert_replays("refresh-gone/1, refresh-gone-parent, cbd-refresh-gone/2");
    check_step("refresh-gone/1", |outcome| {
        assert_eq!(outcome.calls("b"), "Read", "no Diff");
        assert_eq!(outcome.recorded("b"), "");
        assert_eq!(outcome.entry("c").get("dependencies"), None, "the reference is removed");
        assert_eq!(outcome.entry("c").get("propertyDependencies"), None);
    });
    check_step("cbd-refresh-gone/2", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.recorded("a")), ("Read → Read".to_owned(), String::new()))
    });
}

#[test]
fn row_16_refresh_with_init_errors() {
    assert_replays("refresh-partial");
    check_step("refresh-partial/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Read → Diff");
        assert!(outcome.succeeded() && !outcome.has_error("a"), "only a warning");
        assert_eq!(outcome.entry("a")["initErrors"], json!(["rec: not ready"]));
    });
    check_step("refresh-partial/3", |outcome| {
        assert_eq!(outcome.calls("a"), "Check → Diff → Update", "even when nothing changed");
        assert_eq!(outcome.entry("a").get("initErrors"), None);
    });
}

#[test]
fn row_17_update_with_refresh() {
    assert_replays("up-refresh, up-refresh-removed");
    check_step("up-refresh/2", |outcome| {
        assert_eq!(
            outcome.calls("default"),
            "Configure → CheckConfig → DiffConfig",
            "the recorded provider is configured first"
        );
        assert_eq!(outcome.calls("a"), "Read → Diff → Check → Diff → Update");
        assert_eq!(outcome.request("Check", "a")["olds"], json!({"v": 9}), "as it was read");
        assert_eq!(outcome.calls("c"), "Read → Check° → Create", "it was deleted");
    });
}

#[test]
fn row_18_refresh_before_update_of_a_resource() {
    assert_replays("refresh-before-update, refresh-before-destroy");
    for step in ["refresh-before-update/1", "refresh-before-update/2"] {
        check_step(step, |outcome| {
            assert!(outcome.calls("a").starts_with("Read → Diff → Check → Diff → Update"));
            assert_eq!(outcome.calls("b"), "Check → Diff", "without refreshBeforeUpdate, no Read");
        });
    }
    check_step("refresh-before-destroy/1", |outcome| assert_eq!(outcome.calls("a"), "Read → Diff"));
    check_step("refresh-before-destroy/3", |outcome| {
        assert_eq!((outcome.calls("a"), outcome.calls("b")), ("Read".to_owned(), "Delete".to_owned()))
    });
}

#[test]
fn row_19_refresh_with_program() {
    assert_replays("up-refresh-program, refresh-program, refresh-program-gone, refresh-program-provider");
    check_step("up-refresh-program/2", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(outcome.calls("a"), "Read → Diff → Check → Diff → Update");
        assert_eq!(outcome.calls("c"), "Read → Check° → Create", "it was deleted");
        assert_eq!(outcome.calls("d"), "Delete", "unregistered resources are not read");
    });
    check_step("refresh-program/1", |outcome| {
        for name in ["a", "b", "c"] {
            assert_eq!(outcome.calls(name), "Read → Diff", "registered or not");
        }
        assert_eq!(outcome.entry("b")["inputs"]["v"], 9.0);
    });
    check_step("refresh-program-gone/1", |outcome| {
        assert_eq!((outcome.calls("b"), outcome.recorded("b")), ("Read".to_owned(), String::new()))
    });
}
