//! Instance of a provider: configured once, used by all resources that refer to it.

use std::sync::Arc;

use bridge::provider::{ConfigureRequest, Method, Provider, ProviderError};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::ProviderReference;
use tokio::sync::watch;

use crate::goal::{VERSION_KEY, visible};
use crate::jobs::Jobs;

/// An instance that is configured, or about to be.
#[derive(Debug)]
pub(crate) struct Instance {
    provider: Arc<dyn Provider>,
    state: watch::Receiver<ConfigState>,
    /// Sender without messages, cloned into the job that configures the instance. The channel closes once all owners
    /// are dropped and the job has ended.
    in_use: watch::Sender<()>,
}

#[derive(Clone, Debug)]
enum ConfigState {
    Pending,
    Known,
    /// The configuration has unknown values, as in a preview: the provider cannot be called.
    Unknown,
    Failed(ProviderError),
}

impl Instance {
    /// Creates an instance, and sends Configure as a job of its own. A configuration with unknown values is not sent.
    pub(crate) fn configure(
        provider: Arc<dyn Provider>,
        ProviderReference { urn, id }: ProviderReference,
        inputs: &PropertyMap,
        jobs: &Jobs,
    ) -> Arc<Self> {
        let inputs = Arc::new(visible(inputs));
        let unknown = inputs.iter().any(|(key, value)| key != VERSION_KEY && value.contains_unknowns());
        let (sender, state) = watch::channel(if unknown { ConfigState::Unknown } else { ConfigState::Pending });
        let in_use = watch::Sender::new(());
        if !unknown {
            let (provider, in_use) = (Arc::clone(&provider), in_use.clone());
            let job = async move {
                let name = urn.name().to_owned();
                let reply = provider.configure(ConfigureRequest { urn, id, inputs }).await;
                let failed = |error| ConfigState::Failed(not_configured(&name, error));
                sender.send_replace(reply.map_or_else(failed, |()| ConfigState::Known));
                drop(in_use);
            };
            // A deployment that has ended takes no job, and has no caller that waits for the configuration.
            jobs.start(job).ok();
        }
        Arc::new(Self { provider, state, in_use })
    }

    /// Gives the instance up. Returns its provider, and a future that ends once nothing uses the instance any more.
    pub(crate) fn retire(self: Arc<Self>) -> (Arc<dyn Provider>, impl Future<Output = ()> + Send + 'static) {
        let provider = Arc::clone(&self.provider);
        let mut in_use = self.in_use.subscribe();
        // No message is ever sent: the wait ends when the last owner is dropped.
        (provider, async move { while in_use.changed().await.is_ok() {} })
    }

    /// Returns the provider once it is configured; `None` if its configuration is not known yet.
    ///
    /// # Errors
    /// [`ProviderError`] if Configure failed or was cancelled.
    pub(crate) async fn ready(&self) -> Result<Option<&Arc<dyn Provider>>, ProviderError> {
        let mut state = self.state.clone();
        let result = state.wait_for(|state| !matches!(state, ConfigState::Pending)).await;
        match result.as_deref() {
            Ok(ConfigState::Known) => Ok(Some(&self.provider)),
            Ok(ConfigState::Unknown) => Ok(None),
            Ok(ConfigState::Failed(error)) => Err(error.clone()),
            Ok(ConfigState::Pending) | Err(_) => Err(ProviderError::Failed {
                method: Method::Configure,
                message: "cancelled".into(),
                indeterminate: false,
                source: None,
                details: None,
            }),
        }
    }

    /// Returns the provider, configured or not, for calls that need no configuration.
    pub(crate) fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }
}

/// Adds the name of the provider to the error of its configuration, which all resources of the provider fail with.
fn not_configured(name: &str, error: ProviderError) -> ProviderError {
    error.map_message(|message| format!("the provider {name} could not be configured: {message}"))
}
