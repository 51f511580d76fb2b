//! Reasons why a stack has not moved to another store, or not completely.

use bridge::error::Hint;
use bridge::message_text::MessageText;

use crate::store::{StackReference, StoreError};

/// Reason why a stack has not moved to another store, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Both stores are the same.
    #[error("{stack} is in {location} already: both URLs lead to the same store")]
    SameStore {
        /// The stack.
        stack: StackReference,
        /// Location of the store.
        location: String,
    },
    /// Another run has locked the stack in the target.
    #[error("{stack} cannot be locked in {location}")]
    TargetLocked {
        /// The stack.
        stack: StackReference,
        /// Location of the target.
        location: String,
        /// The lock.
        source: Box<StoreError>,
    },
    /// The target has another state of the stack.
    #[error("there is another state of {stack} in {location}")]
    TargetExists {
        /// The stack.
        stack: StackReference,
        /// Location of the target.
        location: String,
    },
    /// The state that an earlier migration has left in the target was changed since.
    #[error("the state of {stack} that an earlier migration left in {location} was changed since")]
    TargetChanged {
        /// The stack.
        stack: StackReference,
        /// Location of the target.
        location: String,
    },
    /// The target returned another checkpoint than the one that was written.
    #[error("the state of {stack} that {location} returned is not the one that was written")]
    NotEqual {
        /// The stack.
        stack: StackReference,
        /// Location of the target.
        location: String,
    },
    /// The stack is complete in the target, but a mark could not be changed: it can be used in one store at most.
    #[error("{stack} is complete in the new store, but its mark in {location} could not be changed")]
    MarkNotChanged {
        /// The stack.
        stack: StackReference,
        /// Location of the store with the mark.
        location: String,
        /// Cause of the failure.
        source: Box<StoreError>,
    },
    /// The stack has moved, but a lock could not be released.
    #[error("{stack} has moved, but its lock in {location} could not be released")]
    NotReleased {
        /// The stack.
        stack: StackReference,
        /// Location of the store with the lock.
        location: String,
        /// Cause of the failure.
        source: Box<StoreError>,
    },
}

impl Hint for MigrationError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::SameStore { .. } => "give the URL of another state storage",
            Self::TargetLocked { .. } => {
                "the lock is in the new state storage; `sc cancel` removes it there if server.yaml names that one for the moment"
            }
            Self::TargetExists { .. } => {
                "nothing was changed. Compare both with `sc stack export`, with server.yaml for each of them. If the one in the \
                 new state storage is not needed, remove it there with `sc stack rm --force`, which deletes no resources"
            }
            Self::TargetChanged { .. } => {
                "nothing was changed. A program that ignores the mark has worked there, such as `pulumi`: compare both with \
                 `pulumi stack export`. If the one there is not needed, remove it with `pulumi stack rm --force`, which deletes \
                 no resources"
            }
            Self::NotEqual { .. } => {
                "the stack is used where it was. Find out which program writes into the new one, and run again"
            }
            Self::MarkNotChanged { .. } => "run the command again: it only changes the mark then",
            Self::NotReleased { .. } => {
                "name the new state storage in server.yaml; if the next command finds the lock there, `sc cancel` removes it"
            }
        };
        Some(hint.into())
    }
}
