//! How a run writes down what it does, while it does it.

use async_trait::async_trait;

use super::error::StateError;
use super::integrity;
use super::ledger::Ledger;
use super::record::Record;
use super::snapshot::Snapshot;

/// Takes the records of a run.
///
/// The engine applies every record to its own ledger as well; a recorder only has to survive it. Records become durable in
/// the order in which they were handed over, deferred ones included.
#[async_trait]
pub trait StateRecorder: Send {
    /// Writes a record down, and whatever was deferred before it. On return the record outlives the process: an
    /// operation may begin, an outcome may be told. Does not wait for the disk.
    ///
    /// # Errors
    /// [`StateError`] if it could not be written. What it announced must then not happen.
    /// [`SecretsError::KeyNeeded`](super::secrets::SecretsError::KeyNeeded): there is a secret in it, or in what was deferred,
    /// and the key is not there yet; nothing was written, and it may be handed over once more.
    fn append(&mut self, record: &Record) -> Result<(), StateError>;

    /// Remembers a record that may be lost in a crash without harm (an entry confirmed, a refreshed output). It is written
    /// together with the next appended one, so that a run that changes nothing writes nothing.
    fn defer(&mut self, record: Record);

    /// Waits until secrets can be encrypted. To be awaited once before the first operation of a run begins.
    ///
    /// # Errors
    /// [`StateError`] if the key cannot be had, for instance because the passphrase is wrong.
    async fn secrets_ready(&mut self) -> Result<(), StateError>;
}

/// Keeps the records in memory and holds every prefix of them to the laws of a snapshot.
#[derive(Debug)]
pub struct MemoryRecorder {
    ledger: Ledger,
    records: Vec<Record>,
    deferred: Vec<Record>,
}

impl MemoryRecorder {
    /// Records a run that starts from a snapshot.
    pub fn new(base: Snapshot) -> Self {
        Self { ledger: Ledger::new(base), records: Vec::new(), deferred: Vec::new() }
    }

    /// The records that are durable, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What a crash at this moment would leave.
    pub fn snapshot(&self) -> Snapshot {
        self.ledger.snapshot()
    }
}

#[async_trait]
impl StateRecorder for MemoryRecorder {
    fn append(&mut self, record: &Record) -> Result<(), StateError> {
        for record in self.deferred.drain(..).chain([record.clone()]) {
            self.ledger.apply(&record);
            self.records.push(record);
        }
        integrity::verify(&self.ledger.snapshot())?;
        Ok(())
    }

    fn defer(&mut self, record: Record) {
        self.deferred.push(record);
    }

    async fn secrets_ready(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulumi_proto::urn::Urn;

    use super::*;
    use crate::{Effect, EntryId, ResourceState};

    #[test]
    fn deferred_records_wait_for_the_next_appended_one() {
        let state = |name| Arc::new(ResourceState::new(Urn::new("s", "p", None, "t:m:T", name), true));
        let base = Snapshot { resources: vec![state("a"), state("b")], ..Snapshot::default() };
        let mut recorder = MemoryRecorder::new(base);
        recorder.defer(Record::Change(vec![Effect::Keep(EntryId(1))]));
        assert!(recorder.records().is_empty());
        recorder.append(&Record::Change(vec![Effect::Add(EntryId(2), state("c"))])).unwrap();
        assert_eq!(recorder.records().len(), 2);
        let names: Vec<_> = recorder.snapshot().resources.iter().map(|state| state.urn.name().to_owned()).collect();
        assert_eq!(names, ["b", "c", "a"]);
    }

    #[test]
    fn a_record_that_breaks_the_state_is_refused() {
        let missing = Urn::new("s", "p", None, "t:m:T", "missing");
        let mut orphan = ResourceState::new(Urn::new("s", "p", None, "t:m:T", "a"), true);
        orphan.parent = Some(missing);
        let mut recorder = MemoryRecorder::new(Snapshot::default());
        let record = Record::Change(vec![Effect::Add(EntryId(0), Arc::new(orphan))]);
        assert!(recorder.append(&record).unwrap_err().to_string().contains("is missing from the state"));
    }
}
