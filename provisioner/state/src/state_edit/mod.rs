//! State edits: changes of the recorded state that touch no resource.
//!
//! Input: a snapshot and a selection of its entries. Output: the changed snapshot and a list of the changes, or an
//! error and the unchanged snapshot. Excluded: providers, locks, files.

mod creations;
mod error;
mod flag;
mod removal;
mod rename;
mod repair;
mod selection;
#[cfg(test)]
mod tests;

pub(crate) use creations::is_recorded;
pub use creations::{CreationTreatment, record_creations};
pub use error::StateEditError;
pub use flag::{EntryFlag, set_flag};
pub use removal::{BlockerPolicy, RemoveOptions, remove_entries};
pub use rename::rename_resource;
pub use repair::{Repair, repair_snapshot};
pub use selection::Selection;
