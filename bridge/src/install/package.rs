//! The one value that can be launched: a package whose bytes were checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::verify::Checked;
use crate::fs::Scratch;
use crate::plugin::{PluginName, PluginVersion, Sha256Digest};

/// A package that is what was declared, and how it is started.
///
/// # Invariants
/// Made only where its bytes were checked. What starts is in a folder that nobody but us writes to: in the cache of
/// packages, read again for this value; or, where a local one has a checksum, a private copy made while the digest was
/// computed, which goes away with this value. A local one without a checksum runs where its owner keeps it.
#[derive(Debug)]
pub struct VerifiedPackage {
    pub(super) name: PluginName,
    pub(super) version: Option<PluginVersion>,
    pub(super) revision: Option<String>,
    pub(super) digest: Option<Sha256Digest>,
    pub(super) origin: PathBuf,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) checked: Checked,
    /// A folder with what was built from the checked files.
    pub(super) _built: Option<Scratch>,
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

    /// What was fetched: the tag of a release, the id of a commit. `None` where nothing was.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// The digest that pins it, as `checksum` takes it. `None` for a local one without a declared checksum, which is not
    /// read before it runs.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest
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
