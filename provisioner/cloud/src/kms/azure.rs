//! Keys in Azure Key Vault, used as `gocloud.dev/secrets/azurekeyvault` and Pulumi do.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use state::secrets::{KeyAction, KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::services::{KeyServices, failure};
use super::url::{KeyUrl, unknown_parameter};
use crate::azure::AzureCredentials;
use crate::json_client::{Authentication, JsonClient, JsonError};

/// Name of the service in messages.
const SERVICE: &str = "Azure Key Vault";
/// Version of the interface (<https://learn.microsoft.com/en-us/rest/api/keyvault/keys>).
const VERSION: &str = "7.4";
/// Algorithm, unless the URL names another.
const ALGORITHM: &str = "RSA-OAEP-256";
/// Algorithms of the keys of a vault that encrypt.
const ALGORITHMS: [&str; 3] = [ALGORITHM, "RSA-OAEP", "RSA1_5"];
/// Limit of a request with its repetitions.
const LIMIT: Duration = Duration::from_secs(60);

/// Parsed URL `azurekeyvault://VAULT.vault.azure.net/keys/NAME[/VERSION]`.
#[derive(Debug, PartialEq, Eq)]
struct KeyReference {
    /// Host of the vault.
    host: String,
    /// Path of the key, which begins with a slash.
    path: String,
    algorithm: String,
}

impl KeyReference {
    fn parse(url: &str) -> Result<Self, KeyFailure> {
        let KeyUrl { key, parameters } = KeyUrl::parse(url)?;
        let mut algorithm = None;
        for (parameter, value) in parameters {
            if parameter != "algorithm" {
                return Err(unknown_parameter(&parameter));
            }
            // As in Pulumi, the first of a repeated parameter counts.
            algorithm.get_or_insert(value);
        }
        let algorithm = algorithm.filter(|name| !name.is_empty()).unwrap_or_else(|| ALGORITHM.to_owned());
        if !ALGORITHMS.contains(&algorithm.as_str()) {
            let message = format!("the parameter `algorithm` is none of {}", ALGORITHMS.join(", "));
            return Err(failure(KeyFailureKind::Url, message));
        }
        let expected =
            || failure(KeyFailureKind::Url, "expected VAULT.vault.azure.net/keys/NAME or …/keys/NAME/VERSION");
        let parts: Vec<&str> = key.split('/').collect();
        let is_name =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let [host, "keys", names @ ..] = &parts[..] else { return Err(expected()) };
        let is_vault = host
            .split_once(".vault.")
            .is_some_and(|(vault, domain)| is_name(&vault) && domain.split('.').all(|label| is_name(&label)));
        if !is_vault || names.is_empty() || names.len() > 2 || !names.iter().all(is_name) {
            return Err(expected());
        }
        Ok(Self { host: (*host).to_owned(), path: format!("/keys/{}", names.join("/")), algorithm })
    }

    /// Returns the scope of the access tokens, which is that of the cloud of the vault.
    fn scope(&self) -> String {
        let domain = self.host.split_once('.').map_or("", |(_, domain)| domain);
        format!("https://{domain}/.default")
    }
}

/// Key with a client that may use it.
pub(super) struct Key {
    reference: KeyReference,
    client: JsonClient,
}

impl Key {
    /// Obtains an access token. Sends no request to the service.
    ///
    /// # Errors
    /// [`KeyFailure`] if the URL is invalid, or there is no access token.
    pub(super) async fn open(services: &KeyServices, url: &str) -> Result<Self, KeyFailure> {
        let reference = KeyReference::parse(url)?;
        let token = AzureCredentials::new(&services.environment, reference.scope()).token().await;
        let token = token.map_err(|error| failure(KeyFailureKind::Credentials, error.to_string()))?;
        let authentication = Authentication::Token(token.to_string());
        let client = JsonClient::of_service(SERVICE, authentication, |builder| builder.redirect(Policy::none()));
        let client = client.map_err(|error| failure(KeyFailureKind::Other, error.to_string()))?;
        Ok(Self { reference, client })
    }

    /// Encrypts a data key. The result is the ciphertext in base64url without padding, as Pulumi stores it.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let result = self.request(KeyAction::Encrypt, "encrypt", URL_SAFE_NO_PAD.encode(data_key)).await?;
        Ok(URL_SAFE_NO_PAD.encode(result).into_bytes())
    }

    /// Decrypts a data key. One that is not in base64url is the ciphertext itself, as a version of Pulumi has stored it.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let value = match URL_SAFE_NO_PAD.decode(encrypted) {
            Ok(ciphertext) => ciphertext,
            Err(_) => encrypted.to_vec(),
        };
        let decrypted = self.request(KeyAction::Decrypt, "decrypt", URL_SAFE_NO_PAD.encode(value)).await?;
        Ok(Zeroizing::new(decrypted))
    }

    /// Sends bytes to an operation of the key. Both operations change nothing, so they may be repeated.
    async fn request(&self, action: KeyAction, operation: &str, value: String) -> Result<Vec<u8>, KeyFailure> {
        let KeyReference { host, path, algorithm } = &self.reference;
        let url = format!("https://{host}{path}/{operation}?api-version={VERSION}");
        let body = json!({ "alg": algorithm, "value": value });
        let sent = self.client.send(|client| client.post(&url).json(&body));
        let reply = match tokio::time::timeout(LIMIT, sent).await {
            Ok(replied) => replied.map_err(|error| failure_of(&error, action))?,
            Err(_) => {
                return Err(failure(KeyFailureKind::Unreachable, format!("no reply within {} s", LIMIT.as_secs())));
            }
        };
        let value = reply.get("value").and_then(Value::as_str);
        let decoded = value.and_then(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok());
        decoded.ok_or_else(|| {
            failure(KeyFailureKind::Other, format!("the reply has no value: it is not one of {SERVICE}"))
        })
    }
}

