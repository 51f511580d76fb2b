//! Work that no task waits for.

/// Drops a value on a blocking thread: freeing a large state takes about as long as writing it. Must be called within a
/// tokio runtime.
pub fn drop_in_background(value: impl Send + 'static) {
    tokio::task::spawn_blocking(move || drop(value));
}
