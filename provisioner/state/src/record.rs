//! Records of what a run does to the entries of a state.

use std::sync::Arc;

use super::resource::ResourceState;
use super::snapshot::OperationKind;

/// One physical entry of the state during a run. Entries of the loaded snapshot are numbered from 0 in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub u64);

/// One operation of a run that a provider is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u64);

/// Something to be remembered. A record is applied whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A provider is about to be asked to do something.
    Begin {
        /// Names the operation until its end.
        operation: OperationId,
        /// What it does.
        kind: OperationKind,
        /// What it does that to.
        subject: Subject,
    },
    /// The operation ended, well or badly; these are its effects.
    End {
        /// The operation that `Begin` named.
        operation: OperationId,
        /// What changed; nothing after a plain failure.
        effects: Vec<Effect>,
    },
    /// Something changed without an operation.
    Change(Vec<Effect>),
}

/// What an operation is done to.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A resource as it is to become, or is not recorded yet.
    Resource(Arc<ResourceState>),
    /// An entry as it stands in the list.
    Entry(EntryId),
}

/// One change of the list of entries.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A new entry, at the end of what this run finished.
    Add(EntryId, Arc<ResourceState>),
    /// An entry goes.
    Remove(EntryId),
    /// An entry changes where it stands.
    Rewrite(EntryId, Arc<ResourceState>),
    /// An entry that this run confirmed as it is: it moves behind what this run finished, unchanged.
    Keep(EntryId),
    /// The pending operations that the loaded snapshot brought along are settled.
    DropInheritedPending,
}
