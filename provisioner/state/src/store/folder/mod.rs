//! Objects as files of a folder.
//!
//! `files` has the operations on files, which block; `Objects` runs them on blocking threads. `abandoned` removes what ended
//! processes have left.

mod abandoned;
mod files;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use bridge::fs::Access;
use bytes::Bytes;
use jiff::Timestamp;

use super::error::StoreError;
use super::objects::{
    Durability, ListedObject, ObjectError, ObjectVersion, Objects, StoredObject, WriteCondition, WriteError,
};
use super::url::FileUrl;
use files::{Depth, FileRead, Folder};

/// Objects as files of a folder, each with a sidecar (`.attrs`) if the URL requests them. Clones share the folder.
#[derive(Clone, Debug)]
pub struct FolderObjects {
    folder: Arc<Folder>,
}

impl FolderObjects {
    /// Opens a folder. Writes nothing: a missing folder is created by the first write if the URL requests it.
    ///
    /// # Errors
    /// [`StoreError::NoFolder`] if there is none, and none is to be created.
    pub async fn open(url: &FileUrl, access: Access) -> Result<Self, StoreError> {
        let folder = Folder::new(url, access);
        let create = url.create;
        let opened = in_background(move || {
            let is_folder = folder.path.is_dir();
            if create && !is_folder && folder.path.exists() {
                // Fails, and says why.
                folder.make_folder(&folder.path)?;
            }
            Ok::<_, ObjectError>((folder, is_folder))
        });
        let (folder, is_folder) = opened.await?;
        if !is_folder && !create {
            return Err(StoreError::NoFolder(folder.path));
        }
        Ok(Self { folder: Arc::new(folder) })
    }

    /// Reads a file into the memory of `content`, or of a larger vector.
    async fn read_into(
        &self,
        key: &str,
        limit: u64,
        mut content: Vec<u8>,
    ) -> Result<Option<StoredObject>, ObjectError> {
        loop {
            let key = key.to_owned();
            match self.run(move |folder| folder.read(&key, limit, content)).await? {
                FileRead::Object(object) => return Ok(object),
                FileRead::Large(capacity) => content = Vec::with_capacity(capacity),
            }
        }
    }

    async fn run<T: Send + 'static, E: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let folder = Arc::clone(&self.folder);
        in_background(move || work(&folder)).await
    }
}

#[async_trait]
impl Objects for FolderObjects {
    fn location(&self) -> String {
        format!("file://{}", self.folder.path.display())
    }

    fn location_of(&self, key: &str) -> String {
        self.folder.path_of(key).display().to_string()
    }

    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError> {
        self.read_into(key, limit, Vec::new()).await
    }

    async fn read_all(&self, keys: &[&str], limit: u64) -> Result<Vec<Option<StoredObject>>, ObjectError> {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let read = self.run(move |folder| {
            let files = keys.into_iter().map(|key| folder.read(&key, limit, Vec::new()).map(|read| (key, read)));
            files.collect::<Result<Vec<_>, _>>()
        });
        let mut objects = Vec::new();
        for (key, read) in read.await? {
            objects.push(match read {
                FileRead::Object(object) => object,
                FileRead::Large(capacity) => self.read_into(&key, limit, Vec::with_capacity(capacity)).await?,
            });
        }
        Ok(objects)
    }

    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        durability: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let (key, condition) = (key.to_owned(), condition.clone());
        let written =
            self.run(move |folder| folder.write(&key, &content, &condition, durability).map(|version| (version, key)));
        let (version, key) = written.await?;
        if durability == Durability::Eventual {
            let folder = Arc::clone(&self.folder);
            // A task that is not awaited: the object is effective now.
            drop(tokio::task::spawn_blocking(move || folder.flush(&key)));
        }
        Ok(version)
    }

    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.run(move |folder| folder.copy(&from, &to)).await
    }

    async fn preserve(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.run(move |folder| folder.preserve(&from, &to)).await
    }

    async fn remove(&self, key: &str) -> Result<(), ObjectError> {
        let key = key.to_owned();
        self.run(move |folder| folder.remove(&key)).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        let listed = folder.to_owned();
        self.run(move |folder| folder.list(&listed, Depth::Folder)).await
    }

    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        let listed = folder.to_owned();
        self.run(move |folder| folder.list(&listed, Depth::Tree)).await
    }

    async fn time(&self) -> Result<Timestamp, ObjectError> {
        self.run(Folder::time).await
    }
}

/// Runs blocking file operations on a blocking thread, so that the tasks of a run are not blocked.
async fn in_background<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => unreachable!("work that blocks is not cancelled once it runs"),
        },
    }
}
