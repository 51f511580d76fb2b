//! Entry of `plugins` in server.yaml, with resolved placeholders (docs/server-yaml.md#plugins).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pulumi_proto::property::PropertyMap;

use super::{Dialect, Platform, PluginName, PluginVersion, Sandbox, Sha256Digest, is_plain_text};

/// Declared plugin.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    /// Name of the plugin, unique in the stack. Also the name of its provider resource.
    pub name: PluginName,
    /// Pulumi package of the plugin and prefix of its resource types. Two plugins of one package are two configurations
    /// of one provider.
    pub package: PluginName,
    /// False if the plugin must not be resolved or started.
    pub enabled: bool,
    /// Source of the plugin.
    pub source: PluginSource,
    /// Inputs of its provider resource, with secrets marked.
    pub config: PropertyMap,
    /// Names of environment variables that its process inherits, in addition to those that every plugin inherits.
    pub pass_env: Vec<String>,
    /// Names of environment variables that its process inherits if they are set. `NAME_*` stands for all variables whose
    /// name begins with `NAME_`.
    pub optional_env: Vec<String>,
    /// Secrets and `auth` entries of the stack that its `Initialize` receives.
    pub init_secrets: InitSecrets,
    /// Time limit from the start of the process until it prints its port.
    pub start_timeout: Duration,
    /// Time for which an instance of the plugin is kept.
    pub keep: Keep,
    /// Start protocol of the plugin.
    pub dialect: Dialect,
    /// Calls that are repeated if the plugin asks for it.
    pub retry: Retry,
    /// Restrictions of its process.
    pub sandbox: Sandbox,
}

impl PluginConfig {
    /// Default of [`start_timeout`](Self::start_timeout).
    pub const START_TIMEOUT: Duration = Duration::from_secs(60);

    /// Creates an enabled plugin with the default settings.
    pub fn new(name: PluginName, source: PluginSource) -> Self {
        Self {
            package: name.clone(),
            name,
            enabled: true,
            source,
            config: PropertyMap::new(),
            pass_env: Vec::new(),
            optional_env: Vec::new(),
            init_secrets: InitSecrets::default(),
            start_timeout: Self::START_TIMEOUT,
            keep: Keep::default(),
            dialect: Dialect::default(),
            retry: Retry::default(),
            sandbox: Sandbox::default(),
        }
    }
}

/// Time for which an instance of a plugin is kept, after a phase of a run has used it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Until the end of the run: the other phases use it, if they configure it alike.
    #[default]
    Run,
    /// Not at all: each phase starts a process. For providers that remember what they have read.
    Never,
}

/// Calls that are repeated if they fail with RetryInfo, by which a plugin asks for it. Check, Diff, Read, Invoke and
/// Configure always are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// True if Create, Update and Delete are repeated, too. States that such a failure of the plugin had no effect.
    pub mutations: bool,
}

/// Selection of the stack's secrets and `auth` entries that a plugin's `Initialize` receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitSecrets {
    /// Secrets and `auth` entries that its `config` refers to, and the `auth` entry with its name.
    #[default]
    Referenced,
    /// All secrets and `auth` entries.
    All,
}

/// Source of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// File or folder on this machine.
    Local(LocalSource),
    /// Asset of a release on GitHub or GitHub Enterprise.
    GithubRelease(GithubReleaseSource),
    /// Git repository.
    Git(GitSource),
}

