//! Journals of the runs of a stack that have not ended: files of this machine and objects of the store, put together by run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::chain::Chain;
use super::closing::Closing;
use super::error::JournalError;
use super::folder::{JournalFiles, JournalFolders, list_files};
use super::seal::Seal;
use super::segment::object_name;
use crate::error::StateError;
use crate::store::{CreatedObject, JournalObject, StackReference, StateStore, StoreError};

/// Time for which a seal is kept, so that what its run sends late is recognized.
const SEAL_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Journal of a run: a file of this machine, objects of the store, or both.
#[derive(Debug)]
pub(crate) struct StoredJournal {
    /// Id of the run.
    pub(crate) run: String,
    pub(super) files: Option<JournalFiles>,
    pub(super) chain: Option<Chain>,
    pub(super) stack: StackReference,
    /// Location of the objects.
    pub(super) location: String,
    /// `true` if the store is not on this machine, so that the run may write objects.
    pub(super) may_have_objects: bool,
}

/// Names of the journals of a stack.
#[derive(Debug, Default)]
pub(crate) struct ListedJournals {
    runs: BTreeMap<String, ListedRun>,
    is_remote: bool,
}

/// Names of the journal of a run.
#[derive(Debug, Default)]
pub(crate) struct ListedRun {
    /// Id of the run.
    run: String,
    files: Option<JournalFiles>,
    /// Names of the objects, sorted.
    objects: Vec<String>,
    /// Time of the last write of an object.
    modified: Option<Timestamp>,
    /// `true` if the store is not on this machine.
    is_remote: bool,
}

/// Lists the journals of a stack: files, and objects of a store that is not on this machine.
///
/// # Errors
/// [`StateError`] if a folder or the store cannot be listed.
pub(crate) async fn list(
    folders: &JournalFolders,
    store: &StateStore,
    stack: &StackReference,
) -> Result<ListedJournals, StateError> {
    let objects = if folders.is_remote() { store.journal_objects(stack).await? } else { Vec::new() };
    list_with(folders, stack, objects)
}

/// Lists the journals of a stack: files, and these objects of a store.
///
/// # Errors
/// [`StateError`] if a folder cannot be listed.
pub(crate) fn list_with(
    folders: &JournalFolders,
    stack: &StackReference,
    objects: Vec<JournalObject>,
) -> Result<ListedJournals, StateError> {
    let mut listed = ListedJournals { is_remote: folders.is_remote(), ..ListedJournals::default() };
    for files in list_files(folders, stack)? {
        let run = files.run().into_owned();
        listed.run(run).files = Some(files);
    }
    for object in objects {
        let run = listed.run(object.run);
        run.objects.push(object.name);
        run.modified = run.modified.max(Some(object.modified));
    }
    Ok(listed)
}

impl ListedJournals {
    fn run(&mut self, run: String) -> &mut ListedRun {
        let is_remote = self.is_remote;
        self.runs.entry(run.clone()).or_insert_with(|| ListedRun { run, is_remote, ..ListedRun::default() })
    }

    /// Returns the runs, sorted.
    pub(crate) fn into_runs(self) -> Vec<ListedRun> {
        self.runs.into_values().collect()
    }

    /// Reads the journals, sorted by run. Returns `None` if an object is gone since it was listed: its run has ended, or
    /// another run has taken it over.
    ///
    /// # Errors
    /// [`StateError`] if an object cannot be read, or is damaged.
    pub(crate) async fn read(
        self,
        store: &StateStore,
        stack: &StackReference,
    ) -> Result<Option<Vec<StoredJournal>>, StateError> {
        let mut journals = Vec::with_capacity(self.runs.len());
        for run in self.runs.into_values() {
            match run.read(store, stack).await? {
                Some(journal) => journals.push(journal),
                None => return Ok(None),
            }
        }
        Ok(Some(journals))
    }
}

impl ListedRun {
    /// Returns the id of the run.
    pub(crate) fn name(&self) -> &str {
        &self.run
    }

    /// Returns the path of the file, or the location in the store if there is none.
    pub(crate) fn location(&self, store: &StateStore, stack: &StackReference) -> PathBuf {
        match &self.files {
            Some(files) => files.path.clone(),
            None => store.journal_location(stack, &self.run).into(),
        }
    }

    /// Reads the journal. Returns `None` if an object is gone since it was listed.
    ///
    /// # Errors
    /// [`StateError`] if an object cannot be read, or is damaged.
    pub(crate) async fn read(
        self,
        store: &StateStore,
        stack: &StackReference,
    ) -> Result<Option<StoredJournal>, StateError> {
        let Self { run, files, objects, modified, .. } = self;
        let chain = match objects.as_slice() {
            [] => None,
            names => match Chain::read(store, stack, &run, names, modified).await? {
                Some(chain) => Some(chain),
                None => return Ok(None),
            },
        };
        let location = store.journal_location(stack, &run);
        let may_have_objects = self.is_remote;
        Ok(Some(StoredJournal { run, files, chain, stack: stack.clone(), location, may_have_objects }))
    }

