//! Keys in the transit engine of HashiCorp Vault, used as `gocloud.dev/secrets/hashivault` does.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bridge::fs::{MAX_DOCUMENT_BYTES, read_named};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, StatusCode};
use serde_json::{Value, json};
use state::secrets::{KeyAction, KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::services::{KeyServices, failure};
use super::url::{KeyUrl, unknown_parameter};
use crate::json_client::{Authentication, JsonClient, JsonError};

/// Name of the service in messages.
const SERVICE: &str = "HashiCorp Vault";
/// Path of the transit engine, unless the URL names another.
const ENGINE: &str = "transit";
/// Variables of the address and of the token: those of `gocloud.dev`, then those of Vault's own program.
const ADDRESS: [&str; 2] = ["VAULT_SERVER_URL", "VAULT_ADDR"];
const TOKEN: [&str; 2] = ["VAULT_SERVER_TOKEN", "VAULT_TOKEN"];
const NAMESPACE: &str = "VAULT_NAMESPACE";
/// Variable with the path of certificates of authorities, beside those of the operating system.
const AUTHORITIES: &str = "VAULT_CACERT";
/// Characters of a name that a URL encodes: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Limit of a request with its repetitions.
const LIMIT: Duration = Duration::from_secs(60);

/// Parsed URL `hashivault://KEY`.
#[derive(Debug, PartialEq, Eq)]
struct KeyReference {
    /// Name of the key.
    name: String,
    /// Path of the engine.
    engine: String,
}

impl KeyReference {
    fn parse(url: &str) -> Result<Self, KeyFailure> {
        let KeyUrl { key: name, parameters } = KeyUrl::parse(url)?;
        let mut engine = None;
        for (parameter, value) in parameters {
            if parameter != "engine" {
                return Err(unknown_parameter(&parameter));
            }
            // As in Pulumi, the first of a repeated parameter counts.
            engine.get_or_insert(value);
        }
        let engine = engine.filter(|engine| !engine.is_empty()).unwrap_or_else(|| ENGINE.to_owned());
        let engine = engine.trim_matches('/').to_owned();
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        if !name.split('/').chain(engine.split('/')).all(is_part) {
            return Err(failure(KeyFailureKind::Url, "the key or the engine is not a name"));
        }
        Ok(Self { name, engine })
    }

    /// Returns the path of an operation on the key, which begins with a slash.
    fn path(&self, operation: &str) -> String {
        let parts = self.engine.split('/').chain([operation]).chain(self.name.split('/'));
        parts.fold("/v1".to_owned(), |path, part| format!("{path}/{}", utf8_percent_encode(part, RESERVED)))
    }
}

/// Key with a client that may use it.
pub(super) struct Key {
    reference: KeyReference,
    client: JsonClient,
    /// URL of the server, without a slash at its end.
    address: String,
    /// The same without a user and a password, for messages.
    shown_address: String,
}

impl Key {
    /// Creates a client with the address and the token of the environment. Sends no request.
    ///
    /// # Errors
    /// [`KeyFailure`] if the URL is invalid, or the environment is incomplete.
    pub(super) fn open(services: &KeyServices, url: &str) -> Result<Self, KeyFailure> {
        let reference = KeyReference::parse(url)?;
        let environment = &services.environment;
        let address = variable(environment, ADDRESS, "the address of Vault")?;
        let shown_address = shown(address).ok_or_else(|| {
            let message = "VAULT_ADDR or VAULT_SERVER_URL is not a URL that begins with https:// or http://";
            failure(KeyFailureKind::Credentials, message)
        })?;
        let mut headers = HeaderMap::new();
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        headers
            .insert("x-vault-token", header(variable(environment, TOKEN, "a token of Vault")?, "the token of Vault")?);
        if let Some(namespace) = value(environment, NAMESPACE) {
            headers.insert("x-vault-namespace", header(namespace, NAMESPACE)?);
        }
        let authorities = value(environment, AUTHORITIES).map(|path| read_authorities(Path::new(path))).transpose()?;
        let client = JsonClient::of_service(SERVICE, Authentication::Headers(headers), |builder| {
            let builder = builder.redirect(Policy::custom(redirect));
            authorities.into_iter().flatten().fold(builder, reqwest::ClientBuilder::add_root_certificate)
        });
        let client = client.map_err(|error| failure(KeyFailureKind::Other, error.to_string()))?;
        Ok(Self { reference, client, address: address.trim_end_matches('/').to_owned(), shown_address })
    }

    /// Encrypts a data key. The result is the text that Vault returns, `vault:v1:…`.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let body = json!({ "plaintext": STANDARD.encode(data_key) });
        let reply = self.request(KeyAction::Encrypt, "encrypt", &body).await?;
        Ok(text(&reply, "ciphertext")?.as_bytes().to_vec())
    }

    /// Decrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let body = json!({ "ciphertext": String::from_utf8_lossy(encrypted) });
        let reply = self.request(KeyAction::Decrypt, "decrypt", &body).await?;
        let decoded = STANDARD.decode(text(&reply, "plaintext")?).map_err(|_| unexpected("plaintext"))?;
        Ok(Zeroizing::new(decoded))
    }

    /// Sends a request to the transit engine (<https://developer.hashicorp.com/vault/api-docs/secret/transit>). Both operations
    /// change nothing that a repetition changes again.
    async fn request(&self, action: KeyAction, operation: &str, body: &Value) -> Result<Value, KeyFailure> {
        let url = format!("{}{}", self.address, self.reference.path(operation));
        let sent = self.client.send(|client| client.put(&url).json(body));
        let replied = match tokio::time::timeout(LIMIT, sent).await {
            Ok(replied) => replied.map_err(|error| failure_of(&error, action)),
            Err(_) => Err(failure(KeyFailureKind::Unreachable, format!("no reply within {} s", LIMIT.as_secs()))),
        };
        replied.map_err(|KeyFailure { kind, message }| {
            failure(kind, format!("{SERVICE} at {}: {message}", self.shown_address))
        })
    }
}

