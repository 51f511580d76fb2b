//! The engine's own provider: that of provider resources (engine semantics, section 2.13).
//!
//! Enters: what a provider resource says of itself. Leaves: instances, each configured at most once, found by the
//! reference that resources carry.

use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::{ConfigureRequest, ParameterizeRequest, Provider, ProviderError};
use futures_util::future::{BoxFuture, FutureExt as _};
use hashbrown::HashMap;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use tokio::sync::{OnceCell, mpsc, watch};

/// Input of a provider resource that holds what concerns the engine alone. Never sent to a plugin.
pub(super) const INTERNAL_KEY: &str = "__internal";
/// Input of a provider resource that holds the version of its package.
pub(super) const VERSION_KEY: &str = "version";

/// Work to be polled by the deployment beside everything else.
pub(super) type Job = BoxFuture<'static, ()>;

/// An instance that is configured, or about to be.
#[derive(Debug)]
pub(super) struct Instance {
    provider: Arc<dyn Provider>,
    state: watch::Receiver<ConfigState>,
    /// Closes once nobody has the instance any more, and it is not being configured.
    in_use: watch::Sender<()>,
}

#[derive(Clone, Debug)]
enum ConfigState {
    Pending,
    Known,
    /// A preview in which the configuration itself is unknown: nothing can be asked.
    Unknown,
    Failed(ProviderError),
}

impl Instance {
    /// Sends Configure as a job of its own. Configurations with unknowns are not sent.
    pub(super) fn configure(
        provider: Arc<dyn Provider>,
        urn: Urn,
        id: String,
        inputs: &PropertyMap,
        jobs: &mpsc::UnboundedSender<Job>,
    ) -> Arc<Self> {
        let inputs = Arc::new(visible(inputs));
        let unknown = inputs.iter().any(|(key, value)| key != VERSION_KEY && value.contains_unknowns());
        let (sender, state) = watch::channel(if unknown { ConfigState::Unknown } else { ConfigState::Pending });
        let in_use = watch::Sender::new(());
        if !unknown {
            let (provider, in_use) = (Arc::clone(&provider), in_use.clone());
            let job = async move {
                let name = urn.name().to_owned();
                let answer = provider.configure(ConfigureRequest { urn, id, inputs }).await;
                let failed = |error| ConfigState::Failed(not_configured(&name, error));
                sender.send_replace(answer.map_or_else(failed, |()| ConfigState::Known));
                drop(in_use);
            };
            // The deployment has ended if nobody takes the job; then nobody waits for it either.
            jobs.send(job.boxed()).ok();
        }
        Arc::new(Self { provider, state, in_use })
    }

    /// Gives the instance up: its provider, and what to wait for before that is closed.
    pub(super) fn retire(self: Arc<Self>) -> (Arc<dyn Provider>, impl Future<Output = ()> + Send + 'static) {
        let provider = Arc::clone(&self.provider);
        let mut in_use = self.in_use.subscribe();
        // Nothing is ever sent: the wait ends when the last owner is gone.
        (provider, async move { while in_use.changed().await.is_ok() {} })
    }

    /// The provider once it is configured; `None` where its configuration is not known yet.
    pub(super) async fn ready(&self) -> Result<Option<&Arc<dyn Provider>>, ProviderError> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, ConfigState::Pending)).await;
        match settled.as_deref() {
            Ok(ConfigState::Known) => Ok(Some(&self.provider)),
            Ok(ConfigState::Unknown) => Ok(None),
            Ok(ConfigState::Failed(error)) => Err(error.clone()),
            Ok(ConfigState::Pending) | Err(_) => {
                Err(ProviderError::Failed { method: "Configure", message: "cancelled".into(), indeterminate: false })
            }
        }
    }

    /// The provider, configured or not: for what needs no configuration.
    pub(super) fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }
}

/// What hangs on a provider fails with its words: they have to say whose they are.
fn not_configured(name: &str, error: ProviderError) -> ProviderError {
    match error {
        ProviderError::Failed { method, message, indeterminate } => {
            let message = format!("the provider {name} could not be configured: {message}");
            ProviderError::Failed { method, message, indeterminate }
        }
        other => other,
    }
}

