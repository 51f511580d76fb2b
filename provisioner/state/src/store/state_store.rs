//! Store of the states of stacks, in the layout of Pulumi's command line, over the objects of a folder, a bucket or a table.
//!
//! `catalog`, `checkpoints`, `contents`, `copies`, `locks` and `renames` have the methods, by what they deal with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bridge::fs::MAX_DOCUMENT_BYTES;
use bytes::Bytes;

use super::compression::{Compression, decompressed_text};
use super::error::StoreError;
use super::folder::FolderObjects;
use super::layout::{self, Layout};
use super::objects::{Durability, Effect, ObjectError, ObjectErrorKind, Objects, WriteCondition, WriteError};
use super::options::{LegacyStores, StoreOptions};
use super::reference::StackReference;
use super::traced::TracedObjects;
use super::url::FileUrl;

/// Store of the states of stacks. Methods need the lock of a stack only if they have it as a parameter; callers of the methods
/// that add a history entry, a copy or a mark must hold it too. Clones share the connection.
#[derive(Clone)]
pub struct StateStore {
    pub(super) objects: Arc<dyn Objects>,
    pub(super) options: StoreOptions,
    pub(super) layout: Layout,
    /// `true` once the metadata of the store exist.
    has_metadata: Arc<AtomicBool>,
    /// Compression of the checkpoint of each stack that was loaded or saved. Its object is then found without a search.
    pub(super) variants: Arc<Mutex<BTreeMap<StackReference, Compression>>>,
}

impl fmt::Debug for StateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateStore").field(&self.objects.location()).finish()
    }
}

impl StateStore {
    /// Opens the store in a folder. Writes nothing except the folder, which is created if it is missing and the URL requests
    /// it.
    ///
    /// # Errors
    /// [`StoreError`] if the folder is missing, or has an unsupported layout.
    pub async fn open_folder(url: &FileUrl, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open(Arc::new(FolderObjects::open(url, options.access).await?), options).await
    }

    /// Opens a store. Writes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be reached, or has an unsupported layout.
    pub async fn open(objects: Arc<dyn Objects>, options: StoreOptions) -> Result<Self, StoreError> {
        let objects = Arc::new(TracedObjects(objects));
        let store =
            Self { objects, options, layout: Layout::Projects, has_metadata: Arc::default(), variants: Arc::default() };
        let metadata = store.objects.read(layout::META, MAX_DOCUMENT_BYTES).await?;
        let location = store.location_of(layout::META);
        store.has_metadata.store(metadata.is_some(), Ordering::Relaxed);
        let layout = match metadata {
            Some(metadata) => layout::layout_of(metadata.content, &location)?,
            None if store.has_legacy_stacks().await? => Layout::Legacy,
            None => options.new_layout,
        };
        if layout == Layout::Legacy && options.legacy_stores == LegacyStores::Refused {
            return Err(StoreError::Legacy(store.objects.location()));
        }
        Ok(Self { layout, ..store })
    }

    /// Returns the location of the store, for messages.
    pub fn location(&self) -> String {
        self.objects.location()
    }

    /// Returns the full name of a stack as checkpoints contain it.
    pub fn full_name(&self, stack: &StackReference) -> String {
        self.layout.full_name(stack)
    }

    /// Returns the location of the checkpoint of a stack, for messages.
    pub fn checkpoint_location(&self, stack: &StackReference) -> String {
        let variant = self.known_variant(stack).unwrap_or(self.options.compression);
        self.location_of(&self.layout.checkpoint(stack, variant))
    }

    /// Returns `true` if there are checkpoints that belong to no project.
    async fn has_legacy_stacks(&self) -> Result<bool, StoreError> {
        let found = self.objects.list(layout::STACKS).await?;
        Ok(found.iter().any(|object| layout::stack_name_of_file(&object.name).is_some()))
    }

    /// Writes the metadata of a new store.
    pub(super) async fn write_metadata(&self) -> Result<(), StoreError> {
        if self.layout == Layout::Legacy || self.has_metadata.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.write(layout::META, Bytes::from_static(layout::META_TEXT.as_bytes()), &WriteCondition::Missing).await
        {
            Ok(()) => self.verify_conditions().await?,
            // Another program has written them at the same time.
            Err(WriteError::Condition) => {}
            Err(WriteError::Request(error)) => return Err(error.into()),
        }
        self.has_metadata.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the metadata of a new store again, on the condition that there are none: a store that writes them ignores
    /// conditions. They are removed unless the condition was
    /// respected, so that the next command finds a new store.
    async fn verify_conditions(&self) -> Result<(), StoreError> {
        let written =
            self.write(layout::META, Bytes::from_static(layout::META_TEXT.as_bytes()), &WriteCondition::Missing).await;
        if !matches!(written, Err(WriteError::Condition)) {
            self.objects.remove(layout::META).await?;
        }
        match written {
            Err(WriteError::Condition) => Ok(()),
            Err(WriteError::Request(error)) => Err(error.into()),
            Ok(()) => {
                let text = "the store ignores the conditions of writes, so that two runs could overwrite the state of each \
                            other: use another store";
                let (operation, location) = ("write", self.location_of(layout::META));
                let kind = ObjectErrorKind::Unsupported;
                Err(ObjectError { operation, location, kind, effect: Effect::None, source: text.into() }.into())
            }
        }
    }

    /// Writes an object whose version is not needed.
    pub(super) async fn write(&self, key: &str, content: Bytes, condition: &WriteCondition) -> Result<(), WriteError> {
        self.objects.write(key, content, condition, Durability::Immediate).await.map(drop)
    }

    /// Writes an object, or replaces the one that has the key.
    pub(super) async fn replace(&self, key: &str, content: Bytes) -> Result<(), StoreError> {
        match self.write(key, content, &WriteCondition::None).await {
            Ok(()) => Ok(()),
            Err(WriteError::Request(error)) => Err(error.into()),
            Err(WriteError::Condition) => Err(ObjectError::unexpected_condition(self.location_of(key)).into()),
        }
    }

    /// Returns the decompressed text of an object, of at most `limit` bytes both compressed and decompressed; `None` if it
    /// does not exist.
    pub(super) async fn read_text(&self, key: &str, limit: u64) -> Result<Option<String>, StoreError> {
        let object = self.objects.read(key, limit).await?;
        object.map(|object| decompressed_text(object.content, limit, &self.location_of(key))).transpose()
    }

    /// Returns the location of an object, for messages.
    pub(super) fn location_of(&self, key: &str) -> String {
        self.objects.location_of(key)
    }

    pub(super) fn known_variant(&self, stack: &StackReference) -> Option<Compression> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner).get(stack).copied()
    }

    pub(super) fn remember_variant(&self, stack: &StackReference, variant: Option<Compression>) {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        match variant {
            Some(variant) => variants.insert(stack.clone(), variant),
            None => variants.remove(stack),
        };
    }
}
