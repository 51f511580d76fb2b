//! Concurrent jobs of a deployment, polled by one task.

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

/// Job that the deployment polls until it is done.
pub(crate) type Job = BoxFuture<'static, ()>;

/// Error of a job that cannot start: the deployment has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeploymentEnded;

/// Sender of jobs to the deployment.
#[derive(Clone, Debug)]
pub(crate) struct Jobs(mpsc::UnboundedSender<Job>);

impl Jobs {
    /// Starts a job, which goes on even if its caller stops waiting for it.
    ///
    /// # Errors
    /// [`DeploymentEnded`] if the deployment accepts no more jobs.
    pub(crate) fn start(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), DeploymentEnded> {
        self.0.send(work.boxed()).map_err(|_| DeploymentEnded)
    }
}

/// Jobs of a deployment.
#[derive(Debug)]
pub(crate) struct JobQueue {
    incoming: mpsc::UnboundedReceiver<Job>,
    running: FuturesUnordered<Job>,
}

impl JobQueue {
    /// Creates a queue, and the sender of its jobs.
    pub(crate) fn new() -> (Jobs, Self) {
        let (sender, incoming) = mpsc::unbounded_channel();
        (Jobs(sender), Self { incoming, running: FuturesUnordered::new() })
    }

    /// Polls all jobs until `until` is done.
    pub(crate) async fn run_until<T>(&mut self, until: impl Future<Output = T>) -> T {
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                Some(job) = self.incoming.recv() => self.running.push(job),
                Some(()) = self.running.next() => {}
                output = &mut until => return output,
            }
        }
    }

    /// Polls all jobs until none is left.
    pub(crate) async fn run_to_end(&mut self) {
        loop {
            while let Ok(job) = self.incoming.try_recv() {
                self.running.push(job);
            }
            if self.running.next().await.is_none() {
                return;
            }
        }
    }
}
