//! Tests of states whose secrets a key in AWS KMS or in Azure Key Vault protects, in turn with Pulumi.

use std::cell::Cell;

use serde_json::json;
use tests::azure::Azure;
use tests::sdk_providers::{Repository, SECRET, Sdk, plain, resource_inputs};

use crate::checklist::PREVIEW;
use crate::pulumi::Pulumi;
use crate::states::write_program;
use crate::stores::{KEYS, Stores};

/// Service with keys.
struct Service<'s> {
    /// Type of the secrets provider.
    kind: &'static str,
    /// Variables that both programs need.
    variables: Vec<(&'static str, String)>,
    /// Returns the URL of a new key.
    new_key: &'s dyn Fn() -> String,
}

impl Service<'_> {
    /// Lets a new key protect the secrets of a repository, and returns it with the URL of the key.
    fn protect(&self, repository: Repository) -> (Repository, String) {
        let url = (self.new_key)();
        let repository = repository.with_secrets_provider(json!({"type": self.kind, "config": {"keyName": url}}));
        let variables = self.variables.iter();
        let repository = variables.fold(repository, |repository, (name, value)| repository.with_variable(name, value));
        repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
        (repository, url)
    }
}

/// Runs a test with a key in AWS KMS.
fn with_aws_kms(stores: Stores<'_>, test: fn(Repository, &Service<'_>)) {
    let variables = KEYS.map(|(name, value)| (name, value.to_owned())).to_vec();
    let service = Service { kind: "aws-kms", variables, new_key: &|| stores.new_key() };
    test(stores.repository(), &service);
}

/// Runs a test with a key in the stand-in of Azure Key Vault.
fn with_azure_key_vault(test: fn(Repository, &Service<'_>)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let azure = runtime.block_on(Azure::start(&["reef/first", "reef/second"])).unwrap();
    let names = Cell::new(["first", "second"].iter());
    let new_key = || {
        let mut rest = names.take();
        let name = rest.next().unwrap();
        names.set(rest);
        format!("azurekeyvault://reef.vault.azure.net/keys/{name}")
    };
    let variables = azure.environment().to_vec();
    test(Repository::new(&[Sdk::Go]), &Service { kind: "azure-key-vault", variables, new_key: &new_key });
    let operations = azure.take_operations();
    assert!(["encrypt", "decrypt"].iter().all(|name| operations.iter().any(|operation| operation == name)));
}

/// Shows: state.md#secrets "Each program decrypts what the other has encrypted."
pub(crate) fn secrets_under_a_key_of_aws_kms_are_used_by_both_programs(stores: Stores<'_>) {
    with_aws_kms(stores, check_secrets_of_both_programs);
}

/// Shows: state.md#secrets "Each program decrypts what the other has encrypted."
pub(crate) fn secrets_under_a_key_of_azure_key_vault_are_used_by_both_programs() {
    with_azure_key_vault(check_secrets_of_both_programs);
}

fn check_secrets_of_both_programs(repository: Repository, service: &Service<'_>) {
    let (repository, url) = service.protect(repository);
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
    with_aws_kms(stores, check_stack_of_pulumi);
}

/// Shows: state.md#secrets "Each program decrypts what the other has encrypted."
pub(crate) fn sc_continues_pulumi_stack_under_a_key_of_azure_key_vault() {
    with_azure_key_vault(check_stack_of_pulumi);
}

fn check_stack_of_pulumi(repository: Repository, service: &Service<'_>) {
    let (repository, url) = service.protect(repository);
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
    let other = (service.new_key)();
    pulumi.run_successfully(&["stack", "change-secrets-provider", &other]);
    let moved = json!({"type": service.kind, "config": {"keyName": other}});
    let repository = repository.with_secrets_provider(moved);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.run_successfully(&PREVIEW);
    assert_eq!(repository.entry("a")["outputs"]["secret"]["plaintext"], json!(format!("{SECRET:?}")));
}
