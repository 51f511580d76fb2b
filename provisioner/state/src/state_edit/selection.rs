//! Selection of the entries that a state edit applies to.

use pulumi_proto::urn::Urn;

/// Predicate that selects entries by their URNs.
pub type Selection<'a> = &'a dyn Fn(&Urn) -> bool;
