//! Tests of components by providers on Pulumi's own SDKs, each in its own process: runs the recordings with each
//! provider, and provisions a server.yaml.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::path::Path;
use std::sync::Arc;

use bridge::host::ProviderHost;
use serde_json::{Value, json};
use tests::compare::{ComparisonInput, Scope, compare};
use tests::program_runner::Concurrency;
use tests::scenario::Scenario;
use tests::sdk_providers::Repository;
use tests::sdks::{Sdk, SdkPlugin};
use tests::step_runner;

tests::test_with_each_sdk! {
    async recordings_match => crate::compare_recordings;
    provision_change_and_destroy => crate::provision_change_and_destroy;
    sandbox => crate::strict_sandbox;
}

fn install(sdk: Sdk, folder: &Path) -> SdkPlugin {
    sdk.install_plugin("interop_components", "comp", folder).unwrap()
}

/// Runs every recording of components with the provider, and compares the outcomes.
async fn compare_recordings(sdk: Sdk) {
    let folder = tempfile::tempdir().unwrap();
    let plugin = install(sdk, &folder.path().join("comp"));
    let host: Arc<dyn ProviderHost> = Arc::new(plugin.host("comp", &[]).await.unwrap());
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine/components.jsonl");
    let mut all_differences = Vec::new();
    for scenario in Scenario::read(&recordings).unwrap() {
        for (index, step) in scenario.steps.iter().enumerate() {
            let step_run = step_runner::run_step_with_components(
                &scenario,
                index,
                Concurrency::Sequential,
                Some(Arc::clone(&host)),
            )
            .await
            .unwrap();
            let base = scenario.base(index);
            let differences = compare(&ComparisonInput { step, base: &base, scope: Scope::All }, &step_run.outcome);
            let differences = step_run.violations.into_iter().chain(differences.iter().map(ToString::to_string));
            all_differences.extend(differences.map(|text| format!("{}/{index}: {text}", scenario.name)));
        }
    }
    assert!(all_differences.is_empty(), "{all_differences:#?}");
}

/// Returns a repository with the component provider in a folder.
fn repository(sdk: Sdk) -> Repository {
    let repository = Repository::new(&[]);
    let plugin = install(sdk, &repository.folder().join("comp"));
    repository.with_path(plugin.path().unwrap())
}

/// Writes a server.yaml with these resources, whose stack uses the component provider and the scripted one.
fn declare(repository: &Repository, resources: &Value, outputs: &Value) {
    let rec = env!("CARGO_BIN_EXE_pulumi-resource-rec");
    let plugins = [
        json!({"name": "comp", "source": {"type": "local", "path": "comp"}}),
        json!({"name": "rec", "source": {"type": "local", "path": rec}, "passEnv": ["REC_DIR"]}),
    ];
    let plugins = plugins.map(|entry| repository.entry_with_settings(entry)).into_iter().collect();
    repository.declare_sections(&plugins, resources, outputs);
}

fn nest(repository: &Repository, value: u32) {
    let resources = json!({
        "nest": {"type": "comp:index:Nest", "config": {"value": value}},
        "after": {
            "type": "rec:index:Thing",
            "config": {"v": "${resource:nest.inner}"},
            "options": {"dependsOn": ["nest"]},
        },
    });
    declare(repository, &resources, &json!({"inner": "${resource:main/nest.inner}"}));
}

/// Creates a component of a server.yaml, runs again without a change, updates it, and destroys it.
fn provision_change_and_destroy(sdk: Sdk) {
    run_life(&repository(sdk));
}

/// The same in the sandbox `strict`: the component provider reaches the monitor of each phase.
///
/// Shows: hosting.md#sandbox "providers and components on Pulumi's SDKs for Python, Node and Go"
fn strict_sandbox(sdk: Sdk) {
    let repository = Repository::new(&[]);
    let plugin = install(sdk, &repository.folder().join("comp"));
    run_life(&repository.with_path(plugin.path().unwrap()).in_strict_sandbox(&plugin.outside));
}

fn run_life(repository: &Repository) {
    nest(repository, 1);
    let (text, _) = repository.run_successfully(&["provision", "--preview", "-s", "reef"]);
    assert!(text.contains("nest--main-pair-one"), "{text}");
    repository.run_successfully(&["provision", "-s", "reef"]);
    let mut expected = [
        "tide-reef",
        "comp",
        "rec",
        "nest--main",
        "nest--main-pair",
        "nest--main-pair-one by rec",
        "nest--main-pair-two by rec",
        "nest--main-tail by rec",
        "after--main by rec",
    ];
    expected.sort_unstable();
    let mut resources = repository.resources();
    resources.sort();
    assert_eq!(resources, expected);
    repository.run_successfully(&["provision", "-s", "reef", "--expect-no-changes"]);
    nest(repository, 2);
    repository.run_successfully(&["provision", "-s", "reef"]);
    let inner = repository.outputs(&[])["inner"].to_string();
    assert!(inner.contains(r#"o:\"o:2\""#), "{inner}");
    repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(repository.resources(), [""; 0]);
}

/// Tests the other requests of components: a remote component of their own type, a method of it, a function, an
/// existing resource. The provider is written in Go only, as the resource monitor treats all languages alike.
#[test]
fn component_makes_all_kinds_of_monitor_requests() {
    let repository = repository(Sdk::Go);
    let outputs =
        ["told", "asked", "seen"].map(|name| (name.to_owned(), json!(format!("${{resource:main/t.{name}}}"))));
    let outputs = Value::Object(outputs.into_iter().collect());
    declare(&repository, &json!({"t": {"type": "comp:index:Teller", "config": {"value": 7}}}), &outputs);
    repository.run_successfully(&["provision", "-s", "reef"]);
    let found = repository.outputs(&[]);
    assert_eq!(found, json!({"told": "hello, o:\"o:7\"", "asked": {"v": 5}, "seen": "c:elsewhere"}));
    repository.run_successfully(&["provision", "-s", "reef", "--expect-no-changes"]);

    declare(&repository, &json!({"t": {"type": "comp:index:Teller", "config": {"value": 7, "hook": true}}}), &outputs);
    let (code, text) = repository.run(&["provision", "-s", "reef", "-S"]);
    assert_eq!(code, 1, "{text}");
    // The SDK receives an error about hooks; how it reports the error to its component is up to the SDK.
    assert!(text.contains("error: t--main (comp:Teller)"), "{text}");
}
