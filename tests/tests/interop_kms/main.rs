//! Keys in AWS KMS and in HashiCorp Vault: `moto` and Vault itself as the services, and a Go program with `gocloud.dev` and Pulumi's
//! own crypter as the peer.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod vault;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cloud::aws::AwsKeys;
use cloud::kms::KeyServices;
use state::SecretsDescription;
use state::secrets::{KeyFailureKind, KeyService as _, Keyring, Provider};
use tests::http::{HttpServer, Response};
use tests::moto::MotoServer;
use tests::{commands, sdks};

const SECRET: &str = "\"<otter> & ü\"";
const DATA_KEY: [u8; 32] = [7; 32];

/// Service with the key `alias/reef`.
struct Reef {
    server: MotoServer,
    /// Id of the key.
    id: String,
    /// ARN of the key.
    arn: String,
}

impl Reef {
    fn start() -> Self {
        let server = MotoServer::start().unwrap();
        let printed = server
            .python(
                "key = client('kms').create_key()['KeyMetadata']\n\
                 client('kms').create_alias(AliasName='alias/reef', TargetKeyId=key['KeyId'])\n\
                 print(key['KeyId'], key['Arn'])",
            )
            .unwrap();
        let (id, arn) = printed.trim().split_once(' ').unwrap();
        Self { id: id.to_owned(), arn: arn.to_owned(), server }
    }

    /// Returns a URL of a key in the service. The parameters begin with `&`.
    fn url(&self, key: &str, parameters: &str) -> String {
        format!("awskms://{key}?region=us-east-1&endpoint={}{parameters}", self.server.url())
    }
}

/// Runs the peer in Go with an environment.
fn peer(environment: &BTreeMap<String, String>, arguments: &[&str]) -> std::io::Result<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_kms/peer");
    let mut command = Command::new(sdks::go_program("kms-peer", &sources)?);
    let printed = commands::run(command.args(arguments).env_clear().envs(environment))?;
    String::from_utf8(printed).map_err(std::io::Error::other)
}

fn environment() -> BTreeMap<String, String> {
    let variables = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test"), ("HOME", "/missing")];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn services() -> KeyServices {
    KeyServices { environment: environment(), ..KeyServices::default() }
}

fn keyring(services: KeyServices, url: &str) -> Keyring {
    let keyring = Keyring::new(None).with_key_service(Arc::new(services), "organization/reef/dev");
    keyring.with_provider(Provider::Key { url: url.to_owned() })
}

/// Checks that the peer decrypts a data key and a secret of ours. Returns the encrypted data key.
async fn check_peer_decrypts(services: &KeyServices, url: &str) -> String {
    let manager = keyring(services.clone(), url).new_manager(None).await.unwrap();
    let SecretsDescription { kind, state } = manager.describe();
    assert_eq!((&*kind, state["url"].as_str()), ("cloud", Some(url)));
    let ciphertext = manager.crypter().await.unwrap().encrypt(SECRET).unwrap();
    let key = state["encryptedkey"].as_str().unwrap();
    assert_eq!(peer(&services.environment, &["decrypt", url, key, &ciphertext]).unwrap(), SECRET);
    key.to_owned()
}

/// Checks that we decrypt a data key and a secret of the peer.
async fn check_peer_encrypts(services: &KeyServices, url: &str) {
    let printed = peer(&services.environment, &["encrypt", url, SECRET]).unwrap();
    let (key, ciphertext) = printed.trim().split_once('\n').unwrap();
    let state = serde_json::json!({ "url": url, "encryptedkey": key });
    let manager =
        keyring(services.clone(), url).manager(&SecretsDescription { kind: "cloud".to_owned(), state }).unwrap();
    assert_eq!(manager.crypter().await.unwrap().decrypt(ciphertext).unwrap(), SECRET);
}

/// Returns the kind of a failure, and its text without the address of the server.
async fn failure(services: &KeyServices, url: &str, encrypted: Option<&[u8]>) -> (KeyFailureKind, String) {
    let failure = match encrypted {
        Some(encrypted) => services.decrypt(url, encrypted).await.map(drop),
        None => services.encrypt(url, &DATA_KEY).await.map(drop),
    };
    let failure = failure.unwrap_err();
    (failure.kind, failure.to_string())
}

