//! The state of one stack as an operation uses it: locked, loaded, recovered, recorded, saved.

mod access;
mod import;
mod loading;
mod locked;
mod manage;
mod recorder;
mod recovery;
mod saving;
mod sealer;
mod view;

pub use access::StackAccess;
pub use import::{Imported, import};
pub use locked::StackState;
pub use manage::{StackSummary, history, remove_stack, rename_stack, summary};
pub use recorder::JournalRecorder;
pub use recovery::Recovered;
pub use view::{ExportedSecrets, StackView};
