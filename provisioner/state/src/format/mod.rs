//! Text formats of Pulumi's command line, read and written byte for byte.
//!
//! Input: a text, and a way to decrypt secrets. Output: a [`Snapshot`](crate::Snapshot); and the reverse. Excluded:
//! files, keys, the integrity of a snapshot (except its checksum).
//!
//! ```text
//! {"version":3,"checkpoint":{"stack":"organization/P/S","latest":{
//!   "manifest":{"time":…,"magic":…,"version":…},"secrets_providers":{"type":…,"state":…},
//!   "resources":[…],"pending_operations":[{"resource":…,"type":…}],"metadata":{}}}}
//! ```
//! Checkpoints are compact JSON. Version 4 is version 3 with a list of features before `checkpoint`; it is written only
//! if a feature is used.

mod deployment_dto;
mod encode;
mod encryption;
mod error;
mod export;
mod features;
mod go_json;
mod history;
mod indent;
mod read;
mod read_value;
mod rename;
mod resource;
mod resource_dto;
mod shape;
mod value_dto;

pub(super) use encode::{write_checkpoint, write_export};
pub(super) use encryption::{Encryption, SecretEncryption};
pub use error::FormatError;
pub(super) use export::export_verbatim;
pub(super) use go_json::{append_line, compact_json};
pub use history::{ConfigValue, UpdateInfo, UpdateKind, UpdateOrigin, UpdateResult};
pub use read::Checkpoint;
pub(super) use read::{StoredText, operation_kind, read_resource};
pub(super) use read_value::SecretDecryption;
pub use read_value::ValueError;
pub(super) use rename::rename_stack;
pub(super) use resource_dto::ResourceDto;
