//! Account of a store, as `gocloud.dev/blob/azureblob` derives it from the URL and the environment.

use std::collections::BTreeMap;

use object_store::azure::AzureAccessKey;
use percent_encoding::percent_decode_str;
use url::Url;

use super::connection_string::{ConnectionString, StringKey};
use super::url::{AzblobUrl, is_account_name, is_domain, parse_bool};
use crate::azure::value;

/// Domain of Azure's public cloud.
const DEFAULT_DOMAIN: &str = "blob.core.windows.net";
/// Ends of the hosts of Azure's clouds.
const CLOUDS: [&str; 4] =
    [".core.windows.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net", ".storage.azure.net"];
const DOMAIN: &str = "AZURE_STORAGE_DOMAIN";
const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const KEY: &str = "AZURE_STORAGE_KEY";
const SIGNATURE: &str = "AZURE_STORAGE_SAS_TOKEN";
const CONNECTION_STRINGS: [&str; 2] = ["AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"];

/// Account of a store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// Name of the account.
    pub(super) name: String,
    /// URL of the service, without a slash at its end.
    pub(super) service: String,
    /// Signing of the requests.
    pub(super) signing: Signing,
    /// Source of what signs the requests, for messages.
    pub(super) source: &'static str,
}

/// Signing of requests.
#[derive(PartialEq, Eq)]
pub(super) enum Signing {
    /// Key of the account.
    Key(AzureAccessKey),
    /// Parameters of a shared access signature.
    Signature(Vec<(String, String)>),
    /// Access token.
    Token,
}

/// Settings that do not select an account. Contains no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AzblobSettingsError {
    /// No account is named.
    #[error("the storage account is missing: add `storage_account=NAME` to the URL, or set {ACCOUNT}")]
    NoAccount,
    /// A signature is given without its account.
    #[error("{SIGNATURE} needs {ACCOUNT} beside it: the URL of a store must not send it to another account")]
    NoAccountOfSignature,
    /// A variable has an invalid value.
    #[error("{name} is invalid: {reason}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Rule that it does not fulfil.
        reason: &'static str,
    },
    /// Parameters of the URL name another service than the credentials.
    #[error(
        "the parameters of the URL ({parameters}) lead to {of_url}, and {name} is for {of_variable}: remove one of them"
    )]
    Contradiction {
        /// Parameters, each quoted.
        parameters: String,
        /// Service of the URL.
        of_url: String,
        /// Variable with the credentials.
        name: &'static str,
        /// Service of the variable.
        of_variable: String,
    },
    /// A token would be sent to a host that the URL alone names, and that is none of Azure.
    #[error("an access token is sent to hosts of Azure only, and `{0}` is none: set {DOMAIN} to it, if it is your own")]
    ForeignDomain(String),
    /// A token would be sent without encryption.
    #[error("an access token is sent over https only: set `protocol=https`, or {ACCOUNT} and {KEY}")]
    Unencrypted,
}

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Signature(_) => "Signature",
            Self::Token => "Token",
        })
    }
}

/// Parts of the URL of a service.
#[derive(Clone, Default)]
struct ServiceParts {
    account: Option<String>,
    domain: String,
    protocol: String,
    is_cdn: bool,
    is_emulator: bool,
}

impl ServiceParts {
    /// Returns the parts in the environment.
    fn of_environment(environment: &BTreeMap<String, String>) -> Result<Self, AzblobSettingsError> {
        let text = |name: &str| value(environment, name).unwrap_or_default().to_owned();
        let flag = |name: &str| value(environment, name).and_then(parse_bool).unwrap_or(false);
        let mut parts = Self {
            account: value(environment, ACCOUNT).map(str::to_owned),
            domain: text(DOMAIN),
            protocol: text("AZURE_STORAGE_PROTOCOL"),
            is_cdn: flag("AZURE_STORAGE_IS_CDN"),
            is_emulator: flag("AZURE_STORAGE_IS_LOCAL_EMULATOR"),
        };
        // Parts that a malformed string has are not needed if something else signs.
        if let Some(Ok(string)) = connection_string(environment).map(|(_, text)| ConnectionString::parse(text)) {
            parts.account = parts.account.or_else(|| string.account().map(str::to_owned));
            if let (true, Some(protocol)) = (parts.protocol.is_empty(), string.protocol()) {
                protocol.clone_into(&mut parts.protocol);
            }
        }
        let invalid = |name, reason| Err(AzblobSettingsError::Variable { name, reason });
        if parts.account.as_deref().is_some_and(|name| !is_account_name(name)) {
            return invalid(ACCOUNT, "expected 3 to 24 lower-case letters and digits");
        }
        if !is_domain(&parts.domain) {
            return invalid(DOMAIN, "expected the name of a domain");
        }
        if !matches!(&*parts.protocol, "" | "http" | "https") {
            return invalid("AZURE_STORAGE_PROTOCOL", "expected `https` or `http`");
        }
        Ok(parts)
    }

    /// Returns the parts, each replaced by that of a URL if it has it.
    fn with(self, url: &AzblobUrl) -> Self {
        Self {
            account: url.storage_account.clone().or(self.account),
            domain: url.domain.clone().unwrap_or(self.domain),
            protocol: url.protocol.clone().unwrap_or(self.protocol),
            is_cdn: url.is_cdn.unwrap_or(self.is_cdn),
            is_emulator: url.is_emulator.unwrap_or(self.is_emulator),
        }
    }

