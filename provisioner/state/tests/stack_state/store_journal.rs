//! Journals in a store that is not on the machine of the run: machines that are lost, runs that go on after they were taken over.

use std::sync::Arc;

use bridge::fs::FileCall;
use bridge::fs::faults::{Errno, Fault as DiskFault};
use bytes::Bytes;
use pulumi_proto::resource_id::ResourceId;
use state::format::UpdateKind;
use state::secrets::{Keyring, MarkerManager, SecretsManager};
use state::store::{
    Durability, Fault, LockHolder, MemoryObjects, Objects as _, Request, StackReference, StateStore, StoreOptions,
    WriteCondition,
};
use state::{
    Effect, EntryId, JournalFolders, JournalMode, JournalRecorder, LockSettings, OperationId, OperationKind, Record,
    ResourceState, Snapshot, StackAccess, StackState, StackView, StateError, StateRecorder as _, Subject,
};

use crate::fixture::{begun, creation, holder, resource, secret_resource, update};

pub(crate) const CHECKPOINT: &str = ".pulumi/stacks/reef/dev.json";

/// Machine with a disk of its own, beside a store that all machines share.
pub(crate) struct Machine {
    pub(crate) disk: tempfile::TempDir,
    pub(crate) access: StackAccess,
}

impl Machine {
    pub(crate) async fn new(objects: &MemoryObjects) -> Self {
        let store = StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap();
        let marker = Arc::new(MarkerManager::new("marker"));
        let disk = tempfile::tempdir().unwrap();
        let access = StackAccess {
            stack: StackReference::new("reef", "dev").unwrap(),
            keyring: Arc::new(Keyring::new(None).with_manager(Arc::clone(&marker) as Arc<dyn SecretsManager>)),
            configured_secrets: Some(marker.describe()),
            config: Default::default(),
            journals: JournalFolders::of_remote_store(disk.path(), &store.location()),
            journal_mode: JournalMode::Intents,
            unrecorded: Default::default(),
            locks: LockSettings { has_ended: |_| true, ..LockSettings::default() },
            begins_anew: false,
            engine_version: "v0.1.0".to_owned(),
            store,
        };
        Self { disk, access }
    }

    pub(crate) async fn open(&self) -> Result<StackState, StateError> {
        StackState::open(self.access.clone(), &leased()).await
    }

    /// Removes the locks, as `sc cancel` does.
    pub(crate) async fn break_locks(&self) {
        let locks = self.access.store.locks(&self.access.stack).await.unwrap();
        state::break_locks(&self.access, &locks, "reefbox").await.unwrap();
    }

    /// Loses the disk.
    fn lose(self) {
        drop(self.disk);
    }
}

fn leased() -> LockHolder {
    LockHolder { lease: Some(state::store::LockLease::new(std::time::Duration::from_secs(60))), ..holder() }
}

/// Returns the names of the recorded resources, and those of pending creates with their ids.
pub(crate) fn shown(snapshot: &Snapshot) -> [Vec<String>; 2] {
    let recorded = snapshot.resources.iter().map(|state| state.urn.name().to_owned()).collect();
    let pending = snapshot.pending_operations.iter();
    [
        recorded,
        pending.map(|pending| format!("{}={}", pending.resource.urn.name(), pending.resource.id_text())).collect(),
    ]
}

fn journal_keys(objects: &MemoryObjects) -> Vec<String> {
    let mut keys = objects.keys();
    keys.retain(|key| key.starts_with(".sc/journal/"));
    keys
}

/// Returns the keys of the objects of journals that are no seals.
pub(crate) async fn segments(objects: &MemoryObjects) -> Vec<String> {
    let mut segments = Vec::new();
    for key in journal_keys(objects) {
        let content = objects.read(&key, 1 << 20).await.unwrap().unwrap().content;
        if !content.starts_with(b"{\"seal\"") {
            segments.push(key);
        }
    }
    segments
}

/// Starts a run on a machine of its own.
pub(crate) async fn started(objects: &MemoryObjects) -> (Machine, StackState, JournalRecorder) {
    let machine = Machine::new(objects).await;
    let run = machine.open().await.unwrap();
    let recorder = run.recorder(UpdateKind::Update);
    (machine, run, recorder)
}

