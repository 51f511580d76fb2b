//! Interface of what a folder, a bucket or a table of a database offers to a store: objects by key, with conditional writes.
//!
//! Keys are relative to the location of the store and use `/`, such as `.pulumi/stacks/P/S.json`.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;

use async_trait::async_trait;
use bridge::fs::{FileError, MAX_DOCUMENT_BYTES};
use bytes::Bytes;
use futures_util::future::join_all;
use jiff::Timestamp;

/// Objects by key. Each method is one request, or a few where a listing has several pages. Implementations repeat what is
/// safe to repeat, and every request ends within a time limit.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Returns the location, such as `s3://bucket/prefix`: without credentials, and the same for every run.
    fn location(&self) -> String;

    /// Returns the location of an object, for messages.
    fn location_of(&self, key: &str) -> String {
        format!("{}/{key}", self.location())
    }

    /// Returns an object; `None` if there is none.
    ///
    /// # Errors
    /// [`ObjectError`], also if the object has more than `limit` bytes ([`ObjectErrorKind::TooLarge`]).
    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError>;

    /// Returns several objects, in the order of the keys: by one request if the store has one for that, else by requests at the
    /// same time.
    ///
    /// # Errors
    /// The errors of [`Objects::read`].
    async fn read_all(&self, keys: &[&str], limit: u64) -> Result<Vec<Option<StoredObject>>, ObjectError> {
        join_all(keys.iter().map(|key| self.read(key, limit))).await.into_iter().collect()
    }

    /// Writes an object whole or not at all, and returns its version.
    ///
    /// # Errors
    /// [`WriteError::Condition`] if the condition is not met: nothing was written. It may also be the reply to a
    /// repetition of a request whose own reply was lost, so the caller compares the content. For other errors,
    /// [`ObjectError::effect`] says whether the object was written.
    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        durability: Durability,
    ) -> Result<ObjectVersion, WriteError>;

    /// Copies an object within the store, and replaces the one that has the key already. Returns `false` if there is no
    /// object to copy.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError>;

    /// Gives the content of an object that will be replaced or removed a second key, as [`Objects::copy`] does. A store with
    /// links uses one, which costs nothing and cannot fail halfway.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn preserve(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        self.copy(from, to).await
    }

    /// Removes an object; a missing one is no error.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn remove(&self, key: &str) -> Result<(), ObjectError>;

    /// Returns the objects of a folder without those of the folders in it, sorted by name.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError>;

    /// Returns the objects of a folder and of all folders in it, sorted by name.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError>;

    /// Returns the time by the clock of the store: that of an object which is written for this purpose.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn time(&self) -> Result<Timestamp, ObjectError> {
        let key = format!(".sc/clock/{}", uuid::Uuid::new_v4());
        match self.write(&key, Bytes::from_static(b"{}"), &WriteCondition::None, Durability::Eventual).await {
            Ok(_) => {}
            Err(WriteError::Request(error)) => return Err(error),
            Err(WriteError::Condition) => return Err(ObjectError::unexpected_condition(self.location_of(&key))),
        }
        let written = self.read(&key, MAX_DOCUMENT_BYTES).await;
        self.remove(&key).await?;
        Ok(written?.map_or_else(Timestamp::now, |written| written.modified))
    }
}

/// Object with its content.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Content.
    pub content: Vec<u8>,
    /// Version, for a conditional write.
    pub version: ObjectVersion,
    /// Time of the last write, by the clock of the store.
    pub modified: Timestamp,
}

/// Object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Key relative to the listed folder.
    pub name: String,
    /// Time of the last write, by the clock of the store.
    pub modified: Timestamp,
}

/// Version of an object as the store names it: the ETag and the generation of an object in a bucket, the time and the
/// digest of a row, the number of a file, its time and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    /// ETag, or digest of the content.
    pub tag: Option<String>,
    /// Generation, or time of the last write.
    pub generation: Option<String>,
}

/// Condition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCondition {
    /// Always writes.
    None,
    /// There is no object with the key.
    Missing,
    /// The object still has the version.
    Unchanged(ObjectVersion),
}

/// Durability of a written object across a loss of power. A store in a network makes every object durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The object is on the disk when the request ends.
    Immediate,
    /// The object is on the disk some time later. A process that ends does not lose it.
    Eventual,
}

/// Reason why a write has failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The condition is not met.
    #[error("the object was written by another program")]
    Condition,
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ObjectError),
}

/// Failed request. Its text names the object or the store, and never contains a credential.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {location}")]
pub struct ObjectError {
    /// Requested operation, such as `read` or `write`.
    pub operation: &'static str,
    /// Location of the object or of the folder.
    pub location: String,
    /// Kind of the failure.
    pub kind: ObjectErrorKind,
    /// Effect of a write. Other requests can be repeated.
    pub effect: Effect,
    /// Reason, in the words of the store or of its client.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Effect of a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request has changed nothing.
    None,
    /// The change is made, and may be lost with the power.
    Made,
    /// The request may have made its change: its reply was lost, or is not understood.
    Unknown,
}

/// Kind of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectErrorKind {
    /// There is no such bucket, database or table.
    NoStore,
    /// The credentials are valid, but do not allow the request.
    Denied,
    /// There are no credentials, or they are invalid or have expired.
    Credentials,
    /// The store did not reply in time, has no capacity, or the connection failed.
    Unreachable,
    /// The object is larger than the limit.
    TooLarge,
    /// The store lacks a function that the request needs, such as conditional writes.
    Unsupported,
    /// Any other failure.
    Other,
}

impl ObjectErrorKind {
    /// Returns the effect of a request that has failed in a network.
    pub fn effect(self) -> Effect {
        match self {
            Self::NoStore | Self::Denied | Self::Credentials | Self::TooLarge | Self::Unsupported => Effect::None,
            Self::Unreachable | Self::Other => Effect::Unknown,
        }
    }
}

impl ObjectError {
    /// Returns the error of a write without a condition that was refused because of one.
    pub(super) fn unexpected_condition(location: String) -> Self {
        let source = "the store refused a write without a condition because of a condition".into();
        Self { operation: "write", location, kind: ObjectErrorKind::Other, effect: Effect::None, source }
    }
}

impl From<FileError> for ObjectError {
    fn from(error: FileError) -> Self {
        let FileError { path, action, source } = error;
        let kind = match source.kind() {
            ErrorKind::PermissionDenied => ObjectErrorKind::Denied,
            ErrorKind::FileTooLarge => ObjectErrorKind::TooLarge,
            _ => ObjectErrorKind::Other,
        };
        let (location, source) = (path.display().to_string(), source.into());
        Self { operation: action, location, kind, effect: Effect::None, source }
    }
}

impl From<FileError> for WriteError {
    fn from(error: FileError) -> Self {
        Self::Request(error.into())
    }
}

impl fmt::Display for ObjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.tag, &self.generation];
        write!(f, "{}", parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" "))
    }
}
