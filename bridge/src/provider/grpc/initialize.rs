//! What a plugin may serve beside its provider: `simplecontainer.plugin.v1`. A plugin without it works just as well.

use std::sync::atomic::Ordering;

use pulumi_proto::plugin_v1::health_check_response::Status as Health;
use pulumi_proto::plugin_v1::{AuthConfig, CleanupRequest, HealthCheckRequest, InitializeRequest};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, EncodeOptions, Unknowns, encode};

use super::client::GrpcProvider;
use super::errors::unless_unimplemented;
use super::plugin_init::PluginInit;
use super::procedures::{Cleanup, HealthCheck, Initialize};
use crate::provider::{Method, ProviderError};

impl GrpcProvider {
    /// Initialize, then HealthCheck. Exactly once per process, as Configure is.
    pub(super) async fn initialize(&self) -> Result<(), ProviderError> {
        let Some(init) = &self.init else { return Ok(()) };
        let message = message(init)?;
        self.initialized.store(true, Ordering::Release);
        let failed = |error| self.not_initialized(error);

        let limit = self.limits.configure;
        unless_unimplemented(self.call_within::<Initialize>(limit, &message).await).map_err(failed)?;

        let health = self.call_within::<HealthCheck>(limit, &HealthCheckRequest {}).await;
        let health = unless_unimplemented(health).map_err(failed)?;
        match health {
            None => Ok(()),
            Some(health) if health.status() == Health::Serving => Ok(()),
            Some(health) => {
                let why = if health.message.is_empty() { "it says that it cannot work" } else { &health.message };
                let message = why.to_owned();
                Err(failed(ProviderError::Failed {
                    method: Method::HealthCheck,
                    message,
                    indeterminate: false,
                    source: None,
                }))
            }
        }
    }

    /// Cleanup, if the plugin was initialized. It is ended afterwards, whatever it answers.
    pub(super) async fn cleanup(&self) {
        if self.initialized.swap(false, Ordering::AcqRel) {
            self.call_within::<Cleanup>(self.limits.cancel, &CleanupRequest {}).await.ok();
        }
    }

    /// The error of a plugin that does not let itself be initialized. A dead one says that itself.
    fn not_initialized(&self, error: ProviderError) -> ProviderError {
        match error {
            ProviderError::Failed { method, message, indeterminate, source } => ProviderError::Failed {
                method,
                message: format!("failed to initialize plugin {}: {message}", self.name),
                indeterminate,
                source,
            },
            other => other,
        }
    }
}

fn message(init: &PluginInit) -> Result<InitializeRequest, ProviderError> {
    let config_file: PropertyMap =
        [("project".to_owned(), init.project.as_str().into()), ("stack".to_owned(), init.stack.as_str().into())].into();
    let auth = init.auth.iter().map(|(name, entry)| {
        Ok((name.clone(), AuthConfig { r#type: entry.kind.clone(), config: Some(plain(&entry.config)?) }))
    });
    Ok(InitializeRequest {
        config_file: Some(plain(&config_file)?),
        secrets: init.secrets.clone(),
        auth: auth.collect::<Result<_, ProviderError>>()?,
        plugin_config: Some(plain(&init.config)?),
    })
}

/// A bag without any marks: the service knows nothing of them.
fn plain(bag: &PropertyMap) -> Result<Bag, ProviderError> {
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
    })
}
