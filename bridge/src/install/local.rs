//! Packages on this machine: an executable, or a folder that holds one, or a folder with a `PulumiPlugin.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::blocking::blocking;
use super::layout::{Located, executables, locate, read_manifest};
use super::runtime::{Home, Toolbox};
use super::verify::{Check, Checked};
use super::{FetchEvents, InstallError, PackageSource, VerifiedPackage};
use crate::fs::PathError;
use crate::plugin::{Checksum, Platform, PluginConfig, PluginManifest, PluginSource};
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
