//! Ages of releases, from which on ranges and `latest` accept them.

use std::fmt;
use std::time::Duration;

/// Age of releases that a policy demands, whatever a declaration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyAge {
    /// Age from which on a release is accepted.
    pub minimum: Duration,
    /// True if a release is accepted whose server tells no time of its publication.
    pub allows_undated: bool,
}

/// Origin of the age from which on a release is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeRule {
    /// The declaration of the plugin, or its default.
    Declaration,
    /// The policy.
    Policy,
}

impl fmt::Display for AgeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declaration => "source.minimumAge",
            Self::Policy => "minimumAge of the policy",
        })
    }
}
