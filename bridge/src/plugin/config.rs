//! One entry of `plugins:`, placeholders resolved (Simple Container, section 2.5; `example/README.md` for what was added).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pulumi_proto::property::PropertyMap;

use super::{Platform, PluginName, PluginVersion, Sha256Digest};

/// A declared plugin.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    /// Its name, unique in the stack; also the name of its provider resource.
    pub name: PluginName,
    /// The Pulumi package it serves and the prefix of its resource types. Two plugins of one package are two
    /// configurations of one provider.
    pub package: PluginName,
    /// Whether it is resolved and started at all.
    pub enabled: bool,
    /// Where it comes from.
    pub source: PluginSource,
    /// What it is told once: inputs of its provider resource, secrets marked.
    pub config: PropertyMap,
    /// Names of environment variables handed to its process beside the few that every plugin gets.
    pub pass_env: Vec<String>,
    /// What Initialize receives of the stack's secrets.
    pub init_secrets: InitSecrets,
    /// How long it may take until it says its port.
    pub start_timeout: Duration,
}

impl PluginConfig {
    /// How long a plugin may take until it says its port, if nothing else is declared.
    pub const START_TIMEOUT: Duration = Duration::from_secs(60);

    /// An enabled plugin with nothing declared but its name and source.
    pub fn new(name: PluginName, source: PluginSource) -> Self {
        Self {
            package: name.clone(),
            name,
            enabled: true,
            source,
            config: PropertyMap::new(),
            pass_env: Vec::new(),
            init_secrets: InitSecrets::default(),
            start_timeout: Self::START_TIMEOUT,
        }
    }
}

/// Which secrets of the stack a plugin's Initialize receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitSecrets {
    /// Those its `config` refers to.
    #[default]
    Referenced,
    /// All of them.
    All,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// A file or a folder on this machine.
    Local(LocalSource),
    /// An asset of a release on GitHub or GitHub Enterprise.
    GithubRelease(GithubReleaseSource),
    /// A git repository.
    Git(GitSource),
}

impl PluginSource {
    /// The word for it in `source.type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::GithubRelease(_) => "github-release",
            Self::Git(_) => "git",
        }
    }

    /// The version it declares, if that is a semantic version: a `local` source has none, and a tag or git revision
    /// may be anything.
    pub fn version(&self) -> Option<PluginVersion> {
        match self {
            Self::Local(_) => None,
            Self::GithubRelease(release) => release.version.parse().ok(),
            Self::Git(git) => git.revision.parse().ok(),
        }
    }

    /// What authenticates us at the place it names.
    fn token(&self) -> Option<&SourceToken> {
        match self {
            Self::Local(_) => None,
            Self::GithubRelease(release) => release.token.as_ref(),
            Self::Git(git) => git.token.as_ref(),
        }
    }

    /// What must not be seen: the token, and what stands before the host in an address.
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

    /// The digests it declares.
    pub fn checksum(&self) -> Option<&Checksum> {
        match self {
            Self::Local(local) => local.checksum.as_ref(),
            Self::GithubRelease(release) => release.checksum.as_ref(),
            Self::Git(git) => git.checksum.as_ref(),
        }
    }
}

/// A plugin on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSource {
    /// A file, or a folder with `pulumi-resource-<name>` or `PulumiPlugin.yaml`. Relative paths start at the root of
    /// the repository.
    pub path: PathBuf,
    /// The digest of the executable, or of the whole folder where it has a `PulumiPlugin.yaml`.
    pub checksum: Option<Checksum>,
}

/// A plugin published as an asset of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubReleaseSource {
    /// `owner/name`, or an https URL of the repository.
    pub repository: String,
    /// The tag of the release, or `latest` (only without a checksum).
    pub version: String,
    /// The platform of the asset; `None` is the one we run on.
    pub platform: Option<Platform>,
    /// The digest of the asset or of the executable in it.
    pub checksum: Option<Checksum>,
    /// Name of the asset, if not Pulumi's, with `{version}`, `{os}` and `{arch}` to be filled in.
    pub asset: Option<String>,
    /// What authenticates the API and the download; never sent to another host.
    pub token: Option<SourceToken>,
    /// Base URL of the API, if it does not follow from `repository`.
    pub api_url: Option<String>,
}

/// A plugin in a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    /// Any URL that git takes.
    pub url: String,
    /// Tag, branch or commit.
    pub revision: String,
    /// The folder inside the tree; empty is its root.
    pub subdir: PathBuf,
    /// The platform of a prebuilt file; `None` is the one we run on.
    pub platform: Option<Platform>,
    /// The digest of the executable, or of the whole folder where it has a `PulumiPlugin.yaml`.
    pub checksum: Option<Checksum>,
    /// What authenticates the clone; never sent to another host.
    pub token: Option<SourceToken>,
}

/// The digests that are acceptable: one for everybody, or one for each platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The same bytes on every platform.
    One(Sha256Digest),
    /// Other bytes on each. A platform that is missing here is refused, never skipped.
    ByPlatform(BTreeMap<Platform, Sha256Digest>),
}

impl Checksum {
    /// The digest expected on a platform; `None` where there is none for it.
    pub fn for_platform(&self, platform: Option<Platform>) -> Option<Sha256Digest> {
        match self {
            Self::One(digest) => Some(*digest),
            Self::ByPlatform(digests) => platform.and_then(|platform| digests.get(&platform).copied()),
        }
    }
}

/// A token for a source. Does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceToken(String);

impl SourceToken {
    /// Keeps a token; an empty one is none.
    pub fn new(token: String) -> Option<Self> {
        (!token.is_empty()).then_some(Self(token))
    }

    /// The token itself, for the request that needs it.
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
    fn a_platform_without_a_digest_has_none_even_if_others_do() {
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
    fn a_token_never_shows_itself_and_an_empty_one_is_none() {
        assert_eq!(SourceToken::new(String::new()), None);
        let token = SourceToken::new("hunter2".into());
        assert_eq!(format!("{token:?}"), "Some([secret])");
    }

    #[test]
    fn what_must_not_be_seen_of_a_source_is_its_token_and_its_login() {
        let source = GitSource {
            url: "https://me:word@git.example/a.git".into(),
            revision: "main".into(),
            subdir: PathBuf::new(),
            platform: None,
            checksum: None,
            token: SourceToken::new("t0ken".into()),
        };
        assert_eq!(PluginSource::Git(source).secrets(), ["t0ken", "me", "word"]);
        let local = LocalSource { path: "/a@b".into(), checksum: None };
        assert_eq!(PluginSource::Local(local).secrets(), [""; 0]);
    }

    #[test]
    fn only_a_semantic_revision_is_a_version() {
        let git = |revision: &str| {
            PluginSource::Git(GitSource {
                url: "https://git.example/a.git".into(),
                revision: revision.into(),
                subdir: PathBuf::new(),
                platform: None,
                checksum: None,
                token: None,
            })
        };
        assert_eq!(git("v1.2.3").version().unwrap().to_string(), "1.2.3");
        assert_eq!(git("main").version(), None);
    }
}
