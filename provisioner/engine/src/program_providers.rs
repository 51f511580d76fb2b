//! Provider resources of a program, for a run that has not run it.

use std::fmt;

use async_trait::async_trait;

use crate::goal::Goal;

/// Source of the provider resources that the program of a stack registers. A refresh asks for them if a recorded configuration does
/// not work any more.
#[async_trait]
pub trait ProgramProviders: fmt::Debug + Send + Sync {
    /// Returns the goals of the provider resources. An input that depends on a resource is unknown.
    async fn provider_goals(&self) -> Vec<Goal>;
}
