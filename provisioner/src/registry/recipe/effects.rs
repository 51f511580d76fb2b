//! Effects of recipes that are no resources: changes outside of the state, which a run makes and a preview does not.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::hole::Hole;

/// API of Google that resources need.
#[derive(Clone, Debug)]
pub struct GoogleApi {
    /// Name of the API, such as `redis.googleapis.com`.
    pub service: &'static str,
    /// Project in which the API is switched on.
    pub project: Hole,
    /// Credentials of an account that may switch it on, as JSON.
    pub credentials: Hole,
}

impl GoogleApi {
    /// Returns the project and the credentials as inputs of a node.
    pub(super) fn inputs(&self) -> Value {
        json!({ (Self::PROJECT): self.project, (Self::CREDENTIALS): self.credentials })
    }

    /// Name of the input with the project.
    pub(super) const PROJECT: &str = "project";
    /// Name of the input with the credentials.
    pub(super) const CREDENTIALS: &str = "credentials";
}

/// Effects, which the operation provides.
#[async_trait]
pub trait Effects: Send + Sync {
    /// Switches on an API of Google in a project, and returns once it is on. `credentials`: JSON of an account.
    ///
    /// # Errors
    /// Says why the API cannot be switched on, without secrets.
    async fn enable_google_api(&self, project: &str, service: &str, credentials: &str) -> Result<(), String>;
}
