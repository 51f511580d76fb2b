//! Hashes of assets and archives (docs/spec/provider-protocol.md#5.6). Equal hashes make two of them equal.
//!
//! Input: readers of contents. Output: SHA-256 in lower-case hexadecimal. Excluded: access to files, folders or URLs.

mod tar;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

pub use tar::member_name;

/// Hash of an asset without content, such as an empty text.
pub const EMPTY_ASSET_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Hash of an archive without members.
pub const EMPTY_ARCHIVE_HASH: &str = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

/// Hashes the bytes of an asset (UTF-8 for a text) or of a packed archive (`.tar`, `.tgz`, `.tar.gz`, `.zip`, `.jar`).
///
/// # Errors
/// Errors of the reader.
pub fn hash_content(mut content: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    copy(&mut content, &mut digest)?;
    Ok(hex::encode(digest.finalize()))
}

/// Hasher of an archive that is not packed: a folder or a map of assets. The hash is that of the tar stream that Go's
/// `archive/tar` writes for it. The stream is not stored.
#[derive(Default)]
pub struct ArchiveHasher {
    digest: Sha256,
    names: HashSet<String>,
}

/// Error of a member that cannot be hashed.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// A tar stream cannot contain the name: it has a NUL, or it ends in a slash and the content is not empty.
    #[error("an archive cannot have a member named {0:?}")]
    Name(String),
    /// The content has another size than announced.
    #[error("the archive member {name:?} has {actual} bytes instead of {expected}")]
    Size {
        /// Name of the member.
        name: String,
        /// Announced size in bytes.
        expected: u64,
        /// Number of bytes that were read, at most `expected + 1`.
        actual: u64,
    },
    /// The content could not be read.
    #[error("cannot read the archive member {name:?}")]
    Read {
        /// Name of the member.
        name: String,
        /// Error of the reader.
        source: io::Error,
    },
}

impl ArchiveHasher {
    /// Creates a hasher without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member of `size` bytes. Members must be sorted by the bytes of their names within each folder. A repeated
    /// name is ignored, and its content is not read.
    ///
    /// # Errors
    /// [`HashError`]. The hasher must not be used then.
    pub fn add_member(&mut self, name: &str, size: u64, content: impl Read) -> Result<(), HashError> {
        if !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        let header = tar::header(name, size).ok_or_else(|| HashError::Name(name.to_owned()))?;
        self.digest.update(header);
        // One byte more than expected, to detect a longer content.
        let actual = copy(&mut content.take(size.saturating_add(1)), &mut self.digest)
            .map_err(|source| HashError::Read { name: name.to_owned(), source })?;
        if actual != size {
            return Err(HashError::Size { name: name.to_owned(), expected: size, actual });
        }
        self.digest.update(tar::padding(size));
        Ok(())
    }

    /// Returns the hash of the archive.
    pub fn finish(mut self) -> String {
        self.digest.update([[0; tar::BLOCK]; 2].as_flattened());
        hex::encode(self.digest.finalize())
    }
}

fn copy(content: &mut impl Read, digest: &mut Sha256) -> io::Result<u64> {
    let mut buffer = [0; 16 * 1024];
    let mut total = 0;
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => {
                digest.update(&buffer[..count]);
                total += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
}
