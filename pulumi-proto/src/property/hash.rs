//! Hashes of assets and archives (provider protocol, section 5.6): what makes two of them equal.
//!
//! Enters: contents, handed in by who opened them. Leaves: lower-case hexadecimal SHA-256. Never here: opening files,
//! walking folders, fetching.

mod member;
mod tar;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

pub use member::member_name;

/// The hash of an asset without content, such as an empty text.
pub const EMPTY_ASSET_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The hash of an archive without members.
pub const EMPTY_ARCHIVE_HASH: &str = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

/// Hashes an asset (a text is its UTF-8), or a packed archive (`.tar`, `.tgz`, `.tar.gz`, `.zip`, `.jar`): the bytes as they
/// are.
///
/// # Errors
/// Those of the reader.
pub fn hash_content(mut content: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    copy(&mut content, &mut digest)?;
    Ok(hex::encode(digest.finalize()))
}

/// Hashes an archive that is not packed, a folder or a map of assets: as the tar stream that Go's `archive/tar` would
/// write of it, which is never kept.
#[derive(Default)]
pub struct ArchiveHasher {
    digest: Sha256,
    names: HashSet<String>,
}

/// Why a member cannot be hashed.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// No tar stream has members of this name: it holds a NUL, or it ends in a slash and there is content.
    #[error("an archive cannot have a member named {0:?}")]
    Name(String),
    /// The content was not as long as it was said to be.
    #[error("the archive member {name:?} has {actual} bytes instead of {expected}")]
    Size {
        /// The member.
        name: String,
        /// The size it was said to have.
        expected: u64,
        /// How much was read of it: at most one byte more than expected.
        actual: u64,
    },
    /// The content could not be read.
    #[error("cannot read the archive member {name:?}")]
    Read {
        /// The member.
        name: String,
        /// Why.
        source: io::Error,
    },
}

impl ArchiveHasher {
    /// Begins an archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member of `size` bytes. Members come sorted by the bytes of their names, each folder on its own. A name
    /// seen before is passed over, its content unread.
    ///
    /// # Errors
    /// Names that no tar stream can hold, content of another size, and those of the reader. The hash is of no use then.
    pub fn member(&mut self, name: &str, size: u64, content: impl Read) -> Result<(), HashError> {
        if !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        let header = tar::header(name, size).ok_or_else(|| HashError::Name(name.to_owned()))?;
        self.digest.update(header);
        // One byte more, to see that there is none.
        let actual = copy(&mut content.take(size.saturating_add(1)), &mut self.digest)
            .map_err(|source| HashError::Read { name: name.to_owned(), source })?;
        if actual != size {
            return Err(HashError::Size { name: name.to_owned(), expected: size, actual });
        }
        self.digest.update(tar::padding(size));
        Ok(())
    }

    /// Ends the archive and returns its hash.
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