/// Returns the failure of a request, in the words of the service.
fn failure_of(error: &JsonError, action: KeyAction) -> KeyFailure {
    match error {
        JsonError::Unreachable(_) => failure(KeyFailureKind::Unreachable, error.to_string()),
        JsonError::Refused { status, code, text } => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let code = code.clone().unwrap_or_else(|| status.to_string());
            failure(kind_of(*status, &text, action), format!("{code}: {text}"))
        }
        JsonError::Unexpected { .. } => failure(KeyFailureKind::Other, error.to_string()),
    }
}

/// Returns the kind of an error. A disabled key has the code of a missing permission, so the words of the service are compared.
fn kind_of(status: StatusCode, words: &str, action: KeyAction) -> KeyFailureKind {
    let says = |part: &str| words.contains(part);
    match status {
        StatusCode::UNAUTHORIZED => KeyFailureKind::Credentials,
        StatusCode::FORBIDDEN if says("disabled key") || says("expired key") || says("not yet valid") => {
            KeyFailureKind::Disabled
        }
        StatusCode::FORBIDDEN => KeyFailureKind::Denied,
        StatusCode::NOT_FOUND => KeyFailureKind::UnknownKey,
        StatusCode::BAD_REQUEST if action == KeyAction::Decrypt => KeyFailureKind::OtherKey,
        StatusCode::TOO_MANY_REQUESTS => KeyFailureKind::Unreachable,
        status if status.is_server_error() => KeyFailureKind::Unreachable,
        _ => KeyFailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_vault_a_key_and_an_algorithm() {
        let parse = |url: &str| {
            let reference = KeyReference::parse(url).unwrap();
            let scope = reference.scope();
            [reference.host, reference.path, reference.algorithm, scope].join(" ")
        };
        let host = "reef.vault.azure.net /keys/state";
        let scope = "https://vault.azure.net/.default";
        let cases = [
            ("azurekeyvault://reef.vault.azure.net/keys/state", format!("{host} RSA-OAEP-256 {scope}")),
            ("azurekeyvault://reef.vault.azure.net/keys/state/?algorithm=", format!("{host} RSA-OAEP-256 {scope}")),
            ("azurekeyvault://reef.vault.azure.net/keys/state?algorithm=RSA1_5", format!("{host} RSA1_5 {scope}")),
            (
                "azurekeyvault://reef.vault.azure.cn/keys/state/7ab?algorithm=RSA-OAEP&algorithm=b",
                "reef.vault.azure.cn /keys/state/7ab RSA-OAEP https://vault.azure.cn/.default".to_owned(),
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url), expected, "{url}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        let message = |url: &str| KeyReference::parse(url).unwrap_err().to_string();
        let expected = "its URL is invalid: expected VAULT.vault.azure.net/keys/NAME or …/keys/NAME/VERSION";
        for url in [
            "azurekeyvault://state",
            "azurekeyvault://reef.example/keys/state",
            "azurekeyvault://.vault.azure.net/keys/state",
            "azurekeyvault://ada@reef.vault.azure.net/keys/state",
            "azurekeyvault://reef.vault.azure.net:8443/keys/state",
            "azurekeyvault://reef.vault.azure.net/keys",
            "azurekeyvault://reef.vault.azure.net/secrets/state",
            "azurekeyvault://reef.vault.azure.net/keys/a/b/c",
            "azurekeyvault://reef.vault.azure.net/keys/a%2F..%2Fb",
        ] {
            assert_eq!(message(url), expected, "{url}");
        }
        let key = "azurekeyvault://reef.vault.azure.net/keys/state";
        let algorithm = "its URL is invalid: the parameter `algorithm` is none of RSA-OAEP-256, RSA-OAEP, RSA1_5";
        assert_eq!(message(&format!("{key}?algorithm=A256GCM")), algorithm);
        assert_eq!(message(&format!("{key}?version=1")), "its URL is invalid: unknown parameter \"version\"");
    }

    #[test]
    fn words_of_the_service_decide_the_kind() {
        let failure = |status, code: &str, words: &str, action| {
            let (status, code) = (StatusCode::from_u16(status).unwrap(), Some(code.to_owned()));
            failure_of(&JsonError::Refused { status, code, text: words.to_owned() }, action)
        };
        use KeyAction::{Decrypt, Encrypt};
        let cases = [
            (401, "Unauthorized", "AKV10032: Invalid issuer.", Encrypt, KeyFailureKind::Credentials),
            (
                403,
                "Forbidden",
                "Operation encrypt is not allowed on a disabled key.",
                Encrypt,
                KeyFailureKind::Disabled,
            ),
            (403, "Forbidden", "Caller is not authorized\r\nto perform action", Decrypt, KeyFailureKind::Denied),
            (404, "KeyNotFound", "A key with (name/id) state was not found.", Encrypt, KeyFailureKind::UnknownKey),
            (400, "BadParameter", "The parameter is incorrect.", Decrypt, KeyFailureKind::OtherKey),
            (400, "BadParameter", "Property has invalid value", Encrypt, KeyFailureKind::Other),
            (429, "Throttled", "Request was not processed", Decrypt, KeyFailureKind::Unreachable),
            (503, "ServiceUnavailable", "", Decrypt, KeyFailureKind::Unreachable),
        ];
        for (status, code, words, action, expected) in cases {
            assert_eq!(failure(status, code, words, action).kind, expected, "{status} {code}");
        }
        let message = failure(403, "Forbidden", "Caller is not authorized\r\nto perform action", Decrypt).message;
        assert_eq!(message, "Forbidden: Caller is not authorized to perform action");
    }
}
