//! Rows 1 to 4, 10 to 12, 37: create, update and delete.

use pulumi_proto::property::UNKNOWN_STRING;
use serde_json::json;

use crate::seen::{plays, see};

#[test]
fn row_01_first_create_preview() {
    plays("create/0");
    see("create/0", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → Configure");
        assert_eq!(seen.request("CheckConfig", "default")["olds"], json!({}));
        assert_eq!(seen.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(seen.calls("a"), "Check° → Create(preview)");
        // `b` has an output of `a` that is unknown in a preview.
        assert_eq!(seen.request("Create", "b")["properties"]["v"], UNKNOWN_STRING);
        assert_eq!(seen.recorded("a"), "", "nothing is saved");
    });
}

#[test]
fn row_02_first_create() {
    plays("create/1, create-no-id, custom-timeouts/0");
    see("create/1", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → Configure");
        assert_ne!(seen.request("Configure", "default")["id"], UNKNOWN_STRING);
        assert_eq!(seen.calls("a"), "Check° → Create");
        assert_eq!(seen.order(&["Create"]), "Create a → Create b → Create c", "an answer comes before what needs it");
        assert_eq!(seen.request("Create", "b")["properties"]["v"], "o:1");
        assert_eq!(seen.recorded("a"), "a-1");
    });
    see("custom-timeouts/0", |seen| assert_eq!(seen.request("Create", "a")["timeout"], 300));
    see("create-no-id/1", |seen| {
        assert_eq!(seen.calls("a"), "Check° → Create");
        assert!(!seen.succeeded() && seen.complains_of("a"), "an answer without an id is an error");
        assert_eq!(seen.recorded("a"), "");
    });
}

#[test]
fn row_03_nothing_changed() {
    plays("create/2-3");
    for step in ["create/2", "create/3"] {
        see(step, |seen| {
            assert_eq!(seen.calls("default"), "CheckConfig → DiffConfig → Configure");
            assert_eq!(seen.request("DiffConfig", "default").get("id"), None);
            assert_eq!(seen.calls("a"), "Check → Diff", "Diff is sent even when inputs are equal");
            let diff = seen.request("Diff", "a");
            assert_eq!((&diff["news"], &diff["oldInputs"]), (&json!({"v": 1}), &json!({"v": 1})));
            assert_eq!(diff["olds"], json!({"cid": "c:a-1", "out": "o:1", "v": 1}));
            assert_eq!(seen.steps("a"), "same");
        });
    }
}

#[test]
fn row_04_update() {
    plays("update/2-3, custom-timeouts/1");
    see("update/2", |seen| assert_eq!(seen.calls("a"), "Check → Diff → Update(preview)"));
    see("update/3", |seen| {
        assert_eq!(seen.calls("default"), "CheckConfig → DiffConfig → Configure");
        assert_eq!(seen.calls("a"), "Check → Diff → Update");
        let update = seen.request("Update", "a");
        assert_eq!(
            (&update["id"], &update["oldInputs"], &update["news"]),
            (&json!("a-1"), &json!({"v": 1}), &json!({"v": 2}))
        );
        assert_eq!(update["olds"]["out"], "o:1", "the old outputs");
        assert_eq!(seen.recorded("a"), "a-1");
    });
    see("custom-timeouts/1", |seen| assert_eq!(seen.request("Update", "a")["timeout"], 90));
    see("ignore-changes/4", |seen| assert!(seen.request("Update", "a").get("ignoreChanges").is_some()));
}

#[test]
fn row_10_removed_from_the_program() {
    plays("delete-middle, custom-timeouts/3");
    see("delete-middle/1", |seen| assert_eq!(seen.calls("b"), "", "a preview deletes nothing"));
    see("delete-middle/2", |seen| {
        assert_eq!(seen.order(&["Diff", "Delete"]), "Diff a → Delete c → Delete b", "after everything else");
        let delete = seen.request("Delete", "b");
        assert_eq!((&delete["properties"]["cid"], &delete["oldInputs"]), (&json!("c:b-1"), &json!({"v": "o:1"})));
        assert_eq!(seen.recorded("b"), "");
    });
    see("custom-timeouts/3", |seen| assert_eq!(seen.request("Delete", "a")["timeout"], 3600));
}

#[test]
fn row_11_removed_together_with_its_provider() {
    plays("provider-removed, delete-order");
    see("provider-removed/1", |seen| {
        assert_eq!((seen.calls("q"), seen.calls("a")), ("Configure".to_owned(), String::new()), "also in a preview");
    });
    see("provider-removed/2", |seen| {
        assert_eq!(seen.calls("q"), "Configure", "neither CheckConfig nor DiffConfig");
        assert_eq!(seen.calls("a"), "Delete");
        assert_eq!(seen.recorded("q"), "");
    });
}

#[test]
fn row_12_destroy_a_chain() {
    plays("create/4, destroy-preview/1");
    see("create/4", |seen| {
        assert_eq!(seen.calls("default"), "Configure");
        assert_eq!(seen.order(&["Delete"]), "Delete c → Delete b → Delete a");
        assert_eq!(seen.recorded("default"), "");
    });
    see("destroy-preview/1", |seen| assert_eq!(seen.order(&["Configure", "Delete"]), "Configure default"));
}

#[test]
fn row_37_unknown_inputs_in_a_preview() {
    plays("update/2-3, create/0");
    see("update/2", |seen| {
        assert_eq!(seen.calls("b"), "Check → Diff → Update(preview)");
        for rpc in ["Check", "Diff", "Update"] {
            assert_eq!(seen.request(rpc, "b")["news"]["v"], UNKNOWN_STRING, "{rpc}");
            assert_eq!(seen.request(rpc, "b")["olds"]["v"], "o:1", "{rpc}: never in the olds");
        }
    });
    see("create/0", |seen| assert_eq!(seen.calls("b"), "Check° → Create(preview)"));
    see("update/3", |seen| assert_eq!(seen.request("Update", "b")["news"]["v"], "o:2"));
}