pub(crate) async fn append(recorder: &mut JournalRecorder, records: &[Record]) {
    for record in records {
        recorder.append(record).unwrap().wait().await.unwrap();
    }
}

pub(crate) fn begin(operation: u64, resource: &ResourceState) -> Record {
    let subject = Subject::Resource(begun(resource));
    Record::Begin { operation: OperationId(operation), kind: OperationKind::Creating, subject }
}

#[tokio::test(start_paused = true)]
async fn another_machine_merges_the_journal_of_a_lost_one() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    recorder.wait_for_secrets().await.unwrap();
    append(&mut recorder, &creation(0, 0, secret_resource("a"))).await;
    // The begin of `b` is in the store, and everything before it.
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    drop((run, recorder));
    machine.lose();
    assert!(!journal_keys(&objects).is_empty());
    let texts = objects.keys();
    assert!(texts.iter().all(|key| !key.contains("otter")));

    let other = Machine::new(&objects).await;
    let view = StackView::open(&other.access).await.unwrap();
    assert_eq!(shown(view.snapshot.as_ref().unwrap()), [vec!["a".to_owned()], vec!["b=".to_owned()]]);
    let state = other.open().await.unwrap();
    let recovered = state.recovered().unwrap();
    assert_eq!(recovered.pending.len(), 1);
    assert!(recovered.last_sent.is_some());
    assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec!["b=".to_owned()]]);
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&update())).await.unwrap();
    // The seals stay, so that what the lost run sends late is recognized.
    assert_eq!(segments(&objects).await, [""; 0]);
    let state = other.open().await.unwrap();
    assert!(state.recovered().is_none() && state.late().is_empty());
    assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec!["b=".to_owned()]]);
    state.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn run_that_ends_leaves_no_segment() {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    for mode in JournalMode::ALL {
        let access = StackAccess { journal_mode: mode, ..machine.access.clone() };
        let run = StackState::open(access, &leased()).await.unwrap();
        let mut recorder = run.recorder(UpdateKind::Update);
        let name = mode.as_str();
        append(&mut recorder, &creation(0, run.snapshot().resources.len() as u64, resource(name))).await;
        assert_eq!(journal_keys(&objects).is_empty(), mode == JournalMode::Local, "{mode}");
        let mut snapshot = run.snapshot().clone();
        snapshot.resources.push(resource(name));
        run.close(snapshot, Some(&update())).await.unwrap();
        assert_eq!(journal_keys(&objects), Vec::<String>::new(), "{mode}");
    }
    assert_eq!(machine.open().await.unwrap().snapshot().resources.len(), 3);
}

/// The `close` line is in the store before the checkpoint, so a machine that is lost between the two, or while it removes the
/// segments, leaves nothing that contradicts the state.
#[tokio::test(start_paused = true)]
async fn machine_lost_at_any_request_of_the_end_leaves_a_state_and_no_conflict() {
    for lost_after in 0..60 {
        let objects = MemoryObjects::default();
        let (machine, run, mut recorder) = started(&objects).await;
        for name in ["a", "b", "c"] {
            let number = u64::from(name.as_bytes()[0] - b'a');
            append(&mut recorder, &creation(number, number, resource(name))).await;
        }
        let mut requests = 0;
        objects.set_faults(move |_| {
            requests += 1;
            if requests > lost_after { Fault::NotReached } else { Fault::None }
        });
        let resources = ["a", "b", "c"].map(resource).to_vec();
        let closed = run.close(Snapshot { resources, ..Snapshot::default() }, Some(&update())).await;
        drop(recorder);
        machine.lose();
        objects.set_faults(|_| Fault::None);
        let other = Machine::new(&objects).await;
        // A run that could not save has removed the lease of its lock, unless it could not do that either.
        other.break_locks().await;
        let state = other.open().await.unwrap_or_else(|error| panic!("{lost_after}: {error:?}"));
        // The end of the last one may not be in the store yet.
        let [recorded, pending] = shown(state.snapshot());
        let named = [recorded.concat().as_str(), pending.concat().trim_end_matches('=')].concat();
        assert!(named == "abc" && recorded.len() >= 2, "{lost_after}: {named} {closed:?}");
        assert!(state.late().is_empty(), "{lost_after}: {:?}", state.late());
        if closed.is_ok() {
            return;
        }
    }
    panic!("the run has never ended");
}

