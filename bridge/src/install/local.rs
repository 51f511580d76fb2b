//! Packages on this machine: an executable, or a folder that holds one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::fetched::blocking;
use super::runtime::{Home, Toolbox};
use super::verify::{Check, Checked};
use super::{FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::{PathError, read_if_there};
use crate::plugin::{Checksum, Platform, PluginConfig, PluginManifest, PluginSource, PluginVersion, VersionRange};
use crate::process::{HostEnvironment, Spawner};

/// Packages on this machine.
#[derive(Clone, Debug)]
pub struct LocalPackages {
    /// Where relative paths start: the root of the repository.
    pub root: PathBuf,
    /// Where private copies and built programs go; programs must be allowed to run there. Created when needed.
    pub work: PathBuf,
    /// Where interpreters are looked for.
    pub environment: HostEnvironment,
    /// What runs builds.
    pub spawner: Spawner,
}

#[async_trait]
impl PackageSource for LocalPackages {
    async fn resolve(&self, plugin: &PluginConfig, _: &dyn FetchEvents) -> Result<VerifiedPackage, InstallError> {
        let PluginSource::Local(source) = &plugin.source else {
            return Err(InstallError::Unsupported { kind: plugin.source.kind() });
        };
        let path = self.root.join(&source.path);
        let origin = fs::canonicalize(&path).map_err(PathError::of("find plugin", &path))?;
        let (found, manifest) = {
            let (executables, origin, work) = (executables(plugin), origin.clone(), self.work.clone());
            let checksum = source.checksum.clone();
            blocking(move || find(&executables, &origin, checksum.as_ref(), &work)).await?
        };
        let toolbox = Toolbox { environment: &self.environment, spawner: &self.spawner, work: &self.work };
        let (program, arguments, built) = match manifest {
            None => (found.path().to_owned(), Vec::new(), None),
            Some(manifest) => {
                toolbox.start(&executables(plugin), &manifest, found.path(), Home::Folder(&origin)).await?
            }
        };
        Ok(VerifiedPackage {
            name: plugin.name.clone(),
            version: plugin.source.version(),
            revision: None,
            digest: found.digest(),
            origin,
            program,
            arguments,
            checked: found,
            _built: built,
        })
    }
}

/// The names a plugin's executable may have: after the plugin, or after the package where the plugin is one of several
/// configurations of it.
pub(super) fn executables(plugin: &PluginConfig) -> [String; 2] {
    [plugin.name.executable(), plugin.package.executable()]
}

/// Finds what is at the path, and checks it. A folder with an executable of the right name is that executable, unless it
/// has a manifest.
fn find(
    executables: &[String; 2],
    path: &Path,
    checksum: Option<&Checksum>,
    work: &Path,
) -> Result<(Checked, Option<PluginManifest>), InstallError> {
    let check = Check { checksum, platform: Platform::current(), work };
    if !path.is_dir() {
        return Ok((check.executable(path, None)?, None));
    }
    match locate(executables, path)? {
        Located::Executable(executable) => Ok((check.executable(&executable, Some(path))?, None)),
        Located::Manifest => {
            let folder = check.folder(path)?;
            // That of the copy: it is the one that was checked.
            let manifest = read_manifest(folder.path())?;
            Ok((folder, Some(manifest)))
        }
    }
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
