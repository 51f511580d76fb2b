//! Calls of `simplecontainer.plugin.v1`, a service that a plugin may serve in addition to its provider.

use std::sync::atomic::Ordering;

use pulumi_proto::plugin_v1::health_check_response::Status as Health;
use pulumi_proto::plugin_v1::{AuthConfig, CleanupRequest, HealthCheckRequest, InitializeRequest};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, EncodeOptions, Unknowns, encode};

use super::client::GrpcProvider;
use super::errors::none_if_unimplemented;
use super::plugin_init::PluginInit;
use super::procedures::{Cleanup, HealthCheck, Initialize};
use crate::provider::{Method, ProviderError};

impl GrpcProvider {
    /// Calls Initialize and HealthCheck, if the plugin serves them. Called exactly once per process, after Configure.
    pub(super) async fn initialize(&self) -> Result<(), ProviderError> {
        let Some(init) = self.init.get() else { return Ok(()) };
        let message = initialize_message(init)?;
        self.initialized.store(true, Ordering::Release);
        let failed = |error| self.initialization_error(error);

        let limit = self.limits.configure;
        none_if_unimplemented(self.call_within::<Initialize>(limit, &message).await).map_err(failed)?;

        let health = self.call_within::<HealthCheck>(limit, &HealthCheckRequest {}).await;
        let health = none_if_unimplemented(health).map_err(failed)?;
        match health {
            None => Ok(()),
            Some(health) if health.status() == Health::Serving => Ok(()),
            Some(health) => {
                let why = if health.message.is_empty() { "it reports that it is not serving" } else { &health.message };
                let message = why.to_owned();
                Err(failed(ProviderError::Failed {
                    method: Method::HealthCheck,
                    message,
                    indeterminate: false,
                    source: None,
                    details: None,
                }))
            }
        }
    }

    /// Calls Cleanup if Initialize was called, even if it failed. Ignores errors: the plugin is stopped afterwards.
    pub(super) async fn cleanup(&self) {
        if self.initialized.swap(false, Ordering::AcqRel) {
            self.call_within::<Cleanup>(self.limits.cancel, &CleanupRequest {}).await.ok();
        }
    }

    /// Adds to an error that the initialization failed. Leaves other errors, such as that of an exited plugin,
    /// unchanged.
    fn initialization_error(&self, error: ProviderError) -> ProviderError {
        error.map_message(|message| format!("failed to initialize plugin {}: {message}", self.name))
    }
}

fn initialize_message(init: &PluginInit) -> Result<InitializeRequest, ProviderError> {
    let config_file: PropertyMap =
        [("project".to_owned(), init.project.as_str().into()), ("stack".to_owned(), init.stack.as_str().into())].into();
    let auth = init.auth.iter().map(|(name, entry)| {
        Ok((name.clone(), AuthConfig { r#type: entry.kind.clone(), config: Some(encode_plain(&entry.config)?) }))
    });
    Ok(InitializeRequest {
        config_file: Some(encode_plain(&config_file)?),
        secrets: init.secrets.clone(),
        auth: auth.collect::<Result<_, ProviderError>>()?,
        plugin_config: Some(encode_plain(&init.config)?),
    })
}

/// Encodes a property map without secrets, references and output values: the service does not support them.
fn encode_plain(bag: &PropertyMap) -> Result<Bag, ProviderError> {
    let options = EncodeOptions {
        unknowns: Unknowns::Drop,
        keep_secrets: false,
        keep_resources: false,
        keep_outputs: false,
        keep_bytes: false,
        elide_assets: false,
    };
    encode(bag, &options).map_err(|error| ProviderError::Failed {
        method: Method::Initialize,
        message: error.to_string(),
        indeterminate: false,
        source: None,
        details: None,
    })
}
