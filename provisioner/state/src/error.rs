//! What can go wrong with recorded state.

use std::path::PathBuf;

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use super::format::FormatError;
use super::integrity::IntegrityError;
use super::journal::JournalError;
use super::secrets::SecretsError;
use super::store::{StackReference, StoreError};

/// Why state could not be read, kept or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A snapshot breaks its laws.
    #[error(transparent)]
    Integrity(#[from] IntegrityError),
    /// The store could not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint of a stack could not be read.
    #[error("the checkpoint of {stack} cannot be read")]
    Checkpoint {
        /// The stack.
        stack: StackReference,
        /// Why not.
        source: Box<FormatError>,
    },
    /// What was to be imported is something else.
    #[error("this is no export of a state")]
    NoExport(#[source] serde_json::Error),
    /// What was to be imported could not be read.
    #[error("the export cannot be read")]
    Export(#[source] Box<FormatError>),
    /// What was to be imported is not fit for the stack.
    #[error(transparent)]
    Import(#[from] ImportProblem),
    /// A run that died left a journal, which has to be taken in first.
    #[error("an interrupted run of {stack} left the journal {}", journal.display())]
    Interrupted {
        /// The stack.
        stack: StackReference,
        /// The journal.
        journal: PathBuf,
    },
    /// There is no such stack in the store.
    #[error("there is no state of {0}")]
    NoStack(StackReference),
    /// The stack still has resources.
    #[error("{stack} still has {}", resources(*count))]
    NotEmpty {
        /// The stack.
        stack: StackReference,
        /// How many.
        count: usize,
    },
    /// Nobody has said what came of what was being made when a run died.
    #[error("nobody has said what came of {}, which a run that died was creating in {stack}", names.join(", "))]
    Unsettled {
        /// The stack.
        stack: StackReference,
        /// The names of what was being made.
        names: Vec<String>,
    },
    /// An entry of the history cannot be read.
    #[error("the history of {stack} cannot be read")]
    History {
        /// The stack.
        stack: StackReference,
        /// Why not.
        source: serde_json::Error,
    },
    /// The journal could not be written or replayed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run died, and somebody changed the checkpoint before its journal was replayed.
    #[error(transparent)]
    Conflict(#[from] Box<JournalConflict>),
    /// The state breaks its laws. It was saved all the same, for there is no better record of what was done.
    #[error("the state was saved, but must be repaired (`sc state repair`)")]
    SavedBroken(#[source] IntegrityError),
    /// The new checkpoint could not be saved. The journal holds everything, and the lock is kept for it.
    #[error("the state of {stack} could not be saved; what was done is kept in {}", journal.display())]
    Unsaved {
        /// The stack.
        stack: StackReference,
        /// The journal.
        journal: PathBuf,
        /// Why not.
        source: Box<StateError>,
    },
    /// The new checkpoint was saved; only the history lacks the run.
    #[error("the state of {stack} was saved, but the run could not be added to its history")]
    Unarchived {
        /// The stack.
        stack: StackReference,
        /// Why not.
        source: Box<StoreError>,
    },
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

/// What makes an import doubtful; who insists gets it all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// It holds resources of another stack, or of another name of this one.
    #[error("it holds {count} resources of another stack: {first} is not of {stack}")]
    OtherStack {
        /// The stack that it is to become.
        stack: String,
        /// How many resources are not of it.
        count: usize,
        /// One of them.
        first: Urn,
    },
    /// It breaks the laws of a state.
    #[error(transparent)]
    Broken(#[from] IntegrityError),
}

/// The journal of a run that died belongs to another checkpoint than the one that is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an interrupted run of {stack} left the journal {}, but the checkpoint has changed since: the journal starts from \
     {} and the checkpoint is {}{}{}",
    journal.display(),
    digest(base),
    digest(found),
    creations(created),
    unended(creating)
)]
pub struct JournalConflict {
    /// The stack.
    pub stack: StackReference,
    /// The journal.
    pub journal: PathBuf,
    /// SHA-256 of the checkpoint that the journal starts from, if there was one.
    pub base: Option<String>,
    /// SHA-256 of the checkpoint that is there, if there is one.
    pub found: Option<String>,
    /// What the journal says was created, with its id: whoever gives the journal up gives these up.
    pub created: Vec<(Urn, Option<ResourceId>)>,
    /// What it was creating, and nobody knows what came of it.
    pub creating: Vec<Urn>,
}

fn resources(count: usize) -> String {
    if count == 1 { "a resource".to_owned() } else { format!("{count} resources") }
}

fn digest(digest: &Option<String>) -> &str {
    digest.as_deref().unwrap_or("nothing")
}

fn unended(creating: &[Urn]) -> String {
    creating.iter().map(|urn| format!("\n  it was creating {urn}, which may exist")).collect()
}

fn creations(created: &[(Urn, Option<ResourceId>)]) -> String {
    created
        .iter()
        .map(|(urn, id)| format!("\n  it had created {urn} with id {:?}", ResourceId::text(id.as_ref())))
        .collect()
}