#[tokio::test]
async fn data_key_is_encrypted_by_id_alias_and_arn_in_its_context() {
    let reef = Reef::start();
    let services = services();
    let urls = [
        reef.url(&reef.id, ""),
        reef.url("alias/reef", ""),
        reef.url(&format!("/{}", reef.arn), ""),
        reef.url("alias/reef", "&context_team=reef%26shore&context_stage=prod"),
    ];
    for url in &urls {
        let encrypted = services.encrypt(url, &DATA_KEY).await.unwrap();
        assert_eq!(**services.decrypt(url, &encrypted).await.unwrap(), DATA_KEY, "{url}");
        assert!(!encrypted.windows(4).any(|window| window == [7; 4]));
    }
    let encrypted = services.encrypt(&urls[3], &DATA_KEY).await.unwrap();
    for other in ["", "&context_team=shore&context_stage=prod", "&context_team=reef%26shore"] {
        let url = reef.url("alias/reef", other);
        let (kind, text) = failure(&services, &url, Some(&encrypted)).await;
        assert_eq!(kind, KeyFailureKind::OtherKey, "{text}");
        assert!(text.contains("InvalidCiphertextException"), "{text}");
    }
    // An alias that names another key: the ciphertext names its own.
    reef.server
        .python(
            "key = client('kms').create_key()['KeyMetadata']['KeyId']\n\
             client('kms').update_alias(AliasName='alias/reef', TargetKeyId=key)",
        )
        .unwrap();
    assert_eq!(**services.decrypt(&urls[3], &encrypted).await.unwrap(), DATA_KEY);
}

/// Shows: state.md#secrets "encrypted by AWS KMS, Google Cloud KMS, Azure Key Vault or HashiCorp Vault, as `pulumi` does. Each program
///   decrypts what the other has encrypted."
#[tokio::test]
async fn data_key_and_secret_are_decrypted_by_pulumi() {
    let reef = Reef::start();
    for parameters in ["", "&context_team=reef%26shore&awssdk=v2"] {
        let url = reef.url("alias/reef", parameters);
        check_peer_decrypts(&services(), &url).await;
    }
}

/// Shows: state.md#secrets "encrypted by AWS KMS, Google Cloud KMS, Azure Key Vault or HashiCorp Vault, as `pulumi` does. Each program
///   decrypts what the other has encrypted."
#[tokio::test]
async fn data_key_and_secret_of_pulumi_are_decrypted() {
    let reef = Reef::start();
    for parameters in ["", "&context_team=reef%26shore"] {
        let url = reef.url("alias/reef", parameters);
        check_peer_encrypts(&services(), &url).await;
    }
}

#[tokio::test]
async fn unusable_keys_are_reported_in_the_words_of_the_service() {
    let reef = Reef::start();
    let services = services();
    let url = reef.url("alias/reef", "");
    let encrypted = services.encrypt(&url, &DATA_KEY).await.unwrap();
    let mut found = Vec::new();
    // In another region there is no such key.
    let other_region = url.replace("us-east-1", "eu-north-1");
    found.push(failure(&services, &other_region, None).await);
    found.push(failure(&services, &other_region, Some(&encrypted)).await);
    found.push(failure(&services, &reef.url("alias/shore", ""), None).await);
    let texts: Vec<_> = found.iter().map(|(kind, text)| format!("{kind:?}: {text}").replace(&reef.id, "ID")).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    UnknownKey: there is no such key: NotFoundException: Alias arn:aws:kms:eu-north-1:123456789012:alias/reef is not found.
    Denied: access to the key is denied: AccessDeniedException
    UnknownKey: there is no such key: NotFoundException: Alias arn:aws:kms:us-east-1:123456789012:alias/shore is not found.
    ");
}

