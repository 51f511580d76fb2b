//! Registry of the provider instances of a deployment (docs/spec/engine-semantics.md#2.13).
//!
//! Input: the inputs of provider resources. Output: instances, each configured at most once, found by the references
//! that resources carry.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bridge::host::{HostError, ProviderHost};
use bridge::message_text::MessageText;
use bridge::provider::{DiffConfigRequest, DiffReply, Method, Provider, ProviderError};
use hashbrown::HashMap;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, Urn};
use tokio::sync::OnceCell;
use tracing::{Instrument as _, debug_span};

use super::instance::Instance;
use super::launch::{internal, package, parameterize, parameters, provider_request};
use super::retrying::{Retries, RetryingProvider};
use crate::jobs::Jobs;

/// Values by references to provider resources, each made once.
type ByReference<T> = Mutex<HashMap<ProviderReference, Arc<OnceCell<T>>>>;

/// Registry of the provider instances of a deployment.
#[derive(Debug)]
pub(crate) struct ProviderRegistry {
    host: Arc<dyn ProviderHost>,
    retries: Retries,
    /// Instances by the references to them.
    live: ByReference<Arc<Instance>>,
    /// Providers for DiffConfig by references to their provider resources. They are never configured.
    unconfigured: ByReference<Arc<dyn Provider>>,
    /// Providers that have not been closed.
    open: Mutex<Vec<Arc<dyn Provider>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error of a call whose provider does not start.
pub(crate) fn not_started(method: Method, error: HostError) -> ProviderError {
    let message = error.to_string();
    ProviderError::Failed { method, message, indeterminate: false, source: error.into_cause(), details: None }
}

impl ProviderRegistry {
    /// Creates a registry without instances.
    pub(crate) fn new(host: Arc<dyn ProviderHost>, retries: Retries) -> Self {
        Self { host, retries, live: Mutex::default(), unconfigured: Mutex::default(), open: Mutex::default() }
    }

    /// Returns the host that starts instances.
    pub(crate) fn host(&self) -> &dyn ProviderHost {
        &*self.host
    }

    /// Starts an instance for a provider resource with these inputs. A plugin of many packages receives the package to
    /// serve with Parameterize.
    ///
    /// # Errors
    /// [`HostError`] if the plugin does not start, cannot serve the package, or the inputs are not supported.
    pub(crate) async fn start_provider(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Arc<dyn Provider>, HostError> {
        let parameters = parameters(urn, inputs)?;
        if internal(inputs).get("envVarMappings").and_then(PropertyValue::as_map).is_some_and(|names| !names.is_empty())
        {
            let message = MessageText::new(format_args!(
                "the provider {} has envVarMappings, which sc does not support",
                urn.name()
            ));
            let hint =
                "pass environment variables to its plugin with `passEnv`, and remove envVarMappings from the provider";
            return Err(HostError::new(message).with_hint(hint));
        }
        let request = provider_request(urn, inputs, parameters.is_some());
        let span = debug_span!("start provider", package = request.package, name = request.name);
        let provider = self.host.start_provider(&request).instrument(span).await?;
        let provider = RetryingProvider::new(provider, package(urn), self.retries.clone());
        let provider: Arc<dyn Provider> = Arc::new(provider);
        lock(&self.open).push(Arc::clone(&provider));
        if let Some(parameters) = parameters {
            let package = package(urn);
            parameterize(&*provider, &package, parameters).await.map_err(|reason| {
                let message =
                    MessageText::new(format_args!("the plugin {} cannot serve the package {package}", request.package));
                HostError::new(message).with_source(reason)
            })?;
        }
        Ok(provider)
    }

    /// Returns the instance known under a reference. If there is none, stores and returns the one that `make` returns.
    pub(crate) async fn get_or_insert_with(
        &self,
        reference: &ProviderReference,
        make: impl FnOnce() -> Arc<Instance>,
    ) -> Arc<Instance> {
        let cell = Arc::clone(lock(&self.live).entry(reference.clone()).or_default());
        Arc::clone(cell.get_or_init(|| async { make() }).await)
    }

    /// Stores an instance under a reference, and returns the instance that was known under it before.
    pub(crate) fn insert(&self, reference: ProviderReference, instance: Arc<Instance>) -> Option<Arc<Instance>> {
        let cell = Arc::new(OnceCell::new_with(Some(instance)));
        lock(&self.live).insert(reference, cell).and_then(|old| old.get().cloned())
    }

    /// Returns the instance known under a reference.
    pub(crate) fn get(&self, reference: &ProviderReference) -> Option<Arc<Instance>> {
        lock(&self.live).get(reference).and_then(|cell| cell.get().cloned())
    }

    /// Returns the instance known under a reference. If there is none, starts and configures one from the recorded
    /// inputs, without CheckConfig and DiffConfig. Only one start per reference succeeds.
    ///
    /// # Errors
    /// [`HostError`] if the instance does not start.
    pub(crate) async fn load(
        &self,
        reference: &ProviderReference,
        inputs: &PropertyMap,
        jobs: &Jobs,
    ) -> Result<Arc<Instance>, HostError> {
        let cell = Arc::clone(lock(&self.live).entry(reference.clone()).or_default());
        let start = async {
            let provider = self.start_provider(&reference.urn, inputs).await?;
            Ok(Instance::configure(provider, reference.clone(), inputs, jobs))
        };
        cell.get_or_try_init(|| start).await.cloned()
    }

    /// Calls DiffConfig for a provider resource with these inputs, outside of its own registration. The call goes to a provider
    /// that is never configured: a plugin may decode the inputs of DiffConfig into the configuration with which it serves.
    ///
    /// # Errors
    /// [`ProviderError`] if the plugin does not start, or DiffConfig fails.
    pub(crate) async fn diff_config(
        &self,
        reference: &ProviderReference,
        inputs: &PropertyMap,
        request: DiffConfigRequest,
    ) -> Result<DiffReply, ProviderError> {
        let cell = Arc::clone(lock(&self.unconfigured).entry(reference.clone()).or_default());
        let provider = cell.get_or_try_init(|| self.start_provider(&reference.urn, inputs)).await;
        provider.map_err(|error| not_started(Method::DiffConfig, error))?.diff_config(request).await
    }

    /// Removes the instance known under a reference, also from all other references, and returns it, so that it can be
    /// closed.
    pub(crate) fn remove(&self, reference: &ProviderReference) -> Option<Arc<Instance>> {
        let mut live = lock(&self.live);
        let instance = live.remove(reference)?.get().cloned()?;
        live.retain(|_, cell| cell.get().is_none_or(|other| !Arc::ptr_eq(other, &instance)));
        Some(instance)
    }

    /// Removes an instance that has been closed from the open ones.
    pub(crate) fn remove_closed(&self, provider: &Arc<dyn Provider>) {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, provider));
    }

    /// Cancels the calls of every open instance.
    pub(crate) async fn cancel_all(&self) {
        let open = lock(&self.open).clone();
        futures_util::future::join_all(open.iter().map(|provider| provider.cancel())).await;
    }

    /// Closes every open instance.
    pub(crate) async fn close_all(&self) {
        let open = std::mem::take(&mut *lock(&self.open));
        futures_util::future::join_all(open.iter().map(|provider| provider.close())).await;
    }
}
