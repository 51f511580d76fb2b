//! Imports of exported deployments.

use serde_json::{Value, json};
use state::format::FormatError;
use state::store::StoreError;
use state::{ImportProblem, ImportReport, OperationKind, StateError, import};

use crate::fixture::{Fixture, holder, resource};

/// Returns an export with resources, encrypted by the manager of the fixture.
fn export(resources: Value) -> Value {
    json!({ "version": 3, "deployment": {
        "manifest": { "time": "2026-01-02T03:04:05Z", "magic": "", "version": "" },
        "secrets_providers": { "type": "marker", "state": { "name": "marker" } },
        "resources": resources,
        "metadata": {},
    }})
}

fn stored_resource(stack: &str, name: &str) -> Value {
    let urn = format!("urn:pulumi:{stack}::reef::t:m:T::{name}");
    json!({ "urn": urn, "custom": true, "id": name, "type": "t:m:T" })
}

async fn run_import(fixture: &Fixture, export: &Value, force: bool) -> Result<ImportReport, StateError> {
    import(&fixture.access, &holder(), &export.to_string(), force).await
}

/// Returns the error of a refused import, and checks that the stack is unchanged.
async fn refused(fixture: &Fixture, export: &str) -> StateError {
    let before = fixture.store.text(&fixture.stack).await.unwrap();
    let error = import(&fixture.access, &holder(), export, false).await.unwrap_err();
    assert_eq!(fixture.store.text(&fixture.stack).await.unwrap(), before, "{error}");
    assert!(fixture.store.locks(&fixture.stack).await.unwrap().is_empty(), "{error}");
    error
}

#[tokio::test]
async fn import_keeps_the_previous_state_as_backup() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let before = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    let report =
        run_import(&fixture, &export(json!([stored_resource("dev", "b"), stored_resource("dev", "c")])), false)
            .await
            .unwrap();
    assert_eq!(report, ImportReport { resources: 2, ..ImportReport::default() });
    assert_eq!(fixture.names().await, ["b", "c"]);
    let backup = fixture.folder.path().join(".pulumi/stacks/reef/dev.json.bak");
    assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
    assert!(!fixture.folder.path().join(".pulumi/history").exists(), "an import adds no history entry");
    let root = std::fs::read_dir(fixture.folder.path().join(".pulumi")).unwrap();
    let names: Vec<_> = root.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with(".lock-")), "temporary lock files are removed: {names:?}");
}

#[tokio::test]
async fn import_creates_the_stack_even_without_deployment() {
    let fixture = Fixture::new().await;
    run_import(&fixture, &json!({ "version": 3, "deployment": null }), false).await.unwrap();
    assert!(fixture.names().await.is_empty());
    run_import(&fixture, &export(json!([stored_resource("dev", "a")])), false).await.unwrap();
    assert_eq!(fixture.names().await, ["a"]);
}

#[tokio::test]
async fn plaintext_secrets_are_encrypted_with_the_manager_of_the_export() {
    let fixture = Fixture::new().await;
    let mut secret = stored_resource("dev", "a");
    secret["inputs"] = json!({ "token": {
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": "\"hush\"",
    }});
    run_import(&fixture, &export(json!([secret])), false).await.unwrap();
    let stored = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(stored.contains("\"ciphertext\":\"marker:") && !stored.contains("plaintext"), "{stored}");

    let mut without = export(json!([secret]));
    without["deployment"].as_object_mut().unwrap().remove("secrets_providers");
    assert!(matches!(refused(&fixture, &without.to_string()).await, StateError::Secrets(_)));
    let mut unknown = export(json!([secret]));
    unknown["deployment"]["secrets_providers"] = json!({ "type": "awskms", "state": {} });
    let error = refused(&fixture, &unknown.to_string()).await;
    assert!(error.to_string().contains("awskms"), "{error}");
}

/// Shows: state.md#export-and-import "Pending operations are dropped and reported, except pending creates with an id"
#[tokio::test]
async fn pending_operations_are_dropped_and_reported_except_creates_with_an_id() {
    let fixture = Fixture::new().await;
    let mut text = export(json!([stored_resource("dev", "a")]));
    let mut begun = stored_resource("dev", "b");
    begun.as_object_mut().unwrap().remove("id");
    text["deployment"]["pending_operations"] = json!([{ "resource": begun, "type": "creating" }]);
    let report = run_import(&fixture, &text, false).await.unwrap();
    assert_eq!(report.dropped, [(OperationKind::Creating, resource("b").urn.clone())]);
    let stored = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(!stored.contains("pending_operations"), "{stored}");

    // The resource of a pending create with an id exists.
    text["deployment"]["pending_operations"][0]["resource"]["id"] = json!("b-1");
    let report = run_import(&fixture, &text, false).await.unwrap();
    assert_eq!(report.dropped, []);
    let stored = fixture.store.text(&fixture.stack).await.unwrap().unwrap();
    assert!(stored.contains("pending_operations") && stored.contains("b-1"), "{stored}");
}

