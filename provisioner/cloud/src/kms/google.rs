//! Keys in Google Cloud KMS, used as `gocloud.dev/secrets/gcpkms` does.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bridge::error::chain;
use google_cloud_auth::errors::CredentialsError;
use google_cloud_kms_v1::Error;
use google_cloud_kms_v1::client::KeyManagementService;
use state::secrets::{KeyAction, KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::failure::failure;
use super::services::KeyServices;
use super::url::{KeyUrl, unknown_parameter};
use crate::google::load_credentials;

/// Scope of the access tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/cloudkms";
/// Variable of gcloud for another endpoint of the service, such as a private one.
const ENDPOINT: &str = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS";
/// Limit of one request.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);
/// Limit of the request of an access token, with its repetitions.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);
/// Waits before the repetitions of a request that had no reply. Both requests change nothing, so they may be repeated.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

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
    client: KeyManagementService,
    /// Source of the credentials, for messages.
    source: String,
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
        // The clients of credentials keep repeating their requests for a minute.
        if tokio::time::timeout(TOKEN_LIMIT, loaded.credentials.access_token()).await.is_err() {
            let message = format!("no access token from {} within {} s", loaded.source, TOKEN_LIMIT.as_secs());
            return Err(failure(KeyFailureKind::Credentials, message));
        }
        let builder = KeyManagementService::builder().with_credentials(loaded.credentials);
        let builder = match environment.get(ENDPOINT).filter(|endpoint| !endpoint.is_empty()) {
            Some(endpoint) => builder.with_endpoint(endpoint),
            None => builder,
        };
        let client = builder.with_attempt_timeout(ATTEMPT_LIMIT).build().await;
        let client = client.map_err(|error| failure(KeyFailureKind::Other, chain(&error)))?;
        Ok(Self { reference, client, source: loaded.source })
    }

    /// Encrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let KeyReference { name, additional_data } = &self.reference;
        let request = || {
            let request = self.client.encrypt().set_name(name).set_plaintext(data_key.to_vec());
            request.set_additional_authenticated_data(additional_data.clone()).send()
        };
        let reply = repeat(request).await.map_err(|error| self.failure_of(&error, KeyAction::Encrypt))?;
        Ok(reply.ciphertext.to_vec())
    }

    /// Decrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let KeyReference { name, additional_data } = &self.reference;
        let request = || {
            let request = self.client.decrypt().set_name(name).set_ciphertext(encrypted.to_vec());
            request.set_additional_authenticated_data(additional_data.clone()).send()
        };
        let reply = repeat(request).await.map_err(|error| self.failure_of(&error, KeyAction::Decrypt))?;
        Ok(Zeroizing::new(reply.plaintext.to_vec()))
    }

    /// Returns the failure of a request, in the words of the service.
    fn failure_of(&self, error: &Error, action: KeyAction) -> KeyFailure {
        if has_no_token(error) {
            let message = format!("no access token from {}: {}", self.source, last_cause(error));
            return failure(KeyFailureKind::Credentials, message);
        }
        let Some(status) = error.status() else {
            let kind = if is_without_reply(error) { KeyFailureKind::Unreachable } else { KeyFailureKind::Other };
            return failure(kind, chain(error));
        };
        let code = status.code.name();
        failure(kind_of(code, action), format!("{code}: {}", status.message))
    }
}

/// Sends a request, again after a failure that had no reply or that asks for a repetition.
async fn repeat<T, F>(request: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for wait in WAITS {
        match request().await {
            // The service does not report that it can be reached again.
            Err(error) if is_without_reply(&error) => tokio::time::sleep(wait).await,
            replied => return replied,
        }
    }
    request().await
}

/// Returns whether a request was not sent, as the credentials gave no access token.
fn has_no_token(error: &Error) -> bool {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |cause| cause.source());
    causes.any(|cause| cause.is::<CredentialsError>() || cause.downcast_ref().is_some_and(Error::is_authentication))
}

/// Returns the text of the last cause: the errors above it say no more than that there is no token.
fn last_cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |cause| cause.source()).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns whether a request failed before the service had replied. A client of credentials repeats its own requests.
fn is_without_reply(error: &Error) -> bool {
    if has_no_token(error) {
        return false;
    }
    let is_unavailable = error.status().is_some_and(|status| status.code.name() == "UNAVAILABLE");
    let is_cut_off = error.is_timeout() || error.is_connect() || error.is_io() || error.is_exhausted();
    is_unavailable || is_cut_off || error.is_transient_and_before_rpc()
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
