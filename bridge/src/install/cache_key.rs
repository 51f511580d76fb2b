//! Keys of declarations in the cache, and their entries.

use serde::{Deserialize, Serialize};

use crate::plugin::Sha256Digest;

/// Key of a declaration. Stored in plain text, so it must not contain credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheKey(pub(super) String);

impl CacheKey {
    /// Creates a key from the parts that identify the declaration.
    pub(super) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(parts.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// Creates the entry of this key for a fetched package.
    pub(super) fn new_entry(
        &self,
        revision: &str,
        download_digest: Option<Sha256Digest>,
        package_digest: Sha256Digest,
    ) -> CacheEntry {
        CacheEntry { key: self.0.clone(), revision: revision.to_owned(), download_digest, package_digest }
    }

    /// Returns the kind and the place of the source; `None` for a revision that can change, whose package has another key as well.
    pub(super) fn source(&self) -> Option<String> {
        let parts: Vec<&str> = self.0.split('\n').collect();
        match parts[..] {
            ["github-release", _, name, ..] => Some(format!("github-release {name}")),
            ["terraform", provider, ..] => Some(format!("terraform {provider}")),
            ["git", url, ..] => Some(format!("git {url}")),
            ["go build", _, program, ..] => Some(format!("go build {program}")),
            ["build", _, _, program, ..] => Some(format!("build {program}")),
            ["local file" | "local folder", _, name, ..] => Some(format!("local {name}")),
            ["installed", path, ..] => Some(format!("installed {path}")),
            _ => None,
        }
    }

    /// Returns the name of its files.
    pub(super) fn file_name(&self) -> String {
        Sha256Digest::of(&self.0).to_hex()
    }
}

/// Entry of the cache: the package that was fetched for a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CacheEntry {
    /// Text of the key.
    #[serde(rename = "of")]
    pub(super) key: String,
    /// Tag of the release, or full id of the commit.
    pub(super) revision: String,
    /// Digest of the downloaded file. `None` for git.
    #[serde(rename = "download", default, skip_serializing_if = "Option::is_none")]
    pub(super) download_digest: Option<Sha256Digest>,
    /// Digest of its files, see [`FileDigests::cache_digest`](super::file_digests::FileDigests::cache_digest).
    #[serde(rename = "package")]
    pub(super) package_digest: Sha256Digest,
}
