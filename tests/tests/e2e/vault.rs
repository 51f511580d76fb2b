//! Secrets of a state under a key in HashiCorp Vault.

use std::fs;
use std::path::Path;

use tests::vault::{KeyState, TOKEN, Vault};

use crate::repository::{FILES, PROVISIONER, Repository, Sections, copy_folder};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: '${secret:token}' } }";

fn provisioner(provider: &str) -> String {
    PROVISIONER.replace("type: passphrase, config: { passPhrase: hush }", provider)
}

/// Runs a command with the address and a token of a server. Returns its exit code and output.
fn run(repository: &Repository, arguments: &str, vault: &Vault, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.env("VAULT_ADDR", vault.url()).env("VAULT_TOKEN", TOKEN).envs(variables.iter().copied());
    let output = repository.start_command(command).output();
    assert!(!output.contains(TOKEN), "the token is shown: {output}");
    output.replace(&vault.url(), "VAULT")
}

fn reef(provider: &str) -> Repository {
    let sections = Sections { plugins: FILES, resources: PAGE, outputs: "token: '${secret:token}'" };
    let repository = Repository::new(sections);
    repository.write(".sc/stacks/reef/secrets.yaml", "schemaVersion: 1.0\nvalues:\n  token: swordfish-7f3a\n");
    repository.write_stack("reef", &provisioner(provider), sections);
    repository
}

/// Shows: server-yaml.md#secrets-provider "a key in the transit engine of HashiCorp Vault"
#[tokio::test(flavor = "multi_thread")]
async fn data_key_is_encrypted_by_the_transit_engine() {
    let vault = Vault::start(&["team/transit/reef"]).await.unwrap();
    let url = "hashivault://reef?engine=team/transit";
    let repository = reef(&format!("type: hashivault, config: {{ keyName: '{url}' }}"));
    let variables = [("VAULT_NAMESPACE", "aquarium")];
    let output = run(&repository, "provision", &vault, &variables);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert_eq!(vault.take_operations(), ["encrypt"]);
    assert_eq!(vault.take_namespaces(), ["aquarium"]);
    let provider = &repository.state()["checkpoint"]["latest"]["secrets_providers"];
    assert_eq!((&provider["type"], &provider["state"]["url"]), (&"cloud".into(), &url.into()));
    let outputs = run(&repository, "stack outputs --show-secrets", &vault, &variables);
    assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
    assert_eq!(vault.take_operations(), ["decrypt"]);
}

/// The state is a recording of the real `pulumi`, with a key in a server that masks each byte.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_pulumi_encrypted_are_decrypted() {
    let vault = Vault::start(&["transit/reef-key"]).await.unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/state/cloud");
    let repository = reef("type: hashivault, config: { keyName: 'hashivault://reef-key?engine=transit' }");
    repository.write(".sc/cfg.default.yaml", "projectName: reef\n");
    fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/dev")).unwrap();
    copy_folder(&golden.join("backend"), &repository.path("backend"));
    let outputs = run(&repository, "stack outputs --show-secrets", &vault, &[]);
    assert!(outputs.contains(r"otter\\u003c7\\u003e"), "{outputs}");
    assert_eq!(vault.take_operations(), ["decrypt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_vault_are_reported_before_anything_is_changed() {
    const KEY: &str = "transit/reef";
    let vault = Vault::start(&[KEY]).await.unwrap();
    // The type is that of another service, as the Go program passes such a URL on.
    let repository = reef("type: gcp-kms, config: { keyName: 'hashivault://reef' }");
    let first = run(&repository, "provision", &vault, &[]);
    assert!(first.contains("this is a key of hashivault, not of gcp-kms"), "{first}");
    let before = repository.files("backend");
    let mut failures = Vec::new();
    let mut fail = |variables: &[(&str, &str)]| {
        let output = run(&repository, "stack outputs --show-secrets", &vault, variables);
        assert!(output.starts_with("exit 1\n") && repository.files("backend") == before, "{output}");
        failures.push(output[output.find("caused by").unwrap()..].trim().to_owned());
    };
    for state in [KeyState::Archived, KeyState::Denied, KeyState::Deleted] {
        vault.set(KEY, state);
        fail(&[]);
    }
    vault.set(KEY, KeyState::Enabled);
    fail(&[("VAULT_SERVER_TOKEN", "hvs.expired")]);
    fail(&[("VAULT_ADDR", "")]);
    insta::assert_snapshot!(failures.join("\n"), @"
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key hashivault://reef: the key is disabled: HashiCorp Vault at VAULT: 400: ciphertext or signature version is disallowed by policy (too old)
      hint: lower `min_decryption_version` of the key; `sc stack change-secrets-provider` then encrypts the data key with its newest version
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key hashivault://reef: access to the key is denied: HashiCorp Vault at VAULT: 403: 1 error occurred: * permission denied
      hint: the policy of the token needs `update` on ENGINE/encrypt/NAME and ENGINE/decrypt/NAME; Vault replies the same if the key or the engine does not exist: check the URL of the key, and VAULT_NAMESPACE
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key hashivault://reef: there is no such key: HashiCorp Vault at VAULT: 400: encryption key not found
      hint: check the name of the key, the `?engine=PATH` of its URL, and VAULT_NAMESPACE; a key that was deleted is only in backups of Vault
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key hashivault://reef: there are no valid credentials: HashiCorp Vault at VAULT: 403: 2 errors occurred: * permission denied * invalid token
      hint: log in again with `vault login`, and set VAULT_ADDR and VAULT_TOKEN, or VAULT_SERVER_URL and VAULT_SERVER_TOKEN
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key hashivault://reef: there are no valid credentials: the address of Vault is missing: neither VAULT_SERVER_URL nor VAULT_ADDR is set
      hint: log in again with `vault login`, and set VAULT_ADDR and VAULT_TOKEN, or VAULT_SERVER_URL and VAULT_SERVER_TOKEN
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_vault_is_asked_again_before_it_is_reported() {
    const KEY: &str = "transit/reef";
    let vault = Vault::start(&[KEY]).await.unwrap();
    let repository = reef("type: hashivault, config: { keyName: 'hashivault://reef' }");
    vault.set(KEY, KeyState::Sealed);
    let output = run(&repository, "provision", &vault, &[]);
    assert!(output.starts_with("exit 1\n"), "{output}");
    assert!(vault.take_operations().len() > 1);
    let sealed =
        "with the key hashivault://reef: the server is sealed: HashiCorp Vault at VAULT: 503: Vault is sealed\n";
    assert!(output.contains(sealed), "{output}");
    assert!(output.contains("hint: unseal it with `vault operator unseal`, and run the command again"), "{output}");
    // Nothing was created or recorded.
    assert!(!repository.path("site/a").exists());
    vault.set(KEY, KeyState::Enabled);
    assert!(run(&repository, "provision", &vault, &[]).starts_with("exit 0\n"));
}
