//! Tests of states that move between `sc` and Pulumi, with a provider of our own: the state is tested, not the
//! provider.

use serde_json::{Value, json};
use tests::things::{Peer, Repository, SECRET, plain, thing};

use crate::pulumi::Pulumi;

/// Creates a repository whose stack has one thing.
pub(crate) fn repository() -> Repository {
    let repository = Repository::new(&[Peer::Go]);
    repository.describe(&[("a", Peer::Go, thing("1", "x", "first"))]);
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

pub(crate) fn our_stack_is_listed() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    let stacks: Value = serde_json::from_str(&pulumi.succeeds(&["stack", "ls", "--all", "--json"])).unwrap();
    let stacks = stacks.as_array().unwrap();
    assert_eq!(stacks.len(), 1, "{stacks:?}");
    assert!(stacks[0]["name"].as_str().unwrap().ends_with("reef"), "{stacks:?}");
    assert_eq!(stacks[0]["resourceCount"], pulumi.resources().len());
}

pub(crate) fn our_state_is_exported() {
    let repository = repository();
    repository.provision();
    let theirs = Pulumi::new(&repository).succeeds(&["stack", "export"]);
    let (ours, _) = repository.succeeds(&["stack", "export", "-s", "reef"]);
    let without_manifest = |text: &str| {
        let mut export: Value = serde_json::from_str(text).unwrap();
        export["deployment"]["manifest"].take();
        export
    };
    assert_eq!(without_manifest(&theirs), without_manifest(&ours));
}

pub(crate) fn a_secret_of_ours_is_decrypted() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    let entry = pulumi.resource("a--main");
    assert!(entry["inputs"]["secret"].is_object(), "{entry}");
    assert_eq!(plain(&entry["inputs"]["secret"]), SECRET);
    assert_eq!(plain(&entry["outputs"]["secret"]), SECRET);
    let outputs = pulumi.succeeds(&["stack", "output", "--json", "--show-secrets"]);
    assert!(outputs.contains(SECRET), "{outputs}");

    let (code, stdout, stderr) = pulumi.run(&["stack", "export", "--show-secrets"], "another");
    assert_ne!(code, 0, "{stdout}");
    assert!(stderr.contains("passphrase"), "{stderr}");
}

pub(crate) fn our_state_is_refreshed() {
    let repository = repository();
    repository.provision();
    let id = repository.id("a");
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.succeeds(&["refresh", "--preview-only", "--expect-no-changes"]);
    pulumi.changes("refresh");
    repository.succeeds(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);

    repository.home.alter(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));
    pulumi.changes("refresh");
    let entry = repository.entry("a");
    assert_eq!((&entry["inputs"]["v"], &entry["outputs"]["out"]), (&json!("3"), &json!("made of 3")));
    repository.provision();
    assert_eq!(repository.home.things()[0].1["v"], "1");
}

pub(crate) fn our_stack_is_destroyed() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.changes("destroy");
    assert_eq!(repository.home.things(), []);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
    // Deleted resources are created again, on the state after the destroy.
    repository.provision();
    assert_eq!(repository.home.things().len(), 1);
}

pub(crate) fn the_same_program_has_nothing_to_change_in_our_state() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    write_program(&pulumi);
    pulumi.succeeds(&["preview", "--expect-no-changes"]);
    pulumi.succeeds(&["up", "--yes", "--skip-preview", "--expect-no-changes"]);
    repository.succeeds(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
}

pub(crate) fn we_go_on_with_a_state_of_pulumis() {
    let repository = repository();
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.succeeds(&["stack", "init"]);
    pulumi.changes("up");
    let id = pulumi.resource("a--main")["id"].clone();

    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.succeeds(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
    repository.describe(&[("a", Peer::Go, thing("2", "x", "first"))]);
    repository.provision();
    assert_eq!(repository.entry("a")["id"], id);
    assert_eq!(repository.home.things()[0].1, json!({"v": "2", "k": "x", "secret": SECRET}));
    assert_eq!(pulumi.resource("a--main")["outputs"]["out"], "made of 2");
    pulumi.changes("up");
    assert_eq!(repository.home.things()[0].1["v"], "1");
}

pub(crate) fn we_refresh_and_destroy_a_stack_of_pulumis() {
    let repository = repository();
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.succeeds(&["stack", "init"]);
    pulumi.changes("up");
    let id = pulumi.resource("a--main")["id"].as_str().unwrap().to_owned();

    repository.home.alter(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));
    repository.succeeds(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(pulumi.resource("a--main")["outputs"]["out"], "made of 3");
    repository.succeeds(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(repository.home.things(), []);
}
