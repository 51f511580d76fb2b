//! Edits of a state by hand: what is recorded changes, and nothing else.
//!
//! Enters: a snapshot, and which of its entries are meant. Leaves: the snapshot changed and an account of it, or a refusal
//! and the snapshot as it was. Never here: providers, locks, files.

mod error;
mod mark;
mod removal;
mod rename;
mod repair;
mod selection;
#[cfg(test)]
mod tests;

pub use error::SurgeryError;
pub use mark::{Mark, mark};
pub use removal::{Blocked, Removal, remove};
pub use rename::rename;
pub use repair::{Repair, repair};
pub use selection::Selection;
