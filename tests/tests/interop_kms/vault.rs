//! Keys in the transit engine of HashiCorp Vault: the server itself where there is one, else the stand-in of the harness.

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud::kms::KeyServices;
use state::secrets::{KeyFailureKind, KeyService as _};
use tests::vault::{KeyState, TOKEN, Vault};
use tests::vault_server::{ROOT_TOKEN, VaultServer};

use crate::{DATA_KEY, check_peer_decrypts, check_peer_encrypts, failure};

const URL: &str = "hashivault://reef";
/// Policy that is enough, as docs/server-yaml.md tells.
const POLICY: &str = "path \"transit/encrypt/reef\" { capabilities = [\"update\"] }\n\
                      path \"transit/decrypt/reef\" { capabilities = [\"update\"] }\n";

/// Starts a server with the key `reef`. Returns `None`, and says so, on a machine without `vault`.
fn server() -> Option<VaultServer> {
    let Some(program) = VaultServer::find_program() else {
        // `println!` would show it for a failed test only.
        std::io::stdout().write_all(b"SKIPPED a test of interop_kms, not on PATH: vault\n").unwrap();
        return None;
    };
    let server = VaultServer::start(&program).unwrap();
    server.run("write -f transit/keys/reef").unwrap();
    Some(server)
}

fn services(address: &str, token: &str) -> KeyServices {
    let variables = [("VAULT_ADDR", address), ("VAULT_TOKEN", token), ("HOME", "/missing")];
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    KeyServices { environment: BTreeMap::from(environment), ..KeyServices::default() }
}

/// Shows: state.md#secrets "encrypted by AWS KMS, Google Cloud KMS, Azure Key Vault or HashiCorp Vault, as `pulumi` does. Each program
///   decrypts what the other has encrypted."
#[tokio::test(flavor = "multi_thread")]
async fn data_keys_are_exchanged_with_pulumi() {
    let stand_in = Vault::start(&["transit/reef", "team/transit/reef"]).await.unwrap();
    let services = services(&stand_in.url(), TOKEN);
    for url in [URL, "hashivault://reef?engine=team/transit"] {
        check_peer_decrypts(&services, url).await;
        check_peer_encrypts(&services, url).await;
    }
}

