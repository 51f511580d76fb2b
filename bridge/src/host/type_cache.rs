//! Cache of the information about the types of a package. The key contains the package and the digest, path and program
//! of the plugin, so that a changed plugin is read again.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::package_types::PackageTypes;
use crate::fs::{
    Access, TrustError, check_trusted_below, create_private_folders, open_regular, read_if_exists, write_atomically,
};
use crate::install::VerifiedPackage;
use crate::plugin::Sha256Digest;

/// Version of the cached information. Must change when other fields are parsed or a field is parsed differently.
const CACHE_VERSION: &[u8] = b"6";
/// Maximum size of a cache file that is read, in bytes. The types of the largest packages take a few megabytes.
const MAX_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Returns true if the program is a script with a `#!` line, or cannot be read.
fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    let read = open_regular(program).and_then(|mut file| file.read_exact(&mut start));
    read.is_err() || start == *b"#!"
}

/// Cache file for the types of a package, in the format of [`PackageTypes::to_lines`].
#[derive(Clone, Debug)]
pub(super) struct TypeCache(PathBuf);

impl TypeCache {
    /// Returns the cache file of a package. Returns `None` for a package without a digest, and for a local script,
    /// whose other files its digest does not cover. `name` is the package name, which is part of the type tokens. The
    /// key contains the program: a download may hold several plugins.
    pub(super) fn new(folder: &Path, name: &str, package: &VerifiedPackage) -> Option<Self> {
        let digest = package.digest()?;
        // The schema of a local script may depend on other files, which its checksum does not cover.
        if package.revision().is_none() && is_script(package.program()) {
            return None;
        }
        let program = package.program().file_name().unwrap_or_default();
        let digest = digest.to_hex();
        let origin = package.origin().as_os_str();
        let key =
            [CACHE_VERSION, name.as_bytes(), digest.as_bytes(), origin.as_encoded_bytes(), program.as_encoded_bytes()];
        let key = Sha256Digest::of(key.join(&0));
        Some(Self(folder.join(key.to_hex())))
    }

    /// Loads the cached types; `None` if the file is missing or cannot be read, or if another user could have written
    /// it.
    pub(super) async fn load(self) -> Option<PackageTypes> {
        let read = move || {
            self.check_trusted().ok()?;
            PackageTypes::from_lines(String::from_utf8(read_if_exists(&self.0, MAX_CACHE_BYTES).ok()??).ok()?)
        };
        tokio::task::spawn_blocking(read).await.ok()?
    }

    /// Stores types. Ignores errors: the schema is requested again then.
    pub(super) async fn store(self, types: PackageTypes) {
        let write = move || {
            let text = types.to_lines()?;
            create_private_folders(self.0.parent()?).ok()?;
            self.check_trusted().ok()?;
            write_atomically(&self.0, text.as_bytes(), Access::Private).ok()
        };
        drop(tokio::task::spawn_blocking(write).await);
    }

    /// Checks the folder of the cache, the folder of the types, and the file.
    fn check_trusted(&self) -> Result<(), TrustError> {
        let root = self.0.parent().and_then(Path::parent).unwrap_or(&self.0);
        check_trusted_below(root, &self.0)
    }
}
