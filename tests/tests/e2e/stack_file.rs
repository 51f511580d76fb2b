//! Tests of `Pulumi.<stack>.yaml`: the effect of its configuration on a run.

use serde_json::{Value, json};
use state::secrets::{Passphrase, PassphraseManager, SecretsManager as _};

use crate::repository::{REC, Repository, Sections};

const BED: &str = "bed: { type: rec:index:Thing, config: { v: 1 } }";

fn repository() -> Repository {
    Repository::new(Sections { plugins: REC, resources: BED, outputs: "" })
}

/// Returns a salt, and `open sesame` encrypted with it and the passphrase of the repository.
async fn sealed() -> (String, String) {
    let manager = PassphraseManager::create(Passphrase::new("hush")).await.unwrap();
    let salt = manager.describe().state["salt"].as_str().unwrap().to_owned();
    (salt, manager.crypter().await.unwrap().encrypt("open sesame").unwrap())
}

fn requests(repository: &Repository, rpc: &str) -> Vec<Value> {
    let calls = repository.read("rec/calls.jsonl");
    let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.filter(|call| call["rpc"] == rpc).map(|call| call["request"].clone()).collect()
}

#[test]
fn names_that_it_lays_down_reach_the_provider() {
    let repository = repository();
    repository.script(json!({"provider": {"autonaming": true}}));
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${stack}-${name}' }\n");
    repository.ends(0, "provision -S");
    assert_eq!(requests(&repository, "Check")[0]["autonaming"], json!({"proposedName": "reef-bed--prod"}));
}

#[test]
fn a_provider_that_takes_no_names_is_told_of_where_the_user_meant_it() {
    let repository = repository();
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${name}', enforce: true }\n");
    let told = repository.ends(0, "provision -S");
    assert!(told.contains("warning: bed--prod (rec:Thing): rec takes no names from pulumi:autonaming"), "{told}");
    repository.write("Pulumi.reef.yaml", "config:\n  pulumi:autonaming: { pattern: '${nme}' }\n");
    insta::assert_snapshot!(repository.sc("preview"), @r#"
    exit 1
    --- out
    Preview of reef failed after [time]: no changes
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    error: pulumi:autonaming cannot be used: the pattern "${nme}" holds ${nme}, which stands for nothing
      hint: mend it in the stack file, Pulumi.reef.yaml
    "#);
}

#[tokio::test]
async fn its_secrets_are_opened_for_the_run_and_sealed_in_the_history() {
    let (salt, sealed) = sealed().await;
    let file = format!(
        "encryptionsalt: {salt}\nconfig:\n  tank:word:\n    secure: {sealed}\n  \
                        pulumi:autonaming: {{ pattern: '${{config.word}}-${{name}}' }}\n"
    );
    let repository = repository();
    repository.script(json!({"provider": {"autonaming": true}}));
    repository.write("Pulumi.reef.yaml", &file);
    let told = repository.ends(0, "provision -S");
    assert!(!told.contains("sesame"), "{told}");
    let named = requests(&repository, "Check")[0]["autonaming"]["proposedName"].clone();
    assert_eq!(named, json!("open sesame-bed--prod"));
    let history = repository.files("backend/.pulumi/history");
    let entry = history.iter().find(|(path, _)| path.ends_with(".history.json")).unwrap();
    let entry: Value = serde_json::from_slice(entry.1).unwrap();
    assert_eq!(entry["config"]["tank:word"], json!({"secure": sealed}));

    repository.write("Pulumi.reef.yaml", &file.replace(&sealed, "v1:AAAAAAAAAAAAAAAA:AAAA"));
    insta::assert_snapshot!(repository.refused("provision -S"), @r#"
    exit 1
    --- out
    --- err
    error: the configuration in the stack file cannot be opened
      caused by: a secret cannot be decrypted with the stack's key
    "#);
}

#[tokio::test]
async fn a_secret_of_it_in_the_words_of_a_plugin_is_masked() {
    let (salt, sealed) = sealed().await;
    let repository = repository();
    repository.write("Pulumi.reef.yaml", &format!("encryptionsalt: {salt}\nconfig:\n  word:\n    secure: {sealed}\n"));
    repository.write_script("rude.sh", "echo 'the word is open sesame' >&2\nexit 1\n");
    let plugins = "- { name: rude, source: { type: local, path: rude.sh } }";
    repository.describe(Sections { plugins, ..Sections::default() });
    let told = repository.ends(1, "provision -v");
    assert!(told.contains("the word is [secret]") && !told.contains("sesame"), "{told}");
}
