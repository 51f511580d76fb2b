//! Reasons to refuse an edit.

use pulumi_proto::urn::{NameError, Urn};

use crate::integrity::IntegrityError;

/// Why an edit is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurgeryError {
    /// Entries that must not be lost.
    #[error("protected: {}", names(.0))]
    Protected(Vec<Urn>),
    /// Others depend on what would go.
    #[error("needed by {}", names(.0))]
    Needed(Vec<Urn>),
    /// A URN stands for several entries, of which one was meant.
    #[error("{} is recorded several times, with the ids {}", .urn.name(), .ids.join(", "))]
    Ambiguous {
        /// The URN.
        urn: Urn,
        /// The ids of its entries.
        ids: Vec<String>,
    },
    /// No entry has the id.
    #[error("none of them has the id {0}")]
    NoSuchId(String),
    /// The new name is another resource's.
    #[error("there is a resource {} of this type already", .0.name())]
    Taken(Urn),
    /// The new name cannot be one.
    #[error("{0:?} cannot be the name of a resource")]
    BadName(String, #[source] NameError),
    /// Entries refer to each other in a circle.
    #[error("these refer to each other in a circle: {}", names(.0))]
    Circle(Vec<Urn>),
    /// What is broken beyond the order and the references.
    #[error("cannot be repaired: {0}")]
    Broken(IntegrityError),
}

fn names(urns: &[Urn]) -> String {
    urns.iter().map(Urn::name).collect::<Vec<_>>().join(", ")
}
