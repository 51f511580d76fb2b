//! Addresses of Terraform providers: `HOST/NAMESPACE/NAME`, as Pulumi's bridge of Terraform providers reads them.

use std::fmt;
use std::str::FromStr;

use super::{Platform, PluginValueError, WantedVersion};

/// Registry of an address without a host: the one that Pulumi's bridge asks.
const DEFAULT_REGISTRY: &str = "registry.opentofu.org";
/// Prefix of a label in the encoding of names that are not ASCII, which the bridge refuses.
const ENCODED: &str = "xn--";
/// Port of https, which is left out.
const HTTPS_PORT: u16 = 443;
/// Largest length of a label of a name of a host.
const MAX_LABEL: usize = 63;

/// Address of a Terraform provider. Parses `NAMESPACE/NAME` and `HOST/NAMESPACE/NAME`; displays `HOST/NAMESPACE/NAME`. All parts are in lower
/// case, and none has a character that leads elsewhere in a path or a URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerraformProvider {
    host: String,
    namespace: String,
    name: String,
}

impl TerraformProvider {
    /// Returns the host of its registry, with the port unless that is the one of https.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the namespace, which is that of its author in the registry.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name, such as `random`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file name of its program, to which an author may add `_` or `.` and more.
    pub fn executable(&self) -> String {
        format!("terraform-provider-{}", self.name)
    }

    /// Returns the file name of its archive for a version and a platform.
    pub fn archive(&self, version: &str, Platform { os, arch }: Platform) -> String {
        format!("terraform-provider-{}_{version}_{}_{}.zip", self.name, os.as_str(), arch.as_str())
    }
}

impl FromStr for TerraformProvider {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let refused =
            |reason: &str| PluginValueError::TerraformProvider { text: text.to_owned(), reason: reason.to_owned() };
        let parts: Vec<&str> = text.split('/').collect();
        let (host, namespace, name) = match parts[..] {
            [name] if label(name).is_some() => {
                return Err(refused(&format!("its namespace is missing, as in hashicorp/{name}")));
            }
            [namespace, name] => (DEFAULT_REGISTRY, namespace, name),
            [host, namespace, name] => (host, namespace, name),
            _ => return Err(refused("expected [HOST/]NAMESPACE/NAME")),
        };
        let host =
            host_name(host).ok_or_else(|| refused("its first part is not a host, such as registry.opentofu.org"))?;
        let part =
            |part| label(part).ok_or_else(|| refused("expected letters, digits and single hyphens in its parts"));
        let (namespace, name) = (part(namespace)?, part(name)?);
        if ["terraform-", "opentofu-"].iter().any(|prefix| name.starts_with(prefix)) {
            return Err(refused("its name is without the prefix terraform-provider-"));
        }
        Ok(Self { host, namespace, name })
    }
}

impl fmt::Display for TerraformProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, namespace, name } = self;
        write!(f, "{host}/{namespace}/{name}")
    }
}

/// Returns a part of an address in lower case; `None` if it is no label of a name of a host.
fn label(text: &str) -> Option<String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--");
    is_label.then(|| text.to_ascii_lowercase())
}

/// Returns a name of a host in lower case, with its port unless that is the one of https.
fn host_name(text: &str) -> Option<String> {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port.parse::<u16>().ok().filter(|port| *port != 0)?)),
        None => (text, None),
    };
    if name.to_ascii_lowercase().split('.').any(|part| part.starts_with(ENCODED)) {
        return None;
    }
    let labels = name.split('.').map(label).collect::<Option<Vec<String>>>()?.join(".");
    Some(match port.filter(|port| *port != HTTPS_PORT) {
        Some(port) => format!("{labels}:{port}"),
        None => labels,
    })
}

/// Terraform provider in a registry, with the wanted version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerraformProviderSource {
    /// Address of the provider.
    pub provider: TerraformProvider,
    /// Wanted version. `Latest` is the highest one that is not a pre-release.
    pub version: WantedVersion,
    /// Platform of the archive. `None` is the current platform.
    pub platform: Option<Platform>,
    /// Address that is asked in place of `https://HOST`, such as that of a registry on this machine. The lock file knows the provider by its
    /// host.
    pub registry_url: Option<String>,
}

impl TerraformProviderSource {
    /// Creates the source of a provider for the current platform.
    pub fn new(provider: TerraformProvider, version: WantedVersion) -> Self {
        Self { provider, version, platform: None, registry_url: None }
    }

    /// Returns the address that is asked for the services of the host.
    pub fn address(&self) -> String {
        self.registry_url.clone().unwrap_or_else(|| format!("https://{}", self.provider.host()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#terraform-providers "Without a host, it is `registry.opentofu.org`"
    #[test]
    fn address_has_a_host_a_namespace_and_a_name() {
        for (text, expected) in [
            ("hashicorp/random", "registry.opentofu.org/hashicorp/random"),
            ("Azure/ALZ", "registry.opentofu.org/azure/alz"),
            ("registry.terraform.io/hashicorp/google-beta", "registry.terraform.io/hashicorp/google-beta"),
            ("TF.Example:8443/acme/reef2", "tf.example:8443/acme/reef2"),
            ("tf.example:443/acme/reef", "tf.example/acme/reef"),
            ("127.0.0.1:0099/acme/reef", "127.0.0.1:99/acme/reef"),
        ] {
            let provider: TerraformProvider = text.parse().unwrap();
            assert_eq!(provider.to_string(), expected);
            assert_eq!(expected.parse(), Ok(provider));
        }
    }

    #[test]
    fn address_that_leads_elsewhere_is_refused_with_the_reason() {
        for (text, reason) in [
            ("random", "its namespace is missing, as in hashicorp/random"),
            ("", "expected [HOST/]NAMESPACE/NAME"),
            ("a/b/c/d", "expected [HOST/]NAMESPACE/NAME"),
            ("acme/", "expected letters"),
            ("acme/..", "expected letters"),
            ("../reef", "expected letters"),
            ("acme/re_ef", "expected letters"),
            ("acme/re--ef", "expected letters"),
            ("acme/-reef", "expected letters"),
            ("acme/réef", "expected letters"),
            ("acme/reef?x", "expected letters"),
            ("acme/reef#x", "expected letters"),
            ("acme/re ef", "expected letters"),
            ("acme/terraform-provider-reef", "without the prefix"),
            ("/acme/reef", "is not a host"),
            ("https:/acme/reef", "is not a host"),
            ("tf..example/acme/reef", "is not a host"),
            ("xn--reef.example/acme/reef", "is not a host"),
            ("me@tf.example/acme/reef", "is not a host"),
            ("tf.example:x/acme/reef", "is not a host"),
            ("tf.example:99999/acme/reef", "is not a host"),
            ("[::1]:80/acme/reef", "is not a host"),
        ] {
            let error = text.parse::<TerraformProvider>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn archive_is_named_after_name_version_and_platform() {
        let provider: TerraformProvider = "hashicorp/random".parse().unwrap();
        let platform = "linux-amd64".parse().unwrap();
        assert_eq!(provider.archive("3.6.0", platform), "terraform-provider-random_3.6.0_linux_amd64.zip");
    }
}
