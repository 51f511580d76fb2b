//! Blocking work, kept off the threads that run async tasks.

use super::InstallError;

/// Runs work with much disk I/O on a thread of the blocking pool. Propagates a panic of the work.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InstallError> + Send + 'static,
) -> Result<T, InstallError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
