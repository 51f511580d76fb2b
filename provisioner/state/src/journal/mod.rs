//! The journal of a run: what it began and what came of it, one line each, so that a crash loses nothing.
//!
//! Enters: records, as they happen. Leaves: the state that they led to, when the next run finds the journal of one that
//! did not end. Never here: locks, checkpoints (only the digest of the one a journal starts from).
//!
//! A journal is a file `.sc/journal/PROJECT/STACK/<id>` beside the store's `.pulumi`, made when there is something to write:
//!
//! ```text
//! {"journal":1,"stack":"organization/P/S","base":"<sha-256 of the checkpoint, or null>","started":…,"secrets":{…}}
//! {"begin":{"operation":0,"kind":"creating","resource":{…}}}
//! {"begin":{"operation":1,"kind":"deleting","entry":2}}
//! {"end":{"operation":0,"effects":[{"add":{"entry":4,"resource":{…}}}]}}
//! {"change":[{"keep":{"entry":2}},{"remove":{"entry":3}},{"rewrite":{"entry":1,"resource":{…}}},{"dropInheritedPending":{}}]}
//! {"phase":{}}
//! {"close":"<sha-256 of the checkpoint that is about to be saved>"}
//! ```
//! Resources are written as in a checkpoint, their secrets sealed with the manager that the first line names. A line is
//! written by one write(2) and outlives the process from then on; disks follow within 100 milliseconds. A last line that is
//! torn was never answered for, and does not count. After a `phase` line (a refresh before an update, say) entries and
//! operations are numbered anew, from the state that the phase before left. The last line of a run that ended well says what it is about to save:
//! a journal left behind by a death between that and its removal is recognized as settled.

mod decode;
mod digest;
mod dto;
mod encode;
mod end;
mod error;
mod flusher;
mod folder;
mod header;
mod replay;
mod writer;

pub(super) use digest::{CheckpointDigest, digest};
pub use error::JournalError;
pub(super) use folder::{folder, left_behind, remove};
pub(super) use replay::{Replay, replay};
pub(super) use writer::{Journal, JournalStart, settle};