/// Returns the address of a server without a user, a password and a slash at its end, if it is one.
fn shown(address: &str) -> Option<String> {
    let mut url = reqwest::Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    url.set_query(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Follows the redirect of a standby server to the active one, once, and never to an address without encryption that the
/// first was not.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_weaker = attempt.previous().iter().any(|url| url.scheme() == "https") && attempt.url().scheme() != "https";
    if is_weaker || attempt.previous().len() > 1 { attempt.stop() } else { attempt.follow() }
}

fn value<'e>(environment: &'e BTreeMap<String, String>, name: &str) -> Option<&'e str> {
    environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns the value of the first variable that is set.
fn variable<'e>(
    environment: &'e BTreeMap<String, String>,
    names: [&str; 2],
    what: &str,
) -> Result<&'e str, KeyFailure> {
    names.iter().find_map(|name| value(environment, name)).ok_or_else(|| {
        let [first, second] = names;
        failure(KeyFailureKind::Credentials, format!("{what} is missing: neither {first} nor {second} is set"))
    })
}

fn header(value: &str, what: &str) -> Result<HeaderValue, KeyFailure> {
    let malformed =
        |_| failure(KeyFailureKind::Credentials, format!("{what} has characters that a header cannot have"));
    let mut header = HeaderValue::from_str(value).map_err(malformed)?;
    header.set_sensitive(true);
    Ok(header)
}

fn read_authorities(path: &Path) -> Result<Vec<Certificate>, KeyFailure> {
    let failed = |reason: String| failure(KeyFailureKind::Credentials, format!("{AUTHORITIES}: {reason}"));
    let content = read_named(path, MAX_DOCUMENT_BYTES).map_err(|error| failed(bridge::error::chain(&error)))?;
    let parsed = Certificate::from_pem_bundle(&content).ok().filter(|certificates| !certificates.is_empty());
    parsed.ok_or_else(|| failed(format!("{} has no certificate in PEM", path.display())))
}

