//! Instances that the provider resources of a plugin share if they are configured alike (docs/hosting.md).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::instance::{Configuration, Instance, RunId};
use super::pool::Pooled as _;
use crate::provider::ProviderError;

/// Shared instances of a plugin in a run.
#[derive(Default)]
pub(super) struct SharedInstances(Mutex<Vec<Weak<SharedInstance>>>);

/// Instance that several leases may have. It has one configuration, or none yet.
#[derive(Default)]
pub(super) struct SharedInstance {
    instance: OnceCell<Arc<Instance>>,
    /// Configuration of the leases that have called Configure, also while it is not configured.
    configuration: OnceLock<Configuration>,
    configured: OnceCell<Result<(), ProviderError>>,
    is_cancelled: AtomicBool,
}

impl SharedInstances {
    /// Returns an instance for calls that need no configuration: any that another lease can use, else a new one, not started
    /// yet.
    pub(super) fn any(&self) -> Arc<SharedInstance> {
        let mut known = self.lock();
        let found = find(&mut known, SharedInstance::is_usable);
        found.unwrap_or_else(|| add(&mut known, SharedInstance::default()))
    }

    /// Returns the instance with a configuration: one that is configured alike, else `current` if it has no configuration
    /// yet, else a new one, not started yet.
    pub(super) fn with_configuration(
        &self,
        wanted: &Configuration,
        current: &Arc<SharedInstance>,
    ) -> Arc<SharedInstance> {
        let mut known = self.lock();
        let is_alike = |shared: &SharedInstance| {
            shared.configuration.get().is_some_and(|known| known.is_alike(wanted)) && shared.is_usable()
        };
        if let Some(alike) = find(&mut known, is_alike) {
            return alike;
        }
        if current.configuration.set(wanted.clone()).is_ok() {
            return Arc::clone(current);
        }
        add(&mut known, SharedInstance { configuration: wanted.clone().into(), ..SharedInstance::default() })
    }

    /// Ends the use of an instance by one lease. Returns the instance if no other lease has it.
    pub(super) fn release(&self, shared: Arc<SharedInstance>) -> Option<Arc<Instance>> {
        // Locked, because a search has instances for a moment.
        let _known = self.lock();
        Arc::into_inner(shared)?.instance.into_inner()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<SharedInstance>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(
    known: &mut Vec<Weak<SharedInstance>>,
    is_wanted: impl Fn(&SharedInstance) -> bool,
) -> Option<Arc<SharedInstance>> {
    known.retain(|shared| shared.strong_count() > 0);
    known.iter().filter_map(Weak::upgrade).find(|shared| is_wanted(shared))
}

fn add(known: &mut Vec<Weak<SharedInstance>>, shared: SharedInstance) -> Arc<SharedInstance> {
    let shared = Arc::new(shared);
    known.push(Arc::downgrade(&shared));
    shared
}

impl SharedInstance {
    /// Returns whether a further lease can use the instance: it has not exited, and was not used in a way that its next user
    /// could notice.
    fn is_usable(&self) -> bool {
        self.instance.get().is_none_or(|instance| instance.is_alive() && !instance.is_used_up())
    }

    /// Returns the instance, if it was started.
    pub(super) fn instance(&self) -> Option<&Arc<Instance>> {
        self.instance.get()
    }

    /// Returns the instance, which `start` returns for the first caller. `start` receives the configuration that it will get,
    /// if that is known.
    pub(super) async fn started<E>(
        &self,
        start: impl AsyncFnOnce(Option<&Configuration>) -> Result<Arc<Instance>, E>,
    ) -> Result<&Arc<Instance>, E> {
        let init = || async {
            let instance = start(self.configuration.get()).await?;
            if let Some(known) = instance.configuration.get() {
                // One that an earlier phase of the run has configured.
                self.configuration.set(known.clone()).unwrap_or_default();
            }
            Ok(instance)
        };
        self.instance.get_or_try_init(init).await
    }

    /// Configures an instance that was started, unless it is configured. All callers get the result of one Configure: a call of
    /// their own would end alike.
    ///
    /// # Errors
    /// [`ProviderError`] of Configure. It uses the instance up, so that a later lease gets another one.
    pub(super) async fn configure(
        &self,
        instance: &Instance,
        configuration: Configuration,
        run: RunId,
    ) -> Result<(), ProviderError> {
        let configure = || async {
            match instance.configuration.get() {
                Some(_) => Ok(()),
                None => instance.configure(configuration, run).await,
            }
        };
        self.configured.get_or_init(configure).await.clone()
    }

    /// Returns true at the first call.
    pub(super) fn is_first_cancel(&self) -> bool {
        !self.is_cancelled.swap(true, Ordering::AcqRel)
    }
}
