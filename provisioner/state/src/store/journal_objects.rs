//! Objects of the journals of runs: written once, never changed, and removed by name.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use futures_util::stream;
use jiff::Timestamp;

use super::catalog::PARALLEL_REQUESTS;
use super::error::StoreError;
use super::layout::JOURNALS;
use super::objects::{Durability, Effect, ListedObject, ObjectError, WriteCondition, WriteError};
use super::reference::StackReference;
use super::state_store::StateStore;

/// Number of attempts to write an object that another program removes as soon as it exists.
const ATTEMPTS: usize = 3;

/// Number of objects of a journal that are removed at once. A run that creates much writes a hundred of them, and the end of the run waits
/// until all are removed.
const PARALLEL_REMOVALS: usize = 64;

/// Maximum size of an object of a journal, in bytes.
pub(crate) const MAX_JOURNAL_OBJECT_BYTES: u64 = 256 << 20;

/// Outcome of a write that must not replace an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CreatedObject {
    /// The object has the content, by this request or by an earlier one whose reply was lost.
    Written,
    /// There is an object with another content.
    Other(Vec<u8>),
}

/// Object of a journal in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalObject {
    /// Id of the run.
    pub(crate) run: String,
    /// Name within the journal of the run.
    pub(crate) name: String,
    /// Time of the write, by the clock of the store.
    pub(crate) modified: Timestamp,
}

/// Objects of the journals of all stacks of a store, from one listing.
#[derive(Clone, Debug, Default)]
pub struct StoredJournals(BTreeMap<String, Vec<JournalObject>>);

impl StateStore {
    /// Lists the journals of all stacks in a store that is not on this machine.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stored_journals(&self) -> Result<StoredJournals, StoreError> {
        let mut journals = StoredJournals::default();
        for ListedObject { name, modified } in self.objects.list_all(JOURNALS).await? {
            let mut parts = name.rsplitn(3, '/');
            let (Some(name), Some(run), Some(stack)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let object = JournalObject { run: run.to_owned(), name: name.to_owned(), modified };
            journals.0.entry(format!("{JOURNALS}/{stack}")).or_default().push(object);
        }
        Ok(journals)
    }

    /// Returns the objects of the journals of a stack in a listing.
    pub(crate) fn journal_objects_in(&self, journals: &StoredJournals, stack: &StackReference) -> Vec<JournalObject> {
        journals.0.get(&self.layout.journal(stack)).cloned().unwrap_or_default()
    }

    /// Returns the objects of the journals of a stack, sorted by run and name.
    pub(crate) async fn journal_objects(&self, stack: &StackReference) -> Result<Vec<JournalObject>, StoreError> {
        let listed = self.objects.list_all(&self.layout.journal(stack)).await?;
        let object = |ListedObject { name, modified }: ListedObject| {
            let (run, name) = name.split_once('/')?;
            Some(JournalObject { run: run.to_owned(), name: name.to_owned(), modified })
        };
        Ok(listed.into_iter().filter_map(object).collect())
    }

    /// Returns the contents of objects of the journal of a run, in the order of the names; `None` for one that is gone.
    pub(crate) async fn read_journal_objects(
        &self,
        stack: &StackReference,
        run: &str,
        names: &[String],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut contents = Vec::with_capacity(names.len());
        for group in names.chunks(PARALLEL_REQUESTS) {
            let read = async |name: &String| {
                self.objects.read(&self.journal_key(stack, run, name), MAX_JOURNAL_OBJECT_BYTES).await
            };
            let read = try_join_all(group.iter().map(read)).await?;
            contents.extend(read.into_iter().map(|object| object.map(|object| object.content)));
        }
        Ok(contents)
    }

    /// Writes an object of the journal of a run, unless there is one with its name. If the reply is lost, or says that there
    /// is one, the content decides whose it is.
    pub(crate) async fn create_journal_object(
        &self,
        stack: &StackReference,
        run: &str,
        name: &str,
        content: Bytes,
    ) -> Result<CreatedObject, StoreError> {
        let key = self.journal_key(stack, run, name);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let written =
                self.objects.write(&key, content.clone(), &WriteCondition::Missing, Durability::Immediate).await;
            let failed = match written {
                Ok(_) => return Ok(CreatedObject::Written),
                Err(WriteError::Request(error)) if error.effect != Effect::Unknown => return Err(error.into()),
                Err(failed) => failed,
            };
            let found = self.objects.read(&key, MAX_JOURNAL_OBJECT_BYTES).await?;
            match (found, failed) {
                (Some(found), _) if found.content == content => return Ok(CreatedObject::Written),
                (Some(found), _) => return Ok(CreatedObject::Other(found.content)),
                (None, WriteError::Request(error)) => return Err(error.into()),
                (None, WriteError::Condition) if attempts < ATTEMPTS => {}
                (None, WriteError::Condition) => {
                    return Err(ObjectError::unexpected_condition(self.location_of(&key)).into());
                }
            }
        }
    }

    /// Removes objects of the journal of a run. Those that are gone are no error. Tries each of them, and returns the first
    /// error.
    pub(crate) async fn remove_journal_objects(
        &self,
        stack: &StackReference,
        run: &str,
        names: &[String],
    ) -> Result<(), StoreError> {
        let keys: Vec<_> = names.iter().map(|name| self.journal_key(stack, run, name)).collect();
        let removals = stream::iter(keys.iter().map(|key| self.objects.remove(key))).buffered(PARALLEL_REMOVALS);
        Ok(removals.fold(Ok(()), async |removed, next| Result::and(removed, next)).await?)
    }

    /// Returns the location of the journals of a stack, for messages.
    pub(crate) fn journals_location(&self, stack: &StackReference) -> String {
        self.location_of(&self.layout.journal(stack))
    }

    /// Returns the location of the journal of a run, for messages.
    pub(crate) fn journal_location(&self, stack: &StackReference, run: &str) -> String {
        self.location_of(&format!("{}/{run}", self.layout.journal(stack)))
    }

    fn journal_key(&self, stack: &StackReference, run: &str, name: &str) -> String {
        format!("{}/{run}/{name}", self.layout.journal(stack))
    }
}
