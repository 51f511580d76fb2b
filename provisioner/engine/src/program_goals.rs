//! Goals of the resources of a program, for a run that has not run it.

use std::fmt;

use async_trait::async_trait;

use crate::goal::Goal;

/// Source of the goals of the custom resources that the program of a stack registers. A refresh asks for them: they say which
/// inputs are secret, and how a provider is configured whose recorded configuration does not work any more.
#[async_trait]
pub trait ProgramGoals: fmt::Debug + Send + Sync {
    /// Returns the goals of the custom resources, provider resources included. An input that depends on a resource is unknown.
    async fn goals(&self) -> Vec<Goal>;
}
