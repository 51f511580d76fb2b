//! The pool of the instances of all plugins of a process.

use std::fmt;
use std::sync::Arc;

use super::HostError;
use super::connection_guard::ConnectionGuard;
use super::instance::{Instance, ProcessKey};
use super::pool::Pool;

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
}

impl PluginPool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self(Arc::new(Shared { instances: Pool::new(), connection_guard: Arc::default() }))
    }

    /// Ends all plugins, also those that start. Returns once no process is left. No plugin is started afterwards.
    pub async fn close(&self) {
        self.0.instances.close().await;
    }

    pub(super) fn instances(&self) -> &InstancePool {
        &self.0.instances
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
