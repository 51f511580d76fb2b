//! The seam between the engine and whoever starts providers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::type_facts::PackageTypes;
use crate::error::{Cause, Hint, cause};
use crate::provider::Provider;

/// Starts provider instances. The deployment knows why and when, the host knows packages and processes.
#[async_trait]
pub trait ProviderHost: Send + Sync + fmt::Debug {
    /// Starts an instance that nobody has configured yet, handshake done.
    ///
    /// # Errors
    /// [`HostError`] if the package is not to be had or its plugin does not start.
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError>;

    /// The folder that instances work in: relative paths of assets start there. Empty: that of this process, where instances
    /// are no processes of their own.
    fn directory(&self) -> &Path {
        Path::new("")
    }

    /// What the schema of a declared plugin, by its name, says of the types of its package. Nothing where the plugin has no
    /// schema, as with hosts that know of no schemas.
    ///
    /// # Errors
    /// [`HostError`] if the plugin does not start, does not answer, or answers with what is no schema. Nothing is known of
    /// what is secret then, or made with Construct.
    async fn type_facts(&self, _plugin: &str) -> Result<PackageTypes, HostError> {
        Ok(PackageTypes::new())
    }
}

/// Which provider is wanted: what a provider resource says of itself (provider protocol, section 8.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootRequest {
    /// The package, from the provider resource's type.
    pub package: String,
    /// Name of the provider resource; tells apart several plugins that serve one package.
    pub name: String,
    /// Version of the package; `None`: any.
    pub version: Option<String>,
    /// Where the plugin comes from; `None`: the usual place.
    pub download_url: Option<String>,
    /// Digests by platform.
    pub checksums: BTreeMap<String, String>,
}

/// Why no instance could be started: what was attempted, its cause, and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    message: String,
    hint: Option<String>,
    source: Option<Cause>,
}

impl HostError {
    /// Makes an error of what was attempted, in words without the cause.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, source: None }
    }

    /// Adds what the user can do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the cause: an error, or a text where nothing else is known.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(cause(source)), ..self }
    }

    /// Returns the cause, for an error that takes the place of this one.
    pub fn into_cause(self) -> Option<Cause> {
        self.source
    }
}

impl Hint for HostError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}
