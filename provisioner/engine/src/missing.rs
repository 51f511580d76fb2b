//! Resources that a refresh did not find, by provider, and the approval of their removal from the state.
//!
//! Input: the result of each read. Output: the numbers by which the caller of the engine decides. Excluded: the rule of that
//! decision, and its question.

use std::fmt;

use async_trait::async_trait;
use pulumi_proto::urn::Urn;

use crate::events::Message;

/// Results of reading the recorded resources of one provider, pending deletes and pending creates among them. Resources that the
/// program only reads do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderReadings {
    /// URNs of the providers: one, or those whose results were added.
    pub providers: Vec<Urn>,
    /// Number of the configuration. Providers of one package with equal configurations, which see the same resources, have one
    /// number.
    pub configuration: usize,
    /// Number of resources that were read.
    pub read: usize,
    /// Resources that the provider did not find.
    pub missing: Vec<MissingResource>,
    /// True if the configuration of the provider was changed after the last change of each missing resource.
    pub is_reconfigured: bool,
}

impl ProviderReadings {
    /// Adds the results of another provider.
    pub fn add(&mut self, other: Self) {
        // A provider without missing resources is no cause of any.
        self.is_reconfigured = match (self.missing.is_empty(), other.missing.is_empty()) {
            (_, true) => self.is_reconfigured,
            (true, false) => other.is_reconfigured,
            (false, false) => self.is_reconfigured && other.is_reconfigured,
        };
        self.providers.extend(other.providers);
        self.read += other.read;
        self.missing.extend(other.missing);
    }
}

/// Recorded resource that its provider did not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingResource {
    /// URN of the resource.
    pub urn: Urn,
    /// True if the resource is live and protected.
    pub protect: bool,
}

/// Decision about a refresh that would remove resources from the state because their providers did not find them.
#[async_trait]
pub trait MissingApproval: fmt::Debug + Send + Sync {
    /// Decides before the results of the refresh are recorded. The engine does not ask in a preview, nor if each resource is
    /// read when the program registers it (`run_program`): [`crate::DeploymentEnd::readings`] of a preview has the numbers.
    ///
    /// # Errors
    /// The message with which the run fails. The run records nothing then.
    async fn approve(&self, readings: &[ProviderReadings]) -> Result<(), Message>;
}
