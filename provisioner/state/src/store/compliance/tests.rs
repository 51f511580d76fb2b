//! Compliance of the stores without a peer.

use super::super::tests::{compressing_store, file_store};
use super::super::{Compression, MemoryObjects, StateStore, StoreOptions};
use super::*;

#[tokio::test]
async fn file_store_is_compliant() {
    let folder = tempfile::tempdir().unwrap();
    run(&file_store(folder.path()).await.unwrap()).await;
}

#[tokio::test]
async fn compressing_file_store_is_compliant() {
    for compression in Compression::ALL {
        let folder = tempfile::tempdir().unwrap();
        run(&compressing_store(folder.path(), compression).await).await;
    }
}

/// Shows: state.md#a-run "If two runs lock at the same time, both may fail, but they never both succeed."
#[tokio::test]
async fn at_most_one_of_twenty_concurrent_locks_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let objects = std::sync::Arc::new(MemoryObjects::default());
    let in_memory = StateStore::open(objects, StoreOptions::default()).await.unwrap();
    let dev = stack("dev");
    for store in [file_store(folder.path()).await.unwrap(), in_memory] {
        for _ in 0..20 {
            let holders: Vec<_> = (1..=20).map(holder).collect();
            let tries = futures_util::future::join_all(holders.iter().map(|holder| store.lock(&dev, holder))).await;
            let mut held: Vec<_> = tries.into_iter().filter_map(Result::ok).collect();
            assert!(held.len() <= 1);
            assert_eq!(store.locks(&dev).await.unwrap().len(), held.len());
            if let Some(lock) = held.pop() {
                store.unlock(lock).await.unwrap();
            }
        }
    }
}

/// Shows: state.md#a-run "Of several locks that `sc` writes at the same time, the one with the lowest name stays, and the others are
/// removed again."
#[tokio::test(start_paused = true)]
async fn one_of_twenty_locks_that_are_written_at_the_same_time_is_held() {
    let objects = MemoryObjects::default().with_latency(std::time::Duration::from_millis(50));
    let store = StateStore::open(std::sync::Arc::new(objects), StoreOptions::default()).await.unwrap();
    let dev = stack("dev");
    let holders: Vec<_> = (1..=20).map(holder).collect();
    let tries = futures_util::future::join_all(holders.iter().map(|holder| store.lock(&dev, holder))).await;
    let held: Vec<_> = tries.iter().flatten().collect();
    let names: Vec<_> = store.locks(&dev).await.unwrap().into_iter().map(|lock| lock.name).collect();
    assert_eq!(held.iter().map(|lock| lock.name()).collect::<Vec<_>>(), names);
    assert_eq!(names.len(), 1);
}

/// Shows: state.md#migration-to-another-store "Each command on a stack that has a mark fails with exit code 1"
/// Shows: state.md#migration-to-another-store "A run on the new store has no changes then."
#[tokio::test]
async fn store_of_objects_is_compliant() {
    for compression in Compression::ALL {
        let options = StoreOptions { compression, ..StoreOptions::default() };
        run(&StateStore::open(std::sync::Arc::new(MemoryObjects::default()), options).await.unwrap()).await;
    }
}
