//! The encrypted store of a repository: `.sc/secrets.yaml` (docs/spec/simple-container.md#4.2).
//!
//! The store holds the secret files of a repository, each of them encrypted for each recipient. A recipient is the
//! public SSH key of a member of the team, or of a machine.
//!
//! Input: the root of a repository, and the keys of a profile. Output: the text of files, and edits of the store. An
//! edit is prepared first, so that the caller can show the lines that change, and then committed: the file is
//! replaced as a whole, and only if it is still the one that the edit was prepared from. Excluded: the environment of
//! the process, the terminal, questions, and the meaning of the files.
//!
//! - [`keys`]: public and private keys, and the keys of a profile.
//! - [`ciphers`]: encryption of a text for a recipient.
//! - [`store`]: the content of the store, and its form as YAML.
//! - [`edit`], [`reveal`]: what the commands do.
//! - [`confirmed`]: recipients and files that an edit takes from the store without a question.
//!
//! Files that hold a key of the store are never encrypted and never overwritten, whatever the store says.

#![warn(missing_docs)]

pub mod ciphers;
pub mod confirmed;
pub mod edit;
mod error;
mod gitignore;
mod key_files;
pub mod keys;
mod paths;
pub mod reveal;
pub mod store;
mod store_file;
mod temporary;

pub use error::SecretsStoreError;
pub use gitignore::add_to_gitignore;
pub use paths::{PathError, SECRET_PATTERNS, STORE_PATH, normalize};
pub use store_file::StoreFile;
pub use temporary::{TemporaryFolder, remove_abandoned_files};
