//! The choice of entries that an edit applies to.

use pulumi_proto::urn::Urn;

/// Which entries are meant, by their URNs.
pub type Selection<'a> = &'a dyn Fn(&Urn) -> bool;
