//! The pool of the instances of all plugins of a process.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OnceCell;

use super::HostError;
use super::connection_guard::ConnectionGuard;
use super::instance::{Instance, ProcessKey};
use super::pool::Pool;
use super::registration_service::RegistrationEndpoint;
use crate::launch::PluginRegistrations;

/// Pool of instances by what they have in common.
pub(super) type InstancePool = Pool<ProcessKey, Instance, HostError>;

/// Pool of running plugins, shared by all runs of a process (docs/hosting.md). Clones share it.
///
/// # Invariants
/// No two runs use one instance at the same time. An instance is given to another run only if its package is verified, and
/// was configured by none.
#[derive(Clone)]
pub struct PluginPool(Arc<Shared>);

struct Shared {
    instances: InstancePool,
    connection_guard: Arc<ConnectionGuard>,
    registrations: OnceCell<RegistrationEndpoint>,
    has_warned_of_sandbox: AtomicBool,
}

impl PluginPool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            instances: Pool::new(),
            connection_guard: Arc::default(),
            registrations: OnceCell::new(),
            has_warned_of_sandbox: AtomicBool::new(false),
        }))
    }

    /// Ends all plugins, also those that start. Returns once no process is left. No plugin is started afterwards.
    pub async fn close(&self) {
        self.0.instances.close().await;
    }

    /// Returns the host of registrations. Opens its socket on first use, in one of the folders.
    ///
    /// # Errors
    /// Returns an error if there is no folder for the socket, or it cannot be opened. The next call tries again.
    pub(super) async fn registrations(&self, folders: &[PathBuf]) -> io::Result<PluginRegistrations> {
        let open = async || RegistrationEndpoint::open(folders, self.connection_guard());
        Ok(self.0.registrations.get_or_try_init(open).await?.registrations().clone())
    }

    pub(super) fn instances(&self) -> &InstancePool {
        &self.0.instances
    }

    /// Returns true at the first call.
    pub(super) fn is_first_warning_of_sandbox(&self) -> bool {
        !self.0.has_warned_of_sandbox.swap(true, Ordering::Relaxed)
    }

    /// Returns the guard of the endpoints that plugins call.
    pub(super) fn connection_guard(&self) -> Arc<ConnectionGuard> {
        Arc::clone(&self.0.connection_guard)
    }
}

impl Default for PluginPool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PluginPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginPool").finish_non_exhaustive()
    }
}
