//! Secrets of a state under a key in Azure Key Vault, and a state in Azure Blob Storage with access tokens.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use tests::azure::{Azure, KeyState, SECRET};

use crate::repository::{FILES, PROVISIONER, Repository, Sections, copy_folder};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: '${secret:token}' } }";
const KEY: &str = "azurekeyvault://reef.vault.azure.net/keys/state";

fn provisioner(provider: &str) -> String {
    PROVISIONER.replace("type: passphrase, config: { passPhrase: hush }", provider)
}

/// Runs a command with the credentials of an application. Returns its exit code and output.
fn run(repository: &Repository, arguments: &str, azure: &Azure, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.envs(azure.environment()).envs(variables.iter().copied());
    let output = repository.start_command(command).output();
    assert!(!output.contains(SECRET) && !output.contains("ey.hidden"), "credentials are shown: {output}");
    output
}

fn reef(provisioner: &str) -> Repository {
    let sections = Sections { plugins: FILES, resources: PAGE, outputs: "token: '${secret:token}'" };
    let repository = Repository::new(sections);
    repository.write(".sc/stacks/reef/secrets.yaml", "schemaVersion: 1.0\nvalues:\n  token: swordfish-7f3a\n");
    repository.write_stack("reef", provisioner, sections);
    repository
}

/// Shows: server-yaml.md#secrets-provider "an RSA key in Azure Key Vault"
#[tokio::test(flavor = "multi_thread")]
async fn data_key_is_encrypted_by_key_vault() {
    let azure = Azure::start(&["reef/state"]).await.unwrap();
    let url = format!("{KEY}/7ab?algorithm=RSA-OAEP-256");
    let repository = reef(&provisioner(&format!("type: azure-key-vault, config: {{ keyName: '{url}' }}")));
    let output = run(&repository, "provision", &azure, &[]);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert_eq!(azure.take_operations(), ["encrypt"]);
    let provider = &repository.state()["checkpoint"]["latest"]["secrets_providers"];
    assert_eq!((&provider["type"], &provider["state"]["url"]), (&"cloud".into(), &url.as_str().into()));
    // As Pulumi stores it: the ciphertext in base64url, which is encoded once more.
    let stored = STANDARD.decode(provider["state"]["encryptedkey"].as_str().unwrap()).unwrap();
    assert!(URL_SAFE_NO_PAD.decode(stored).unwrap().starts_with(b"key vault "));
    let outputs = run(&repository, "stack outputs --show-secrets", &azure, &[]);
    assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
    assert_eq!(azure.take_operations(), ["decrypt"]);
}

/// The state is a recording of the real `pulumi` with a key in a stand-in of HashiCorp Vault, whose encrypted data key is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_pulumi_encrypted_are_decrypted() {
    let azure = Azure::start(&["reef/state"]).await.unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/state/cloud");
    for is_wrapped in [true, false] {
        let repository = reef(&provisioner(&format!("type: azure-key-vault, config: {{ keyName: '{KEY}' }}")));
        repository.write(".sc/cfg.default.yaml", "projectName: reef\n");
        fs::rename(repository.path(".sc/stacks/reef"), repository.path(".sc/stacks/dev")).unwrap();
        copy_folder(&golden.join("backend"), &repository.path("backend"));
        let checkpoint = "backend/.pulumi/stacks/reef/dev.json";
        let content = repository.read(checkpoint);
        let (_, recorded) = content.split_once("\"encryptedkey\":").unwrap();
        let recorded = recorded.split('"').nth(1).unwrap();
        let of_vault = String::from_utf8(STANDARD.decode(recorded).unwrap()).unwrap();
        let masked = STANDARD.decode(of_vault.strip_prefix("vault:v1:").unwrap()).unwrap();
        let ciphertext = [b"key vault ".as_slice(), &masked].concat();
        let stored = if is_wrapped { URL_SAFE_NO_PAD.encode(ciphertext).into_bytes() } else { ciphertext };
        let content = content.replace(recorded, &STANDARD.encode(stored));
        repository.write(checkpoint, &content.replace("hashivault://reef-key?engine=transit", KEY));
        let outputs = run(&repository, "stack outputs --show-secrets", &azure, &[]);
        assert!(outputs.contains(r"otter\\u003c7\\u003e"), "{outputs}");
        assert_eq!(azure.take_operations(), ["decrypt"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_azure_are_reported_before_anything_is_changed() {
    let azure = Azure::start(&["reef/state"]).await.unwrap();
    let repository = reef(&provisioner(&format!("type: azure-key-vault, config: {{ keyName: '{KEY}' }}")));
    let first = run(&repository, "provision", &azure, &[]);
    assert!(first.starts_with("exit 0\n"), "{first}");
    let before = repository.files("backend");
    let mut failures = Vec::new();
    let mut fail = |variables: &[(&str, &str)]| {
        let output = run(&repository, "stack outputs --show-secrets", &azure, variables);
        assert!(output.starts_with("exit 1\n") && repository.files("backend") == before, "{output}");
        failures.push(output[output.find("caused by").unwrap()..].trim().to_owned());
    };
    for state in [KeyState::Disabled, KeyState::Denied] {
        azure.set("reef/state", state);
        fail(&[]);
    }
    azure.set("reef/state", KeyState::Enabled);
    fail(&[("AZURE_CLIENT_SECRET", "another")]);
    fail(&[("AZURE_CLIENT_SECRET", ""), ("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")]);
    insta::assert_snapshot!(failures.join("\n"), @"
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key azurekeyvault://reef.vault.azure.net/keys/state: the key is disabled: Forbidden: Operation decrypt is not allowed on a disabled key.
      hint: enable the key, or cancel its deletion; the secrets cannot be read without it
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key azurekeyvault://reef.vault.azure.net/keys/state: access to the key is denied: Forbidden: Caller is not authorized to perform action on resource. Action: 'decrypt'
      hint: the account needs kms:Encrypt and kms:Decrypt, the role roles/cloudkms.cryptoKeyEncrypterDecrypter, or in Azure the role `Key Vault Crypto User`; AWS also refuses a data key that was encrypted in another region
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key azurekeyvault://reef.vault.azure.net/keys/state: there are no valid credentials: the credentials of Azure (environment) cannot be used: invalid_client: AADSTS7000215: Invalid client secret provided. Trace ID: 1
      hint: log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the environment, such as AZURE_CLIENT_ID
    caused by: the data key of stack organization/tank/reef cannot be decrypted with the key azurekeyvault://reef.vault.azure.net/keys/state: there are no valid credentials: no credentials of Azure; tried in this order: environment: AZURE_CLIENT_SECRET is not set
      hint: log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the environment, such as AZURE_CLIENT_ID
    ");
}

/// Shows: state.md#in-azure-blob-storage "With access tokens, the account needs the role `Storage Blob Data Contributor` on the
///   container"
#[tokio::test(flavor = "multi_thread")]
async fn container_is_used_with_an_access_token() {
    let azure = Azure::start(&[]).await.unwrap();
    let storage = "type: fs, config: { path: 'azblob://state?storage_account=reef' }";
    let repository = reef(&PROVISIONER.replace("type: fs, config: { path: file://backend }", storage));
    let refused = run(&repository, "stack export", &azure, &[]);
    insta::assert_snapshot!(refused, @"
    exit 1
    --- out
    --- err
    error: the backend of stack reef cannot be opened
      caused by: cannot read azblob://state/.pulumi/meta.yaml
      caused by: the credentials of Azure (environment) do not allow it: it needs the role `Storage Blob Data Contributor` on the container `state` (AuthorizationPermissionMismatch: Refused.)
    ");
}
