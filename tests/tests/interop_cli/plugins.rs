//! Tests of published providers as plugins of `sc`, and of their stacks when they move between `sc` and Pulumi.

use std::fs;
use std::path::PathBuf;

use bridge::process::HostEnvironment;
use serde_json::{Value, json};
use tests::sdk_providers::{Repository, plain};

use crate::pulumi::Pulumi;
use crate::twins::recorded;
use crate::{COMMAND, RANDOM};

/// Returns the section `plugins` of server.yaml for programs on PATH.
fn plugins(names: &[&str]) -> Value {
    let environment = HostEnvironment::new(std::env::vars_os());
    let plugin = |name: &&str| {
        let path = environment.find_program(name).unwrap();
        json!({"name": name.trim_start_matches("pulumi-resource-"), "source": {"type": "local", "path": path}})
    };
    names.iter().map(plugin).collect()
}

fn random_resources(length: u32) -> Value {
    json!({
        "pet": {"type": "random:RandomPet", "config": {"length": length}},
        "password": {
            "type": "random:index/randomPassword:RandomPassword",
            "config": {"length": 24, "special": false},
            "options": {"additionalSecretOutputs": ["result"]},
        },
    })
}

/// Returns the path of the file that the command creates and deletes.
fn target(repository: &Repository) -> PathBuf {
    repository.folder().join("made")
}

fn command_properties(repository: &Repository, text: &str) -> Value {
    let target = target(repository).display().to_string();
    json!({
        "create": format!("printf %s {text} > '{target}' && printf %s {text}"),
        "delete": format!("rm '{target}'"),
    })
}

fn command_resource(repository: &Repository, text: &str) -> Value {
    json!({"touch": {"type": "command:local:Command", "config": command_properties(repository, text)}})
}

/// Writes a server.yaml with resources of both packages.
fn declare_both(repository: &Repository) {
    let mut resources = random_resources(2);
    resources["touch"] = command_resource(repository, "hello")["touch"].take();
    repository.declare_sections(&plugins(&[RANDOM, COMMAND]), &resources, &json!({"pet": "${resource:main/pet.id}"}));
}

/// Writes a Pulumi program with the same resources.
fn write_both(pulumi: &Pulumi<'_>, repository: &Repository) {
    let with = |provider: &str| json!({"provider": format!("${{{provider}}}")});
    let resources = json!({
        "random": {"type": "pulumi:providers:random"},
        "command": {"type": "pulumi:providers:command"},
        "pet--main": {
            "type": "random:RandomPet",
            "properties": {"length": 2},
            "options": with("random"),
        },
        "password--main": {
            "type": "random:index/randomPassword:RandomPassword",
            "properties": {"length": 24, "special": false},
            "options": {"provider": "${random}", "additionalSecretOutputs": ["result"]},
        },
        "touch--main": {
            "type": "command:local:Command",
            "properties": command_properties(repository, "hello"),
            "options": with("command"),
        },
    });
    pulumi.program(&resources, &json!({"pet": "${pet--main.id}"}));
}

const PREVIEW: [&str; 5] = ["provision", "-s", "reef", "--preview", "--expect-no-changes"];
const DESTROY: [&str; 5] = ["destroy", "--parent", "-s", "reef", "--yes"];

pub(crate) fn sc_provisions_with_random_provider() {
    let repository = Repository::new(&[]);
    let outputs = json!({"pet": "${resource:main/pet.id}", "password": "${resource:main/password.result}"});
    repository.declare_sections(&plugins(&[RANDOM]), &random_resources(2), &outputs);
    repository.provision();
    let (pet, password) = (repository.id("pet"), repository.entry("password"));
    assert_eq!(pet.split('-').count(), 2, "{pet}");
    assert!(password["outputs"]["result"].is_object(), "{password}");
    let plaintext = plain(&password["outputs"]["result"]);
    assert_eq!(plaintext.as_str().unwrap().len(), 24);
    assert_eq!(repository.outputs(&[]), json!({"pet": pet, "password": "[secret]"}));
    for (path, content) in repository.state_files() {
        assert!(!String::from_utf8_lossy(&content).contains(plaintext.as_str().unwrap()), "{}", path.display());
    }
    repository.run_successfully(&PREVIEW);

    repository.declare_sections(&plugins(&[RANDOM]), &random_resources(3), &outputs);
    repository.provision();
    assert_eq!(repository.id("pet").split('-').count(), 3);
    assert_eq!(plain(&repository.entry("password")["outputs"]["result"]), plaintext);
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    repository.run_successfully(&PREVIEW);
    repository.run_successfully(&DESTROY);
}

