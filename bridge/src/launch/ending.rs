//! End of a plugin process, by its dialect.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::process::Process;

/// Way to end a plugin process after the calls Cleanup and Cancel.
#[async_trait]
pub trait Ending: fmt::Debug + Send + Sync {
    /// Ends a process. Returns once no process of its group is left and its output is read. `grace` is the time between
    /// the last signal that the process can handle and SIGKILL.
    async fn end(&self, process: &Process, grace: Duration);

    /// Ends a process after an abort: sends only the signal on which a plugin of the dialect ends, and SIGKILL after
    /// `grace`.
    async fn abort(&self, process: &Process, grace: Duration);
}

/// Ending by SIGINT, and SIGKILL after a grace period: Pulumi's providers end on an interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt;

#[async_trait]
impl Ending for Interrupt {
    async fn end(&self, process: &Process, grace: Duration) {
        process.stop(grace).await;
    }

    async fn abort(&self, process: &Process, grace: Duration) {
        process.stop(grace).await;
    }
}
