//! Tests of `Pulumi.<stack>.yaml`: the effect of its configuration on a run.

use serde_json::{Value, json};
use state::secrets::{Passphrase, PassphraseManager, SecretsManager as _};

use crate::repository::{REC, Repository, Sections};

const BED: &str = "bed: { type: rec:index:Thing, config: { v: 1 } }";

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: BED, outputs: "" })
}

/// Returns a salt, and `open sesame` encrypted with it and the passphrase of the repository.
async fn encrypted_secret() -> (String, String) {
    let manager = PassphraseManager::create(Passphrase::new("hush")).await.unwrap();
    let salt = manager.describe().state["salt"].as_str().unwrap().to_owned();
    (salt, manager.crypter().await.unwrap().encrypt("open sesame").unwrap())
}

fn requests(repository: &Repository, rpc: &str) -> Vec<Value> {
    let calls = repository.read("rec/calls.jsonl");
    let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.filter(|call| call["rpc"] == rpc).map(|call| call["request"].clone()).collect()
}

/// Shows: server-yaml.md#files "determines the physical names that `sc` proposes to providers"
#[test]
fn autonaming_configuration_reaches_the_provider() {
    let repository = repository();
    repository.script(json!({"provider": {"autonaming": true}}));
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${stack}-${name}' }\n");
    repository.expect_exit(0, "provision -S");
    assert_eq!(requests(&repository, "Check")[0]["autonaming"], json!({"proposedName": "reef-bed--prod"}));
}

#[test]
fn provider_without_autonaming_support_is_reported_if_enforced() {
    let repository = repository();
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${name}', enforce: true }\n");
    let output = repository.expect_exit(0, "provision -S");
    assert!(output.contains("warning: bed--prod (rec:Thing): rec does not support pulumi:autonaming"), "{output}");
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${nme}' }\n");
    insta::assert_snapshot!(repository.sc("preview"), @r#"
    exit 1
    --- out
    Preview of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: pulumi:autonaming cannot be used: the pattern "${nme}" contains ${nme}, which is not a known placeholder
      hint: fix it in the stack file, Pulumi.reef.yaml
    "#);
}

#[tokio::test]
async fn secret_configuration_is_decrypted_for_the_run_and_encrypted_in_history() {
    let (salt, ciphertext) = encrypted_secret().await;
    let file = format!(
        "encryptionsalt: {salt}\nconfig:\n  tank:word:\n    secure: {ciphertext}\n  \
                        pulumi:autonaming: {{ pattern: '${{config.word}}-${{name}}' }}\n"
    );
    let repository = repository();
    repository.script(json!({"provider": {"autonaming": true}}));
    repository.write("Pulumi.reef.yaml", &file);
    let output = repository.expect_exit(0, "provision -S");
    assert!(!output.contains("sesame"), "{output}");
    let proposed_name = requests(&repository, "Check")[0]["autonaming"]["proposedName"].clone();
    assert_eq!(proposed_name, json!("open sesame-bed--prod"));
    let history = repository.files("backend/.pulumi/history");
    let entry = history.iter().find(|(path, _)| path.ends_with(".history.json")).unwrap();
    let entry: Value = serde_json::from_slice(entry.1).unwrap();
    assert_eq!(entry["config"]["tank:word"], json!({"secure": ciphertext}));

    repository.write("Pulumi.reef.yaml", &file.replace(&ciphertext, "v1:AAAAAAAAAAAAAAAA:AAAA"));
    insta::assert_snapshot!(repository.expect_rejected("provision -S"), @r#"
    exit 1
    --- out
    --- err
    error: the configuration in the stack file cannot be read
      caused by: a secret cannot be decrypted with the stack's key
    "#);
}

#[tokio::test]
async fn secret_configuration_in_plugin_output_is_masked() {
    let (salt, ciphertext) = encrypted_secret().await;
    let repository = repository();
    repository
        .write("Pulumi.reef.yaml", &format!("encryptionsalt: {salt}\nconfig:\n  word:\n    secure: {ciphertext}\n"));
    repository.write_script("rude.sh", "echo 'the word is open sesame' >&2\nexit 1\n");
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    repository.write_sections(Sections { plugins, ..Sections::default() });
    let output = repository.expect_exit(1, "provision -v");
    assert!(output.contains("the word is [secret]") && !output.contains("sesame"), "{output}");
}
