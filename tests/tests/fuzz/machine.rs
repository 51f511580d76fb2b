//! Machine on which a plugin is installed once for each content: an empty cache, a repository, and a folder of plugins. After each
//! installation, the cache has the package as it was verified, or nothing, and nothing is anywhere else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use bridge::install::{
    BUILD_LIMIT, CacheSettings, CachedState, InstallError, Installer, PackageCopies, PackageSource,
    TerraformProviderFolder, Verification, VerifiedPackage, verify_cache,
};
use bridge::plugin::{PluginName, PluginNames, ResolvedPackage};
use bridge::process::{HostEnvironment, Spawner};
use bridge::source::Credentials;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{message, runtime};

/// Size to which each archive may unpack, in bytes, and the maximum ratio to its own size above it: docs/security.md.
const ALLOWED_BYTES: u64 = 64 << 20;
const MAX_RATIO: u64 = 100;

pub(crate) struct Machine {
    pub(crate) runtime: Runtime,
    top: TempDir,
    folder: PathBuf,
    is_offline: bool,
}

/// Package with a program.
pub(crate) trait Installed {
    fn program(&self) -> PathBuf;
}

impl Installed for VerifiedPackage {
    fn program(&self) -> PathBuf {
        self.program().to_owned()
    }
}

impl Installed for TerraformProviderFolder {
    fn program(&self) -> PathBuf {
        self.program().to_owned()
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        // In memory where that is possible: most of the time would be spent on flushing files to the disk.
        let memory = Some(Path::new("/dev/shm")).filter(|memory| memory.is_dir());
        let parent = memory.map_or_else(std::env::temp_dir, Path::to_owned);
        let top = tempfile::Builder::new().prefix("sc-fuzz-").tempdir_in(parent).unwrap();
        // So deep that a path with `..` ends in a folder of this machine.
        let folder = top.path().canonicalize().unwrap().join("1/2/3/4/5/6");
        for name in ["repo/.sc", "home"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        Self { runtime: runtime(), top, folder, is_offline: true }
    }

    /// Returns a machine that opens connections.
    pub(crate) fn online() -> Self {
        Self { is_offline: false, ..Self::new() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Writes a file, and creates its folder.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn settings(&self) -> CacheSettings {
        CacheSettings {
            folder: self.path("cache"),
            root: self.path("repo"),
            environment: HostEnvironment::new([]),
            spawner: Spawner::unsupervised(),
            verification: Verification::default(),
            is_offline: self.is_offline,
            build_limit: BUILD_LIMIT,
            credentials: Credentials::default(),
            copies: PackageCopies { folders: vec![self.path("copies")], mirror: None },
        }
    }

    /// Installs the plugin `reef` with an empty cache from an archive of at most `size` bytes, and checks what is there afterwards. Returns
    /// the content of its program, or the text of the error.
    pub(crate) fn install<S: PackageSource<Package: Installed> + ?Sized>(
        &self,
        source: &S,
        declared: &S::Declared,
        size: usize,
    ) -> Result<Vec<u8>, String> {
        let name: PluginName = "reef".parse().unwrap();
        let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
        let before = self.others();
        let installer = Installer::new(&());
        let installed: Result<_, InstallError> = self.runtime.block_on(installer.install(source, names, declared));
        let result = match installed {
            Ok(package) => {
                self.check_package(size);
                Ok(fs::read(package.program()).unwrap())
            }
            Err(error) => {
                for folder in ["packages", "names", "work"] {
                    let members = fs::read_dir(self.path("cache").join(folder)).into_iter().flatten();
                    assert_eq!(members.count(), 0, "{folder} after {error}");
                }
                Err(message(&error))
            }
        };
        assert_eq!(self.others(), before, "files outside of the cache");
        fs::remove_dir_all(self.path("cache")).ok();
        result
    }

    /// Returns the package that a declaration of the plugin `reef` means.
    pub(crate) fn resolve<S: PackageSource + ?Sized>(
        &self,
        source: &S,
        declared: &S::Declared,
    ) -> Result<ResolvedPackage, String> {
        let name: PluginName = "reef".parse().unwrap();
        let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
        let resolved = self.runtime.block_on(source.resolve(names, declared, &()));
        resolved.map_err(|error| message(&error))
    }

    /// Returns the paths that do not belong to the cache.
    fn others(&self) -> BTreeSet<PathBuf> {
        let (mut found, cache) = (BTreeSet::new(), self.path("cache"));
        walk(self.top.path(), &mut |path| {
            found.insert(path.to_owned());
            path != cache
        });
        found.remove(&cache);
        found
    }

    /// Checks that the only package of the cache is the verified one, has no link that leads out, and holds the limits.
    fn check_package(&self, size: usize) {
        let verified = self.runtime.block_on(verify_cache(&self.path("cache"))).unwrap();
        assert!(verified.iter().all(|package| matches!(package.state, CachedState::Verified)), "{verified:?}");
        let packages: Vec<_> = fs::read_dir(self.path("cache/packages")).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(packages.len(), 1, "{packages:?}");
        let (package, mut bytes) = (packages[0].path(), 0);
        walk(&package, &mut |path| {
            let metadata = path.symlink_metadata().unwrap();
            let kind = metadata.file_type();
            assert!(kind.is_file() || kind.is_dir() || kind.is_symlink(), "{}", path.display());
            assert_ne!(path.file_name().unwrap(), ".git");
            if kind.is_symlink() {
                let target = plain(&path.parent().unwrap().join(fs::read_link(path).unwrap()));
                assert!(target.starts_with(&package), "{} leads to {}", path.display(), target.display());
            }
            bytes += if kind.is_file() { metadata.len() } else { 0 };
            true
        });
        assert!(bytes <= ALLOWED_BYTES.max(MAX_RATIO * size as u64), "{bytes} bytes");
    }
}

/// Calls a function for each path below a folder, which says whether those below it follow.
fn walk(folder: &Path, on_path: &mut dyn FnMut(&Path) -> bool) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if on_path(&entry.path()) && entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), on_path);
        }
    }
}

/// Returns a path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => assert!(plain.pop(), "{}", path.display()),
            component => plain.push(component),
        }
        plain
    })
}
