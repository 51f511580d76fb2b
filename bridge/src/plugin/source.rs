//! `source` of a plugin in server.yaml: a kind, and the settings of that kind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, iter};

use super::{AgeRule, Platform, PluginVersion, PolicyAge, Sha256Digest, WantedVersion, is_plain_text};

/// Kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// [`LocalSource`].
    Local,
    /// [`GithubReleaseSource`].
    GithubRelease,
    /// [`GitSource`].
    Git,
    /// [`InstalledSource`].
    Installed,
}

impl SourceKind {
    /// Returns all kinds, in the order in which messages list them.
    pub fn all() -> impl Iterator<Item = Self> {
        iter::successors(Some(Self::Local), |kind| kind.next())
    }

    /// Returns the kind that is listed after this one. A match, so that the compiler asks for a new
    /// kind; the one that was the last must then name it, or it is not listed.
    fn next(self) -> Option<Self> {
        match self {
            Self::Local => Some(Self::GithubRelease),
            Self::GithubRelease => Some(Self::Git),
            Self::Git => Some(Self::Installed),
            Self::Installed => None,
        }
    }

    /// Returns the value of `source.type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::GithubRelease => "github-release",
            Self::Git => "git",
            Self::Installed => "installed",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// Plugin in a folder of plugins of this machine.
    Installed(InstalledSource),
}

impl PluginSource {
    /// The kind of the source.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Local(_) => SourceKind::Local,
            Self::GithubRelease(_) => SourceKind::GithubRelease,
            Self::Git(_) => SourceKind::Git,
            Self::Installed(_) => SourceKind::Installed,
        }
    }

    /// Returns the wanted version. `None` for a `local` source, and for an installed plugin in any version.
    pub fn wanted(&self) -> Option<&WantedVersion> {
        match self {
            Self::Local(_) => None,
            Self::GithubRelease(release) => Some(&release.version),
            Self::Git(git) => Some(&git.version),
            Self::Installed(installed) => installed.version.as_ref(),
        }
    }

    /// Returns the version that the declaration states, without a question to the source: see [`WantedVersion::stated`]. That of a
    /// range is known once it is resolved.
    pub fn stated_version(&self) -> Option<PluginVersion> {
        self.wanted()?.stated()
    }

    /// Returns the texts that must be redacted: the token, and the user and password of an address.
    pub fn secrets(&self) -> Vec<&str> {
        let (address, token) = match self {
            Self::Local(_) | Self::Installed(_) => return Vec::new(),
            Self::GithubRelease(release) => (&release.repository, &release.token),
            Self::Git(git) => (&git.url, &git.token),
        };
        let authority = address.split_once("://").map_or("", |(_, rest)| rest);
        let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
        let token = token.as_ref().map(SourceToken::expose);
        token.into_iter().chain(login.split(':')).filter(|text| !text.is_empty()).collect()
    }

    /// Returns the platform for which it is declared. `None` is the current platform.
    pub fn platform(&self) -> Option<Platform> {
        match self {
            Self::Local(_) | Self::Installed(_) => None,
            Self::GithubRelease(release) => release.platform,
            Self::Git(git) => git.platform,
        }
    }

    /// Returns the source for another platform; the same one, if its files are on this machine.
    pub fn for_platform(&self, platform: Platform) -> Self {
        let mut source = self.clone();
        match &mut source {
            Self::Local(_) | Self::Installed(_) => {}
            Self::GithubRelease(release) => release.platform = Some(platform),
            Self::Git(git) => git.platform = Some(platform),
        }
        source
    }

    /// Returns the declared build of its files.
    pub fn build(&self) -> Option<&Build> {
        match self {
            Self::Local(local) => local.build.as_ref(),
            Self::GithubRelease(release) => release.build.as_ref(),
            Self::Git(git) => git.build.as_ref(),
            Self::Installed(_) => None,
        }
    }

    /// Returns the declared checksum.
    pub fn checksum(&self) -> Option<&Checksum> {
        match self {
            Self::Local(local) => local.checksum.as_ref(),
            Self::GithubRelease(release) => release.checksum.as_ref(),
            Self::Git(git) => git.checksum.as_ref(),
            Self::Installed(installed) => installed.checksum.as_ref(),
        }
    }
}

/// Plugin on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSource {
    /// File, or folder with `pulumi-resource-<name>` or `PulumiPlugin.yaml`. A relative path starts at the root of the
    /// repository.
    pub path: PathBuf,
    /// Digest of the executable, or of the whole folder if it has a `PulumiPlugin.yaml` or is built.
    pub checksum: Option<Checksum>,
    /// Build of the files, outside of the folder. `None` if they are ready to run.
    pub build: Option<Build>,
}

impl LocalSource {
    /// Creates the source of a file or folder that is ready to run, without a checksum.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), checksum: None, build: None }
    }
}

/// Plugin published as an asset of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubReleaseSource {
    /// Repository as `owner/name` or as an https URL.
    pub repository: String,
    /// Wanted release.
    pub version: WantedVersion,
    /// Age of a release from which on ranges and `latest` accept it, where the server tells the time of its publication.
    pub minimum_age: Duration,
    /// Age that the policy demands besides.
    pub policy_age: Option<PolicyAge>,
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
    /// True if `api_url` is that of a mirror: the lock file knows the source by its repository.
    pub is_mirror: bool,
    /// Accepts an address that is not encrypted, even without a checksum.
    pub insecure: bool,
    /// Refuses an asset without a declared checksum if the server publishes no digest of it.
    pub requires_digest: bool,
    /// Build of the files of the asset. `None` if they are ready to run.
    pub build: Option<Build>,
}

