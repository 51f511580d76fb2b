//! File stores that the tests of this module share.

use std::path::Path;

use super::{Compression, FileStore, FileUrl, StoreError, StoreOptions};

pub(super) fn url(folder: &Path) -> FileUrl {
    FileUrl { folder: folder.to_owned(), create: false, folder_mode: 0o777, sidecars: true }
}

pub(super) async fn file_store(folder: &Path) -> Result<FileStore, StoreError> {
    FileStore::open(&url(folder)).await
}

pub(super) async fn compressing_store(folder: &Path, compression: Compression) -> FileStore {
    FileStore::open_with(&url(folder), StoreOptions { compression, ..StoreOptions::default() }).await.unwrap()
}
