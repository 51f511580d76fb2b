//! Copies of checkpoints.

use std::path::Path;

use super::super::super::*;
use crate::store::HistoryEntry;
use crate::store::compliance::{EMPTY, SECOND, holder, save, stack};
use crate::store::tests::{compressing_store, file_store, url};

#[tokio::test]
async fn copies_of_each_kind_and_compression_are_listed_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { retain_checkpoints: true, ..StoreOptions::default() };
    let store = StateStore::open_folder(&url(folder.path()), options).await.unwrap();
    save(&store, "dev", EMPTY).await.unwrap();
    store.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    let gzip = compressing_store(folder.path(), Compression::Gzip).await;
    save(&gzip, "dev", SECOND).await.unwrap();
    gzip.archive(&stack("dev"), &HistoryEntry::new("{}")).await.unwrap();
    save(&gzip, "dev-2", SECOND).await.unwrap();
    gzip.archive(&stack("dev-2"), &HistoryEntry::new("{}")).await.unwrap();

    let copies = store.copies(&stack("dev"), &CopyKind::ALL).await.unwrap();
    let mut kinds: Vec<_> =
        copies.iter().map(|copy| (copy.kind.as_str(), Path::new(&copy.location).extension().unwrap())).collect();
    kinds.sort();
    let expected = [("backup", "gz"), ("backup", "json"), ("history", "gz"), ("history", "json"), ("previous", "bak")];
    assert_eq!(kinds[..5], expected.map(|(kind, extension)| (kind, std::ffi::OsStr::new(extension))));
    assert_eq!((kinds.len(), kinds[5].0), (6, "retained"));
    assert!(copies.is_sorted_by(|a, b| a.time >= b.time), "{copies:?}");
    for copy in &copies {
        let text = store.read_copy(copy).await.unwrap();
        let is_second = Path::new(&copy.location).extension().is_some_and(|extension| extension == "gz");
        assert_eq!(text, if is_second { SECOND } else { EMPTY }, "{}", copy.name);
    }
}

#[tokio::test]
#[cfg(debug_assertions)]
async fn restored_previous_checkpoint_is_not_lost_if_the_save_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = file_store(folder.path()).await.unwrap();
    for text in [SECOND, EMPTY] {
        save(&store, "dev", text).await.unwrap();
    }
    let previous = store.copies(&stack("dev"), &CopyKind::ALL).await.unwrap().remove(0);
    let lock = store.lock(&stack("dev"), &holder(1)).await.unwrap();
    for operations in 0.. {
        let end = super::renames::end_after(folder.path(), operations);
        let restored = store.restore(&lock, &previous, SECOND, &Expected::Any).await;
        drop(end);
        let mut texts = vec![store.text(&stack("dev")).await.unwrap().unwrap()];
        for copy in store.copies(&stack("dev"), &CopyKind::ALL).await.unwrap() {
            texts.push(store.read_copy(&copy).await.unwrap());
        }
        assert!(texts.iter().any(|text| text == SECOND), "after {operations} operations: {texts:?}");
        if restored.is_ok() {
            assert_eq!(texts[0], SECOND);
            break;
        }
    }
    store.unlock(lock).await.unwrap();
}
