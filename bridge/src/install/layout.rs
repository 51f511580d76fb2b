//! What a folder with a plugin holds: one executable of the right name, or all of it with a `PulumiPlugin.yaml`.

use std::path::{Path, PathBuf};

use super::InstallError;
use crate::fs::read_if_there;
use crate::plugin::{PluginConfig, PluginManifest, PluginVersion, VersionRange};

/// The names a plugin's executable may have: after the plugin, or after the package where the plugin is one of several
/// configurations of it.
pub(super) fn executables(plugin: &PluginConfig) -> [String; 2] {
    [plugin.name.executable(), plugin.package.executable()]
}

/// What a folder is as a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// A program in it.
    Executable(PathBuf),
    /// All of it, run as its manifest says.
    Manifest,
}

/// What a folder is as a plugin: that with a manifest is a whole, in any other there is a program of the right name.
pub(super) fn locate(executables: &[String; 2], folder: &Path) -> Result<Located, InstallError> {
    if folder.join(PluginManifest::FILE_NAME).is_file() {
        return Ok(Located::Manifest);
    }
    let found = executables.iter().map(|name| folder.join(name)).find(|executable| executable.is_file());
    let none = || InstallError::NoPlugin { folder: folder.to_owned(), executable: executables[0].clone() };
    found.map(Located::Executable).ok_or_else(none)
}

/// Reads the manifest of a folder, and refuses one that needs another version of Pulumi.
pub(super) fn read_manifest(folder: &Path) -> Result<PluginManifest, InstallError> {
    let path = folder.join(PluginManifest::FILE_NAME);
    let text = read_if_there(&path)?.unwrap_or_default();
    let manifest = PluginManifest::parse(&String::from_utf8_lossy(&text));
    let manifest = manifest.map_err(|source| InstallError::Manifest { path, source })?;
    if let Some(range) = &manifest.required_pulumi_version {
        let wanted: VersionRange = range.parse().map_err(InstallError::RequiredVersion)?;
        if !wanted.matches(&PluginVersion::of_pulumi()) {
            return Err(InstallError::RequiresPulumi { range: range.clone() });
        }
    }
    Ok(manifest)
}
