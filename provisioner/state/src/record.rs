//! Records of the changes that a run makes to the entries of a state.

use std::sync::Arc;

use super::resource::ResourceState;
use super::snapshot::OperationKind;

/// Id of an entry of the state during a run. Entries of the loaded snapshot are numbered from 0 in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub u64);

/// Id of one provider operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u64);

/// Record of a run. A record is applied as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An operation that may call a provider is about to begin. A second `Begin` of the same operation replaces the
    /// subject: the reply of a Create was lost, except for the id.
    Begin {
        /// Id of the operation until its end.
        operation: OperationId,
        /// Kind of the operation.
        kind: OperationKind,
        /// Resource or entry that the operation changes.
        subject: Subject,
    },
    /// The operation succeeded or failed; these are its effects.
    End {
        /// Id from the `Begin` record.
        operation: OperationId,
        /// Changes of the list; empty after a failure without effects.
        effects: Vec<Effect>,
    },
    /// Changes of the list that belong to no operation.
    Change(Vec<Effect>),
}

/// Resource or entry that an operation changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// Resource as it is to become, or resource that is not recorded yet.
    Resource(Arc<ResourceState>),
    /// Entry of the list in its current state.
    Entry(EntryId),
}

/// Change of the list of entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Adds an entry, which is confirmed: it comes after the entries confirmed so far.
    Add(EntryId, Arc<ResourceState>),
    /// Removes an entry.
    Remove(EntryId),
    /// Replaces the state of an entry in its place.
    Rewrite(EntryId, Arc<ResourceState>),
    /// Confirms an entry without a change: moves it to the end of the confirmed entries.
    Keep(EntryId),
    /// Drops the pending operations of the loaded snapshot. Not written by this version; read from older journals.
    DropInheritedPending,
}
