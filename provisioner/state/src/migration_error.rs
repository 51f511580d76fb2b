//! Reasons why a stack cannot move to another store.

use crate::store::{StackReference, StoreError};

/// Reason why a stack cannot move to another store. It is used in its old store then.
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
    /// The stack is complete in the target, but has no mark in the source: it can be used in both.
    #[error("{stack} is complete in the new store, but could not be marked as moved in {location}")]
    NotMarked {
        /// The stack.
        stack: StackReference,
        /// Location of the source.
        location: String,
        /// Cause of the failure.
        source: Box<StoreError>,
    },
}
