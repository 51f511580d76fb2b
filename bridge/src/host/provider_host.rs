//! The interface through which the engine starts providers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::connection_guard::ConnectionGuard;
use super::package_types::PackageTypes;
use crate::error::{Cause, Hint, cause};
use crate::message_text::MessageText;
use crate::provider::Provider;

/// Starts provider instances. The engine decides when; the host manages packages and processes.
#[async_trait]
pub trait ProviderHost: Send + Sync + fmt::Debug {
    /// Returns a provider that is not configured. Its instance may start at the first call that needs one.
    ///
    /// # Errors
    /// [`HostError`] if no plugin serves the package or the plugin does not start.
    async fn start_provider(&self, request: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError>;

    /// Returns the working directory of instances, against which relative paths of assets are resolved. Empty if
    /// instances are not processes: it is the working directory of this process then.
    fn directory(&self) -> &Path {
        Path::new("")
    }

    /// Returns the guard of the endpoints that instances call. The default is a new guard for each call, which emits no
    /// events.
    fn connection_guard(&self) -> Arc<ConnectionGuard> {
        Arc::default()
    }

    /// Returns information about the types of a package from its schema. `plugin` is the name of a declared plugin.
    /// Empty if the plugin has no schema or the host does not support schemas.
    ///
    /// # Errors
    /// [`HostError`] if the plugin does not start, does not reply, or its schema is invalid. Secret properties and
    /// components are unknown then.
    async fn package_types(&self, _plugin: &str) -> Result<PackageTypes, HostError> {
        Ok(PackageTypes::default())
    }
}

/// Provider to start, described by its provider resource (docs/spec/provider-protocol.md#8.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderRequest {
    /// Package of the plugin: that in the type of the provider resource, or the one that the plugin serves without parameters.
    pub package: String,
    /// Package in the type of the provider resource, if the plugin serves it after Parameterize.
    pub subpackage: Option<String>,
    /// Name of the provider resource. Selects among several plugins that serve the package.
    pub name: String,
    /// Version of the plugin; `None`: any version.
    pub version: Option<String>,
    /// URL to download the plugin from; `None`: the default location. Recorded in the state of the provider resource.
    /// [`PluginHost`](super::PluginHost) ignores it: the declaration of the plugin names the source.
    pub download_url: Option<String>,
    /// Checksums by platform. Recorded in the state of the provider resource. [`PluginHost`](super::PluginHost) ignores
    /// them: the declaration of the plugin has the checksum.
    pub checksums: BTreeMap<String, String>,
}

/// Reason why a request to the host failed: the attempted action, its cause and a hint.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    message: MessageText,
    /// Boxed: an error is passed on by value.
    hint: Option<Box<MessageText>>,
    source: Option<Cause>,
}

impl HostError {
    /// Creates an error. `message` names the attempted action without the cause.
    pub fn new(message: impl Into<MessageText>) -> Self {
        Self { message: message.into(), hint: None, source: None }
    }

    /// Adds the next step for the user.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<MessageText>) -> Self {
        Self { hint: Some(Box::new(hint.into())), ..self }
    }

    /// Adds the cause: an error, or a text if there is no error value.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(cause(source)), ..self }
    }

    /// Returns the cause, for an error that replaces this one.
    pub fn into_cause(self) -> Option<Cause> {
        self.source
    }
}

impl Hint for HostError {
    fn hint(&self) -> Option<MessageText> {
        self.hint.as_deref().cloned()
    }
}
