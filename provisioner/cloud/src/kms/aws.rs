//! Keys in AWS KMS, used as `gocloud.dev/secrets/awskms` does.

use std::collections::HashMap;
use std::error::Error;

use aws_config::{Region, SdkConfig};
use aws_sdk_kms::Client;
use aws_sdk_kms::config::http::HttpResponse;
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use bridge::error::chain;
use state::secrets::{KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::services::KeyServices;
use super::services::failure;
use super::url::{KeyUrl, unknown_parameter};
use crate::aws::{AwsConfigError, AwsParameters, CredentialsFailure, load_config};

/// Prefix of the parameters that are the encryption context.
const CONTEXT: &str = "context_";

/// Parsed URL `awskms://ID|alias/NAME` or `awskms:///ARN`, with parameters.
#[derive(Debug, PartialEq, Eq)]
struct KeyReference {
    /// Id, alias or ARN.
    id: String,
    /// Encryption context: both must be equal at the encryption and at the decryption.
    context: HashMap<String, String>,
    parameters: AwsParameters,
}

impl KeyReference {
    fn parse(url: &str) -> Result<Self, KeyFailure> {
        let KeyUrl { key: id, parameters: pairs } = KeyUrl::parse(url)?;
        let (mut context, mut parameters) = (HashMap::new(), AwsParameters::default());
        let mut known: Vec<&str> = Vec::new();
        for (name, value) in &pairs {
            let is_repeated = known.contains(&name.as_str());
            known.push(name);
            if let Some(key) = name.strip_prefix(CONTEXT) {
                if is_repeated {
                    return Err(failure(KeyFailureKind::Url, format!("the parameter {name:?} is given twice")));
                }
                context.insert(key.to_owned(), value.clone());
            } else if !is_repeated {
                // As in Pulumi, the first of a repeated parameter counts.
                let is_known = parameters.set(name, value);
                if !is_known.map_err(|error| failure(KeyFailureKind::Url, error.to_string()))? {
                    return Err(unknown_parameter(name));
                }
            }
        }
        Ok(Self { id, context, parameters })
    }

    /// Returns the region in the ARN of a key.
    fn region_of_arn(&self) -> Option<&str> {
        let mut parts = self.id.strip_prefix("arn:")?.split(':');
        parts.nth(2).filter(|region| !region.is_empty())
    }
}

/// Key with a client that may use it.
pub(super) struct Key {
    id: String,
    context: Option<HashMap<String, String>>,
    client: Client,
}

impl Key {
    /// Loads the configuration of a client. Sends no request to the service.
    ///
    /// # Errors
    /// [`KeyFailure`] if the URL or the configuration is invalid.
    pub(super) async fn open(services: &KeyServices, url: &str) -> Result<Self, KeyFailure> {
        let mut reference = KeyReference::parse(url)?;
        let KeyServices { aws, aws_region, environment, home, .. } = services;
        reference.parameters.region = reference.parameters.region.or_else(|| aws_region.clone());
        let config = load_config(&reference.parameters, aws.as_ref(), environment, home.as_deref()).await;
        let config = with_region(config.map_err(config_failure)?, &reference)?;
        let context = Some(reference.context).filter(|context| !context.is_empty());
        Ok(Self { id: reference.id, context, client: Client::new(&config) })
    }

    /// Encrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let request = self.client.encrypt().key_id(&self.id).set_encryption_context(self.context.clone());
        let reply = request.plaintext(Blob::new(data_key)).send().await.map_err(|error| failure_of(&error))?;
        let missing = || no_reply("it has no ciphertext");
        reply.ciphertext_blob.map(Blob::into_inner).ok_or_else(missing)
    }

    /// Decrypts a data key. The ciphertext names its key, so that an alias may name another key by now.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let request = self.client.decrypt().set_encryption_context(self.context.clone());
        let reply = request.ciphertext_blob(Blob::new(encrypted)).send().await.map_err(|error| failure_of(&error))?;
        let missing = || no_reply("it has no plaintext");
        reply.plaintext.map(|plaintext| Zeroizing::new(plaintext.into_inner())).ok_or_else(missing)
    }
}

/// Adds the region of the key's ARN if there is no other. A key is known in its own region only.
fn with_region(config: SdkConfig, reference: &KeyReference) -> Result<SdkConfig, KeyFailure> {
    match (config.region(), reference.region_of_arn()) {
        (Some(region), Some(of_arn)) if region.as_ref() != of_arn => {
            let text = format!("its ARN names `{of_arn}`, and requests go to `{region}`");
            return Err(failure(KeyFailureKind::OtherRegion, text));
        }
        (Some(_), _) => return Ok(config),
        (None, _) => {}
    }
    let missing = "the region is missing: add `?region=REGION`, or set AWS_REGION";
    let region = reference.region_of_arn().ok_or_else(|| failure(KeyFailureKind::Url, missing))?;
    Ok(config.into_builder().region(Region::new(region.to_owned())).build())
}