/// Shows: server-yaml.md#secrets-provider "a policy with `update` on `transit/encrypt/NAME` and `transit/decrypt/NAME`"
#[tokio::test(flavor = "multi_thread")]
async fn data_keys_are_exchanged_with_pulumi_through_vault_itself() {
    let Some(server) = server() else { return };
    let services = services(server.url(), &server.new_token(POLICY, "1h").unwrap());
    let key = check_peer_decrypts(&services, URL).await;
    let ciphertext = String::from_utf8(STANDARD.decode(key).unwrap()).unwrap();
    assert!(ciphertext.starts_with("vault:v1:"), "{ciphertext}");
    check_peer_encrypts(&services, URL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_key_outlives_rotations_of_the_key_in_vault() {
    let Some(server) = server() else { return };
    let services = services(server.url(), ROOT_TOKEN);
    let encrypted = services.encrypt(URL, &DATA_KEY).await.unwrap();
    server.run("write -f transit/keys/reef/rotate").unwrap();
    assert_eq!(**services.decrypt(URL, &encrypted).await.unwrap(), DATA_KEY);
    let newer = services.encrypt(URL, &DATA_KEY).await.unwrap();
    assert!(newer.starts_with(b"vault:v2:"));
    server.run("write transit/keys/reef/config min_decryption_version=2").unwrap();
    assert_eq!(failure(&services, URL, Some(&encrypted)).await.0, KeyFailureKind::Disabled);
    assert_eq!(**services.decrypt(URL, &newer).await.unwrap(), DATA_KEY);
}

/// Checks the refusals of the stand-in and of Vault itself, which are equal: of the token, of an encryption with a key and with an
/// engine that do not exist, of a decryption with a version that is too old, without the permission, with a key that was deleted, and
/// by a sealed server.
fn check_refusals(found: &[(KeyFailureKind, String)], address: &str) {
    let texts: Vec<_> =
        found.iter().map(|(kind, text)| format!("{kind:?}: {text}").replace(address, "VAULT")).collect();
    assert!(!texts.join("").contains("hvs.") && !texts.join("").contains(ROOT_TOKEN), "{texts:?}");
    insta::allow_duplicates! {
    insta::assert_snapshot!(texts.join("\n"), @"
    Credentials: there are no valid credentials: HashiCorp Vault at VAULT: 403: 2 errors occurred: * permission denied * invalid token
    Denied: access to the key is denied: HashiCorp Vault at VAULT: 403: 1 error occurred: * permission denied
    Denied: access to the key is denied: HashiCorp Vault at VAULT: 403: 1 error occurred: * permission denied
    Disabled: the key is disabled: HashiCorp Vault at VAULT: 400: ciphertext or signature version is disallowed by policy (too old)
    Denied: access to the key is denied: HashiCorp Vault at VAULT: 403: 1 error occurred: * permission denied
    UnknownKey: there is no such key: HashiCorp Vault at VAULT: 400: encryption key not found
    Sealed: the server is sealed: HashiCorp Vault at VAULT: 503: Vault is sealed
    ");
    }
}

const SHORE: &str = "hashivault://shore";
const OTHER_ENGINE: &str = "hashivault://reef?engine=team/transit";

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_stand_in_are_those_of_vault() {
    const KEY: &str = "transit/reef";
    let stand_in = Vault::start(&[KEY]).await.unwrap();
    let address = stand_in.url();
    let services = |token: &str| services(&address, token);
    let encrypted = services(TOKEN).encrypt(URL, &DATA_KEY).await.unwrap();
    let mut found = vec![
        failure(&services("hvs.expired"), URL, Some(&encrypted)).await,
        failure(&services(TOKEN), SHORE, None).await,
        failure(&services(TOKEN), OTHER_ENGINE, None).await,
    ];
    for state in [KeyState::Archived, KeyState::Denied, KeyState::Deleted, KeyState::Sealed] {
        stand_in.set(KEY, state);
        found.push(failure(&services(TOKEN), URL, Some(&encrypted)).await);
    }
    check_refusals(&found, &address);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_vault_itself_are_reported_in_its_words() {
    let Some(server) = server() else { return };
    let services = |token: &str| services(server.url(), token);
    let token = server.new_token(POLICY, "1h").unwrap();
    let revoked = server.new_token(POLICY, "1h").unwrap();
    server.run(&format!("token revoke {revoked}")).unwrap();
    let encrypted = services(&token).encrypt(URL, &DATA_KEY).await.unwrap();
    let mut found = vec![
        failure(&services(&revoked), URL, Some(&encrypted)).await,
        failure(&services(&token), SHORE, None).await,
        failure(&services(&token), OTHER_ENGINE, None).await,
    ];
    server.run("write -f transit/keys/reef/rotate").unwrap();
    server.run("write transit/keys/reef/config min_decryption_version=2 deletion_allowed=true").unwrap();
    found.push(failure(&services(&token), URL, Some(&encrypted)).await);
    let encrypts = server.run("token create -field=token -no-default-policy -policy=none").unwrap();
    found.push(failure(&services(&encrypts), URL, Some(&encrypted)).await);
    server.run("delete transit/keys/reef").unwrap();
    found.push(failure(&services(&token), URL, Some(&encrypted)).await);
    server.seal().unwrap();
    found.push(failure(&services(&token), URL, Some(&encrypted)).await);
    check_refusals(&found, server.url());
}

/// Shows: server-yaml.md#secrets-provider "`create` lets Vault create a key that does not exist"
#[tokio::test(flavor = "multi_thread")]
async fn key_is_created_by_vault_if_the_policy_allows_it() {
    let Some(server) = server() else { return };
    let services = services(server.url(), ROOT_TOKEN);
    let encrypted = services.encrypt(SHORE, &DATA_KEY).await.unwrap();
    assert_eq!(**services.decrypt(SHORE, &encrypted).await.unwrap(), DATA_KEY);
    server.run("write transit/config/keys disable_upsert=true").unwrap();
    let (kind, text) = failure(&services, "hashivault://cove", None).await;
    assert_eq!(kind, KeyFailureKind::UnknownKey, "{text}");
    assert!(text.ends_with(": 400: encryption key not found"), "{text}");
    let (kind, text) = failure(&services, OTHER_ENGINE, None).await;
    assert_eq!(kind, KeyFailureKind::UnknownKey, "{text}");
    assert!(
        text.ends_with(": 404: no handler for route \"team/transit/encrypt/reef\". route entry not found."),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_vault_is_used_once_it_is_unsealed() {
    let Some(server) = server() else { return };
    let services = services(server.url(), ROOT_TOKEN);
    let encrypted = services.encrypt(URL, &DATA_KEY).await.unwrap();
    server.seal().unwrap();
    let (decrypted, unsealed) = tokio::join!(
        services.decrypt(URL, &encrypted),
        tokio::task::spawn_blocking(move || {
            server.unseal().unwrap();
            server
        })
    );
    assert_eq!(**decrypted.unwrap(), DATA_KEY);
    drop(unsealed.unwrap());
}
