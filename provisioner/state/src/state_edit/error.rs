//! Errors of state edits.

use pulumi_proto::urn::{NameError, Urn};

use crate::integrity::IntegrityError;

/// Reason to refuse a state edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateEditError {
    /// The edit would remove protected entries.
    #[error("protected resources cannot be removed: {}", names(.0))]
    Protected(Vec<Urn>),
    /// Other entries depend on the entries to remove.
    #[error("other resources depend on the selection: {}", names(.0))]
    HasDependents(Vec<Urn>),
    /// A URN has several entries, of which the edit needs one.
    #[error("{} is recorded several times, with the ids {}", .urn.name(), .ids.join(", "))]
    Ambiguous {
        /// The URN.
        urn: Urn,
        /// Ids of its entries.
        ids: Vec<String>,
    },
    /// No selected entry has the id.
    #[error("none of the selected resources has the id {0}")]
    NoSuchId(String),
    /// Another resource has the new name.
    #[error("there is a resource {} of this type already", .0.name())]
    NameTaken(Urn),
    /// The new name is not a valid resource name.
    #[error("{0:?} cannot be the name of a resource")]
    InvalidName(String, #[source] NameError),
    /// Entries refer to each other in a cycle.
    #[error("these resources refer to each other in a cycle: {}", names(.0))]
    Cycle(Vec<Urn>),
    /// The snapshot has violations that a repair cannot remove.
    #[error("the state cannot be repaired: {0}")]
    Unrepairable(IntegrityError),
}

fn names(urns: &[Urn]) -> String {
    urns.iter().map(Urn::name).collect::<Vec<_>>().join(", ")
}
