//! Tests of states that move between `sc` and Pulumi, with our own provider: the state is tested, not the
//! provider.

use serde_json::{Value, json};
use tests::sdk_providers::{Repository, SECRET, Sdk, plain, resource_inputs};

use crate::pulumi::Pulumi;
use crate::stores::Stores;

/// Creates a repository whose stack has one resource.
pub(crate) fn repository(stores: Stores<'_>) -> Repository {
    let repository = stores.repository();
    repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
    repository
}

/// Writes a Pulumi program of the same stack.
pub(crate) fn write_program(pulumi: &Pulumi<'_>) {
    let resources = json!({
        "peergo": {"type": "pulumi:providers:peergo"},
        "a--main": {
            "type": "peergo:index:Thing",
            "properties": {"v": "1", "k": "x", "secret": {"fn::secret": SECRET}},
            "options": {"provider": "${peergo}"},
        },
    });
    let output = |name: &str| format!("${{a--main.{name}}}");
    pulumi.program(&resources, &json!({"a": {"v": output("v"), "out": output("out"), "secret": output("secret")}}));
}

pub(crate) fn pulumi_lists_our_stack(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    let stacks: Value = serde_json::from_str(&pulumi.run_successfully(&["stack", "ls", "--all", "--json"])).unwrap();
    let stacks = stacks.as_array().unwrap();
    assert_eq!(stacks.len(), 1, "{stacks:?}");
    assert!(stacks[0]["name"].as_str().unwrap().ends_with("reef"), "{stacks:?}");
    assert_eq!(stacks[0]["resourceCount"], pulumi.resources().len());
}

pub(crate) fn pulumi_exports_our_state(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let theirs = Pulumi::new(&repository).run_successfully(&["stack", "export"]);
    let (ours, _) = repository.run_successfully(&["stack", "export", "-s", "reef"]);
    let without_manifest = |text: &str| {
        let mut export: Value = serde_json::from_str(text).unwrap();
        export["deployment"]["manifest"].take();
        export
    };
    assert_eq!(without_manifest(&theirs), without_manifest(&ours));
}

pub(crate) fn pulumi_decrypts_our_secrets(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    let entry = pulumi.resource("a--main");
    assert!(entry["inputs"]["secret"].is_object(), "{entry}");
    assert_eq!(plain(&entry["inputs"]["secret"]), SECRET);
    assert_eq!(plain(&entry["outputs"]["secret"]), SECRET);
    let outputs = pulumi.run_successfully(&["stack", "output", "--json", "--show-secrets"]);
    assert!(outputs.contains(SECRET), "{outputs}");

    let (code, stdout, stderr) = pulumi.run(&["stack", "export", "--show-secrets"], "another");
    assert_ne!(code, 0, "{stdout}");
    assert!(stderr.contains("passphrase"), "{stderr}");
}

/// Shows: comparison.md#moving-a-stack-back-to-pulumi "Now `pulumi` can export, refresh and destroy the stack."
pub(crate) fn pulumi_refreshes_our_state(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let id = repository.id("a");
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.run_successfully(&["refresh", "--preview-only", "--expect-no-changes"]);
    pulumi.changes("refresh");
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);

    repository.home.change(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));
    pulumi.changes("refresh");
    let entry = repository.entry("a");
    assert_eq!((&entry["inputs"]["v"], &entry["outputs"]["out"]), (&json!("3"), &json!("made of 3")));
    repository.provision();
    assert_eq!(repository.home.resources()[0].1["v"], "1");
}

/// Shows: state.md#stores "each program continues, edits, renames, restores and destroys the stacks of the other"
pub(crate) fn pulumi_destroys_our_stack(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.changes("destroy");
    assert_eq!(repository.home.resources(), []);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
    // Deleted resources are created again, on the state after the destroy.
    repository.provision();
    assert_eq!(repository.home.resources().len(), 1);
}

/// Shows: comparison.md#moving-a-stack-back-to-pulumi "`pulumi up` needs a program that registers the same resources"
pub(crate) fn equal_pulumi_program_has_no_changes(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_program(&pulumi);
    pulumi.run_successfully(&["preview", "--expect-no-changes"]);
    pulumi.run_successfully(&["up", "--yes", "--skip-preview", "--expect-no-changes"]);
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
}

/// Shows: comparison.md#moving-a-stack-to-sc "A file that describes what is recorded has no changes."
/// Shows: state.md#stores "each program continues, edits, renames, restores and destroys the stacks of the other"
pub(crate) fn sc_continues_from_pulumi_state(stores: Stores<'_>) {
    let repository = repository(stores);
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.run_successfully(&["stack", "init"]);
    pulumi.changes("up");
    let id = pulumi.resource("a--main")["id"].clone();

    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.provision();
    assert_eq!(repository.entry("a")["id"], id);
    assert_eq!(repository.home.resources()[0].1, json!({"v": "2", "k": "x", "secret": SECRET}));
    assert_eq!(pulumi.resource("a--main")["outputs"]["out"], "made of 2");
    pulumi.changes("up");
    assert_eq!(repository.home.resources()[0].1["v"], "1");
}

pub(crate) fn sc_refreshes_and_destroys_pulumi_stack(stores: Stores<'_>) {
    let repository = repository(stores);
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.run_successfully(&["stack", "init"]);
    pulumi.changes("up");
    let id = pulumi.resource("a--main")["id"].as_str().unwrap().to_owned();

    repository.home.change(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(pulumi.resource("a--main")["outputs"]["out"], "made of 3");
    repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(repository.home.resources(), []);
}