#[tokio::test(start_paused = true)]
async fn machine_that_takes_a_journal_over_may_be_lost_at_any_request() {
    for lost_after in 0..60 {
        let objects = MemoryObjects::default();
        let (machine, run, mut recorder) = started(&objects).await;
        append(&mut recorder, &creation(0, 0, resource("a"))).await;
        append(&mut recorder, &creation(1, 1, resource("b"))).await;
        append(&mut recorder, &[begin(2, &resource("c"))]).await;
        drop((run, recorder));
        machine.lose();
        let taker = Machine::new(&objects).await;
        let mut requests = 0;
        objects.set_faults(move |_| {
            requests += 1;
            if requests > lost_after { Fault::NotReached } else { Fault::None }
        });
        let opened = taker.open().await;
        let has_opened = opened.is_ok();
        drop(opened);
        taker.lose();
        objects.set_faults(|_| Fault::None);
        let third = Machine::new(&objects).await;
        third.break_locks().await;
        let state = third.open().await.unwrap_or_else(|error| panic!("{lost_after}: {error:?}"));
        let expected = [vec!["a".to_owned(), "b".to_owned()], vec!["c=".to_owned()]];
        assert_eq!(shown(state.snapshot()), expected, "{lost_after}");
        assert!(state.late().is_empty(), "{lost_after}: {:?}", state.late());
        if has_opened {
            return;
        }
    }
    panic!("the journal was never taken over");
}