fn text<'r>(reply: &'r Value, member: &str) -> Result<&'r str, KeyFailure> {
    let text = reply.get("data").and_then(|data| data.get(member)).and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).ok_or_else(|| unexpected(member))
}

fn unexpected(member: &str) -> KeyFailure {
    failure(KeyFailureKind::Other, format!("the reply has no {member}: it is not one of a transit engine of Vault"))
}

/// Returns the failure of a request, in the words of Vault: `{"errors":["…"]}`.
fn failure_of(error: &JsonError, action: KeyAction) -> KeyFailure {
    match error {
        JsonError::Unreachable(_) => failure(KeyFailureKind::Unreachable, error.to_string()),
        JsonError::Refused { status, text, .. } => {
            let words = words(text);
            failure(kind_of(*status, &words, action), format!("{}: {words}", status.as_u16()))
        }
        JsonError::Unexpected { .. } => failure(KeyFailureKind::Other, error.to_string()),
    }
}

/// Returns the errors in a reply, on one line; its warnings if it has none, as that of an engine of another type; else the whole reply.
fn words(reply: &str) -> String {
    let parsed = serde_json::from_str::<Value>(reply).unwrap_or_default();
    let texts = |member: &str| -> Vec<String> {
        let texts = parsed.get(member).and_then(Value::as_array);
        texts.into_iter().flatten().filter_map(Value::as_str).map(one_line).collect()
    };
    let found = ["errors", "warnings"].map(texts).into_iter().find(|texts| !texts.is_empty());
    found.map_or_else(|| one_line(reply), |texts| texts.join("; "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the kind of an error. Vault has no codes: its statuses mean little, so its words are compared.
fn kind_of(status: StatusCode, words: &str, action: KeyAction) -> KeyFailureKind {
    let says = |part: &str| words.contains(part);
    match status {
        StatusCode::FORBIDDEN if says("invalid token") || says("bad token") => KeyFailureKind::Credentials,
        StatusCode::FORBIDDEN => KeyFailureKind::Denied,
        StatusCode::NOT_FOUND => KeyFailureKind::UnknownKey,
        StatusCode::BAD_REQUEST if says("encryption key not found") => KeyFailureKind::UnknownKey,
        StatusCode::BAD_REQUEST if says("disallowed by policy") => KeyFailureKind::Disabled,
        StatusCode::BAD_REQUEST if action == KeyAction::Decrypt => KeyFailureKind::OtherKey,
        StatusCode::TOO_MANY_REQUESTS => KeyFailureKind::Unreachable,
        // A sealed server replies, and does nothing else.
        _ if says("Vault is sealed") => KeyFailureKind::Sealed,
        status if status.is_server_error() => KeyFailureKind::Unreachable,
        _ => KeyFailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_key_and_an_engine() {
        let path = |url: &str| KeyReference::parse(url).unwrap().path("encrypt");
        assert_eq!(path("hashivault://reef"), "/v1/transit/encrypt/reef");
        assert_eq!(path("hashivault://reef?engine=team%2Ftransit/"), "/v1/team/transit/encrypt/reef");
        assert_eq!(path("hashivault://reef%3Fa?engine=&engine=b"), "/v1/transit/encrypt/reef%3Fa");
    }

    #[test]
    fn invalid_urls_are_refused() {
        let message = |url: &str| KeyReference::parse(url).unwrap_err().to_string();
        let name = "its URL is invalid: the key or the engine is not a name";
        assert_eq!(message("hashivault://a/../b"), name);
        assert_eq!(message("hashivault://a?engine=.."), name);
        assert_eq!(message("hashivault://a?key=b"), "its URL is invalid: unknown parameter \"key\"");
        assert_eq!(message("hashivault://"), "its URL is invalid: the name of the key is missing");
    }

    #[test]
    fn environment_that_is_incomplete_is_named() {
        let message = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let services = KeyServices { environment, ..KeyServices::default() };
            Key::open(&services, "hashivault://reef").err().map(|failure| failure.message)
        };
        let address = "the address of Vault is missing: neither VAULT_SERVER_URL nor VAULT_ADDR is set";
        assert_eq!(message(&[("VAULT_TOKEN", "t"), ("VAULT_ADDR", "")]).unwrap(), address);
        let token = "a token of Vault is missing: neither VAULT_SERVER_TOKEN nor VAULT_TOKEN is set";
        assert_eq!(message(&[("VAULT_ADDR", "https://vault.example")]).unwrap(), token);
        let url = "VAULT_ADDR or VAULT_SERVER_URL is not a URL that begins with https:// or http://";
        assert_eq!(message(&[("VAULT_ADDR", "vault.example:8200"), ("VAULT_TOKEN", "t")]).unwrap(), url);
        let given = [("VAULT_SERVER_URL", "https://vault.example"), ("VAULT_SERVER_TOKEN", "t")];
        let token = "the token of Vault has characters that a header cannot have";
        assert_eq!(message(&[given[0], ("VAULT_TOKEN", "hush\n")]).unwrap(), token);
        let missing = message(&[given[0], given[1], ("VAULT_CACERT", "/missing/ca.pem")]).unwrap();
        assert!(missing.starts_with("VAULT_CACERT: ") && missing.contains("/missing/ca.pem"), "{missing}");
        assert_eq!(message(&given), None);
    }

    #[test]
    fn address_in_messages_has_no_password() {
        let cases = [
            ("https://vault.example:8200/", Some("https://vault.example:8200")),
            ("http://ada:hush@127.0.0.1:8200/proxy?token=hush", Some("http://127.0.0.1:8200/proxy")),
            ("vault.example:8200", None),
        ];
        for (address, expected) in cases {
            assert_eq!(shown(address).as_deref(), expected);
        }
    }

    #[test]
    fn words_of_vault_decide_the_kind() {
        let kind = |status, errors: &str, action| {
            let text = format!("{{\"errors\":[{errors}]}}");
            let status = StatusCode::from_u16(status).unwrap();
            failure_of(&JsonError::Refused { status, code: None, text }, action)
        };
        let denied = "\"1 error occurred:\\n\\t* permission denied\\n\\n\"";
        let invalid = "\"2 errors occurred:\\n\\t* permission denied\\n\\t* invalid token\\n\\n\"";
        let cases = [
            (403, denied, KeyAction::Encrypt, KeyFailureKind::Denied),
            (403, invalid, KeyAction::Encrypt, KeyFailureKind::Credentials),
            (404, "", KeyAction::Encrypt, KeyFailureKind::UnknownKey),
            (400, "\"encryption key not found\"", KeyAction::Decrypt, KeyFailureKind::UnknownKey),
            (
                400,
                "\"ciphertext or signature version is disallowed by policy (too old)\"",
                KeyAction::Decrypt,
                KeyFailureKind::Disabled,
            ),
            (400, "\"invalid ciphertext: no prefix\"", KeyAction::Decrypt, KeyFailureKind::OtherKey),
            (400, "\"invalid base64\"", KeyAction::Encrypt, KeyFailureKind::Other),
            (503, "\"Vault is sealed\"", KeyAction::Decrypt, KeyFailureKind::Sealed),
            (502, "", KeyAction::Decrypt, KeyFailureKind::Unreachable),
        ];
        for (status, errors, action, expected) in cases {
            assert_eq!(kind(status, errors, action).kind, expected, "{status} {errors}");
        }
        let message = kind(403, invalid, KeyAction::Encrypt).message;
        assert_eq!(message, "403: 2 errors occurred: * permission denied * invalid token");
        let of_other_engine = "{\"data\":null,\"warnings\":[\"Invalid path for a versioned K/V secrets engine.\"]}";
        assert_eq!(words(of_other_engine), "Invalid path for a versioned K/V secrets engine.");
    }
}
