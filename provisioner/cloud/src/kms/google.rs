//! Keys in Google Cloud KMS, used as `gocloud.dev/secrets/gcpkms` does.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bridge::error::chain;
use serde_json::{Value, json};
use state::secrets::{KeyAction, KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::services::{KeyServices, failure};
use super::url::{KeyUrl, unknown_parameter};
use crate::google::{access_headers, load_credentials};
use crate::json_client::{Authentication, JsonClient, JsonError};

/// Scope of the access tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/cloudkms";
/// Variable of gcloud for another endpoint of the service, such as a private one.
const ENDPOINT: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS";
const DEFAULT_ENDPOINT: &str = "https://cloudkms.googleapis.com";
/// Limit of a request with its repetitions.
const LIMIT: Duration = Duration::from_secs(60);

/// Parsed URL `gcpkms://projects/…/locations/…/keyRings/…/cryptoKeys/…`.
#[derive(Debug, PartialEq, Eq)]
struct KeyReference {
    /// Name of the key.
    name: String,
    /// Bytes that must be equal at the encryption and at the decryption.
    additional_data: Vec<u8>,
}

impl KeyReference {
    fn parse(url: &str) -> Result<Self, KeyFailure> {
        let KeyUrl { key: name, parameters } = KeyUrl::parse(url)?;
        let parts: Vec<&str> = name.split('/').collect();
        let is_name = match parts[..] {
            ["projects", project, "locations", location, "keyRings", ring, "cryptoKeys", key] => {
                ![project, location, ring, key].contains(&"")
            }
            _ => false,
        };
        if !is_name {
            let expected = "expected projects/P/locations/L/keyRings/R/cryptoKeys/K";
            return Err(failure(KeyFailureKind::Url, expected));
        }
        let mut additional_data = None;
        for (parameter, value) in parameters {
            if parameter != "additional_authenticated_data" {
                return Err(unknown_parameter(&parameter));
            }
            let malformed = |_| failure(KeyFailureKind::Url, "`additional_authenticated_data` is not base64url");
            let decoded = URL_SAFE.decode(value).map_err(malformed)?;
            // As in Pulumi, the first of a repeated parameter counts.
            additional_data.get_or_insert(decoded);
        }
        Ok(Self { name, additional_data: additional_data.unwrap_or_default() })
    }
}

/// Key with a client that may use it.
pub(super) struct Key {
    reference: KeyReference,
    client: JsonClient,
    /// URL of the service, without a slash at its end.
    endpoint: String,
}

impl Key {
    /// Loads the credentials of a client, and obtains an access token. Sends no request to the service.
    ///
    /// # Errors
    /// [`KeyFailure`] if the URL or the credentials are invalid.
    pub(super) async fn open(services: &KeyServices, url: &str) -> Result<Self, KeyFailure> {
        let reference = KeyReference::parse(url)?;
        let KeyServices { google, environment, home, .. } = services;
        let loaded = load_credentials(google.as_ref(), SCOPE, environment, home.as_deref());
        let loaded = loaded.map_err(|error| failure(KeyFailureKind::Credentials, chain(&error)))?;
        let headers = access_headers(&loaded).await;
        let headers = headers.map_err(|error| failure(KeyFailureKind::Credentials, error.to_string()))?;
        let client = JsonClient::new(Authentication::Headers(headers));
        let client = client.map_err(|error| failure(KeyFailureKind::Other, error.to_string()))?;
        let endpoint = environment.get(ENDPOINT).filter(|endpoint| !endpoint.is_empty());
        let endpoint = endpoint.map_or(DEFAULT_ENDPOINT, String::as_str).trim_end_matches('/').to_owned();
        Ok(Self { reference, client, endpoint })
    }

    /// Encrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let reply = self.request(KeyAction::Encrypt, "encrypt", "plaintext", data_key).await?;
        bytes(&reply, "ciphertext")
    }

    /// Decrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let reply = self.request(KeyAction::Decrypt, "decrypt", "ciphertext", encrypted).await?;
        bytes(&reply, "plaintext").map(Zeroizing::new)
    }

    /// Sends bytes to a method of the service (<https://cloud.google.com/kms/docs/reference/rest>). Both methods change
    /// nothing, so they may be repeated.
    async fn request(
        &self,
        action: KeyAction,
        method: &str,
        member: &str,
        content: &[u8],
    ) -> Result<Value, KeyFailure> {
        let KeyReference { name, additional_data } = &self.reference;
        let mut body = json!({ member: STANDARD.encode(content) });
        if !additional_data.is_empty() {
            body["additionalAuthenticatedData"] = STANDARD.encode(additional_data).into();
        }
        let url = format!("{}/v1/{name}:{method}", self.endpoint);
        let sent = self.client.send(|client| client.post(&url).json(&body));
        match tokio::time::timeout(LIMIT, sent).await {
            Ok(replied) => replied.map_err(|error| failure_of(&error, action)),
            Err(_) => Err(failure(KeyFailureKind::Unreachable, format!("no reply within {} s", LIMIT.as_secs()))),
        }
    }
}