/// A run that was stopped past its lease still receives the replies to its calls.
#[tokio::test(start_paused = true)]
async fn reply_that_comes_after_a_takeover_gives_the_pending_create_its_id() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    // Another machine takes over, while Create of `b` is under way.
    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec!["b=".to_owned()]]);
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&update())).await.unwrap();

    let [_, end] = creation(1, 1, resource("b"));
    recorder.append(&end).unwrap().wait().await.unwrap();
    // The run may begin nothing any more.
    let receipt = recorder.append(&begin(2, &resource("c"))).unwrap();
    assert!(matches!(receipt.wait().await, Err(StateError::Store(_))));
    assert!(machine.access.locks.lost.is_cancelled());
    assert!(run.close(Snapshot::default(), Some(&update())).await.is_err());

    let view = StackView::open(&other.access).await.unwrap();
    assert_eq!(shown(view.snapshot.as_ref().unwrap()), [vec!["a".to_owned()], vec!["b=b".to_owned()]]);
    // The next command on the machine of the run has another lock.
    let machine = Machine { access: StackAccess { locks: other.access.locks.clone(), ..machine.access }, ..machine };
    for machine in [&other, &machine] {
        let state = machine.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec!["b=b".to_owned()]]);
        state.release().await.unwrap();
    }
    // Only seals are left, and no journal on the machine of the run.
    assert_eq!(segments(&objects).await, [""; 0]);
    assert!(!machine.access.has_journal().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn late_resource_beside_another_one_is_named_and_neither_is_lost() {
    let objects = MemoryObjects::default();
    let (_machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &[begin(0, &resource("b"))]).await;
    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    // The user has cleared the pending create, and the next run has created the resource again.
    let second = Arc::new(ResourceState { id: ResourceId::new("b-2"), ..(*resource("b")).clone() });
    state.close(Snapshot { resources: vec![second], ..Snapshot::default() }, Some(&update())).await.unwrap();
    let [_, end] = creation(0, 0, resource("b"));
    recorder.append(&end).unwrap().wait().await.unwrap();
    run.close(Snapshot::default(), None).await.unwrap_err();
    for _ in 0..2 {
        let state = other.open().await.unwrap();
        let [conflict] = &state.late().conflicts[..] else { panic!("{:?}", state.late()) };
        let ids = (conflict.id.as_str(), conflict.recorded.as_str());
        assert_eq!(ids, ("b", "b-2"));
        assert_eq!(shown(state.snapshot()), [vec!["b".to_owned()], vec![]]);
        let snapshot = state.snapshot().clone();
        state.close(snapshot, Some(&update())).await.unwrap();
    }
}

/// A segment that is lost between others hides neither those before it nor what those after it have created.
#[tokio::test(start_paused = true)]
async fn segment_behind_a_gap_gives_pending_creates_with_ids() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &[begin(0, &resource("a"))]).await;
    // The write of the second segment is held up on its way.
    objects.set_faults(|request: &Request| {
        let is_second = request.operation == "write" && request.key.ends_with("/00000001");
        if is_second { Fault::NotReached } else { Fault::None }
    });
    let waiting = recorder.append(&begin(1, &resource("b"))).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    let [_, end] = creation(0, 0, resource("a"));
    drop(recorder.append(&end).unwrap());
    let last = recorder.append(&begin(2, &resource("c"))).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    drop((waiting, last, run, recorder));
    machine.lose();
    objects.set_faults(|_| Fault::None);
    assert_eq!(journal_keys(&objects).len(), 2, "{:?}", journal_keys(&objects));

    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    // `b` and `c` have not begun: their lines were not confirmed.
    assert_eq!(shown(state.snapshot()), [vec![], vec!["a=a".to_owned()]]);
    state.release().await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn creation_waits_for_the_store_and_all_else_does_not() {
    let objects = MemoryObjects::default();
    let (_machine, _run, mut recorder) = started(&objects).await;
    let waits = |recorder: &mut JournalRecorder, record: &Record| !recorder.append(record).unwrap().is_complete();
    let [begin, end] = creation(0, 0, resource("a"));
    assert!(waits(&mut recorder, &begin));
    assert!(!waits(&mut recorder, &end));
    let deleting =
        Record::Begin { operation: OperationId(1), kind: OperationKind::Deleting, subject: Subject::Entry(EntryId(0)) };
    assert!(!waits(&mut recorder, &deleting));
    assert!(!waits(
        &mut recorder,
        &Record::End { operation: OperationId(1), effects: vec![Effect::Remove(EntryId(0))] }
    ));
    // They follow within a second.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let other = Machine::new(&objects).await;
    let view = StackView::open(&other.access).await.unwrap();
    assert_eq!(shown(view.snapshot.as_ref().unwrap()), [vec![] as Vec<String>, vec![]]);
    assert_eq!(view.recovered.unwrap().done.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn store_that_stays_away_lets_no_creation_begin() {
    let objects = MemoryObjects::default();
    let (_machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &[begin(0, &resource("a"))]).await;
    objects.set_faults(|_| Fault::NotReached);
    let [_, end] = creation(0, 0, resource("a"));
    drop(recorder.append(&end).unwrap());
    let waited = recorder.append(&begin(1, &resource("b"))).unwrap().wait().await;
    assert!(matches!(waited, Err(StateError::JournalNotSent { .. })), "{waited:?}");
    let at_once = recorder.append(&begin(2, &resource("c"))).unwrap().wait().await;
    assert!(matches!(at_once, Err(StateError::JournalNotSent { .. })));
    // The store is there again: the end of the run writes what it lacks, and saves.
    objects.set_faults(|_| Fault::None);
    run.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    // The seal stays: a write without a reply may still arrive.
    assert_eq!((segments(&objects).await.len(), journal_keys(&objects).len()), (0, 1));
    assert!(objects.keys().contains(&CHECKPOINT.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn machine_that_comes_back_finds_its_journal_merged() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    // The machine stops before this line is sent.
    let [_, end] = creation(1, 1, resource("b"));
    objects.set_faults(|_| Fault::NotReached);
    drop(recorder.append(&end).unwrap());
    drop((run, recorder));
    objects.set_faults(|_| Fault::None);
    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    let snapshot = state.snapshot().clone();
    state.close(snapshot, Some(&update())).await.unwrap();

    let state = machine.open().await.unwrap();
    assert!(state.recovered().is_none());
    assert_eq!(shown(state.snapshot()), [vec!["a".to_owned()], vec!["b=b".to_owned()]]);
    state.release().await.unwrap();
    assert!(!machine.access.has_journal().await.unwrap());
}

/// Returns the error of the first command after an object was put into the journal of a run.
async fn refusal(path: &str, content: &str) -> String {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    objects.put(&format!(".sc/journal/reef/dev/{path}"), content);
    let error = machine.open().await.err().unwrap();
    assert!(journal_keys(&objects).iter().any(|key| key.ends_with(path)), "nothing is removed");
    bridge::error::chain(&error).to_string()
}

const FIRST: &str = r#"{"journal":1,"stack":"organization/reef/dev","base":null,"started":"","update":"update","secrets":null,"run":"r","segment":{"number":0,"first":1,"lines":1}}"#;

#[tokio::test]
async fn damaged_and_foreign_objects_are_refused_by_their_location() {
    let with = |from: &str, to: &str| format!("{}\n{{\"phase\":{{}}}}\n", FIRST.replace(from, to));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (path, content, expected) in [
        ("r/00000000", with("\"journal\":1", "\"journal\":2"), "format version 2"),
        ("r/00000000", with("reef/dev", "reef/west"), "another stack"),
        ("r/00000000", with("\"run\":\"r\"", "\"run\":\"s\""), "another run"),
        ("r/00000001", with("", ""), "another number"),
        ("r/00000000", with("\"lines\":1", "\"lines\":2"), "other lines"),
        ("r/00000000", format!("{FIRST}\n{{\"phase\""), "incomplete"),
        ("r/00000000", FIRST.to_owned(), "incomplete"),
        (
            "r/00000000",
            format!("{FIRST}\n{{\"begin\":{{\"operation\":0,\"kind\":\"creating\",\"resource\":{deep}}}}}\n"),
            "line 2",
        ),
        ("r/00000000", deep.clone() + "\n", "line 1"),
    ] {
        let error = refusal(path, &content).await;
        assert!(
            error.contains(expected) && error.contains("memory://objects/.sc/journal/reef/dev/r"),
            "{expected}: {error}"
        );
    }
}

#[tokio::test]
async fn object_that_is_no_text_is_refused() {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    let (key, content) = (".sc/journal/reef/dev/r/00000000", Bytes::from_static(b"{\"journal\":1}\n\xff\n"));
    objects.write(key, content, &WriteCondition::None, Durability::Immediate).await.unwrap();
    let error = machine.open().await.err().unwrap();
    assert!(bridge::error::chain(&error).to_string().contains("it is not UTF-8"), "{error:?}");
}

/// Each line of a run with the guarantee `sync` is a segment of its own, unless others wait as well.
#[tokio::test(start_paused = true)]
async fn journal_of_ten_thousand_segments_is_merged() {
    let objects = MemoryObjects::default();
    let mut machine = Machine::new(&objects).await;
    machine.access.journal_mode = JournalMode::Sync;
    let run = machine.open().await.unwrap();
    let mut recorder = run.recorder(UpdateKind::Update);
    for number in 0..5_000 {
        append(&mut recorder, &creation(number, number, resource(&format!("r{number}")))).await;
    }
    drop((run, recorder));
    machine.lose();
    assert!(segments(&objects).await.len() >= 10_000);
    let state = Machine::new(&objects).await.open().await.unwrap();
    assert_eq!(state.snapshot().resources.len(), 5_000);
    assert!(state.snapshot().pending_operations.is_empty());
    state.release().await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
}

#[tokio::test]
async fn objects_of_other_names_are_ignored() {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    for name in ["r/readme.txt", "r/1", "r/00000000/more", "file"] {
        objects.put(&format!(".sc/journal/reef/dev/{name}"), "\u{fffd}");
    }
    let state = machine.open().await.unwrap();
    state.release().await.unwrap();
    assert_eq!(journal_keys(&objects).len(), 4);
}

/// A store that does not remove segments for a while must not make them contradict the state that is saved next.
#[tokio::test(start_paused = true)]
async fn segments_that_could_not_be_removed_do_not_contradict_the_next_state() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    drop((run, recorder));
    machine.lose();
    let other = Machine::new(&objects).await;
    objects.set_faults(|request| {
        let is_removal = request.operation == "remove" && request.key.starts_with(".sc/journal/");
        if is_removal { Fault::NotReached } else { Fault::None }
    });
    let state = other.open().await.unwrap();
    // The user has cleared `b`, and `a` is gone.
    state.close(Snapshot::default(), Some(&update())).await.unwrap();
    objects.set_faults(|_| Fault::None);
    let third = Machine::new(&objects).await;
    let state = third.open().await.unwrap();
    assert!(state.recovered().is_none() && state.late().is_empty());
    assert_eq!(shown(state.snapshot()), [vec![] as Vec<String>, vec![]]);
    state.release().await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
}

/// A store that allows everything but the removal of journals keeps them. They count for nothing, and each run says so.
///
/// Shows: state.md#the-journal-in-the-store "A store that does not allow to remove objects there keeps them, with a seal"
#[tokio::test(start_paused = true)]
async fn journals_that_the_store_does_not_allow_to_remove_count_for_nothing() {
    let objects = MemoryObjects::default();
    objects.set_faults(|request| {
        let is_removal = request.operation == "remove" && request.key.starts_with(".sc/journal/");
        if is_removal { Fault::Denied } else { Fault::None }
    });
    // Of a run that ends, and of one that is taken over.
    let (_, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    drop(recorder);
    run.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    // Another program removes `a`.
    objects.put(CHECKPOINT, r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev","latest":{"manifest":{}}}}"#);
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("b"))).await;
    drop((run, recorder));
    machine.lose();

    let other = Machine::new(&objects).await;
    for left in [&["b", "c"][..], &["c"], &[]] {
        let state = other.open().await.unwrap();
        assert!(state.late().is_empty());
        assert_eq!(state.undeleted_journals().unwrap(), "memory://objects/.sc/journal/reef/dev");
        let resources = left.iter().map(|name| resource(name)).collect();
        state.close(Snapshot { resources, ..Snapshot::default() }, Some(&update())).await.unwrap();
    }
    let kept = segments(&objects).await;
    objects.set_faults(|_| Fault::None);
    let state = other.open().await.unwrap();
    assert_eq!((state.undeleted_journals(), state.snapshot().resources.len()), (None, 0));
    state.release().await.unwrap();
    assert!(!kept.is_empty() && segments(&objects).await.is_empty());
}

/// Shows: state.md#the-journal-in-the-store "A list of stacks lists the journals of its store once"
#[tokio::test(start_paused = true)]
async fn stacks_are_summarized_with_one_listing_of_their_journals() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    drop((run, recorder));
    machine.lose();
    let Machine { access, disk: _disk } = Machine::new(&objects).await;
    let other = StackAccess { stack: StackReference::new("reef", "other").unwrap(), ..access.clone() };
    objects.take_requests();
    let journals = access.store.stored_journals().await.unwrap();
    assert_eq!(objects.take_requests().len(), 1);
    let summary = state::summary(&other, &journals).await.unwrap();
    assert_eq!((summary.is_interrupted, summary.resources), (false, None));
    let asked = objects.take_requests().iter().filter(|request| request.key.starts_with(".sc/journal")).count();
    assert_eq!(asked, 0);
    let summary = state::summary(&access, &journals).await.unwrap();
    assert!(summary.is_interrupted);
    assert_eq!((summary.resources, summary.pending_creates), (Some(1), 1));
}

/// A run may be taken over, or its lock removed, before it has written anything.
#[tokio::test(start_paused = true)]
async fn run_that_had_written_nothing_begins_nothing_after_a_takeover() {
    for is_cancelled in [false, true] {
        let objects = MemoryObjects::default();
        let (machine, run, mut recorder) = started(&objects).await;
        let other = Machine::new(&objects).await;
        if is_cancelled {
            let StackAccess { store, stack, .. } = &other.access;
            let locks = store.locks(stack).await.unwrap();
            assert_eq!(state::break_locks(&other.access, &locks, "reefbox").await.unwrap(), locks);
        }
        let state = other.open().await.unwrap();
        state.close(Snapshot { resources: vec![resource("z")], ..Snapshot::default() }, Some(&update())).await.unwrap();
        let begun = recorder.append(&begin(0, &resource("a"))).unwrap().wait().await;
        assert!(begun.is_err());
        drop((run, recorder));
        // Its line is no conflict, and no pending create: the creation has not begun.
        for machine in [
            &other,
            &Machine { access: StackAccess { locks: other.access.locks.clone(), ..machine.access }, ..machine },
        ] {
            let state = machine.open().await.unwrap();
            assert_eq!(shown(state.snapshot()), [vec!["z".to_owned()], vec![]]);
            state.release().await.unwrap();
        }
    }
}

/// A machine that is lost while it removes the segments of its run may come back after others have saved.
#[tokio::test(start_paused = true)]
async fn machine_that_was_lost_after_its_save_comes_back_without_a_conflict() {
    for lost_after in 0..3 {
        let objects = MemoryObjects::default();
        let (machine, run, mut recorder) = started(&objects).await;
        append(&mut recorder, &creation(0, 0, resource("a"))).await;
        append(&mut recorder, &[begin(1, &resource("b"))]).await;
        drop(recorder);
        let mut removals = 0;
        objects.set_faults(move |request| {
            removals += usize::from(request.operation == "remove" && request.key.starts_with(".sc/journal/"));
            if removals > lost_after { Fault::NotReached } else { Fault::None }
        });
        run.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.ok();
        objects.set_faults(|_| Fault::None);
        let other = Machine::new(&objects).await;
        let state = other.open().await.unwrap();
        state.close(Snapshot::default(), Some(&update())).await.unwrap();
        let state = machine.open().await.unwrap();
        assert_eq!(shown(state.snapshot()), [vec![] as Vec<String>, vec![]], "{lost_after}");
        state.release().await.unwrap();
    }
}

/// The machine that takes an interrupted destroy over is lost after its save: the state is explained, and the history has the run.
#[tokio::test(start_paused = true)]
async fn history_has_a_run_whose_taker_was_lost_after_its_save() {
    let objects = MemoryObjects::default();
    let machine = Machine::new(&objects).await;
    let run = machine.open().await.unwrap();
    run.close(Snapshot { resources: vec![resource("a")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    let run = machine.open().await.unwrap();
    let mut recorder = run.recorder(UpdateKind::Destroy);
    let operation = OperationId(0);
    let subject = Subject::Entry(EntryId(0));
    append(&mut recorder, &[Record::Begin { operation, kind: OperationKind::Deleting, subject }]).await;
    append(&mut recorder, &[Record::End { operation, effects: vec![Effect::Remove(EntryId(0))] }]).await;
    append(&mut recorder, &[begin(1, &resource("x"))]).await;
    append(&mut recorder, &[Record::End { operation: OperationId(1), effects: Vec::new() }]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    drop((run, recorder));
    machine.lose();
    let taker = Machine::new(&objects).await;
    let mut is_saved = false;
    objects.set_faults(move |request| {
        let is_lost = is_saved && !request.key.starts_with(".pulumi/stacks/");
        is_saved |= request.operation == "write" && request.key == CHECKPOINT;
        if is_lost { Fault::NotReached } else { Fault::None }
    });
    drop(taker.open().await);
    taker.lose();
    objects.set_faults(|_| Fault::None);
    let third = Machine::new(&objects).await;
    third.break_locks().await;
    let state = third.open().await.unwrap();
    assert!(state.unexplained_empty().is_none());
    assert_eq!(shown(state.snapshot()), [vec![] as Vec<String>, vec![]]);
    state.release().await.unwrap();
    let kinds: Vec<_> = state::history(&third.access).await.unwrap().iter().map(|update| update.kind).collect();
    assert_eq!(kinds, [UpdateKind::Update, UpdateKind::Destroy]);
}

/// A creation that came late is removed from the store after the state has it, whatever else the journal is.
#[tokio::test(start_paused = true)]
async fn late_creation_stays_until_the_state_has_it() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &[begin(0, &resource("b"))]).await;
    let other = Machine::new(&objects).await;
    let state = other.open().await.unwrap();
    // The user decides that `b` does not exist.
    state.close(Snapshot { resources: vec![resource("z")], ..Snapshot::default() }, Some(&update())).await.unwrap();
    // Somebody has removed the seals.
    for key in journal_keys(&objects) {
        objects.remove(&key).await.unwrap();
    }
    let [_, end] = creation(0, 0, resource("b"));
    recorder.append(&end).unwrap().wait().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    drop((run, recorder));
    machine.lose();
    assert_eq!(segments(&objects).await.len(), 1);
    objects.set_faults(|request| {
        let is_save = request.operation == "write" && request.key == CHECKPOINT;
        if is_save { Fault::NotReached } else { Fault::None }
    });
    assert!(other.open().await.is_err());
    assert_eq!(segments(&objects).await.len(), 1, "the state does not have it");
    objects.set_faults(|_| Fault::None);
    other.break_locks().await;
    let state = other.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec!["z".to_owned()], vec!["b=b".to_owned()]]);
    state.release().await.unwrap();
    assert_eq!(segments(&objects).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn adopted_journal_leaves_what_may_exist_as_pending() {
    let objects = MemoryObjects::default();
    let (machine, run, mut recorder) = started(&objects).await;
    append(&mut recorder, &creation(0, 0, resource("a"))).await;
    append(&mut recorder, &[begin(1, &resource("b"))]).await;
    drop((run, recorder));
    machine.lose();
    let other = Machine::new(&objects).await;
    other.break_locks().await;
    // Another program has written a state.
    objects.put(CHECKPOINT, r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev","latest":{"manifest":{}}}}"#);
    assert!(matches!(other.open().await, Err(StateError::Conflict(_))));
    let journals = state::journals(&other.access).await.unwrap();
    assert_eq!((journals.len(), journals[0].status.as_str()), (1, "conflict"));
    let report = state::adopt_journal(&other.access, &leased(), &journals[0].run).await.unwrap();
    assert_eq!((report.adopted.len(), report.conflicts.len()), (1, 0));
    let state = other.open().await.unwrap();
    assert_eq!(shown(state.snapshot()), [vec![], vec!["a=a".to_owned(), "b=".to_owned()]]);
    state.release().await.unwrap();
}

/// Shows: state.md#stores "the same, on the disk"
/// Shows: state.md#stores "the same lines are on the disk before the call"
#[tokio::test]
async fn journal_in_a_folder_is_on_the_disk_before_a_creation_if_the_mode_asks_for_it() {
    for (mode, waits) in
        [(JournalMode::Local, [false; 2]), (JournalMode::Intents, [true, false]), (JournalMode::Sync, [true; 2])]
    {
        let mut fixture = crate::fixture::Fixture::new().await;
        fixture.access.journal_mode = mode;
        let run = fixture.open().await.unwrap();
        let mut recorder = run.recorder(UpdateKind::Update);
        for (record, waits) in creation(0, 0, resource("a")).iter().zip(waits) {
            let receipt = recorder.append(record).unwrap();
            // A flush may be faster than this test, but nothing else completes the receipt.
            assert!(waits || receipt.is_complete(), "{mode}: {record:?}");
            receipt.wait().await.unwrap();
        }
        assert_eq!(recorder.delays_operations(), mode != JournalMode::Local);
        let snapshot = Snapshot { resources: vec![resource("a")], ..Snapshot::default() };
        run.close(snapshot, Some(&update())).await.unwrap();
        assert!(fixture.journals().is_empty());
    }
}

/// Shows: state.md#stores "the same lines are on the disk before the call"
#[tokio::test]
async fn creation_does_not_begin_if_its_line_cannot_be_flushed() {
    for (mode, begins) in [(JournalMode::Intents, false), (JournalMode::Local, true)] {
        let mut failed = 0;
        for at in 0..12 {
            let mut fixture = crate::fixture::Fixture::new().await;
            fixture.access.journal_mode = mode;
            let run = fixture.open().await.unwrap();
            let mut recorder = run.recorder(UpdateKind::Update);
            let fault =
                DiskFault { folder: fixture.folder.path().to_owned(), at, error: Errno::IO, lasts: false }.inject();
            let Ok(receipt) = recorder.append(&begin(0, &resource("a"))) else { continue };
            let waited = receipt.wait().await;
            // A flush of the folder is repeated with the next lines.
            if fault.failed().iter().any(|(call, path)| *call == FileCall::Sync && path.is_file()) {
                failed += 1;
                assert_eq!(waited.is_ok(), begins, "{mode}: {waited:?}");
            }
        }
        assert!(failed > 0 || begins, "no flush has failed");
    }
}