impl PluginSource {
    /// Returns the value of `source.type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::GithubRelease(_) => "github-release",
            Self::Git(_) => "git",
        }
    }

    /// Returns the declared version. `None` for a `local` source, and for a tag or git revision that is not a semantic
    /// version.
    pub fn version(&self) -> Option<PluginVersion> {
        match self {
            Self::Local(_) => None,
            Self::GithubRelease(release) => release.tag.parse().ok(),
            Self::Git(git) => git.revision.parse().ok(),
        }
    }

    /// Returns the token for the source.
    fn token(&self) -> Option<&SourceToken> {
        match self {
            Self::Local(_) => None,
            Self::GithubRelease(release) => release.token.as_ref(),
            Self::Git(git) => git.token.as_ref(),
        }
    }

    /// Returns the texts that must be redacted: the token, and the user and password of an address.
    pub fn secrets(&self) -> Vec<&str> {
        let address = match self {
            Self::Local(_) => "",
            Self::GithubRelease(release) => &release.repository,
            Self::Git(git) => &git.url,
        };
        let authority = address.split_once("://").map_or("", |(_, rest)| rest);
        let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
        let token = self.token().map(SourceToken::expose);
        token.into_iter().chain(login.split(':')).filter(|text| !text.is_empty()).collect()
    }

    /// Returns the address of a source whose content could be replaced on its way: the address is not encrypted, no
    /// checksum is declared, and `insecure` is not set.
    pub fn unprotected_address(&self) -> Option<&str> {
        let (address, insecure) = match self {
            Self::Local(_) => return None,
            Self::GithubRelease(release) => (release.api_url.as_deref()?, release.insecure),
            Self::Git(git) => (git.url.as_str(), git.insecure),
        };
        (!insecure && self.checksum().is_none() && is_plain_text(address)).then_some(address)
    }

    /// Returns the declared checksum.
    pub fn checksum(&self) -> Option<&Checksum> {
        match self {
            Self::Local(local) => local.checksum.as_ref(),
            Self::GithubRelease(release) => release.checksum.as_ref(),
            Self::Git(git) => git.checksum.as_ref(),
        }
    }
}

/// Plugin on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSource {
    /// File, or folder with `pulumi-resource-<name>` or `PulumiPlugin.yaml`. A relative path starts at the root of the
    /// repository.
    pub path: PathBuf,
    /// Digest of the executable, or of the whole folder if it has a `PulumiPlugin.yaml`.
    pub checksum: Option<Checksum>,
}

/// Plugin published as an asset of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubReleaseSource {
    /// Repository as `owner/name` or as an https URL.
    pub repository: String,
    /// Tag of the release, or `latest` (only without a checksum). Declared as `source.version`.
    pub tag: String,
    /// Platform of the asset. `None` is the current platform.
    pub platform: Option<Platform>,
    /// Digest of the asset or of the executable in it.
    pub checksum: Option<Checksum>,
    /// Name of the asset, with the placeholders `{version}`, `{os}` and `{arch}`. `None` is Pulumi's name.
    pub asset: Option<String>,
    /// Token for the API and the download. Never sent to another host.
    pub token: Option<SourceToken>,
    /// Base URL of the API. `None` derives it from `repository`.
    pub api_url: Option<String>,
    /// Accepts an address that is not encrypted, even without a checksum.
    pub insecure: bool,
    /// Refuses an asset without a declared checksum if the server publishes no digest of it.
    pub requires_digest: bool,
}

impl GithubReleaseSource {
    /// Creates the source of a release with the default settings, for the current platform.
    pub fn new(repository: String, tag: String) -> Self {
        Self {
            repository,
            tag,
            platform: None,
            checksum: None,
            asset: None,
            token: None,
            api_url: None,
            insecure: false,
            requires_digest: false,
        }
    }
}

/// Plugin in a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    /// URL or path that git accepts.
    pub url: String,
    /// Tag, branch or commit.
    pub revision: String,
    /// Folder of the plugin in the repository. Empty is the root.
    pub subdir: PathBuf,
    /// Platform of a prebuilt file. `None` is the current platform.
    pub platform: Option<Platform>,
    /// Digest of the executable, or of the whole repository if `subdir` has a `PulumiPlugin.yaml`.
    pub checksum: Option<Checksum>,
    /// Token for the clone. Never sent to another host.
    pub token: Option<SourceToken>,
    /// Accepts an address that is not encrypted, even without a checksum.
    pub insecure: bool,
}

/// Expected digests: one for all platforms, or one for each platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Digest for all platforms.
    One(Sha256Digest),
    /// Digest for each platform. A missing platform is an error.
    ByPlatform(BTreeMap<Platform, Sha256Digest>),
}

