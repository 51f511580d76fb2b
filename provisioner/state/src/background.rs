//! Work that nothing waits for.

/// Frees what nobody needs any more. For a large state that takes as long as to write it, and nobody has to wait for it.
/// Only where tokio runs.
pub fn free_aside(value: impl Send + 'static) {
    tokio::task::spawn_blocking(move || drop(value));
}
