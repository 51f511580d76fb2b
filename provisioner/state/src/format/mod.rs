//! The text of a checkpoint, as Pulumi's command line reads and writes it, byte for byte.
//!
//! Enters: a text, a way to open secrets. Leaves: a [`Snapshot`]; and back. Never here: files, keys, the laws of a snapshot
//! (only its checksum).
//!
//! ```text
//! {"version":3,"checkpoint":{"stack":"organization/P/S","latest":{
//!   "manifest":{"time":…,"magic":…,"version":…},"secrets_providers":{"type":…,"state":…},
//!   "resources":[…],"pending_operations":[{"resource":…,"type":…}],"metadata":{}}}}
//! ```
//! Written compact. Version 4 is version 3 with a list of features before `checkpoint`, and written only when one is used.

mod checkpoint;
mod checksum;
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
mod value_dto;

pub use checkpoint::Checkpoint;
pub(super) use encode::{write_checkpoint, write_export};
pub(super) use encryption::{Encryption, Sealing};
pub use error::FormatError;
pub(super) use export::reexport;
pub(super) use go_json::{append_line, compact_json};
pub use history::{ConfigValue, UpdateInfo, UpdateKind, UpdateResult};
pub(super) use read::{StoredText, operation_kind, read_resource};
pub(super) use read_value::Opening;
pub use read_value::ValueError;
pub(super) use rename::rename_stack;
pub(super) use resource_dto::ResourceDto;
