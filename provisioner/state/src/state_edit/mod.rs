//! State edits: changes of the recorded state that touch no resource.
//!
//! Input: a snapshot and a selection of its entries. Output: the changed snapshot and a list of the changes, or an
//! error and the unchanged snapshot. Excluded: providers, locks, files.

mod creations;
mod edits;
mod error;
mod move_error;
mod removal;
mod repair;
mod resource_move;
#[cfg(test)]
mod tests;

pub use creations::{CreationTreatment, record_creations};
pub(crate) use creations::{LateTreatment, is_recorded, record_late};
pub use edits::{EntryFlag, Selection, rename_resource, set_flag};
pub use error::StateEditError;
pub use move_error::{MoveError, StayingReference};
pub use removal::{BlockerPolicy, RemoveOptions, remove_entries};
pub use repair::{Repair, repair_snapshot};
pub use resource_move::{ProviderMove, ResourceMove, move_resources};
