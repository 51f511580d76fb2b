//! Cache of the information about the types of a package, and of the package that a plugin serves with its parameters. The key
//! contains the package, the digest, path and program of the plugin, and its parameters, so that a changed plugin is read again.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::package_types::PackageTypes;
use super::subpackage::Subpackage;
use crate::fs::{
    Access, TrustError, check_trusted_below, create_private_folders, open_regular, read_if_exists, write_atomically,
};
use crate::install::VerifiedPackage;
use crate::plugin::{Parameters, Sha256Digest};

/// Version of the cached information. Must change when other fields are parsed or a field is parsed differently.
const CACHE_VERSION: &[u8] = b"7";
/// Maximum size of a cache file that is read, in bytes. The types of the largest packages take a few megabytes.
const MAX_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Extension of the file for the package that a plugin serves with its parameters.
const SUBPACKAGE: &str = "package";

/// Cached package that a plugin serves with its parameters.
#[derive(Serialize, Deserialize)]
struct CachedSubpackage {
    name: String,
    version: String,
    base_name: String,
    base_version: Option<String>,
    /// Value of the parameters, in base64.
    value: String,
}

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
    pub(super) fn new(
        folder: &Path,
        name: &str,
        package: &VerifiedPackage,
        parameters: Option<&Parameters>,
    ) -> Option<Self> {
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
        let mut key = key.join(&0);
        if let Some(parameters) = parameters {
            key.push(0);
            key.extend(serde_json::to_vec(&parameters.arguments).ok()?);
        }
        let key = Sha256Digest::of(key);
        Some(Self(folder.join(key.to_hex())))
    }

    /// Loads the cached types; `None` if the file is missing or cannot be read, or if another user could have written
    /// it.
    pub(super) async fn load(self) -> Option<PackageTypes> {
        tokio::task::spawn_blocking(move || PackageTypes::from_lines(self.read()?)).await.ok()?
    }

    /// Loads the cached package that the plugin serves with its parameters, as [`TypeCache::load`] does.
    pub(super) async fn load_subpackage(self) -> Option<Subpackage> {
        let read = move || {
            let cached: CachedSubpackage = serde_json::from_str(&self.of_subpackage().read()?).ok()?;
            let CachedSubpackage { name, version, base_name, base_version, value } = cached;
            Some(Subpackage { name, version, base_name, base_version, value: BASE64.decode(value).ok()? })
        };
        tokio::task::spawn_blocking(read).await.ok()?
    }

    /// Stores types. Ignores errors: the schema is requested again then.
    pub(super) async fn store(self, types: PackageTypes) {
        drop(tokio::task::spawn_blocking(move || self.write(&types.to_lines()?)).await);
    }

    /// Stores the package that the plugin serves with its parameters. Ignores errors: the plugin is asked again then.
    pub(super) async fn store_subpackage(self, subpackage: Subpackage) {
        let write = move || {
            let Subpackage { name, version, base_name, base_version, value } = subpackage;
            let cached = CachedSubpackage { name, version, base_name, base_version, value: BASE64.encode(value) };
            self.of_subpackage().write(&serde_json::to_string(&cached).ok()?)
        };
        drop(tokio::task::spawn_blocking(write).await);
    }

    fn of_subpackage(&self) -> Self {
        Self(self.0.with_extension(SUBPACKAGE))
    }

    fn read(&self) -> Option<String> {
        self.check_trusted().ok()?;
        String::from_utf8(read_if_exists(&self.0, MAX_CACHE_BYTES).ok()??).ok()
    }

    fn write(&self, text: &str) -> Option<()> {
        create_private_folders(self.0.parent()?).ok()?;
        self.check_trusted().ok()?;
        write_atomically(&self.0, text.as_bytes(), Access::Private).ok()
    }

    /// Checks the folder of the cache, the folder of the types, and the file.
    fn check_trusted(&self) -> Result<(), TrustError> {
        let root = self.0.parent().and_then(Path::parent).unwrap_or(&self.0);
        check_trusted_below(root, &self.0)
    }
}
