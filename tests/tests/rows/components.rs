//! Rows 50 to 52 and 56: components, functions, and destroy with the program.

use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

/// Tests local components: the stack, and components that a plugin registers.
#[test]
fn row_50_local_component_with_children() {
    assert_replays("component-create, component-removed");
    check_step("component-create/1", |outcome| {
        for component in ["t-dev", "p"] {
            assert_eq!((outcome.calls(component), outcome.steps(component)), (String::new(), "create".to_owned()));
            assert_eq!(outcome.entry(component).get("id"), None);
        }
        assert_eq!(outcome.calls("p-one"), "Check° → Create", "children are registered like other resources");
    });
    check_step("component-removed/2", |outcome| {
        assert_eq!((outcome.calls("p"), outcome.recorded("p")), (String::new(), String::new()));
        assert_eq!(outcome.order(&["Delete"]), "Delete p-two → Delete p-one", "children first");
    });
}

/// Tests the children of a remote component. `tests/tests/lifecycle/components.rs` tests the request of Construct,
/// under the number of the row.
#[test]
fn row_51_remote_component() {
    assert_replays(
        "component-create, component-update, component-unknown-input, component-secret-input, component-nested",
    );
    assert_replays(
        "component-child-create-fails, component-child-check-fails, component-child-replaced, component-renamed",
    );
    assert_replays(
        "component-renamed-alias, component-depends-on, component-parent, component-protect, component-refresh",
    );
    assert_replays("component-ignore-changes");
    check_step("component-create/0", |outcome| assert_eq!(outcome.calls("p-one"), "Check° → Create(preview)"));
    check_step("component-update/2", |outcome| {
        assert_eq!(
            (outcome.calls("p"), outcome.steps("p")),
            (String::new(), "same".to_owned()),
            "neither Check nor Diff"
        );
        assert_eq!(outcome.calls("p-one"), "Check → Diff → Update");
    });
    check_step("component-child-replaced/2", |outcome| {
        assert_eq!(
            outcome.calls("p-one"),
            "Check → Diff → Check° → Create → Delete",
            "children are replaced like other resources"
        );
    });
    check_step("component-create/4", |outcome| {
        assert_eq!(outcome.order(&["Delete"]), "Delete a → Delete p-two → Delete p-one");
    });
}

/// Tests Invoke. No recording contains Call; `tests/tests/lifecycle/components.rs` tests it, under the number of the
/// row.
#[test]
fn row_52_functions() {
    assert_replays("invoke, invoke-unknown");
    check_step("invoke/0", |outcome| {
        assert_eq!(outcome.order(&["Invoke", "Check"]), "Invoke(preview) rec:index:get → Check° a");
        assert_eq!(outcome.request("Invoke", "rec:index:get")["args"], json!({"x": 1}));
    });
    check_step("invoke/1", |outcome| {
        assert_eq!(outcome.order(&["Invoke", "Check"]), "Invoke rec:index:get → Check° a");
        assert_eq!(outcome.request("Create", "a")["properties"]["v"], 1, "the result");
    });
    check_step("invoke-unknown/0", |outcome| {
        assert_eq!(outcome.order(&["Invoke"]), "", "no call with unknown arguments")
    });
    check_step("invoke-unknown/1", |outcome| {
        assert_eq!(outcome.order(&["Create", "Invoke"]), "Create a → Invoke rec:index:get → Create b")
    });
}

#[test]
fn row_56_destroy_with_program() {
    assert_replays("destroy-program, destroy-program-provider");
    check_step("destroy-program/1", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(outcome.calls("a"), "Delete", "neither Check nor Diff");
        assert!(outcome.order(&["Delete"]).starts_with("Delete b → "), "in the usual order");
        assert_eq!(outcome.recorded("a"), "");
    });
    check_step("destroy-program-provider/1", |outcome| {
        assert_eq!(outcome.calls("q"), "CheckConfig → DiffConfig → Configure", "with the configuration of the program");
        assert_eq!((outcome.calls("a"), outcome.recorded("q")), ("Delete".to_owned(), String::new()));
    });
}