#[tokio::test]
async fn invalid_credentials_and_missing_permissions_are_reported() {
    let reef = Reef::start();
    let url = reef.url("alias/reef", "");
    let encrypted = services().encrypt(&url, &DATA_KEY).await.unwrap();
    let keys = reef
        .server
        .python(
            "iam = client('iam')\niam.create_user(UserName='ada')\n\
             key = iam.create_access_key(UserName='ada')['AccessKey']\n\
             print(key['AccessKeyId'], key['SecretAccessKey'])",
        )
        .unwrap();
    let (key, secret) = keys.trim().split_once(' ').unwrap();
    reef.server.python("post('/moto-api/reset-auth', '0')").unwrap();
    let of_ada = |secret: &str| KeyServices { aws: Some(AwsKeys::new(key, secret)), ..services() };
    let without = [("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())].into();
    let without = KeyServices { environment: without, ..KeyServices::default() };
    let mut found = Vec::new();
    for services in [services(), of_ada("wrong"), of_ada(secret), without] {
        found.push(failure(&services, &url, Some(&encrypted)).await);
    }
    let texts: Vec<_> = found.iter().map(|(kind, text)| format!("{kind:?}: {text}").replace(key, "KEY")).collect();
    assert!(!texts.join("").contains(secret));
    insta::assert_snapshot!(texts.join("\n"), @"
    Denied: access to the key is denied: HTTP status 403 without an error code
    Denied: access to the key is denied: HTTP status 403 without an error code
    Denied: access to the key is denied: HTTP status 403 without an error code
    Credentials: there are no valid credentials: no credentials of AWS; tried in this order: environment: AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set; profile: no credentials; web identity: $AWS_WEB_IDENTITY_TOKEN_FILE was not set; container (ECS, EKS): not in a container of ECS or EKS; instance (EC2): IMDS disabled by AWS_EC2_METADATA_DISABLED env var set to `true`
    ");
}

#[tokio::test]
async fn service_that_does_not_reply_is_reported() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("awskms://alias/reef?region=us-east-1&endpoint=http://{address}");
    let (kind, text) = failure(&services(), &url, None).await;
    assert_eq!(kind, KeyFailureKind::Unreachable, "{text}");
}

/// Errors that `moto` does not have, in the form of the service.
#[tokio::test]
async fn errors_of_the_service_have_a_kind_and_its_words() {
    let errors = [
        ("DisabledException", "arn:aws:kms:r:1:key/k is disabled.", KeyFailureKind::Disabled),
        ("KMSInvalidStateException", "arn:aws:kms:r:1:key/k is pending deletion.", KeyFailureKind::Disabled),
        ("AccessDeniedException", "User: ada is not authorized to perform: kms:Decrypt", KeyFailureKind::Denied),
        ("IncorrectKeyException", "The key ID does not identify the key", KeyFailureKind::OtherKey),
        ("UnrecognizedClientException", "The security token included is invalid.", KeyFailureKind::Credentials),
        ("ExpiredTokenException", "The security token included is expired", KeyFailureKind::Credentials),
        ("InvalidKeyUsageException", "The key is for signatures", KeyFailureKind::Other),
    ];
    for (code, message, kind) in errors {
        let body = serde_json::json!({ "__type": code, "message": message }).to_string();
        let server = HttpServer::start(move |_| {
            let body = body.clone();
            async { Response::new(400, body).with("Content-Type", "application/x-amz-json-1.1") }
        });
        let server = server.await.unwrap();
        let url = format!("awskms://alias/reef?region=us-east-1&endpoint={}", server.url());
        let (found, text) = failure(&services(), &url, Some(b"data key")).await;
        assert_eq!(found, kind, "{text}");
        assert!(text.ends_with(&format!(": {code}: {message}")), "{text}");
        assert_eq!(server.requests().len(), 1, "{code} is not repeated");
    }
}

#[tokio::test]
async fn missing_credentials_of_google_name_the_chain() {
    let environment = [("GCE_METADATA_HOST".to_owned(), "127.0.0.1:1".to_owned())].into();
    let services = KeyServices { environment, ..KeyServices::default() };
    let url = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k";
    let (kind, text) = failure(&services, url, None).await;
    assert_eq!(kind, KeyFailureKind::Credentials, "{text}");
    let chain = "the credentials of the metadata server (no credentials in GOOGLE_CREDENTIALS, ";
    assert!(text.contains(chain), "{text}");
}