    /// Removes what was listed, without reading it.
    ///
    /// # Errors
    /// [`StateError`] if something cannot be removed.
    pub(crate) async fn remove(&self, store: &StateStore, stack: &StackReference) -> Result<(), StateError> {
        remove_segments(store, stack, &self.run, &self.objects).await?;
        self.files.as_ref().map_or(Ok(()), JournalFiles::remove).map_err(JournalError::into)
    }
}

impl StoredJournal {
    /// Returns the path of the file, or the location in the store if there is none.
    pub(crate) fn path(&self) -> PathBuf {
        self.files.as_ref().map_or_else(|| PathBuf::from(&self.location), |files| files.path.clone())
    }

    /// Returns `true` if there are lines, not only the mark that another run has taken the journal over.
    pub(crate) fn has_lines(&self) -> bool {
        self.files.is_some() || self.chain.as_ref().is_some_and(|chain| !chain.segment_names().is_empty())
    }

    /// Returns the file of this machine, if there is one.
    pub(crate) fn files(&self) -> Option<&JournalFiles> {
        self.files.as_ref()
    }

    /// Returns the time of the last write of an object; `None` without objects.
    pub(crate) fn last_sent(&self) -> Option<Timestamp> {
        self.chain.as_ref()?.modified
    }

    /// Seals the journal, if it may have objects, on behalf of a run that has taken `lines` lines and is about to save a
    /// checkpoint. Returns `false` if the journal has grown since it was read.
    ///
    /// # Errors
    /// [`StoreError`] if the seal cannot be written.
    pub(crate) async fn seal(
        &mut self,
        store: &StateStore,
        run: &str,
        lines: usize,
        closing: &Closing,
    ) -> Result<bool, StoreError> {
        if !self.may_have_objects {
            return Ok(true);
        }
        let seal = Seal::of_takeover(run, lines, closing);
        let chain = self.chain.get_or_insert_default();
        let number = chain.free_number();
        let is_written = write_seal(store, &self.stack, &self.run, number, &seal).await?;
        if is_written {
            chain.add_seal(number, seal);
        }
        Ok(is_written)
    }

    /// Writes, after the checkpoint of the seal was saved, a second seal that says so: the checkpoint of the first one is an
    /// earlier one after the next save.
    ///
    /// # Errors
    /// [`StoreError`] if the seal cannot be written.
    pub(crate) async fn mark_merged(
        &mut self,
        store: &StateStore,
        run: &str,
        lines: usize,
        closing: &Closing,
    ) -> Result<(), StoreError> {
        let Some(chain) = self.chain.as_mut().filter(|_| self.may_have_objects) else { return Ok(()) };
        let seal = Seal { saved: true, ..Seal::of_takeover(run, lines, closing) };
        // A run that goes on may have written behind the first seal.
        let number = write_seal_from(store, &self.stack, &self.run, chain.free_number(), &seal).await?;
        chain.add_seal(number, seal);
        Ok(())
    }

    /// Writes the second seal on behalf of a run that has ended after it had saved the current checkpoint. Call it before another
    /// checkpoint is saved.
    ///
    /// # Errors
    /// [`StoreError`] if the seal cannot be written.
    pub(crate) async fn complete_mark(
        &mut self,
        store: &StateStore,
        checkpoint: Option<&str>,
    ) -> Result<(), StoreError> {
        let Some(chain) = &mut self.chain else { return Ok(()) };
        if let Some(seal) = chain.missing_mark(checkpoint) {
            let number = write_seal_from(store, &self.stack, &self.run, chain.free_number(), &seal).await?;
            chain.add_seal(number, seal);
        }
        Ok(())
    }

    /// Removes the segments whose lines a checkpoint has, up to a number of lines. The later ones stay, because the state has another
    /// resource in place of one that they have.
    ///
    /// # Errors
    /// [`StateError`] if an object cannot be removed.
    pub(crate) async fn remove_merged(&self, store: &StateStore, lines: usize) -> Result<(), StateError> {
        let names = self.chain.as_ref().map(|chain| chain.segment_names_up_to(lines)).unwrap_or_default();
        Ok(remove_segments(store, &self.stack, &self.run, &names).await?)
    }

