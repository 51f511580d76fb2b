//! Keys in AWS KMS, used as `gocloud.dev/secrets/awskms` does.

use std::collections::BTreeMap;

use aws_config::{Region, SdkConfig};
use aws_smithy_runtime_api::client::result::SdkError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bridge::error::chain;
use serde_json::{Value, json};
use state::secrets::{KeyFailure, KeyFailureKind};
use zeroize::Zeroizing;

use super::services::{KeyServices, failure};
use super::url::{KeyUrl, unknown_parameter};
use crate::aws::{
    AwsConfigError, AwsParameters, CredentialsFailure, Domains, JsonClient, JsonError, configured_endpoint, load_config,
};

/// Prefix of the parameters that are the encryption context.
const CONTEXT: &str = "context_";

/// Parsed URL `awskms://ID|alias/NAME` or `awskms:///ARN`, with parameters.
#[derive(Debug, PartialEq, Eq)]
struct KeyReference {
    /// Id, alias or ARN.
    id: String,
    /// Encryption context: both must be equal at the encryption and at the decryption.
    context: BTreeMap<String, String>,
    parameters: AwsParameters,
}

impl KeyReference {
    fn parse(url: &str) -> Result<Self, KeyFailure> {
        let KeyUrl { key: id, parameters: pairs } = KeyUrl::parse(url)?;
        let (mut context, mut parameters) = (BTreeMap::new(), AwsParameters::default());
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

    fn region_of_arn(&self) -> Option<&str> {
        let mut parts = self.id.strip_prefix("arn:")?.split(':');
        parts.nth(2).filter(|region| !region.is_empty())
    }
}

/// Key with a client that may use it.
pub(super) struct Key {
    id: String,
    context: BTreeMap<String, String>,
    client: JsonClient,
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
        let config = config.map_err(config_failure)?;
        let region = region(&config, &reference)?;
        let endpoint = endpoint(&config, &reference.parameters, &region)?;
        let client = JsonClient::new(&config, "kms", &region, &endpoint);
        Ok(Self { id: reference.id, context: reference.context, client })
    }

    /// Encrypts a data key.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn encrypt(&self, data_key: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        let content = json!({ "KeyId": self.id, "Plaintext": STANDARD.encode(data_key) });
        let reply = self.request("TrentService.Encrypt", content).await?;
        bytes(&reply, "CiphertextBlob", "it has no ciphertext")
    }

    /// Decrypts a data key. The ciphertext names its key, so that an alias may name another key by now.
    ///
    /// # Errors
    /// [`KeyFailure`].
    pub(super) async fn decrypt(&self, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFailure> {
        let content = json!({ "CiphertextBlob": STANDARD.encode(encrypted) });
        let reply = self.request("TrentService.Decrypt", content).await?;
        bytes(&reply, "Plaintext", "it has no plaintext").map(Zeroizing::new)
    }

    /// Sends a request (<https://docs.aws.amazon.com/kms/latest/APIReference>).
    async fn request(&self, target: &'static str, mut content: Value) -> Result<Value, KeyFailure> {
        if !self.context.is_empty() {
            content["EncryptionContext"] = json!(self.context);
        }
        self.client.send(target, content).await.map_err(|error| failure_of(&error))
    }
}

/// Returns the region of the configuration, else that of the key's ARN. A key is known in its own region only.
fn region(config: &SdkConfig, reference: &KeyReference) -> Result<Region, KeyFailure> {
    match (config.region(), reference.region_of_arn()) {
        (Some(region), Some(of_arn)) if region.as_ref() != of_arn => {
            let text = format!("its ARN names `{of_arn}`, and requests go to `{region}`");
            Err(failure(KeyFailureKind::OtherRegion, text))
        }
        (Some(region), _) => Ok(region.clone()),
        (None, Some(of_arn)) => Ok(Region::new(of_arn.to_owned())),
        (None, None) => {
            let missing = "the region is missing: add `?region=REGION`, or set AWS_REGION";
            Err(failure(KeyFailureKind::Url, missing))
        }
    }
}

/// Returns the endpoint of the URL, else that of the environment or the profile, else that of the region.
fn endpoint(config: &SdkConfig, parameters: &AwsParameters, region: &Region) -> Result<String, KeyFailure> {
    let (fips, dualstack) = (config.use_fips().unwrap_or_default(), config.use_dual_stack().unwrap_or_default());
    let configured = parameters.endpoint.clone().or_else(|| configured_endpoint(config, "KMS"));
    if let Some(endpoint) = configured {
        if fips || dualstack {
            let text =
                format!("`fips` and `dualstack` select endpoints of AWS: remove them, or the endpoint `{endpoint}`");
            return Err(failure(KeyFailureKind::Other, text));
        }
        return Ok(endpoint);
    }
    let domains = Domains::of(region.as_ref());
    let domain = if dualstack { domains.dualstack } else { domains.standard };
    let fips = if fips { "-fips" } else { "" };
    Ok(format!("https://kms{fips}.{region}.{domain}"))
}

fn bytes(reply: &Value, member: &str, missing: &str) -> Result<Vec<u8>, KeyFailure> {
    match reply.get(member) {
        None | Some(Value::Null) => Err(no_reply(missing)),
        Some(value) => {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            decoded.ok_or_else(|| no_reply("it cannot be parsed"))
        }
    }
}

fn config_failure(error: AwsConfigError) -> KeyFailure {
    let kind = match error {
        AwsConfigError::MissingProfile(_) | AwsConfigError::Profile { .. } => KeyFailureKind::Credentials,
        _ => KeyFailureKind::Other,
    };
    failure(kind, chain(&error))
}

/// Returns the failure of a request, in the words of the service.
fn failure_of(error: &JsonError) -> KeyFailure {
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
    async fn endpoints_are_those_of_the_region() {
        let environment = BTreeMap::from([("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())]);
        let cases = [
            ("region=eu-north-1", "https://kms.eu-north-1.amazonaws.com"),
            ("region=eu-north-1&fips=true", "https://kms-fips.eu-north-1.amazonaws.com"),
            ("region=us-gov-west-1&fips=true&dualstack=true", "https://kms-fips.us-gov-west-1.api.aws"),
            ("region=cn-north-1", "https://kms.cn-north-1.amazonaws.com.cn"),
            ("region=cn-north-1&dualstack=true", "https://kms.cn-north-1.api.amazonwebservices.com.cn"),
            ("region=us-iso-east-1", "https://kms.us-iso-east-1.c2s.ic.gov"),
            ("region=eu-north-1&endpoint=http://127.0.0.1:4566", "http://127.0.0.1:4566"),
        ];
        for (query, expected) in cases {
            let reference = KeyReference::parse(&format!("awskms://k?{query}")).unwrap();
            let config = load_config(&reference.parameters, None, &environment, None).await.unwrap();
            let region = region(&config, &reference).unwrap();
            assert_eq!(endpoint(&config, &reference.parameters, &region).unwrap(), expected, "{query}");
        }
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
