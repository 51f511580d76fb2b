//! Where a package comes from, and the proof that it is what was declared.
//!
//! Enters: a declared plugin. Leaves: a [`VerifiedPackage`], the only thing that can be launched, or an error; nothing of
//! the package has been executed before its bytes were checked. Never here: handshakes, processes that go on living.

mod local;
mod runtime;
mod verify;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::fs::PathError;
use crate::plugin::{ManifestError, Platform, PluginConfig, PluginName, PluginValueError, PluginVersion, Sha256Digest};

pub use local::LocalPackages;

use verify::Checked;

/// A place that packages come from: this machine, releases, git repositories.
#[async_trait]
pub trait PackageSource: Send + Sync + fmt::Debug {
    /// Gets the package of a declared plugin and checks it.
    ///
    /// # Errors
    /// [`SourceError`]; nothing of the package has been executed then.
    async fn resolve(&self, plugin: &PluginConfig) -> Result<VerifiedPackage, SourceError>;
}

/// A package that is what was declared, and how it is started.
///
/// # Invariants
/// Made only where its bytes were checked. If a checksum was declared, what starts is a private copy made while the
/// digest was computed: whoever changes the original afterwards changes nothing. The copy goes away with this value.
#[derive(Debug)]
pub struct VerifiedPackage {
    name: PluginName,
    version: Option<PluginVersion>,
    origin: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    checked: Checked,
    /// A folder with what was built from the checked files.
    _built: Option<tempfile::TempDir>,
}

impl VerifiedPackage {
    /// Name of the plugin.
    pub fn name(&self) -> &PluginName {
        &self.name
    }

    /// The version its source declares; what the plugin itself says may differ.
    pub fn version(&self) -> Option<&PluginVersion> {
        self.version.as_ref()
    }

    /// The digest that was declared and found, if one was declared.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.checked.digest()
    }

    /// Where the user finds it: for messages.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The program to start: the plugin itself, or what runs it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What comes before the engine's address on its command line.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The folder the plugin's own files are in.
    pub fn folder(&self) -> &Path {
        self.checked.folder()
    }
}

/// The environment this program was started with, as far as it was handed in. Libraries read no other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostEnvironment(BTreeMap<OsString, OsString>);

impl HostEnvironment {
    /// Takes variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Those of the named variables that are set.
    pub fn select<'a>(
        &'a self,
        names: impl IntoIterator<Item = &'a str, IntoIter: 'a>,
    ) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        names.into_iter().filter_map(|name| Some((name.into(), self.get(name)?.to_owned())))
    }

    /// The variables whose names start like this.
    pub fn starting_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        let starts = move |name: &OsString| name.to_str().is_some_and(|name| name.starts_with(prefix));
        self.0.iter().filter(move |(name, _)| starts(name)).map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The first file of that name in the folders of PATH.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let folders = self.get("PATH")?;
        std::env::split_paths(folders)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    }
}

impl fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostEnvironment").field(&self.0.keys()).finish()
    }
}

/// Why there is no package.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or folder could not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// There is nothing where the plugin should be.
    #[error("{} holds neither {executable} nor PulumiPlugin.yaml", folder.display())]
    NoPlugin {
        /// The folder.
        folder: PathBuf,
        /// The name the executable should have.
        executable: String,
    },
    /// The bytes are not those that were declared.
    #[error("checksum mismatch: expected {expected}, got {found}")]
    ChecksumMismatch {
        /// The declared digest.
        expected: Sha256Digest,
        /// The digest of what is there.
        found: Sha256Digest,
    },
    /// Digests were declared, but none for this platform.
    #[error("no checksum is declared for platform {}", platform.map_or("of this machine".to_owned(), |platform| platform.to_string()))]
    NoChecksum {
        /// The platform.
        platform: Option<Platform>,
    },
    /// Something in a folder that a checksum cannot cover.
    #[error("{} cannot be covered by a checksum: {reason}", path.display())]
    Uncoverable {
        /// The path.
        path: PathBuf,
        /// What it is.
        reason: &'static str,
    },
    /// The manifest cannot be used.
    #[error("cannot use {}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// The manifest wants another engine.
    #[error("it needs Pulumi {range}, and this is like Pulumi {}", PluginVersion::of_pulumi())]
    RequiresPulumi {
        /// The versions it works with.
        range: String,
    },
    /// The versions of Pulumi that the manifest wants cannot be read.
    #[error("cannot use requiredPulumiVersion")]
    RequiredVersion(#[source] PluginValueError),
    /// Something the plugin needs is not there.
    #[error("{what} is missing. To get it: {command}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do or to run.
        command: String,
    },
    /// The plugin could not be built.
    #[error("cannot build the plugin: {command} failed ({status}): {output}")]
    Build {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// The last lines it wrote.
        output: String,
    },
    /// The command that builds the plugin could not be started.
    #[error(transparent)]
    Spawn(#[from] crate::process::SpawnError),
    /// Plugins of this kind of source cannot be had here.
    #[error("source type {kind:?} is not supported here")]
    Unsupported {
        /// The word in `source.type`.
        kind: &'static str,
    },
}
