//! Recorder of the steps of a run.

use async_trait::async_trait;

use super::error::StateError;
use super::held_lease::HeldLease;
use super::integrity;
use super::journal::SegmentStatistics;
use super::ledger::Ledger;
use super::receipt::Receipt;
use super::record::Record;
use super::snapshot::Snapshot;

/// Receives the records of a run.
///
/// The engine applies every record to its own ledger as well; a recorder only makes it durable. Records become durable
/// in the order of the calls, deferred ones included.
#[async_trait]
pub trait StateRecorder: Send {
    /// Writes the deferred records and this record. On return the record outlives the process. The operation may begin, or its
    /// outcome may be reported, once [`Receipt::wait`] has returned. Waits neither for the disk nor for a store.
    ///
    /// # Errors
    /// [`StateError`] if the record could not be written. The operation or report that it announces must then not
    /// happen. [`SecretsError::KeyNeeded`](super::secrets::SecretsError::KeyNeeded) if the record or a deferred one
    /// contains a secret and the key is not loaded yet: nothing was written, and the call may be repeated.
    fn append(&mut self, record: &Record) -> Result<Receipt, StateError>;

    /// Keeps a record that may be lost in a crash without harm (a confirmed entry, a refreshed output). It is written
    /// together with the next appended one, so that a run that changes nothing writes nothing.
    fn defer(&mut self, record: Record);

    /// Returns `true` if receipts may have to be awaited, so that other resources should be worked on meanwhile.
    fn delays_operations(&self) -> bool {
        false
    }

    /// Returns the statistics about what was written to the store so far; `None` if nothing was.
    fn segment_statistics(&self) -> Option<SegmentStatistics> {
        None
    }

    /// Returns the lease of the lock under which the records are written, if it has one. Callers confirm it before each
    /// operation begins.
    fn lease(&self) -> Option<HeldLease> {
        None
    }

    /// Waits until secrets can be encrypted. Callers await it once before the first operation of a run begins.
    ///
    /// # Errors
    /// [`StateError`] if the key cannot be derived or fetched, for instance because the passphrase is wrong.
    async fn wait_for_secrets(&mut self) -> Result<(), StateError>;
}

/// Recorder for tests that keeps the records in memory and checks the integrity of the snapshot after each of them.
#[derive(Debug)]
pub struct MemoryRecorder {
    ledger: Ledger,
    records: Vec<Record>,
    deferred: Vec<Record>,
}

impl MemoryRecorder {
    /// Creates a recorder for a run that starts from a snapshot.
    pub fn new(base: Snapshot) -> Self {
        Self { ledger: Ledger::new(base), records: Vec::new(), deferred: Vec::new() }
    }

    /// Returns the durable records, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the snapshot that a recovery would produce after a crash at this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.ledger.snapshot()
    }
}

#[async_trait]
impl StateRecorder for MemoryRecorder {
    fn append(&mut self, record: &Record) -> Result<Receipt, StateError> {
        for record in self.deferred.drain(..).chain([record.clone()]) {
            self.ledger.apply(&record);
            self.records.push(record);
        }
        integrity::verify(&self.ledger.snapshot())?;
        Ok(Receipt::complete())
    }

    fn defer(&mut self, record: Record) {
        self.deferred.push(record);
    }

    async fn wait_for_secrets(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulumi_proto::resource_id::ResourceId;
    use pulumi_proto::urn::Urn;

    use super::*;
    use crate::{Effect, EntryId, ResourceState};

    #[test]
    fn deferred_records_are_written_with_the_next_appended_one() {
        let state = |name| {
            let urn = Urn::new("s", "p", None, "t:m:T", name);
            Arc::new(ResourceState { id: ResourceId::new(name), ..ResourceState::new(urn, true) })
        };
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
    fn record_that_violates_integrity_is_refused() {
        let missing = Urn::new("s", "p", None, "t:m:T", "missing");
        let mut orphan = ResourceState::new(Urn::new("s", "p", None, "t:m:T", "a"), true);
        orphan.parent = Some(missing);
        let mut recorder = MemoryRecorder::new(Snapshot::default());
        let record = Record::Change(vec![Effect::Add(EntryId(0), Arc::new(orphan))]);
        assert!(recorder.append(&record).unwrap_err().to_string().contains("is missing from the state"));
    }
}
