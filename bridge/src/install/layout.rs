//! Layout of a plugin's folder: one executable with the name of the plugin, or a `PulumiPlugin.yaml` and its files.

use std::path::{Path, PathBuf};

use super::InstallError;
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, read_if_exists, utf8};
use crate::plugin::{PluginManifest, PluginNames, PluginVersion, VersionRange};

/// Accepted names of a plugin's executable.
#[derive(Clone, Debug)]
pub(super) struct ExecutableNames {
    /// Name derived from the name of the plugin. Takes precedence.
    pub(super) of_plugin: String,
    /// Name derived from the package of the plugin.
    pub(super) of_package: String,
}

impl ExecutableNames {
    /// Returns the accepted names for a plugin.
    pub(super) fn new(names: PluginNames<'_>) -> Self {
        Self { of_plugin: names.plugin.executable(), of_package: names.package.executable() }
    }

    /// Returns the names in the order of their precedence.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        [self.of_plugin.as_str(), self.of_package.as_str()].into_iter()
    }
}

/// Kind of plugin that a folder contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// Executable in the folder.
    Executable(PathBuf),
    /// Plugin with a manifest that names its runtime.
    Manifest,
}

/// Finds the manifest of a folder, or else its executable.
pub(super) fn locate(names: &ExecutableNames, folder: &Path) -> Result<Located, InstallError> {
    if folder.join(PluginManifest::FILE_NAME).is_file() {
        return Ok(Located::Manifest);
    }
    let found = names.iter().map(|name| folder.join(name)).find(|executable| executable.is_file());
    let none = || InstallError::NoPlugin { folder: folder.to_owned(), executable: names.of_plugin.clone() };
    found.map(Located::Executable).ok_or_else(none)
}

/// Reads the manifest of a folder. Returns an error if it requires another version of Pulumi.
pub(super) fn read_manifest(folder: &Path) -> Result<PluginManifest, InstallError> {
    let path = folder.join(PluginManifest::FILE_NAME);
    let content = read_if_exists(&path, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let text = utf8(content).map_err(FileError::of("read", &path))?;
    let manifest = PluginManifest::parse(&text);
    let manifest = manifest.map_err(|source| InstallError::Manifest { path, source })?;
    if let Some(range) = &manifest.required_pulumi_version {
        let required: VersionRange = range.parse().map_err(InstallError::RequiredVersion)?;
        if !required.matches(&PluginVersion::of_pulumi()) {
            return Err(InstallError::RequiresPulumi { range: range.clone() });
        }
    }
    Ok(manifest)
}
