//! Rows 1 to 4, 10 to 12, 37: create, update and delete.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::step_outcome::{assert_replays, check_step};

#[test]
fn row_01_first_create_preview() {
    assert_replays("create/0");
    check_step("create/0", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → Configure");
        assert_eq!(outcome.request("CheckConfig", "default")["olds"], json!({}));
        assert_eq!(outcome.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(outcome.calls("a"), "Check° → Create(preview)");
        // `b` has an output of `a` that is unknown in a preview.
        assert_eq!(outcome.request("Create", "b")["properties"]["v"], UNKNOWN_STRING);
        assert_eq!(outcome.recorded("a"), "", "nothing is saved");
    });
}

/// Shows: engine.md#registration "A new resource, and one that will be replaced in any case, is checked without old
///   inputs."
#[test]
fn row_02_first_create() {
    assert_replays("create/1, create-no-id, custom-timeouts/0");
    check_step("create/1", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → Configure");
        assert_ne!(outcome.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(outcome.calls("a"), "Check° → Create");
        assert_eq!(outcome.order(&["Create"]), "Create a → Create b → Create c", "dependencies are created first");
        assert_eq!(outcome.request("Create", "b")["properties"]["v"], "o:1");
        assert_eq!(outcome.recorded("a"), "a-1");
    });
    check_step("custom-timeouts/0", |outcome| assert_eq!(outcome.request("Create", "a")["timeout"], 300));
    check_step("create-no-id/1", |outcome| {
        assert_eq!(outcome.calls("a"), "Check° → Create");
        assert!(!outcome.succeeded() && outcome.has_error("a"), "a reply without an id is an error");
        assert_eq!(outcome.recorded("a"), "");
    });
}

/// Shows: engine.md#registration "Otherwise it calls Diff, even if the inputs are equal"
#[test]
fn row_03_nothing_changed() {
    assert_replays("create/2-3");
    for step in ["create/2", "create/3"] {
        check_step(step, |outcome| {
            assert_eq!(outcome.calls("default"), "CheckConfig → DiffConfig → Configure");
            assert_eq!(outcome.request("DiffConfig", "default").get("id"), None);
            assert_eq!(outcome.calls("a"), "Check → Diff", "Diff is sent even when inputs are equal");
            let diff = outcome.request("Diff", "a");
            assert_eq!((&diff["news"], &diff["oldInputs"]), (&json!({"v": 1}), &json!({"v": 1})));
            assert_eq!(diff["olds"], json!({"cid": "c:a-1", "out": "o:1", "v": 1}));
            assert_eq!(outcome.steps("a"), "same");
        });
    }
}

#[test]
fn row_04_update() {
    assert_replays("update/2-3, custom-timeouts/1");
    check_step("update/2", |outcome| assert_eq!(outcome.calls("a"), "Check → Diff → Update(preview)"));
    check_step("update/3", |outcome| {
        assert_eq!(outcome.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(outcome.calls("a"), "Check → Diff → Update");
        let update = outcome.request("Update", "a");
        assert_eq!(
            (&update["id"], &update["oldInputs"], &update["news"]),
            (&json!("a-1"), &json!({"v": 1}), &json!({"v": 2}))
        );
        assert_eq!(update["olds"]["out"], "o:1", "the old outputs");
        assert_eq!(outcome.recorded("a"), "a-1");
    });
    check_step("custom-timeouts/1", |outcome| assert_eq!(outcome.request("Update", "a")["timeout"], 90));
    check_step("ignore-changes/4", |outcome| assert!(outcome.request("Update", "a").get("ignoreChanges").is_some()));
}

#[test]
fn row_10_unregistered_resource_is_deleted() {
    assert_replays("delete-middle, custom-timeouts/3");
    check_step("delete-middle/1", |outcome| assert_eq!(outcome.calls("b"), "", "a preview deletes nothing"));
    check_step("delete-middle/2", |outcome| {
        assert_eq!(outcome.order(&["Diff", "Delete"]), "Diff a → Delete c → Delete b", "deletes come last");
        let delete = outcome.request("Delete", "b");
        assert_eq!((&delete["properties"]["cid"], &delete["oldInputs"]), (&json!("c:b-1"), &json!({"v": "o:1"})));
        assert_eq!(outcome.recorded("b"), "");
    });
    check_step("custom-timeouts/3", |outcome| assert_eq!(outcome.request("Delete", "a")["timeout"], 3600));
}

#[test]
fn row_11_unregistered_resource_and_its_provider() {
    assert_replays("provider-removed, delete-order");
    check_step("provider-removed/1", |outcome| {
        assert_eq!(
            (outcome.calls("q"), outcome.calls("a")),
            ("Configure".to_owned(), String::new()),
            "previews start the provider, too"
        );
    });
    check_step("provider-removed/2", |outcome| {
        assert_eq!(outcome.calls("q"), "Configure", "neither CheckConfig nor DiffConfig");
        assert_eq!(outcome.calls("a"), "Delete");
        assert_eq!(outcome.recorded("q"), "");
    });
}

#[test]
fn row_12_destroy_deletes_dependents_first() {
    assert_replays("create/4, destroy-preview/1");
    check_step("create/4", |outcome| {
        assert_eq!(outcome.calls("default"), "Configure");
        assert_eq!(outcome.order(&["Delete"]), "Delete c → Delete b → Delete a");
        assert_eq!(outcome.recorded("default"), "");
    });
    check_step("destroy-preview/1", |outcome| assert_eq!(outcome.order(&["Configure", "Delete"]), "Configure default"));
}

#[test]
fn row_37_unknown_inputs_in_preview() {
    assert_replays("update/2-3, create/0");
    check_step("update/2", |outcome| {
        assert_eq!(outcome.calls("b"), "Check → Diff → Update(preview)");
        for rpc in ["Check", "Diff", "Update"] {
            assert_eq!(outcome.request(rpc, "b")["news"]["v"], UNKNOWN_STRING, "{rpc}");
            assert_eq!(outcome.request(rpc, "b")["olds"]["v"], "o:1", "{rpc}: never in the olds");
        }
    });
    check_step("create/0", |outcome| assert_eq!(outcome.calls("b"), "Check° → Create(preview)"));
    check_step("update/3", |outcome| assert_eq!(outcome.request("Update", "b")["news"]["v"], "o:2"));
}