#[tokio::test]
async fn import_with_problems_needs_force() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let foreign =
        export(json!([stored_resource("dev", "a"), stored_resource("prod", "b"), stored_resource("prod", "c")]));
    let error = refused(&fixture, &foreign.to_string()).await;
    let message = "it holds 2 resources of another stack: urn:pulumi:prod::reef::t:m:T::b is not of dev";
    assert_eq!(error.to_string(), message);
    let report = run_import(&fixture, &foreign, true).await.unwrap();
    assert_eq!((report.resources, report.problems.len()), (3, 1));

    let duplicate = export(json!([stored_resource("dev", "a"), stored_resource("dev", "a")]));
    let error = refused(&fixture, &duplicate.to_string()).await;
    assert!(matches!(error, StateError::Import(ImportProblem::Integrity(_))), "{error}");
    run_import(&fixture, &duplicate, true).await.unwrap();

    let mut wrong_checksum = export(json!([stored_resource("dev", "a")]));
    wrong_checksum["deployment"]["manifest"] = json!({ "magic": "0dff", "version": "v3.0.0" });
    let error = refused(&fixture, &wrong_checksum.to_string()).await;
    assert!(error.to_string().contains("has the checksum \"0dff\""), "{error}");
    assert_eq!(run_import(&fixture, &wrong_checksum, true).await.unwrap().problems.len(), 1);
    fixture.open().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn invalid_export_is_refused() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let versions = [(0, "too old"), (2, "too old"), (5, "newer than the supported ones")];
    for (version, message) in versions {
        let StateError::Export(error) = refused(&fixture, &json!({ "version": version }).to_string()).await else {
            panic!("version {version}");
        };
        assert!(error.to_string().contains(message), "{error}");
    }
    let malformed = "{\"version\": 3,\n\"deployment\": {\"resources\": [\n{\"urn\": 7}]}}";
    for (text, place) in [("{", "line 1"), ("{\"version\": 3", "line 1"), (malformed, "line 3")] {
        let StateError::NotAnExport(error) = refused(&fixture, text).await else { panic!("{text}") };
        assert!(error.to_string().contains(place), "{error}");
    }
    for text in ["", "null", "{\"version\": 3}", "{\"version\": 3, \"deployment\": {}}"] {
        let StateError::Export(error) = refused(&fixture, text).await else { panic!("{text}") };
        assert!(matches!(*error, FormatError::NotAState { .. }), "{text}: {error}");
    }
}

#[tokio::test]
async fn custom_resource_without_id_is_refused() {
    let fixture = Fixture::new().await;
    fixture.save(&[resource("a")]).await;
    let mut without_id = stored_resource("dev", "b");
    without_id.as_object_mut().unwrap().remove("id");
    let text = export(json!([without_id]));
    let error = refused(&fixture, &text.to_string()).await;
    assert!(error.to_string().contains("::b: is managed by a provider, yet has no id"), "{error}");
    run_import(&fixture, &text, true).await.unwrap();
    let error = fixture.open().await.err().unwrap();
    assert!(matches!(error, StateError::Integrity(_)), "{error}");
}

/// Shows: state.md#export-and-import "`sc stack import` refuses, even with `--force`, as long as an interrupted run has
///   left a journal."
#[tokio::test]
async fn import_is_refused_while_a_run_is_interrupted() {
    let fixture = Fixture::new().await;
    let (state, recorder) = fixture.unfinished_run().await;
    drop(recorder);
    let text = export(json!([stored_resource("dev", "c")]));
    let error = run_import(&fixture, &text, true).await.unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::Locked { .. })), "{error}");

    fixture.store.break_locks(&fixture.stack, &fixture.store.locks(&fixture.stack).await.unwrap()).await.unwrap();
    let error = run_import(&fixture, &text, true).await.unwrap_err();
    assert!(matches!(error, StateError::Interrupted { .. }), "{error}");
    assert_eq!(fixture.names().await, ["b", "a"]);
    drop(state);
}
