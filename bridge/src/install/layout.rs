//! Layout of a plugin's folder: one executable with the name of the plugin, or a `PulumiPlugin.yaml` and its files.

use std::path::{Path, PathBuf};

use super::InstallError;
use crate::fs::read_if_exists;
use crate::plugin::{PluginConfig, PluginManifest, PluginVersion, VersionRange};

/// Returns the accepted names of a plugin's executable: the name of the plugin, then the name of its package.
pub(super) fn executables(plugin: &PluginConfig) -> [String; 2] {
    [plugin.name.executable(), plugin.package.executable()]
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
pub(super) fn locate(executables: &[String; 2], folder: &Path) -> Result<Located, InstallError> {
    if folder.join(PluginManifest::FILE_NAME).is_file() {
        return Ok(Located::Manifest);
    }
    let found = executables.iter().map(|name| folder.join(name)).find(|executable| executable.is_file());
    let none = || InstallError::NoPlugin { folder: folder.to_owned(), executable: executables[0].clone() };
    found.map(Located::Executable).ok_or_else(none)
}

/// Reads the manifest of a folder. Returns an error if it requires another version of Pulumi.
pub(super) fn read_manifest(folder: &Path) -> Result<PluginManifest, InstallError> {
    let path = folder.join(PluginManifest::FILE_NAME);
    let text = read_if_exists(&path)?.unwrap_or_default();
    let manifest = PluginManifest::parse(&String::from_utf8_lossy(&text));
    let manifest = manifest.map_err(|source| InstallError::Manifest { path, source })?;
    if let Some(range) = &manifest.required_pulumi_version {
        let required: VersionRange = range.parse().map_err(InstallError::RequiredVersion)?;
        if !required.matches(&PluginVersion::of_pulumi()) {
            return Err(InstallError::RequiresPulumi { range: range.clone() });
        }
    }
    Ok(manifest)
}
