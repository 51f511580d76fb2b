//! Registries of Terraform providers: `GET /.well-known/terraform.json` names the address of a service, below which are
//! `GET NAMESPACE/NAME/versions` and `GET NAMESPACE/NAME/VERSION/download/OS/ARCH`.

use backon::ExponentialBuilder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::address::without_credentials;
use super::credentials::Credential;
use super::error::FetchError;
use super::request::{ApiClient, Content, RequestTarget};
use super::transfer::Transfer;
use super::web;
use crate::error::cut;
use crate::fs::FileError;
use crate::plugin::{Platform, Sha256Digest, TerraformProvider, is_plain_text};

/// Path of the document that names the services of a host.
const DISCOVERY: &str = "/.well-known/terraform.json";
/// Type of the responses.
const JSON: &str = "application/json";
/// Greatest number of keys that are read.
const MAX_KEYS: usize = 64;
/// Length of an address in a message.
const SHOWN: usize = 200;

/// Services of a host.
#[derive(Deserialize)]
struct Services {
    /// Address of the registry of providers.
    #[serde(rename = "providers.v1")]
    providers: Option<String>,
}

/// Versions of a provider.
#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    versions: Vec<ProviderVersion>,
}

/// Version of a provider.
#[derive(Clone, Debug, Deserialize)]
pub struct ProviderVersion {
    /// Semantic version.
    pub version: String,
    /// Platforms that have an archive. Not all registries tell them.
    #[serde(default)]
    platforms: Option<Vec<PlatformText>>,
}

#[derive(Clone, Debug, Deserialize)]
struct PlatformText {
    os: String,
    arch: String,
}

impl PlatformText {
    fn is(&self, platform: Platform) -> bool {
        self.os == platform.os.as_str() && self.arch == platform.arch.as_str()
    }
}

impl ProviderVersion {
    /// Returns whether the version may have an archive for a platform: whether the registry names it, or no platform at all.
    pub fn may_have(&self, platform: Platform) -> bool {
        let platforms = self.platforms.as_deref().unwrap_or_default();
        platforms.is_empty() || platforms.iter().any(|known| known.is(platform))
    }
}

/// Description of the archive of a version for a platform.
#[derive(Deserialize)]
struct ArchiveText {
    os: String,
    arch: String,
    filename: String,
    download_url: String,
    shasum: String,
    shasums_url: Option<String>,
    shasums_signature_url: Option<String>,
    signing_keys: Option<SigningKeys>,
}

#[derive(Deserialize)]
struct SigningKeys {
    gpg_public_keys: Option<Vec<SigningKey>>,
}

#[derive(Deserialize)]
struct SigningKey {
    ascii_armor: Option<String>,
}

/// Archive of a version of a provider for a platform, as its registry describes it. Nothing of it is verified.
#[derive(Clone, Debug)]
pub struct ProviderArchive {
    /// Name of the file.
    pub filename: String,
    /// Address of the file.
    pub address: Url,
    /// SHA-256 of its bytes.
    pub digest: Sha256Digest,
    /// Address of the file with the checksums of all platforms, if there is one.
    pub sums: Option<Url>,
    /// Address of the signature of that file, if there is one.
    pub signature: Option<Url>,
    /// Public OpenPGP keys of the author, with armor.
    pub keys: Vec<String>,
}

/// Client of the registry of providers of a host.
#[derive(Clone, Debug)]
pub struct TerraformRegistry {
    service: ApiClient,
    backoff: ExponentialBuilder,
}