fn config_failure(error: AwsConfigError) -> KeyFailure {
    let kind = match error {
        AwsConfigError::MissingProfile(_) | AwsConfigError::Profile { .. } => KeyFailureKind::Credentials,
        _ => KeyFailureKind::Other,
    };
    failure(kind, chain(&error))
}

/// Returns the failure of a request, in the words of the service.
fn failure_of<E>(error: &SdkError<E, HttpResponse>) -> KeyFailure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    if let Some(credentials) = CredentialsFailure::find(error) {
        return failure(KeyFailureKind::Credentials, credentials.to_string());
    }
    match error {
        SdkError::ServiceError(reply) if reply.raw().status().is_success() => no_reply("it cannot be parsed"),
        SdkError::ServiceError(reply) => match (reply.err().code(), reply.err().message()) {
            (Some(code), Some(message)) => failure(kind_of(code), format!("{code}: {message}")),
            (Some(code), None) => failure(kind_of(code), code),
            (None, _) => {
                let status = reply.raw().status().as_u16();
                let kind = if status == 403 { KeyFailureKind::Denied } else { KeyFailureKind::Other };
                failure(kind, format!("HTTP status {status} without an error code"))
            }
        },
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) => failure(KeyFailureKind::Unreachable, chain(error)),
        SdkError::ResponseError(_) => no_reply(&chain(error)),
        _ => failure(KeyFailureKind::Other, chain(error)),
    }
}

/// Returns the failure of a reply with success that AWS KMS does not send.
fn no_reply(reason: &str) -> KeyFailure {
    let text =
        format!("the reply is none of AWS KMS ({reason}): check the endpoint, and a proxy or login page on the way");
    failure(KeyFailureKind::Other, text)
}

/// Returns the kind of an error of the service.
fn kind_of(code: &str) -> KeyFailureKind {
    match code {
        "NotFoundException" => KeyFailureKind::UnknownKey,
        "DisabledException" | "KMSInvalidStateException" => KeyFailureKind::Disabled,
        "AccessDeniedException" | "AccessDenied" => KeyFailureKind::Denied,
        "InvalidCiphertextException" | "IncorrectKeyException" => KeyFailureKind::OtherKey,
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "ExpiredTokenException"
        | "ExpiredToken" => KeyFailureKind::Credentials,
        _ => KeyFailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_key_a_context_and_the_parameters_of_aws() {
        let url = "awskms://alias/reef?region=eu-north-1&context_team=reef%26shore&context_=x&region=other&awssdk=v2";
        let reference = KeyReference::parse(url).unwrap();
        let context = [("team", "reef&shore"), ("", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let parameters = AwsParameters { region: Some("eu-north-1".to_owned()), ..AwsParameters::default() };
        assert_eq!(reference, KeyReference { id: "alias/reef".to_owned(), context: context.into(), parameters });
        assert_eq!(reference.region_of_arn(), None);
        let by_arn = KeyReference::parse("awskms:///arn:aws:kms:eu-west-3:1:key/k").unwrap();
        assert_eq!((&*by_arn.id, by_arn.region_of_arn()), ("arn:aws:kms:eu-west-3:1:key/k", Some("eu-west-3")));
    }

    #[test]
    fn invalid_urls_are_refused() {
        let message = |url| KeyReference::parse(url).unwrap_err().to_string();
        assert_eq!(
            [
                message("awskms://"),
                message("awskms://k?colour=red"),
                message("awskms://k?context_a=1&context_a=2"),
                message("awskms://k?role=admin"),
            ],
            [
                "its URL is invalid: the name of the key is missing",
                "its URL is invalid: unknown parameter \"colour\"",
                "its URL is invalid: the parameter \"context_a\" is given twice",
                "its URL is invalid: parameter `role` cannot be `admin`: expected the ARN of a role (`arn:…`)",
            ]
        );
    }

    #[tokio::test]
    async fn key_without_a_region_or_with_two_is_refused() {
        let environment = [("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())].into();
        let services = KeyServices { environment, ..KeyServices::default() };
        let refused = Key::open(&services, "awskms://alias/reef").await.err().unwrap().to_string();
        assert_eq!(refused, "its URL is invalid: the region is missing: add `?region=REGION`, or set AWS_REGION");
        assert!(Key::open(&services, "awskms:///arn:aws:kms:eu-west-3:1:key/k").await.is_ok());
        let other = "awskms:///arn:aws:kms:eu-west-3:1:key/k?region=eu-north-1";
        let refused = Key::open(&services, other).await.err().unwrap();
        let text = "the key is in another region: its ARN names `eu-west-3`, and requests go to `eu-north-1`";
        assert_eq!((refused.kind, refused.to_string().as_str()), (KeyFailureKind::OtherRegion, text));
    }
}
