//! Tests of states whose secrets a key in AWS KMS protects, in turn with Pulumi.

use serde_json::json;
use tests::sdk_providers::{Repository, SECRET, Sdk, plain, resource_inputs};

use crate::checklist::PREVIEW;
use crate::pulumi::Pulumi;
use crate::states::write_program;
use crate::stores::{KEYS, Stores};

/// Creates a repository whose secrets a new key protects, and returns it with the URL of the key.
fn repository(stores: Stores<'_>) -> (Repository, String) {
    let url = stores.new_key();
    let repository = stores.repository().with_secrets_provider(json!({"type": "aws-kms", "config": {"keyName": url}}));
    let repository = KEYS.iter().fold(repository, |repository, (name, value)| repository.with_variable(name, value));
    repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
    (repository, url)
}

/// Shows: state.md#secrets "Each program decrypts what the other has encrypted."
pub(crate) fn secrets_under_a_key_of_aws_kms_are_used_by_both_programs(stores: Stores<'_>) {
    let (repository, url) = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    assert_eq!(plain(&pulumi.resource("a--main")["outputs"]["secret"]), SECRET);
    pulumi.copy_secrets_provider();
    assert!(pulumi.settings().contains(&url), "{}", pulumi.settings());
    write_program(&pulumi);
    pulumi.run_successfully(&["preview", "--expect-no-changes"]);
    pulumi.changes("refresh");
    pulumi.run_successfully(&["config", "set", "--secret", "code", "eel-9"]);
    // The file has the data key of the state, so the text in it is decrypted with the same key.
    repository.write_file("Pulumi.reef.yaml", &pulumi.settings());
    repository.run_successfully(&PREVIEW);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "second"))]);
    repository.provision();
    assert_eq!(plain(&pulumi.resource("a--main")["inputs"]["v"]), "2");
    assert_ne!(plain(&pulumi.resource("a--main")["inputs"]["secret"]), SECRET);
    let history = pulumi.run_successfully(&["stack", "history", "--json", "--show-secrets"]);
    assert!(history.contains("eel-9"), "{history}");
}

/// Shows: state.md#secrets "Each program decrypts what the other has encrypted."
pub(crate) fn sc_continues_pulumi_stack_under_a_key_of_aws_kms(stores: Stores<'_>) {
    let (repository, url) = repository(stores);
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.run_successfully(&["stack", "init", "--secrets-provider", &url]);
    pulumi.changes("up");
    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.run_successfully(&PREVIEW);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.provision();
    assert_eq!(pulumi.resource("a--main")["outputs"]["out"], "made of 2");

    // Pulumi encrypts the state with another key; server.yaml names it afterwards.
    let other = stores.new_key();
    pulumi.run_successfully(&["stack", "change-secrets-provider", &other]);
    let moved = json!({"type": "aws-kms", "config": {"keyName": other}});
    let repository = repository.with_secrets_provider(moved);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.run_successfully(&PREVIEW);
    assert_eq!(repository.entry("a")["outputs"]["secret"]["plaintext"], json!(format!("{SECRET:?}")));
}