impl GithubReleaseSource {
    /// Default of [`minimum_age`](Self::minimum_age).
    pub const MINIMUM_AGE: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates the source of a release with the default settings, for the current platform.
    pub fn new(repository: String, version: WantedVersion) -> Self {
        Self {
            repository,
            version,
            minimum_age: Self::MINIMUM_AGE,
            policy_age: None,
            platform: None,
            checksum: None,
            asset: None,
            token: None,
            api_url: None,
            is_mirror: false,
            insecure: false,
            requires_digest: false,
            build: None,
        }
    }

    /// Returns the age from which on a release is accepted, the higher one of the declaration and the policy, and which of them has it.
    pub fn age_rule(&self) -> (Duration, AgeRule) {
        match self.policy_age {
            Some(policy) if policy.minimum > self.minimum_age => (policy.minimum, AgeRule::Policy),
            _ => (self.minimum_age, AgeRule::Declaration),
        }
    }

    /// Returns the address of the API if the asset could be replaced on its way: the address is not encrypted, no checksum
    /// is declared, and `insecure` is not set.
    pub fn unprotected_address(&self) -> Option<&str> {
        let is_protected = self.insecure || self.checksum.is_some();
        self.api_url.as_deref().filter(|url| !is_protected && is_plain_text(url))
    }
}

/// Plugin in a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    /// URL or path that git accepts.
    pub url: String,
    /// Wanted tag, branch or commit, or a range of tags.
    pub version: WantedVersion,
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
    /// Build of the files of the repository. `None` if they are ready to run.
    pub build: Option<Build>,
}

impl GitSource {
    /// Returns the address of the repository if its files could be replaced on their way: the address is not encrypted, no
    /// checksum is declared, and `insecure` is not set.
    pub fn unprotected_address(&self) -> Option<&str> {
        let is_protected = self.insecure || self.checksum.is_some();
        Some(self.url.as_str()).filter(|url| !is_protected && is_plain_text(url))
    }
}

/// Plugin in a folder of plugins of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledSource {
    /// `[HOST/]OWNER/NAME`, below a folder of plugins.
    pub path: String,
    /// Wanted version. `None` is the highest one.
    pub version: Option<WantedVersion>,
    /// Digest as that of a [`LocalSource`], or of the asset.
    pub checksum: Option<Checksum>,
}

/// Build of a plugin whose files are not ready to run (docs/plugins.md#builds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// Build of the runtime that the plugin's `PulumiPlugin.yaml` names: dependencies are installed, a program in Go is compiled.
    ByRuntime,
    /// Command of a shell, run in the folder of the plugin.
    Command(String),
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
            version: WantedVersion::Named("main".into()),
            subdir: PathBuf::new(),
            platform: None,
            checksum: None,
            token: SourceToken::new("t0ken".into()),
            insecure: false,
            build: None,
        };
        assert_eq!(PluginSource::Git(source).secrets(), ["t0ken", "me", "word"]);
        let local = LocalSource::new("/a@b");
        assert_eq!(PluginSource::Local(local).secrets(), [""; 0]);
    }

    #[test]
    fn address_is_unprotected_without_encryption_checksum_and_consent() {
        let digest = Checksum::One(Sha256Digest::from_bytes([7; 32]));
        let git = |url: &str, checksum: Option<&Checksum>, insecure| GitSource {
            url: url.into(),
            version: WantedVersion::Named("main".into()),
            subdir: PathBuf::new(),
            platform: None,
            checksum: checksum.cloned(),
            token: None,
            insecure,
            build: None,
        };
        let release = |api_url: Option<&str>, checksum: Option<&Checksum>, insecure| GithubReleaseSource {
            checksum: checksum.cloned(),
            api_url: api_url.map(str::to_owned),
            insecure,
            ..GithubReleaseSource::new("acme/reef".into(), WantedVersion::Named("v1.0.0".into()))
        };
        let plain = "http://git.example/a";
        assert_eq!(git(plain, None, false).unprotected_address(), Some(plain));
        assert_eq!(release(Some(plain), None, false).unprotected_address(), Some(plain));
        for protected in [
            git(plain, Some(&digest), false),
            git(plain, None, true),
            git("https://git.example/a", None, false),
            git("http://localhost:8/a", None, false),
        ] {
            assert_eq!(protected.unprotected_address(), None, "{protected:?}");
        }
        for protected in [
            release(Some(plain), Some(&digest), false),
            release(Some(plain), None, true),
            release(Some("http://127.0.0.1:8/api"), None, false),
            release(None, None, false),
        ] {
            assert_eq!(protected.unprotected_address(), None, "{protected:?}");
        }
    }

    #[test]
    fn kinds_are_listed_once_each() {
        let names: Vec<&str> = SourceKind::all().map(SourceKind::as_str).collect();
        assert_eq!(names, ["local", "github-release", "git", "installed"]);
    }
}
