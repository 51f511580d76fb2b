//! Rows 50 to 52 and 56: components, functions, and destroy with the program.

use serde_json::json;

use crate::seen::{plays, see};

/// Local components are the stack, and components that a plugin registers.
#[test]
fn row_50_a_local_component_with_children() {
    plays("component-create, component-removed");
    see("component-create/1", |seen| {
        for component in ["t-dev", "p"] {
            assert_eq!((seen.calls(component), seen.steps(component)), (String::new(), "create".to_owned()));
            assert_eq!(seen.entry(component).get("id"), None);
        }
        assert_eq!(seen.calls("p-one"), "Check° → Create", "children as usual");
    });
    see("component-removed/2", |seen| {
        assert_eq!((seen.calls("p"), seen.recorded("p")), (String::new(), String::new()));
        assert_eq!(seen.order(&["Delete"]), "Delete p-two → Delete p-one", "children first");
    });
}

/// `tests/tests/lifecycle/components.rs` tests the request of Construct, under the number of the row.
#[test]
fn row_51_a_remote_component() {
    plays("component-create, component-update, component-unknown-input, component-secret-input, component-nested");
    plays("component-child-create-fails, component-child-check-fails, component-child-replaced, component-renamed");
    plays("component-renamed-alias, component-depends-on, component-parent, component-protect, component-refresh");
    plays("component-ignore-changes");
    see("component-create/0", |seen| assert_eq!(seen.calls("p-one"), "Check° → Create(preview)"));
    see("component-update/2", |seen| {
        assert_eq!((seen.calls("p"), seen.steps("p")), (String::new(), "same".to_owned()), "neither Check nor Diff");
        assert_eq!(seen.calls("p-one"), "Check → Diff → Update");
    });
    see("component-child-replaced/2", |seen| {
        assert_eq!(seen.calls("p-one"), "Check → Diff → Check° → Create → Delete", "children are as any resource");
    });
    see("component-create/4", |seen| {
        assert_eq!(seen.order(&["Delete"]), "Delete a → Delete p-two → Delete p-one");
    });
}

/// No recording contains Call; `tests/tests/lifecycle/components.rs` tests it, under the number of the row.
#[test]
fn row_52_functions() {
    plays("invoke, invoke-unknown");
    see("invoke/0", |seen| {
        assert_eq!(seen.order(&["Invoke", "Check"]), "Invoke(preview) rec:index:get → Check° a");
        assert_eq!(seen.request("Invoke", "rec:index:get")["args"], json!({"x": 1}));
    });
    see("invoke/1", |seen| {
        assert_eq!(seen.order(&["Invoke", "Check"]), "Invoke rec:index:get → Check° a");
        assert_eq!(seen.request("Create", "a")["properties"]["v"], 1, "the result");
    });
    see("invoke-unknown/0", |seen| assert_eq!(seen.order(&["Invoke"]), "", "not with an argument that is not known"));
    see("invoke-unknown/1", |seen| {
        assert_eq!(seen.order(&["Create", "Invoke"]), "Create a → Invoke rec:index:get → Create b")
    });
}

#[test]
fn row_56_destroy_with_the_program() {
    plays("destroy-program, destroy-program-provider");
    see("destroy-program/1", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(seen.calls("a"), "Delete", "neither Check nor Diff");
        assert!(seen.order(&["Delete"]).starts_with("Delete b → "), "in the usual order");
        assert_eq!(seen.recorded("a"), "");
    });
    see("destroy-program-provider/1", |seen| {
        assert_eq!(seen.calls("q"), "CheckConfig → DiffConfig → Configure", "as the program has it");
        assert_eq!((seen.calls("a"), seen.recorded("q")), ("Delete".to_owned(), String::new()));
    });
}