pub(crate) fn sc_provisions_with_command_provider() {
    let repository = Repository::new(&[]);
    let outputs = json!({"stdout": "${resource:main/touch.stdout}"});
    repository.declare_sections(&plugins(&[COMMAND]), &command_resource(&repository, "hello"), &outputs);
    repository.run_successfully(&["provision", "-s", "reef", "--preview"]);
    assert!(!target(&repository).exists());
    repository.provision();
    assert_eq!(fs::read_to_string(target(&repository)).unwrap(), "hello");
    assert_eq!(repository.outputs(&[]), json!({"stdout": "hello"}));
    repository.run_successfully(&PREVIEW);

    // Without `update`, the provider runs `create` again.
    repository.declare_sections(&plugins(&[COMMAND]), &command_resource(&repository, "ahoy"), &outputs);
    repository.provision();
    assert_eq!(fs::read_to_string(target(&repository)).unwrap(), "ahoy");
    repository.run_successfully(&DESTROY);
    assert!(!target(&repository).exists());
}

pub(crate) fn pulumi_continues_our_stack_with_published_providers() {
    let repository = Repository::new(&[]);
    declare_both(&repository);
    repository.provision();
    let pet = repository.id("pet");
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_both(&pulumi, &repository);
    pulumi.changes("refresh");
    pulumi.changes("up");
    assert_eq!(pulumi.resource("pet--main")["id"], pet);
    repository.provision();
    assert_eq!(repository.id("pet"), pet);
    assert_eq!(fs::read_to_string(target(&repository)).unwrap(), "hello");
    pulumi.changes("destroy");
    assert!(!target(&repository).exists());
    assert_eq!(repository.entries("pet"), [Value::Null; 0]);
}

pub(crate) fn published_providers_lead_to_equal_states() {
    let (ours, theirs) = (Repository::new(&[]), Repository::new(&[]));
    declare_both(&ours);
    // The state of either repository is exported by `sc`.
    declare_both(&theirs);
    ours.provision();
    let pulumi = Pulumi::new(&theirs);
    // The paths in the program are those of the other repository.
    write_both(&pulumi, &ours);
    pulumi.run_successfully(&["stack", "init"]);
    pulumi.changes("up");
    let [ours, theirs] = [ours, theirs].map(|repository| {
        let mut state = recorded(&repository);
        for resource in state["resources"].as_array_mut().unwrap() {
            // Random values, and durations in seconds.
            for member in ["id", "result", "bcryptHash", "separator"] {
                if resource[member].is_string() {
                    resource[member] = json!("random");
                }
                if !resource["outputs"][member].is_null() {
                    let secret = resource["outputs"][member].is_object();
                    resource["outputs"][member] = json!({"random": true, "secret": secret});
                }
            }
            if !resource["outputs"]["pet"].is_null() {
                resource["outputs"]["pet"] = json!("random");
            }
        }
        state
    });
    assert!(ours == theirs, "{ours:#}\n{theirs:#}");
}

pub(crate) fn sc_continues_pulumi_stack_with_published_providers() {
    let repository = Repository::new(&[]);
    let pulumi = Pulumi::new(&repository);
    write_both(&pulumi, &repository);
    pulumi.run_successfully(&["stack", "init"]);
    pulumi.changes("up");
    let pet = pulumi.resource("pet--main")["id"].clone();
    let password = plain(&pulumi.resource("password--main")["outputs"]["result"]);

    declare_both(&repository);
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    repository.provision();
    assert_eq!(repository.entry("pet")["id"], pet);
    assert_eq!(plain(&repository.entry("password")["outputs"]["result"]), password);
    pulumi.changes("up");
    assert_eq!(pulumi.resource("pet--main")["id"], pet);
    repository.run_successfully(&DESTROY);
    assert!(!target(&repository).exists());
}
