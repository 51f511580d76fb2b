//! Packages on this machine: an executable, or a folder that holds one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::runtime::Toolbox;
use super::verify::{Check, Checked};
use super::{HostEnvironment, PackageSource, SourceError, VerifiedPackage};
use crate::fs::{PathError, read_if_there};
use crate::plugin::{Checksum, Platform, PluginConfig, PluginManifest, PluginSource, PluginVersion, VersionRange};
use crate::process::Spawner;

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
    async fn resolve(&self, plugin: &PluginConfig) -> Result<VerifiedPackage, SourceError> {
        let PluginSource::Local(source) = &plugin.source else {
            return Err(SourceError::Unsupported { kind: plugin.source.kind() });
        };
        let path = self.root.join(&source.path);
        self.package_at(plugin, &path, source.checksum.clone()).await
    }
}

impl LocalPackages {
    /// The package at a path: also for sources that fetch a tree and leave the rest to this one.
    pub(super) async fn package_at(
        &self,
        plugin: &PluginConfig,
        path: &Path,
        checksum: Option<Checksum>,
    ) -> Result<VerifiedPackage, SourceError> {
        let origin = fs::canonicalize(path).map_err(PathError::of("find plugin", path))?;
        let (found, manifest) = {
            let (executables, origin, work) = (executables(plugin), origin.clone(), self.work.clone());
            // Hashing and copying may take seconds.
            let find = move || find(&executables, &origin, checksum.as_ref(), &work);
            tokio::task::spawn_blocking(find)
                .await
                .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?
        };
        let toolbox = Toolbox { environment: &self.environment, spawner: &self.spawner, work: &self.work };
        let (program, arguments, built) = match manifest {
            None => (found.path().to_owned(), Vec::new(), None),
            Some(manifest) => toolbox.start(&executables(plugin), &manifest, found.path(), &origin).await?,
        };
        Ok(VerifiedPackage {
            name: plugin.name.clone(),
            version: plugin.source.version(),
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
fn executables(plugin: &PluginConfig) -> [String; 2] {
    [plugin.name.executable(), plugin.package.executable()]
}

/// Finds what is at the path, and checks it. A folder with an executable of the right name is that executable, unless it
/// has a manifest.
fn find(
    executables: &[String; 2],
    path: &Path,
    checksum: Option<&Checksum>,
    work: &Path,
) -> Result<(Checked, Option<PluginManifest>), SourceError> {
    let check = Check { checksum, platform: Platform::current(), work };
    if !path.is_dir() {
        return Ok((check.executable(path, None)?, None));
    }
    if path.join(PluginManifest::FILE_NAME).is_file() {
        let folder = check.folder(path)?;
        // That of the copy: it is the one that was checked.
        let manifest = read_manifest(folder.path())?;
        return Ok((folder, Some(manifest)));
    }
    let found = executables.iter().map(|name| path.join(name)).find(|executable| executable.is_file());
    match found {
        Some(executable) => Ok((check.executable(&executable, Some(path))?, None)),
        None => Err(SourceError::NoPlugin { folder: path.to_owned(), executable: executables[0].clone() }),
    }
}

fn read_manifest(folder: &Path) -> Result<PluginManifest, SourceError> {
    let path = folder.join(PluginManifest::FILE_NAME);
    let text = read_if_there(&path)?.unwrap_or_default();
    let manifest = PluginManifest::parse(&String::from_utf8_lossy(&text));
    let manifest = manifest.map_err(|source| SourceError::Manifest { path, source })?;
    if let Some(range) = &manifest.required_pulumi_version {
        let wanted: VersionRange = range.parse().map_err(SourceError::RequiredVersion)?;
        if !wanted.matches(&PluginVersion::of_pulumi()) {
            return Err(SourceError::RequiresPulumi { range: range.clone() });
        }
    }
    Ok(manifest)
}
