//! The context of a call to a resource type or a function.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::root::Root;

/// The part of the process that a call may use.
#[derive(Clone)]
pub(crate) struct Context {
    /// The configured root folder.
    pub(crate) root: Arc<Root>,
    /// Cancelled when the engine calls Cancel or the process stops.
    pub(crate) cancelled: CancellationToken,
}
