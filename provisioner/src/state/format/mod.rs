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

mod export;
mod features;
mod history;
mod json;
mod read;
mod read_value;
mod rename;
mod resource;
mod write;
mod write_value;

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use pulumi_proto::urn::NameError;

use super::secrets::SecretsError;
use super::snapshot::Snapshot;

pub(super) use export::reexport;
pub use history::{ConfigValue, UpdateInfo, UpdateKind, UpdateResult};
pub(super) use read::{StoredText, operation_kind, read_resource};
pub(super) use read_value::Opening;
pub use read_value::ValueError;
pub(super) use rename::rename_stack;
pub(super) use write::{ResourceWriter, write_checkpoint, write_export};
pub(super) use write_value::Sealing;

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The name that the stack had when somebody last said so; never to be relied on.
    pub stack: String,
    /// The state; `None` in a stack that was only just created.
    pub snapshot: Option<Snapshot>,
}

/// Why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The text is no JSON, or not of the shape of a checkpoint.
    #[error("it is not a checkpoint")]
    Malformed(#[source] serde_json::Error),
    /// Written by something older than we read.
    #[error("its format has version {0}, which is too old (use `pulumi up` once to bring it up to date)")]
    TooOld(u32),
    /// Written by something newer than we read.
    #[error("its format has version {0}, which is newer than this program knows (3 and 4)")]
    TooNew(u32),
    /// It needs something that this program cannot do.
    #[error("it uses the feature {0:?}, which this program does not know")]
    UnknownFeature(String),
    /// A resource has a name that is none.
    #[error("{resource}: {member} is malformed")]
    Name {
        /// The URN of the resource, or its number.
        resource: String,
        /// Where the name stands.
        member: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// A time is none.
    #[error("{resource}: {member} is no time: {text:?}")]
    Time {
        /// The URN of the resource.
        resource: String,
        /// Where the time stands.
        member: &'static str,
        /// What stands there.
        text: String,
    },
    /// A property value could not be read.
    #[error("{resource}: {member} cannot be read")]
    Value {
        /// The URN of the resource.
        resource: String,
        /// Where the value stands.
        member: &'static str,
        /// Why not.
        source: ValueError,
    },
    /// A pending operation of a kind that we do not know.
    #[error("{resource}: has a pending operation of the unknown kind {kind:?}")]
    OperationKind {
        /// The URN of the resource.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Secret(#[from] SecretsError),
}

impl FormatError {
    /// Whether the key of the stack would have helped.
    pub(super) fn needs_key(&self) -> bool {
        matches!(
            self,
            Self::Secret(SecretsError::KeyNeeded)
                | Self::Value { source: ValueError::Secret(SecretsError::KeyNeeded), .. }
        )
    }
}

/// The checksum of a manifest: that of its version.
fn magic(version: &str) -> String {
    if version.is_empty() { String::new() } else { hex(digest(&SHA256, version.as_bytes()).as_ref()) }
}

/// A value in compact JSON, escaped for HTML as Go does unless told otherwise.
pub(super) fn compact_json(value: &serde_json::Value) -> String {
    let mut text = String::new();
    json::write_json(&mut text, value, json::Escaping::Html);
    text
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "writing to a string does not fail");
        text
    })
}
