//! Crashes of a run at any byte of its journal: the recovered state is valid and has every record that was written
//! completely.

use proptest::prelude::*;
use state::format::UpdateKind;
use state::{Ledger, Snapshot, StackView, StateRecorder as _, integrity};

use crate::fixture::Fixture;
use crate::run::{Recorded, Run, runs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Shows: state.md#the-journal "So a crash at any byte of the journal leaves a valid state."
    #[test]
    fn crash_at_every_byte_leaves_a_valid_state(run in runs()) {
        tokio::runtime::Runtime::new().unwrap().block_on(crash_at_every_byte(run));
    }
}

async fn crash_at_every_byte(run: Run) {
    let fixture = Fixture::new().await;
    fixture.save(&run.base).await;
    let state = fixture.open().await.unwrap();
    let mut recorder = state.recorder(UpdateKind::Update);
    // Snapshots after each line of the journal.
    let base = Snapshot { resources: run.base, ..state.snapshot().clone() };
    let mut ledger = Ledger::new(base.clone());
    let mut snapshots = vec![base];
    let mut deferred = Vec::new();
    for recorded in run.records {
        match recorded {
            Recorded::Deferred(record) => {
                recorder.defer(record.clone());
                deferred.push(record);
            }
            Recorded::Appended(record) => {
                recorder.append(&record).unwrap();
                for record in deferred.drain(..).chain([record]) {
                    ledger.apply(&record);
                    snapshots.push(ledger.snapshot());
                }
            }
        }
    }
    drop((state, recorder));
    let Some(path) = fixture.journals().pop() else { return };
    let journal = std::fs::read(&path).unwrap();
    let lines: Vec<usize> = (1..=journal.len()).filter(|end| journal[end - 1] == b'\n').collect();
    assert_eq!(lines.len(), snapshots.len());
    let middles = lines.windows(2).map(|ends| ends[0].midpoint(ends[1]));
    for end in lines.iter().copied().chain(middles).chain(lines.iter().map(|end| end - 1)).chain([0, 7]) {
        std::fs::write(&path, &journal[..end]).unwrap();
        let view = StackView::open(&fixture.access).await.unwrap();
        let snapshot = view.snapshot.unwrap();
        integrity::verify(&snapshot).unwrap();
        // Counts complete lines. A line that lacks only its newline counts too, unless it is the first.
        let complete = lines.iter().filter(|line| **line <= end || **line == end + 1 && **line != lines[0]).count();
        let expected = &snapshots[complete.saturating_sub(1)];
        assert_eq!(snapshot.resources, expected.resources);
        assert_eq!(snapshot.pending_operations, expected.pending_operations);
    }
}
