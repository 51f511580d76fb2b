//! Resolved packages, the only values that can be launched. All but local packages without a checksum are verified.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::checked_files::CheckedFiles;
use super::package_use::{BuiltProgram, PackageUse};
use crate::plugin::{PluginName, PluginVersion, Sha256Digest};

/// Package whose files were verified, or a local package without a checksum, and the command that starts it.
///
/// # Invariants
/// A local package without a checksum is not verified, and runs in its own folder. Every other package is verified
/// before this value is created, and its files are in a folder that no other program writes to: in the cache of
/// packages, read again for this value; or, for a local package with a checksum, in a private copy that was made while
/// the digest was computed and is removed when this value is dropped.
#[derive(Debug)]
pub struct VerifiedPackage {
    pub(super) name: PluginName,
    pub(super) version: Option<PluginVersion>,
    pub(super) revision: Option<String>,
    pub(super) digest: Option<Sha256Digest>,
    pub(super) origin: PathBuf,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) checked: CheckedFiles,
    /// Use of the package in the cache, which is not removed meanwhile.
    pub(super) _package_use: Option<PackageUse>,
    /// Program that was built from the verified files.
    pub(super) _built: Option<BuiltProgram>,
}

impl VerifiedPackage {
    /// The name of the plugin.
    pub fn name(&self) -> &PluginName {
        &self.name
    }

    /// Returns the version that the source declares. The plugin may report another one.
    pub fn version(&self) -> Option<&PluginVersion> {
        self.version.as_ref()
    }

    /// Returns the tag of the release or the id of the commit. `None` for a local package.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// Returns the digest that pins the package, in the meaning of `checksum`. `None` for a local package without a
    /// declared checksum, whose files are not hashed.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest
    }

    /// Returns what identifies the package: version, revision and digest, as far as its source tells them.
    pub fn identity(&self) -> String {
        let parts = [
            self.version().map(ToString::to_string),
            self.revision().map(str::to_owned),
            self.digest().map(|digest| digest.to_string()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Returns the path of the package, for messages.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// Returns the path of the program for messages: in the declared folder, not in a private copy of it.
    pub fn program_origin(&self) -> PathBuf {
        match self.program.strip_prefix(self.checked.folder()) {
            // A program that was built, or an interpreter outside of the package.
            Err(_) => self.program.clone(),
            Ok(_) if self.program.starts_with(&self.origin) => self.program.clone(),
            Ok(relative) if self.origin.is_dir() => self.origin.join(relative),
            Ok(_) => self.origin.clone(),
        }
    }

    /// Returns true if the package comes from another machine or a repository, and lies in the cache.
    pub fn is_fetched(&self) -> bool {
        self.revision.is_some()
    }

    /// Returns the program to start: the plugin itself, or its interpreter.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the arguments that precede the engine's address on the command line.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Returns the folder with the files of the plugin.
    pub fn folder(&self) -> &Path {
        self.checked.folder()
    }
}
