//! Functions that the tests of this module share, and those of requests that fail.

mod requests;

use std::path::Path;

use super::{Compression, FileUrl, LockHolder, StackReference, StackRename, StateStore, StoreError, StoreOptions};

pub(super) fn url(folder: &Path) -> FileUrl {
    FileUrl { folder: folder.to_owned(), create: false, folder_mode: 0o777, sidecars: true }
}

pub(super) async fn file_store(folder: &Path) -> Result<StateStore, StoreError> {
    StateStore::open_folder(&url(folder), StoreOptions::default()).await
}

pub(super) async fn compressing_store(folder: &Path, compression: Compression) -> StateStore {
    StateStore::open_folder(&url(folder), StoreOptions { compression, ..StoreOptions::default() }).await.unwrap()
}

/// Resumes and completes an interrupted rename, as the next command does.
pub(super) async fn resume(
    store: &StateStore,
    stack: &StackReference,
    holder: &LockHolder,
) -> Result<Option<StackRename>, StoreError> {
    let Some(mut rename) = store.resume_rename(stack, holder).await? else { return Ok(None) };
    store.complete_rename(&mut rename).await?;
    Ok(Some(rename))
}
