//! Objects whose requests are spans of the trace: their keys and sizes, never their content.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use tracing::{Instrument as _, debug_span};

use super::objects::{
    Durability, ListedObject, ObjectError, ObjectVersion, Objects, StoredObject, WriteCondition, WriteError,
};

/// Objects of a store whose requests are traced.
pub(super) struct TracedObjects(pub(super) Arc<dyn Objects>);

#[async_trait]
impl Objects for TracedObjects {
    fn location(&self) -> String {
        self.0.location()
    }

    fn location_of(&self, key: &str) -> String {
        self.0.location_of(key)
    }

    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError> {
        self.0.read(key, limit).instrument(debug_span!("store", request = "read", key)).await
    }

    async fn read_all(&self, keys: &[&str], limit: u64) -> Result<Vec<Option<StoredObject>>, ObjectError> {
        let span = debug_span!("store", request = "read all", keys = keys.len());
        self.0.read_all(keys, limit).instrument(span).await
    }

    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        durability: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let span = debug_span!("store", request = "write", key, bytes = content.len());
        self.0.write(key, content, condition, durability).instrument(span).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        self.0.copy(from, to).instrument(debug_span!("store", request = "copy", key = from, to)).await
    }

    async fn preserve(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        self.0.preserve(from, to).instrument(debug_span!("store", request = "preserve", key = from, to)).await
    }

    async fn remove(&self, key: &str) -> Result<(), ObjectError> {
        self.0.remove(key).instrument(debug_span!("store", request = "remove", key)).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.0.list(folder).instrument(debug_span!("store", request = "list", key = folder)).await
    }

    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.0.list_all(folder).instrument(debug_span!("store", request = "list all", key = folder)).await
    }

    async fn time(&self) -> Result<Timestamp, ObjectError> {
        self.0.time().instrument(debug_span!("store", request = "time")).await
    }
}
