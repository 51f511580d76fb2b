//! An export in place of the state of a stack.

use serde_json::{Value, json};
use state::store::{StateStore as _, StoreError};
use state::{ImportProblem, Imported, OperationKind, StateError, import};

use crate::fixture::{Fixture, holder, resource};

/// An export of these resources, sealed by the manager of the fixture unless it says otherwise.
fn export(resources: Value) -> Value {
    json!({ "version": 3, "deployment": {
        "manifest": { "time": "2026-01-02T03:04:05Z", "magic": "", "version": "" },
        "secrets_providers": { "type": "marker", "state": { "name": "marker" } },
        "resources": resources,
        "metadata": {},
    }})
}

fn thing(stack: &str, name: &str) -> Value {
    json!({ "urn": format!("urn:pulumi:{stack}::reef::t:m:T::{name}"), "custom": true, "type": "t:m:T" })
}

async fn imported(fixture: &Fixture, export: &Value, force: bool) -> Result<Imported, StateError> {
    import(&fixture.access, &holder(), &export.to_string(), force).await
}

/// The error of an import that is refused, after which nothing is another.
async fn refused(fixture: &Fixture, export: &str) -> StateError {
    let before = fixture.store.load(&fixture.stack).await.unwrap();
    let error = import(&fixture.access, &holder(), export, false).await.unwrap_err();
    assert_eq!(fixture.store.load(&fixture.stack).await.unwrap(), before, "{error}");
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty(), "{error}");
    error
}

#[tokio::test]
async fn the_state_before_is_the_backup_of_the_imported_one() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let before = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    let told = imported(&fixture, &export(json!([thing("dev", "b"), thing("dev", "c")])), false).await.unwrap();
    assert_eq!(told, Imported { resources: 2, ..Imported::default() });
    assert_eq!(fixture.names().await, ["b", "c"]);
    let backup = fixture.folder.path().join(".pulumi/stacks/reef/dev.json.bak");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
    assert!(!fixture.folder.path().join(".pulumi/history").exists(), "an import is no update");
    let root = std::fs::read_dir(fixture.folder.path().join(".pulumi")).unwrap();
    let names: Vec<_> = root.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with(".lock-")), "nothing of a lock stays: {names:?}");
}

#[tokio::test]
async fn a_stack_may_begin_with_an_import_even_of_nothing() {
    let fixture = Fixture::new().await;
    imported(&fixture, &json!({ "version": 3, "deployment": null }), false).await.unwrap();
    assert!(fixture.names().await.is_empty());
    imported(&fixture, &export(json!([thing("dev", "a")])), false).await.unwrap();
    assert_eq!(fixture.names().await, ["a"]);
}

#[tokio::test]
async fn secrets_in_clear_are_sealed_with_the_manager_that_the_export_names() {
    let fixture = Fixture::new().await;
    let mut secret = thing("dev", "a");
    secret["inputs"] = json!({ "token": {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": "\"hush\"",
    }});
    imported(&fixture, &export(json!([secret])), false).await.unwrap();
    let stored = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    assert!(stored.contains("\"ciphertext\":\"marker:") && !stored.contains("plaintext"), "{stored}");

    let mut without = export(json!([secret]));
    without["deployment"].as_object_mut().unwrap().remove("secrets_providers");
    assert!(matches!(refused(&fixture, &without.to_string()).await, StateError::Secrets(_)));
    let mut unknown = export(json!([secret]));
    unknown["deployment"]["secrets_providers"] = json!({ "type": "awskms", "state": {} });
    let error = refused(&fixture, &unknown.to_string()).await;
    assert!(error.to_string().contains("awskms"), "{error}");
}

#[tokio::test]
async fn operations_that_were_under_way_are_dropped_and_told() {
    let fixture = Fixture::new().await;
    let mut text = export(json!([thing("dev", "a")]));
    text["deployment"]["pending_operations"] = json!([{ "resource": thing("dev", "b"), "type": "creating" }]);
    let told = imported(&fixture, &text, false).await.unwrap();
    assert_eq!(told.dropped, [(OperationKind::Creating, resource("b").urn.clone())]);
    let stored = fixture.store.load(&fixture.stack).await.unwrap().unwrap();
    assert!(!stored.contains("pending_operations"), "{stored}");
}

#[tokio::test]
async fn what_is_of_another_stack_or_breaks_the_laws_is_taken_only_by_force() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let strangers = export(json!([thing("dev", "a"), thing("prod", "b"), thing("prod", "c")]));
    let error = refused(&fixture, &strangers.to_string()).await;
    let words = "it holds 2 resources of another stack: urn:pulumi:prod::reef::t:m:T::b is not of dev";
    assert_eq!(error.to_string(), words);
    let told = imported(&fixture, &strangers, true).await.unwrap();
    assert_eq!((told.resources, told.problems.len()), (3, 1));

    let twice = export(json!([thing("dev", "a"), thing("dev", "a")]));
    let error = refused(&fixture, &twice.to_string()).await;
    assert!(matches!(error, StateError::Import(ImportProblem::Broken(_))), "{error}");
    imported(&fixture, &twice, true).await.unwrap();

    let mut other = export(json!([thing("dev", "a")]));
    other["deployment"]["manifest"] = json!({ "magic": "0dff", "version": "v3.0.0" });
    let error = refused(&fixture, &other.to_string()).await;
    assert!(error.to_string().contains("has the checksum \"0dff\""), "{error}");
    assert_eq!(imported(&fixture, &other, true).await.unwrap().problems.len(), 1);
    fixture.open().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn what_is_no_export_is_refused() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let versions = [(0, "too old"), (2, "too old"), (5, "newer than this program knows")];
    for (version, words) in versions {
        let StateError::Export(error) = refused(&fixture, &json!({ "version": version }).to_string()).await else {
            panic!("version {version}");
        };
        assert!(error.to_string().contains(words), "{error}");
    }
    let misplaced = "{\"version\": 3,\n\"deployment\": {\"resources\": [\n{\"urn\": 7}]}}";
    for (text, place) in [("", "line 1"), ("{\"version\": 3", "line 1"), (misplaced, "line 3")] {
        let StateError::NoExport(error) = refused(&fixture, text).await else { panic!("{text}") };
        assert!(error.to_string().contains(place), "{error}");
    }
}

#[tokio::test]
async fn nothing_that_a_dead_run_did_is_forgotten_over_an_import() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.at_work().await;
    drop(recorder);
    let text = export(json!([thing("dev", "c")]));
    let error = imported(&fixture, &text, true).await.unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::Locked { .. })), "{error}");

    fixture.store.break_locks(&fixture.stack).await.unwrap();
    let error = imported(&fixture, &text, true).await.unwrap_err();
    assert!(matches!(error, StateError::Interrupted { .. }), "{error}");
    assert_eq!(fixture.names().await, ["b", "a"]);
    drop(state);
}
