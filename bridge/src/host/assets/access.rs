//! Assets that the sandbox of a plugin lets through: `sc` reads for a plugin only what the plugin may read itself.

use std::path::{Path, PathBuf};

use url::Url;

use super::error::AssetError;
use crate::plugin::StrictSandbox;
use crate::process::{AllowedAccess, HiddenFiles};

/// Largest size of the files of one registration, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Limits on the assets and archives of a plugin in the sandbox `strict`.
#[derive(Clone, Debug, Default)]
pub(in crate::host) struct AssetAccess {
    /// Files and folders that are let through with what is below them.
    whole: Vec<PathBuf>,
    /// Files and folders that are let through except hidden files.
    in_part: Vec<PathBuf>,
    /// Patterns of hidden files.
    hidden: Vec<PathBuf>,
    /// Ports of URLs.
    ports: Vec<u16>,
}

impl AssetAccess {
    /// Returns the access of a plugin with this declaration, to whose process `allowed` applies. `own` are its package and the
    /// repository, `temporary` is its folder for temporary files.
    pub(in crate::host) fn new(
        declared: &StrictSandbox,
        allowed: &AllowedAccess,
        own: [&Path; 2],
        temporary: Option<&Path>,
    ) -> Self {
        let whole = allowed.readable.iter().chain(&allowed.writable).map(PathBuf::as_path).chain(temporary);
        let real = |path: &Path| path.canonicalize().ok();
        Self {
            whole: whole.filter_map(real).collect(),
            in_part: own.into_iter().filter_map(real).collect(),
            hidden: allowed.hidden.clone(),
            ports: declared.ports.clone(),
        }
    }

    /// Returns the limit on the size of all files of one registration.
    pub(super) fn max_bytes(access: Option<&Self>) -> u64 {
        if access.is_some() { MAX_BYTES } else { u64::MAX }
    }

    /// Returns the ports to which downloads are held.
    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Checks the real path of a file or folder. `location` is the path that the error shows.
    pub(super) fn check_path(&self, real: &Path, location: &str) -> Result<(), AssetError> {
        let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        if is_below(&self.whole) || is_below(&self.in_part) && !HiddenFiles::find(&self.hidden).hides(real) {
            return Ok(());
        }
        Err(AssetError::OutsideOfSandbox(location.to_owned()))
    }

    /// Checks the port of a URL. `location` is the URL without its secrets.
    pub(super) fn check_url(&self, url: &Url, location: &str) -> Result<(), AssetError> {
        match url.port_or_known_default() {
            Some(port) if !self.ports.contains(&port) => {
                Err(AssetError::PortOutsideOfSandbox { location: location.to_owned(), port })
            }
            _ => Ok(()),
        }
    }
}
