//! Instances that several leases of a plugin have at the same time (docs/hosting.md).
//!
//! Leases share the instance that replies to CheckConfig and DiffConfig of their provider resource until one of them configures
//! it. Provider resources of a plugin that allows it also share their configured instances, and have one unconfigured instance
//! together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::instance::{CheckedConfig, Configuration, Instance, RunId};
use super::pool::Pooled as _;
use crate::provider::ProviderError;

/// Shared instances of a plugin in a run.
#[derive(Default)]
pub(super) struct SharedInstances(Mutex<Vec<Weak<SharedInstance>>>);

/// Instance that several leases may have.
pub(super) struct SharedInstance {
    purpose: Purpose,
    instance: OnceCell<Arc<Instance>>,
    configured: OnceCell<Result<(), ProviderError>>,
    is_cancelled: AtomicBool,
}

/// Calls for which leases have an instance.
pub(super) enum Purpose {
    /// CheckConfig and DiffConfig: the instance is not configured.
    CheckConfig(CheckedConfig),
    /// The calls after Configure with this configuration, also while it is not configured.
    Serve(Configuration),
    /// Calls without a Configure.
    Unconfigured,
}

impl Purpose {
    /// Returns whether a lease with one purpose can have the instance of another.
    fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::CheckConfig(known), Self::CheckConfig(wanted)) => known == wanted,
            (Self::Serve(known), Self::Serve(wanted)) => known.is_alike(wanted),
            (Self::CheckConfig(_) | Self::Serve(_) | Self::Unconfigured, _) => false,
        }
    }
}

impl SharedInstances {
    /// Returns the instance for a purpose: one that another lease has, else a new one, not started yet.
    pub(super) fn get(&self, purpose: Purpose) -> Arc<SharedInstance> {
        let mut known = self.lock();
        known.retain(|shared| shared.strong_count() > 0);
        let is_wanted = |shared: &Arc<SharedInstance>| shared.purpose.is_alike(&purpose) && shared.is_usable();
        if let Some(found) = known.iter().filter_map(Weak::upgrade).find(is_wanted) {
            return found;
        }
        let shared = SharedInstance::new(purpose);
        known.push(Arc::downgrade(&shared));
        shared
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

impl SharedInstance {
    /// Returns an instance, not started yet, that no other lease finds.
    pub(super) fn new(purpose: Purpose) -> Arc<Self> {
        let (instance, configured) = (OnceCell::new(), OnceCell::new());
        Arc::new(Self { purpose, instance, configured, is_cancelled: AtomicBool::new(false) })
    }

    /// Returns whether a further lease can use the instance: it has not exited, and was not used in a way that its next user
    /// could notice.
    fn is_usable(&self) -> bool {
        self.instance.get().is_none_or(|instance| instance.is_alive() && !instance.is_used_up())
    }

    pub(super) fn instance(&self) -> Option<&Arc<Instance>> {
        self.instance.get()
    }

    /// Returns the instance, which `start` returns for the first caller.
    pub(super) async fn started<E>(
        &self,
        start: impl AsyncFnOnce() -> Result<Arc<Instance>, E>,
    ) -> Result<&Arc<Instance>, E> {
        self.instance.get_or_try_init(|| async { start().await }).await
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
        self.configured.get_or_init(|| instance.configure(configuration, run)).await.clone()
    }

    /// Returns true at the first call.
    pub(super) fn is_first_cancel(&self) -> bool {
        !self.is_cancelled.swap(true, Ordering::AcqRel)
    }
}