impl TerraformRegistry {
    /// Asks a host for the address of its registry: `address` is `https://HOST`. Must be called within a tokio runtime. The credential is sent to
    /// the host only.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn discover(address: &str, credential: Option<&Credential>) -> Result<Self, FetchError> {
        let (root, backoff) = (ApiClient::new(address, credential)?, web::retry_policy());
        let item = "the address of the registry of Terraform providers";
        let expected = (JSON, "a list of services");
        let (services, found) = root.read_json::<Services>(&root.target(DISCOVERY, item), expected, backoff).await?;
        let Some(providers) = services.providers else {
            return Err(FetchError::NotFound { item: item.to_owned(), host: root.host(), credential: None });
        };
        let address = referenced(&found.url, &providers)?;
        let credential = credential.filter(|_| root.is_at(&address));
        Ok(Self { service: ApiClient::new(address.as_str(), credential)?, backoff })
    }

    /// Returns the host of the registry.
    pub fn host(&self) -> String {
        self.service.host()
    }

    /// Returns the versions of a provider.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn versions(&self, provider: &TerraformProvider) -> Result<Vec<ProviderVersion>, FetchError> {
        let route = format!("/{}/{}/versions", provider.namespace(), provider.name());
        let item = format!("the Terraform provider {provider}");
        let (versions, _) = self.describe::<Versions>(&route, &item, "a list of versions").await?;
        Ok(versions.versions)
    }

    /// Returns the archive of a version of a provider for a platform. `version` is a semantic version.
    ///
    /// # Errors
    /// [`FetchError`]; also if the registry describes the archive of another platform.
    pub async fn archive(
        &self,
        provider: &TerraformProvider,
        version: &str,
        platform: Platform,
    ) -> Result<ProviderArchive, FetchError> {
        let (namespace, name, Platform { os, arch }) = (provider.namespace(), provider.name(), platform);
        let route = format!("/{namespace}/{name}/{version}/download/{}/{}", os.as_str(), arch.as_str());
        let item = format!("version {version} of the Terraform provider {provider} for {platform}");
        let (text, found) = self.describe::<ArchiveText>(&route, &item, "an archive").await?;
        let unexpected = |message: String| FetchError::UnexpectedStatus {
            item: item.clone(),
            host: self.host(),
            status: 200,
            message,
            retry_after: None,
        };
        if !(PlatformText { os: text.os, arch: text.arch }).is(platform) {
            return Err(unexpected("it describes the archive of another platform".to_owned()));
        }
        let digest = text.shasum.parse().map_err(|_| unexpected("its `shasum` is not a SHA-256".to_owned()))?;
        let optional =
            |url: Option<String>| url.filter(|url| !url.is_empty()).map(|url| referenced(&found.url, &url)).transpose();
        let keys = text.signing_keys.and_then(|keys| keys.gpg_public_keys).unwrap_or_default();
        Ok(ProviderArchive {
            filename: text.filename,
            address: referenced(&found.url, &text.download_url)?,
            digest,
            sums: optional(text.shasums_url)?,
            signature: optional(text.shasums_signature_url)?,
            keys: keys.into_iter().filter_map(|key| key.ascii_armor).take(MAX_KEYS).collect(),
        })
    }

    async fn describe<T: DeserializeOwned>(
        &self,
        route: &str,
        item: &str,
        words: &str,
    ) -> Result<(T, Content), FetchError> {
        self.service.read_json(&self.service.target(route, item), (JSON, words), self.backoff).await
    }

    /// Returns the content of a small file, without credentials.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn read(&self, address: &Url, item: &str) -> Result<Vec<u8>, FetchError> {
        let target = RequestTarget::public(address.clone(), item);
        Ok(self.service.read(&target, "application/octet-stream", self.backoff).await?.body)
    }

    /// Downloads an archive, without credentials, and goes on after a transient error. `sink` receives an empty slice where it starts from the
    /// beginning.
    ///
    /// # Errors
    /// [`FetchError`], including an error of `sink`.
    pub async fn download(
        &self,
        archive: &ProviderArchive,
        sink: impl FnMut(&[u8]) -> Result<(), FileError> + Send,
    ) -> Result<(), FetchError> {
        let start = RequestTarget::public(archive.address.clone(), &archive.filename);
        Transfer { api: &self.service, start, item: &archive.filename, size: None }.run(self.backoff, sink).await
    }
}

/// Returns the address that an answer from `base` refers to. A relative one stays on the same server, and none is less protected than `base`.
fn referenced(base: &Url, text: &str) -> Result<Url, FetchError> {
    let refused = |reason: &str| FetchError::InvalidAddress {
        address: cut(&without_credentials(text), SHOWN).into_owned(),
        reason: format!("{} refers to it: {reason}", base.host_str().unwrap_or_default()),
    };
    let url = base.join(text).map_err(|error| refused(&error.to_string()))?;
    let is_absolute = Url::parse(text).is_ok();
    match url.scheme() {
        _ if !is_absolute && url.origin() != base.origin() => {
            Err(refused("a relative address leads to another server"))
        }
        "https" | "http" if !url.username().is_empty() || url.password().is_some() => {
            Err(refused("it contains credentials"))
        }
        "https" => Ok(url),
        "http" if base.scheme() == "https" || (is_plain_text(url.as_str()) && !is_plain_text(base.as_str())) => {
            Err(refused("it is not encrypted"))
        }
        "http" => Ok(url),
        _ => Err(refused("it is neither https nor http")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#terraform-providers "a relative address stays on the server that has named it"
    #[test]
    fn reference_stays_on_its_server_unless_it_is_a_whole_address() {
        let (tls, local) = ("https://tf.example/v1/providers/acme/", "http://127.0.0.1:99/v1/");
        for (base, text, expected) in [
            (tls, "reef.zip", Some("https://tf.example/v1/providers/acme/reef.zip")),
            (tls, "/reef.zip", Some("https://tf.example/reef.zip")),
            (tls, "../../../../../reef.zip", Some("https://tf.example/reef.zip")),
            (tls, "https://files.example/reef.zip", Some("https://files.example/reef.zip")),
            (tls, "//evil.example/reef.zip", None),
            (tls, "\\\\evil.example/reef.zip", None),
            (tls, "https://me:word@files.example/reef.zip", None),
            (tls, "http://files.example/reef.zip", None),
            (tls, "http://127.0.0.1/reef.zip", None),
            (tls, "file:///etc/passwd", None),
            (tls, "data:text/plain,x", None),
            (local, "reef.zip", Some("http://127.0.0.1:99/v1/reef.zip")),
            (local, "http://127.0.0.1:98/reef.zip", Some("http://127.0.0.1:98/reef.zip")),
            (local, "//127.0.0.1:98/reef.zip", None),
            (local, "http://files.example/reef.zip", None),
        ] {
            let found = referenced(&Url::parse(base).unwrap(), text);
            assert_eq!(found.as_ref().ok().map(Url::as_str), expected, "{text}");
            assert!(!found.is_err_and(|error| error.to_string().contains("word")), "{text}");
        }
    }

    #[test]
    fn version_without_platforms_may_have_each() {
        let platform = "linux-amd64".parse().unwrap();
        for (text, expected) in [
            (r#"{"version":"1.0.0"}"#, true),
            (r#"{"version":"1.0.0","platforms":null}"#, true),
            (r#"{"version":"1.0.0","platforms":[{"os":"linux","arch":"amd64"}]}"#, true),
            (r#"{"version":"1.0.0","platforms":[{"os":"linux","arch":"arm64"}]}"#, false),
        ] {
            let version: ProviderVersion = serde_json::from_str(text).unwrap();
            assert_eq!(version.may_have(platform), expected, "{text}");
        }
    }
}