    /// Returns the name of the account and the URL of its service.
    fn service(&self) -> Result<(String, String), AzblobSettingsError> {
        let account = self.account.clone().ok_or(AzblobSettingsError::NoAccount)?;
        let or_default = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        let domain = or_default(&self.domain, DEFAULT_DOMAIN);
        let protocol = or_default(&self.protocol, "https");
        let is_local = ["127.0.0.1", "localhost"].iter().any(|local| domain.starts_with(local));
        let service = if is_local || self.is_emulator {
            format!("{protocol}://{domain}/{account}")
        } else if self.is_cdn {
            format!("{protocol}://{domain}")
        } else {
            format!("{protocol}://{account}.{domain}")
        };
        Ok((account, service))
    }
}

/// Returns the account of a store. Requests are signed with the first of: the key of the account, the shared access signature,
/// the connection string, an access token.
///
/// # Errors
/// [`AzblobSettingsError`].
pub(super) fn account_of(
    url: &AzblobUrl,
    environment: &BTreeMap<String, String>,
) -> Result<Account, AzblobSettingsError> {
    let of_environment = ServiceParts::of_environment(environment)?;
    let parts = of_environment.clone().with(url);
    let contradiction = |of_url: &str, name, of_variable: String| AzblobSettingsError::Contradiction {
        parameters: url.service_parameters().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        of_url: of_url.to_owned(),
        name,
        of_variable,
    };
    if let (Some(of_key), Some(key)) = (value(environment, ACCOUNT), value(environment, KEY)) {
        let (name, service) = parts.service()?;
        if name != of_key {
            return Err(contradiction(&name, KEY, of_key.to_owned()));
        }
        return Ok(Account { name, service, signing: key_of(KEY, key)?, source: KEY });
    }
    if let Some(signature) = value(environment, SIGNATURE) {
        // The signature is part of each URL, so the URL of a store must not send it to another service.
        let (_, signed) = of_environment.service().map_err(|_| AzblobSettingsError::NoAccountOfSignature)?;
        let (name, service) = parts.service()?;
        if service != signed {
            return Err(contradiction(&service, SIGNATURE, signed));
        }
        return Ok(Account { name, service, signing: signature_of(SIGNATURE, signature)?, source: SIGNATURE });
    }
    if let Some((source, text)) = connection_string(environment) {
        let invalid = |reason| AzblobSettingsError::Variable { name: source, reason };
        let string = ConnectionString::parse(text).map_err(invalid)?;
        let service = string.service().map_err(invalid)?;
        if !url.service_parameters().is_empty() {
            let (_, of_url) = parts.service()?;
            if of_url != service {
                return Err(contradiction(&of_url, source, service));
            }
        }
        let parsed = Url::parse(&service).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| invalid("BlobEndpoint is not a URL that begins with https:// or http://"))?;
        let of_host = || parsed.host_str()?.split_once(".blob.").map(|(name, _)| name.to_owned());
        let name = parts.account.or_else(of_host).ok_or(AzblobSettingsError::NoAccount)?;
        let signing = match string.key().map_err(invalid)? {
            StringKey::Account(key) => key_of(source, key)?,
            StringKey::Signature(signature) => signature_of(source, signature)?,
        };
        return Ok(Account { name, service, signing, source });
    }
    let (name, service) = parts.service()?;
    if service.starts_with("http://") {
        return Err(AzblobSettingsError::Unencrypted);
    }
    let account = Account { name, service, signing: Signing::Token, source: "" };
    // A token is valid for all accounts of the user, so a cloned repository must not send it anywhere.
    let is_trusted = parts.domain == of_environment.domain || CLOUDS.iter().any(|end| account.host().ends_with(end));
    if is_trusted { Ok(account) } else { Err(AzblobSettingsError::ForeignDomain(parts.domain)) }
}

fn connection_string(environment: &BTreeMap<String, String>) -> Option<(&'static str, &str)> {
    CONNECTION_STRINGS.into_iter().find_map(|name| Some((name, value(environment, name)?)))
}

fn key_of(name: &'static str, key: &str) -> Result<Signing, AzblobSettingsError> {
    let invalid = |_| AzblobSettingsError::Variable { name, reason: "the key of the account is not base64" };
    AzureAccessKey::try_new(key).map(Signing::Key).map_err(invalid)
}

/// Parses a signature, which has the form of a query.
fn signature_of(name: &'static str, signature: &str) -> Result<Signing, AzblobSettingsError> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = signature.trim().trim_start_matches('?').split('&').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((decoded(name), decoded(value)))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    let pairs = pairs.filter(|pairs| pairs.iter().any(|(name, _)| name == "sig"));
    let reason = "the shared access signature is not a query such as `sv=…&sig=…`";
    pairs.map(Signing::Signature).ok_or(AzblobSettingsError::Variable { name, reason })
}

impl Account {
    /// Returns the host of the service.
    pub(super) fn host(&self) -> &str {
        let rest = self.service.split_once("://").map_or("", |(_, rest)| rest);
        rest.split_once('/').map_or(rest, |(host, _)| host)
    }

    /// Returns the parameters that identify the account: names of containers are unique within one.
    pub(super) fn parameters(&self) -> String {
        let Self { name, service, .. } = self;
        let rest = service.split_once("://").map_or("", |(_, rest)| rest);
        let domain = rest.strip_prefix(&format!("{name}.")).or(rest.strip_suffix(&format!("/{name}"))).unwrap_or(rest);
        let domain = if domain == DEFAULT_DOMAIN { String::new() } else { format!("&domain={domain}") };
        format!("storage_account={name}{domain}")
    }
}

#[cfg(test)]
mod tests;