/// The instances of a deployment.
#[derive(Debug)]
pub(super) struct Providers {
    host: Arc<dyn ProviderHost>,
    live: Mutex<HashMap<ProviderReference, Arc<OnceCell<Arc<Instance>>>>>,
    open: Mutex<Vec<Arc<dyn Provider>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Providers {
    pub(super) fn new(host: Arc<dyn ProviderHost>) -> Self {
        Self { host, live: Mutex::default(), open: Mutex::default() }
    }

    /// What starts instances.
    pub(super) fn host(&self) -> &dyn ProviderHost {
        &*self.host
    }

    /// Starts an instance for a provider resource with these inputs. A plugin of many packages is told which of them it is to
    /// serve (Parameterize).
    pub(super) async fn boot(&self, urn: &Urn, inputs: &PropertyMap) -> Result<Arc<dyn Provider>, HostError> {
        let parameters = parameters(urn, inputs)?;
        if internal(inputs).get("envVarMappings").and_then(PropertyValue::as_map).is_some_and(|names| !names.is_empty())
        {
            return Err(HostError {
                message: format!("the provider {} has envVarMappings, which sc does not serve", urn.name()),
                hint: "give its plugin what it needs with `passEnv`, and the provider none".to_owned(),
            });
        }
        let request = boot_request(urn, inputs, parameters.is_some());
        let provider = self.host.boot(&request).await?;
        lock(&self.open).push(Arc::clone(&provider));
        if let Some(parameters) = parameters {
            narrow(&*provider, &package(urn), parameters).await.map_err(|reason| HostError {
                message: format!("the plugin {} cannot serve the package {}: {reason}", request.package, package(urn)),
                hint: String::new(),
            })?;
        }
        Ok(provider)
    }

    /// The instance known under a reference, or else this one, from now on.
    pub(super) async fn known_or(
        &self,
        reference: &ProviderReference,
        make: impl FnOnce() -> Arc<Instance>,
    ) -> Arc<Instance> {
        let cell = Arc::clone(lock(&self.live).entry(reference.clone()).or_default());
        Arc::clone(cell.get_or_init(|| async { make() }).await)
    }

    /// Makes an instance known under a reference, in place of one that was known before, which is handed back.
    pub(super) fn adopt(&self, reference: ProviderReference, instance: Arc<Instance>) -> Option<Arc<Instance>> {
        let cell = Arc::new(OnceCell::new_with(Some(instance)));
        lock(&self.live).insert(reference, cell).and_then(|old| old.get().cloned())
    }

    /// The instance known under a reference.
    pub(super) fn get(&self, reference: &ProviderReference) -> Option<Arc<Instance>> {
        lock(&self.live).get(reference).and_then(|cell| cell.get().cloned())
    }

    /// The instance known under a reference, else one made from the recorded inputs: started and configured, neither
    /// checked nor compared. Once per reference.
    pub(super) async fn load(
        &self,
        reference: &ProviderReference,
        inputs: &PropertyMap,
        jobs: &mpsc::UnboundedSender<Job>,
    ) -> Result<Arc<Instance>, HostError> {
        let cell = Arc::clone(lock(&self.live).entry(reference.clone()).or_default());
        let boot = async {
            let provider = self.boot(&reference.urn, inputs).await?;
            Ok(Instance::configure(provider, reference.urn.clone(), reference.id.to_string(), inputs, jobs))
        };
        cell.get_or_try_init(|| boot).await.cloned()
    }

    /// Forgets the instance known under a reference, whatever else it is called, and hands it back to be closed.
    pub(super) fn forget(&self, reference: &ProviderReference) -> Option<Arc<Instance>> {
        let mut live = lock(&self.live);
        let instance = live.remove(reference)?.get().cloned()?;
        live.retain(|_, cell| cell.get().is_none_or(|other| !Arc::ptr_eq(other, &instance)));
        Some(instance)
    }

    /// Notes that an instance has been ended.
    pub(super) fn closed(&self, provider: &Arc<dyn Provider>) {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, provider));
    }

    /// Asks every instance to end what it is doing.
    pub(super) async fn cancel_all(&self) {
        let open = lock(&self.open).clone();
        futures_util::future::join_all(open.iter().map(|provider| provider.cancel())).await;
    }

    /// Ends every instance.
    pub(super) async fn close_all(&self) {
        let open = std::mem::take(&mut *lock(&self.open));
        futures_util::future::join_all(open.iter().map(|provider| provider.close())).await;
    }
}

/// The configuration as plugins see it.
pub(super) fn visible(inputs: &PropertyMap) -> PropertyMap {
    inputs.iter().filter(|(key, _)| *key != INTERNAL_KEY).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The package of a provider resource.
fn package(urn: &Urn) -> String {
    TypeToken::new(urn.type_token()).provider_package().unwrap_or_default().to_owned()
}

/// What concerns the engine alone. States of long ago hold these keys at the root.
fn internal(inputs: &PropertyMap) -> &PropertyMap {
    inputs.get(INTERNAL_KEY).and_then(PropertyValue::as_map).unwrap_or(inputs)
}

fn text(map: &PropertyMap, key: &str) -> Option<String> {
    map.get(key).and_then(PropertyValue::as_str).map(str::to_owned)
}

/// What narrows the plugin of a provider resource to its package; `None` where the plugin has no other.
fn parameters(urn: &Urn, inputs: &PropertyMap) -> Result<Option<ParameterizeRequest>, HostError> {
    let Some(sealed) = text(internal(inputs), "parameterization") else { return Ok(None) };
    let value = BASE64.decode(sealed).map_err(|error| HostError {
        message: format!("the parameters of the provider {} are not base64: {error}", urn.name()),
        hint: String::new(),
    })?;
    let version = text(inputs, VERSION_KEY).unwrap_or_default();
    Ok(Some(ParameterizeRequest::Value { name: package(urn), version, value }))
}

/// Has a plugin serve one package from now on.
async fn narrow(provider: &dyn Provider, package: &str, parameters: ParameterizeRequest) -> Result<(), String> {
    let reply = provider.parameterize(parameters).await.map_err(|error| error.to_string())?;
    if reply.name == package { Ok(()) } else { Err(format!("it serves {:?} instead", reply.name)) }
}

/// `of_many`: the plugin is not that of the package, but one that serves many.
fn boot_request(urn: &Urn, inputs: &PropertyMap, of_many: bool) -> BootRequest {
    let internal = internal(inputs);
    let (name, version) = if of_many { (text(internal, "name"), text(internal, VERSION_KEY)) } else { (None, None) };
    let checksums = internal.get("pluginChecksums").and_then(PropertyValue::as_map);
    BootRequest {
        package: name.unwrap_or_else(|| package(urn)),
        name: urn.name().to_owned(),
        version: if of_many { version } else { text(inputs, VERSION_KEY) },
        download_url: text(internal, "pluginDownloadURL"),
        checksums: checksums
            .into_iter()
            .flatten()
            .filter_map(|(platform, digest)| Some((platform.clone(), digest.as_str()?.to_owned())))
            .collect(),
    }
}