    /// Removes what was read, after its records were saved: objects by their names, and files. Seals stay for a time, by which
    /// a run that goes on is recognized. `checkpoint` is the digest of the current one. What is gone already is no error. Returns
    /// `false` if the store does not allow to remove objects: a seal says then that a checkpoint has their lines.
    ///
    /// # Errors
    /// [`StateError`] if something cannot be removed.
    pub(crate) async fn remove(&self, store: &StateStore, checkpoint: Option<&str>) -> Result<bool, StateError> {
        let mut is_removed = true;
        if let Some(chain) = &self.chain {
            if self.files.is_none() {
                // The machine of the run may come back with its file.
                self.seal_saved(store, chain, chain.saved_end(checkpoint)).await?;
            }
            let mut names = chain.segment_names();
            let is_old = |modified: Timestamp| Timestamp::now().duration_since(modified) > SEAL_AGE;
            if chain.modified.is_some_and(is_old) {
                names.extend(chain.seal_names());
            }
            is_removed = match remove_segments(store, &self.stack, &self.run, &names).await {
                Err(error) if error.is_denied() => {
                    self.seal_saved(store, chain, chain.saved_end(checkpoint)).await?;
                    false
                }
                removed => removed.map(|()| true)?,
            };
        }
        self.files.as_ref().map_or(Ok(()), JournalFiles::remove)?;
        Ok(is_removed)
    }

    /// Writes a seal that says that a checkpoint has the lines up to a number, unless another seal says so.
    async fn seal_saved(&self, store: &StateStore, chain: &Chain, lines: usize) -> Result<(), StoreError> {
        if lines > 0 && !chain.is_saved_up_to(lines) {
            let seal = Seal::of_saved(&self.run, lines);
            write_seal_from(store, &self.stack, &self.run, chain.free_number(), &seal).await?;
        }
        Ok(())
    }
}

/// Seals the journal of a run whose lock another run has removed, unless it has written an object: what it writes later is late.
///
/// # Errors
/// [`StoreError`] if the seal cannot be written.
pub(crate) async fn seal_unwritten(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    by: &str,
) -> Result<(), StoreError> {
    write_seal(store, stack, run, 0, &Seal::of_saved(by, 0)).await.map(drop)
}

/// Removes segments of a run that has saved its state, or marks them as saved if the store does not allow to remove them. Returns
/// `false` in the second case. `number` is the first one that no object of the run has.
///
/// # Errors
/// [`StoreError`] if neither is possible.
pub(super) async fn remove_saved(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    names: &[String],
    SavedEnd { number, lines }: SavedEnd,
) -> Result<bool, StoreError> {
    match remove_in_order(store, stack, run, names).await {
        Err(error) if error.is_denied() => {
            write_seal_from(store, stack, run, number, &Seal::of_saved(run, lines)).await?;
            Ok(false)
        }
        removed => removed.map(|()| true),
    }
}

/// End of a journal whose records are saved.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedEnd {
    /// First number that no object of the run has.
    pub(super) number: u64,
    /// Number of its lines.
    pub(super) lines: usize,
}

/// Writes a seal under the first number that is free, from one on, and returns that.
async fn write_seal_from(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    mut number: u64,
    seal: &Seal,
) -> Result<u64, StoreError> {
    while !write_seal(store, stack, run, number, seal).await? {
        number += 1;
    }
    Ok(number)
}

/// Seals the journal of a run that has saved its state, at a number that no object of it has: what arrives later is in the state.
///
/// # Errors
/// [`StoreError`] if the seal cannot be written.
pub(super) async fn seal_ended(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    number: u64,
    lines: usize,
) -> Result<(), StoreError> {
    write_seal(store, stack, run, number, &Seal::of_saved(run, lines)).await.map(drop)
}

/// Writes a seal, unless there is an object with its number. Returns whether it is written.
async fn write_seal(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    number: u64,
    seal: &Seal,
) -> Result<bool, StoreError> {
    let created = store.create_journal_object(stack, run, &object_name(number), seal.write().into()).await?;
    Ok(created == CreatedObject::Written)
}

/// Removes segments of a journal whose records are saved: the first one before the others, so that what remains of an
/// interrupted removal is no journal that could be merged, and the last one, which may have the `close` line, after them.
///
/// # Errors
/// [`StoreError`] if one cannot be removed.
pub(super) async fn remove_segments(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    names: &[String],
) -> Result<(), StoreError> {
    let Some((last, others)) = names.split_last() else { return Ok(()) };
    remove_in_order(store, stack, run, others).await?;
    store.remove_journal_objects(stack, run, std::slice::from_ref(last)).await
}

/// Removes segments, the first one before the others.
async fn remove_in_order(
    store: &StateStore,
    stack: &StackReference,
    run: &str,
    names: &[String],
) -> Result<(), StoreError> {
    let (first, others) = names.split_at(1.min(names.len()));
    store.remove_journal_objects(stack, run, first).await?;
    store.remove_journal_objects(stack, run, others).await
}
