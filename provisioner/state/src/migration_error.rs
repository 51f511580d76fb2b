//! Reasons why a stack has not moved to another store, or not completely.

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