fn bytes(reply: &Value, member: &str) -> Result<Vec<u8>, KeyFailure> {
    let decoded = reply.get(member).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    decoded
        .ok_or_else(|| failure(KeyFailureKind::Other, format!("the reply has no {member}: it is not one of Cloud KMS")))
}

/// Returns the failure of a request, in the words of the service.
fn failure_of(error: &JsonError, action: KeyAction) -> KeyFailure {
    match error {
        JsonError::Unreachable(_) => failure(KeyFailureKind::Unreachable, error.to_string()),
        JsonError::Refused { code: Some(code), text, .. } => failure(kind_of(code, action), format!("{code}: {text}")),
        JsonError::Refused { status, code: None, .. } if status.is_server_error() => {
            failure(KeyFailureKind::Unreachable, error.to_string())
        }
        JsonError::Refused { code: None, .. } | JsonError::Unexpected { .. } => {
            failure(KeyFailureKind::Other, error.to_string())
        }
    }
}

/// Returns the kind of an error of the service (<https://cloud.google.com/apis/design/errors>).
fn kind_of(code: &str, action: KeyAction) -> KeyFailureKind {
    match code {
        "NOT_FOUND" => KeyFailureKind::UnknownKey,
        "FAILED_PRECONDITION" => KeyFailureKind::Disabled,
        "PERMISSION_DENIED" => KeyFailureKind::Denied,
        "UNAUTHENTICATED" => KeyFailureKind::Credentials,
        "UNAVAILABLE" | "DEADLINE_EXCEEDED" => KeyFailureKind::Unreachable,
        "INVALID_ARGUMENT" if action == KeyAction::Decrypt => KeyFailureKind::OtherKey,
        _ => KeyFailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/k";

    #[test]
    fn urls_have_a_name_and_additional_data() {
        let parse = |query: &str| KeyReference::parse(&format!("gcpkms://{NAME}{query}")).unwrap();
        assert_eq!(parse(""), KeyReference { name: NAME.to_owned(), additional_data: Vec::new() });
        let with_data = parse("?additional_authenticated_data=_-8%3D&additional_authenticated_data=AA==");
        assert_eq!(with_data, KeyReference { name: NAME.to_owned(), additional_data: vec![0xff, 0xef] });
    }

    #[test]
    fn invalid_urls_are_refused() {
        let message = |url: &str| KeyReference::parse(url).unwrap_err().to_string();
        let name = "its URL is invalid: expected projects/P/locations/L/keyRings/R/cryptoKeys/K";
        for url in
            ["gcpkms://k", "gcpkms://projects/p/locations//keyRings/r/cryptoKeys/k", &format!("gcpkms://{NAME}/v/1")]
        {
            assert_eq!(message(url), name, "{url}");
        }
        let data = message(&format!("gcpkms://{NAME}?additional_authenticated_data=+"));
        assert_eq!(data, "its URL is invalid: `additional_authenticated_data` is not base64url");
        let unknown = message(&format!("gcpkms://{NAME}?region=r"));
        assert_eq!(unknown, "its URL is invalid: unknown parameter \"region\"");
    }
}
