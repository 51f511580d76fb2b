//! Journal of a run: begun operations and their effects, one line each, so that a crash loses no records.
//!
//! Input: records, as they happen. Output: the state that they result in, when the next run finds the journal of a run
//! that did not end. Excluded: locks, checkpoints (except the digest of the checkpoint that a journal starts from).
//!
//! A journal is a file `.sc/journal/PROJECT/STACK/<id>` beside the store's `.pulumi`. The first appended record creates
//! it:
//!
//! ```text
//! {"journal":1,"stack":"organization/P/S","base":"<sha-256 of the checkpoint, or null>","started":…,"update":"destroy","secrets":{…}}
//! {"begin":{"operation":0,"kind":"creating","resource":{…}}}
//! {"begin":{"operation":1,"kind":"deleting","entry":2}}
//! {"end":{"operation":0,"effects":[{"add":{"entry":4,"resource":{…}}}]}}
//! {"change":[{"keep":{"entry":2}},{"remove":{"entry":3}},{"rewrite":{"entry":1,"resource":{…}}},{"dropInheritedPending":{}}]}
//! {"phase":{}}
//! {"close":{"checkpoint":"<sha-256 of the checkpoint that is about to be saved>","history":{"time":…,"update":"{…}"}}}
//! ```
//! Resources are written as in a checkpoint, their secrets encrypted with the manager that the first line names. A line
//! is written by one write(2) and outlives the process from then on; it is flushed to disk within 100 milliseconds. A
//! last line that is incomplete is ignored: no operation or report depended on it yet. After a `phase` line (for
//! example between a refresh and an update) entries and operations are numbered from 0 again, starting from the state
//! that the previous phase left. The last line of a run that ended normally has the digest of the checkpoint that is
//! about to be saved: with it the next run recognizes a journal whose run died between saving the checkpoint and
//! removing the journal. It also has the entry that the run adds to the history, so that the next run adds an entry that
//! is missing. A run without one writes `{"close":"<sha-256>"}`.
//!
//! If the file is removed during a run, the run writes it anew with its next record. If it cannot be written when an
//! operation ends, the run writes the whole journal into a fallback folder: `journal/BACKEND/PROJECT/STACK/<id>` in a
//! private folder of the user, where `BACKEND` is the start of the SHA-256 of the backend's path. The file in the
//! backend is then older and ignored.

mod chain;
mod closing;
mod creations;
mod decode;
mod dto;
mod encode;
mod error;
mod file;
mod flusher;
mod folder;
mod header;
mod mode;
mod plan;
mod replay;
mod seal;
mod segment;
mod segment_writer;
mod statistics;
mod stored;
mod write_error;
mod writer;

pub(super) use closing::Closing;
pub use closing::KeptJournal;
pub use creations::Creations;
pub use error::JournalError;
pub(super) use file::append_close_line;
pub use folder::JournalFolders;
pub use mode::JournalMode;
pub(super) use plan::{JournalHeader, JournalPlan};
pub(super) use replay::{Replay, replay};
pub(super) use segment_writer::{SegmentPlace, SegmentWriter};
pub use statistics::SegmentStatistics;
pub(super) use stored::{ListedJournals, ListedRun, StoredJournal, list, list_with, seal_unwritten};
pub(super) use writer::Journal;
