//! Selection of the sources of credentials by the environment.

use std::collections::BTreeMap;

use super::failure::AzureTokenFailure;

/// Variable that selects some of the sources.
const SELECTION: &str = "AZURE_TOKEN_CREDENTIALS";
/// Variable with another host of Microsoft Entra ID, such as that of another cloud.
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";
const DEFAULT_AUTHORITY: &str = "https://login.microsoftonline.com";

/// Source of access tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Application with a secret in variables.
    Environment,
    /// Application with a token of a cluster in a file.
    WorkloadIdentity,
    /// Identity of the machine or the container.
    ManagedIdentity,
    /// User who has logged in with `az login`.
    Cli,
}

impl Source {
    /// Returns the name for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::WorkloadIdentity => "workload identity",
            Self::ManagedIdentity => "managed identity",
            Self::Cli => "Azure CLI",
        }
    }
}

/// Returns the sources to try, in their order: all, unless a variable selects some.
///
/// # Errors
/// [`AzureTokenFailure`] if the variable selects none of them.
pub(super) fn sources(environment: &BTreeMap<String, String>) -> Result<Vec<Source>, AzureTokenFailure> {
    use Source::{Cli, Environment, ManagedIdentity, WorkloadIdentity};
    let selection = value(environment, SELECTION).unwrap_or_default();
    Ok(match selection.to_ascii_lowercase().as_str() {
        "" => vec![Environment, WorkloadIdentity, ManagedIdentity, Cli],
        "prod" => vec![Environment, WorkloadIdentity, ManagedIdentity],
        "dev" | "azureclicredential" => vec![Cli],
        "environmentcredential" => vec![Environment],
        "workloadidentitycredential" => vec![WorkloadIdentity],
        "managedidentitycredential" => vec![ManagedIdentity],
        _ => {
            let expected = "expected dev, prod, EnvironmentCredential, WorkloadIdentityCredential, \
                            ManagedIdentityCredential or AzureCLICredential";
            let reason = format!("{SELECTION} cannot be `{}`: {expected}", bridge::error::shorten(selection));
            return Err(AzureTokenFailure::of_settings(&reason));
        }
    })
}

/// Returns the URL of Microsoft Entra ID, without a slash at its end. Secrets go there, so it is encrypted unless it is on this
/// machine.
pub(super) fn authority(environment: &BTreeMap<String, String>) -> Result<String, String> {
    let authority = value(environment, AUTHORITY).unwrap_or(DEFAULT_AUTHORITY);
    let parsed = url::Url::parse(authority).ok();
    let is_local = |host: Option<url::Host<&str>>| match host {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(_)) | None => false,
    };
    let is_usable = parsed.is_some_and(|url| url.scheme() == "https" || url.scheme() == "http" && is_local(url.host()));
    if is_usable {
        return Ok(authority.trim_end_matches('/').to_owned());
    }
    Err(format!("{AUTHORITY} is not a URL that begins with https://"))
}

/// Returns the value of a variable, unless it is empty.
pub(crate) fn value<'e>(environment: &'e BTreeMap<String, String>, name: &str) -> Option<&'e str> {
    environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str, value: &str) -> BTreeMap<String, String> {
        [(name.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn variable_selects_sources() {
        let names = |selection: &str| {
            let names = sources(&environment(SELECTION, selection))?.into_iter().map(Source::name);
            Ok::<_, AzureTokenFailure>(names.collect::<Vec<_>>().join(", "))
        };
        let all = "environment, workload identity, managed identity, Azure CLI";
        assert_eq!(names("").unwrap(), all);
        assert_eq!(names("prod").unwrap(), "environment, workload identity, managed identity");
        assert_eq!(names("dev").unwrap(), "Azure CLI");
        assert_eq!(names("ManagedIdentityCredential").unwrap(), "managed identity");
        let failure = names("AzureDeveloperCLICredential").unwrap_err().to_string();
        assert!(failure.starts_with("AZURE_TOKEN_CREDENTIALS cannot be `AzureDeveloperCLICredential`: "), "{failure}");
    }

    #[test]
    fn secrets_are_sent_encrypted() {
        let of = |text: &str| authority(&environment(AUTHORITY, text));
        assert_eq!(of("").unwrap(), "https://login.microsoftonline.com");
        assert_eq!(of("https://login.chinacloudapi.cn/").unwrap(), "https://login.chinacloudapi.cn");
        assert_eq!(of("http://127.0.0.1:8080").unwrap(), "http://127.0.0.1:8080");
        for refused in ["http://login.example", "login.example", "http://localhost.example"] {
            assert_eq!(of(refused).unwrap_err(), "AZURE_AUTHORITY_HOST is not a URL that begins with https://");
        }
    }
}