impl Checksum {
    /// Returns the expected digest for a platform, or `None` if none is declared for it.
    pub fn for_platform(&self, platform: Option<Platform>) -> Option<Sha256Digest> {
        match self {
            Self::One(digest) => Some(*digest),
            Self::ByPlatform(digests) => platform.and_then(|platform| digests.get(&platform).copied()),
        }
    }
}

/// Token for a source. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceToken(String);

impl SourceToken {
    /// Creates a token. Returns `None` for an empty text.
    pub fn new(token: String) -> Option<Self> {
        (!token.is_empty()).then_some(Self(token))
    }

    /// Returns the text of the token.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SourceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{Arch, Os};

    #[test]
    fn checksum_for_other_platforms_does_not_apply() {
        let digest = Sha256Digest::from_bytes([7; 32]);
        let linux = Platform { os: Os::Linux, arch: Arch::Amd64 };
        let darwin = Platform { os: Os::Darwin, arch: Arch::Arm64 };
        let map = Checksum::ByPlatform([(linux, digest)].into());
        assert_eq!(map.for_platform(Some(linux)), Some(digest));
        assert_eq!(map.for_platform(Some(darwin)), None);
        assert_eq!(map.for_platform(None), None);
        assert_eq!(Checksum::One(digest).for_platform(None), Some(digest));
    }

    #[test]
    fn debug_output_of_a_token_is_redacted() {
        assert_eq!(SourceToken::new(String::new()), None);
        let token = SourceToken::new("hunter2".into());
        assert_eq!(format!("{token:?}"), "Some([secret])");
    }

    #[test]
    fn secrets_of_a_source_are_its_token_and_url_credentials() {
        let source = GitSource {
            url: "https://me:word@git.example/a.git".into(),
            revision: "main".into(),
            subdir: PathBuf::new(),
            platform: None,
            checksum: None,
            token: SourceToken::new("t0ken".into()),
            insecure: false,
        };
        assert_eq!(PluginSource::Git(source).secrets(), ["t0ken", "me", "word"]);
        let local = LocalSource { path: "/a@b".into(), checksum: None };
        assert_eq!(PluginSource::Local(local).secrets(), [""; 0]);
    }

    #[test]
    fn address_is_unprotected_without_encryption_checksum_and_consent() {
        let digest = Checksum::One(Sha256Digest::from_bytes([7; 32]));
        let git = |url: &str, checksum: Option<&Checksum>, insecure| {
            PluginSource::Git(GitSource {
                url: url.into(),
                revision: "main".into(),
                subdir: PathBuf::new(),
                platform: None,
                checksum: checksum.cloned(),
                token: None,
                insecure,
            })
        };
        let release = |api_url: Option<&str>, checksum: Option<&Checksum>, insecure| {
            PluginSource::GithubRelease(GithubReleaseSource {
                checksum: checksum.cloned(),
                api_url: api_url.map(str::to_owned),
                insecure,
                ..GithubReleaseSource::new("acme/reef".into(), "v1.0.0".into())
            })
        };
        let plain = "http://git.example/a";
        assert_eq!(git(plain, None, false).unprotected_address(), Some(plain));
        assert_eq!(release(Some(plain), None, false).unprotected_address(), Some(plain));
        for protected in [
            git(plain, Some(&digest), false),
            git(plain, None, true),
            git("https://git.example/a", None, false),
            git("http://localhost:8/a", None, false),
            release(Some(plain), Some(&digest), false),
            release(Some(plain), None, true),
            release(Some("http://127.0.0.1:8/api"), None, false),
            release(None, None, false),
            PluginSource::Local(LocalSource { path: "http://a".into(), checksum: None }),
        ] {
            assert_eq!(protected.unprotected_address(), None, "{protected:?}");
        }
    }

    #[test]
    fn git_revision_is_a_version_only_if_semantic() {
        let git = |revision: &str| {
            PluginSource::Git(GitSource {
                url: "https://git.example/a.git".into(),
                revision: revision.into(),
                subdir: PathBuf::new(),
                platform: None,
                checksum: None,
                token: None,
                insecure: false,
            })
        };
        assert_eq!(git("v1.2.3").version().unwrap().to_string(), "1.2.3");
        assert_eq!(git("main").version(), None);
    }
}
