//! Moves of resources between stacks of one store or two, also those that end after any request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::journal::JournalFolders;
use crate::secrets::{Keyring, Passphrase};
use crate::stack_state::{LockSettings, StackView, summary};
use crate::state_edit::{MoveError, move_resources};
use crate::store::compliance::{holder, stack};
use crate::store::{Fault, MemoryObjects, StateStore, StoreOptions, StoredJournals};

const DEV: &str = r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev","latest":{"manifest":{},"resources":[
    {"urn":"urn:pulumi:dev::reef::t:m:T::a","custom":true,"id":"a","type":"t:m:T"},
    {"urn":"urn:pulumi:dev::reef::t:m:T::b","custom":true,"id":"b","type":"t:m:T",
     "dependencies":["urn:pulumi:dev::reef::t:m:T::a"]}]}}}"#;
const WEST: &str = r#"{"version":3,"checkpoint":{"stack":"organization/reef/west","latest":{"manifest":{},"resources":[
    {"urn":"urn:pulumi:west::reef::t:m:T::z","custom":true,"id":"z","type":"t:m:T"}]}}}"#;

async fn access(objects: &MemoryObjects, name: &str, passphrase: Option<&str>, journals: &Path) -> StackAccess {
    StackAccess {
        store: StateStore::open(Arc::new(objects.clone()), StoreOptions::default()).await.unwrap(),
        stack: stack(name),
        keyring: Arc::new(Keyring::new(passphrase.map(Passphrase::new))),
        configured_secrets: None,
        config: Default::default(),
        journals: JournalFolders::of_backend(journals.join(name)),
        journal_mode: Default::default(),
        unrecorded: Default::default(),
        locks: LockSettings::default(),
        begins_anew: false,
        engine_version: "v0.1.0".to_owned(),
    }
}

async fn move_a(source: &StackAccess, target: &StackAccess) -> Result<MovedResources, StateError> {
    let a = "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap();
    let to = &target.stack;
    let edit = |source: &mut Snapshot, target: &mut Snapshot| -> Result<ResourceMove, StateError> {
        let changed = move_resources(source, target, to, std::slice::from_ref(&a));
        changed.map_err(|_: MoveError| StateError::NoStack(stack("refused")))
    };
    move_between_stacks(source, target, &holder(1), edit).await
}

async fn names(access: &StackAccess) -> Vec<String> {
    let Some(stored) = access.store.read_checkpoint(&access.stack).await.unwrap() else { return Vec::new() };
    let snapshot = read_snapshot(&stored.text).unwrap();
    snapshot.resources.iter().map(|state| state.urn.name().to_owned()).collect()
}

/// Stores of both stacks: one, or two.
struct Stores {
    objects: [MemoryObjects; 2],
    source: StackAccess,
    target: StackAccess,
}

async fn stores(are_two: bool, has_target: bool, folder: &Path) -> Stores {
    let first = MemoryObjects::at("memory://m");
    // The target is locked first if its store comes first.
    let second = if are_two { MemoryObjects::at("memory://a") } else { first.clone() };
    first.put(".pulumi/meta.yaml", "version: 1\n");
    second.put(".pulumi/meta.yaml", "version: 1\n");
    first.put(".pulumi/stacks/reef/dev.json", DEV);
    if has_target {
        second.put(".pulumi/stacks/reef/west.json", WEST);
    }
    let source = access(&first, "dev", None, folder).await;
    let target = access(&second, "west", None, folder).await;
    Stores { objects: [first, second], source, target }
}

impl Stores {
    fn set_faults(&self, is_failing: impl Fn(usize) -> bool + Send + Clone + 'static) {
        let served = Arc::new(AtomicUsize::new(0));
        for objects in &self.objects {
            let (served, is_failing) = (Arc::clone(&served), is_failing.clone());
            objects.set_faults(move |_| {
                if is_failing(served.fetch_add(1, Ordering::Relaxed)) { Fault::NotReached } else { Fault::None }
            });
        }
    }

    /// Ends the process: its locks are those of an ended run.
    async fn end_process(&self) {
        self.objects.iter().for_each(|objects| objects.set_faults(|_| Fault::None));
        for access in [&self.source, &self.target] {
            let locks = access.store.locks(&access.stack).await.unwrap();
            access.store.break_locks(&access.stack, &locks).await.unwrap();
        }
    }

    /// Returns whether the target has the resource. Checks that exactly one of both has it, and that both can be used.
    async fn check(&self, context: &str) -> bool {
        let (source, target) = (names(&self.source).await, names(&self.target).await);
        let has = |names: &[String]| names.iter().any(|name| name == "a");
        assert_ne!(has(&source), has(&target), "{context}: {source:?} {target:?}");
        assert!(source.iter().any(|name| name == "b"), "{context}: {source:?}");
        for access in [&self.source, &self.target] {
            assert_eq!(access.store.move_record(&access.stack).await.unwrap(), None, "{context}");
            let view = StackView::open(access).await.unwrap();
            assert_eq!(view.integrity_error, None, "{context}");
        }
        has(&target)
    }
}

/// Ends a move after each request, and the command that continues it after another one; then a command on either stack goes on.
async fn end_after_each_request(are_two: bool, has_target: bool, via_target: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (mut moved, mut undone) = (0, 0);
    for count in 0.. {
        let stores = stores(are_two, has_target, folder.path()).await;
        stores.set_faults(move |number| number >= count);
        let is_complete = move_a(&stores.source, &stores.target).await.is_ok();
        stores.end_process().await;
        let context = format!("after {count} requests");
        for access in [&stores.source, &stores.target] {
            let listed = summary(access, &StoredJournals::default()).await.unwrap();
            assert!(listed.mark.is_none(), "{context}");
            if access.store.move_record(&access.stack).await.unwrap().is_some() {
                let opened = StackState::open(access.clone(), &holder(2)).await;
                let is_refused = matches!(opened, Err(StateError::Store(StoreError::MovePending { .. })));
                assert!(is_refused, "{context}");
            }
        }
        let (own, other) = if via_target { (&stores.target, &stores.source) } else { (&stores.source, &stores.target) };
        let second = count * 7 % 23;
        stores.set_faults(move |number| number >= second);
        resume_move(own, other, &holder(2)).await.ok();
        stores.end_process().await;
        // The record of the source is the last one that is written, and the first one that is removed.
        for (own, other) in [(own, other), (other, own)] {
            if own.store.move_record(&own.stack).await.unwrap().is_some() {
                assert!(resume_move(own, other, &holder(3)).await.unwrap().is_some(), "{context}");
            }
        }
        assert!(resume_move(own, other, &holder(3)).await.unwrap().is_none(), "{context}");
        match stores.check(&context).await {
            true => moved += 1,
            false => undone += 1,
        }
        if is_complete {
            break;
        }
    }
    assert!(moved > 3 && undone > 10, "{moved} {undone}");
}

/// Shows: state.md#moves-of-resources "If the command is killed, the next command of `sc` on either stack takes the locks of both"
#[tokio::test(start_paused = true)]
async fn move_that_ends_after_any_request_leaves_the_resources_in_one_stack() {
    for are_two in [false, true] {
        for has_target in [false, true] {
            for via_target in [false, true] {
                end_after_each_request(are_two, has_target, via_target).await;
            }
        }
    }
}

/// A single request fails, or its reply is lost: the command itself, or the next one, ends the move.
#[tokio::test(start_paused = true)]
async fn move_with_any_failed_request_is_completed_or_undone() {
    let folder = tempfile::tempdir().unwrap();
    for fault in [Fault::NotReached, Fault::LostReply, Fault::Denied] {
        for failing in 0..60 {
            let stores = stores(true, true, folder.path()).await;
            let served = Arc::new(AtomicUsize::new(0));
            for objects in &stores.objects {
                let served = Arc::clone(&served);
                objects.set_faults(
                    move |_| {
                        if served.fetch_add(1, Ordering::Relaxed) == failing { fault } else { Fault::None }
                    },
                );
            }
            let result = move_a(&stores.source, &stores.target).await;
            let is_pending = matches!(result, Err(StateError::MovePending { .. }));
            stores.end_process().await;
            let context = format!("{fault:?} of request {failing}: {result:?}");
            if is_pending {
                resume_move(&stores.target, &stores.source, &holder(2)).await.unwrap();
                resume_move(&stores.source, &stores.target, &holder(2)).await.unwrap();
            }
            let is_moved = stores.check(&context).await;
            let is_reported = matches!(result, Ok(_) | Err(StateError::NotReleased { .. }));
            assert!(is_pending || is_moved == is_reported, "{context}");
        }
    }
}

/// Shows: state.md#moves-of-resources "Secrets are encrypted with the key of the other stack"
#[tokio::test]
async fn secrets_are_encrypted_with_the_key_of_the_target() {
    use pulumi_proto::property::PropertyValue;

    let (objects, folder) = (MemoryObjects::default(), tempfile::tempdir().unwrap());
    objects.put(".pulumi/stacks/reef/dev.json", DEV);
    let source = access(&objects, "dev", Some("one"), folder.path()).await;
    let target = access(&objects, "west", Some("two"), folder.path()).await;
    let state = StackState::open(source.clone(), &holder(1)).await.unwrap();
    let mut snapshot = state.snapshot().clone();
    let secret = PropertyValue::secret(PropertyValue::String("hush".to_owned()));
    Arc::make_mut(&mut snapshot.resources[0]).inputs = Arc::new([("v".into(), secret.clone())].into_iter().collect());
    state.close(snapshot, None).await.unwrap();
    let moved = move_a(&source, &target).await.unwrap();
    assert_eq!(moved.secrets_changes, [None, None]);
    for key in objects.keys() {
        assert!(!key.starts_with(".sc/"), "{key}");
    }
    let text = target.store.text(&target.stack).await.unwrap().unwrap();
    assert!(!text.contains("hush"), "{text}");
    let view = StackView::open(&target).await.unwrap();
    assert_eq!(view.snapshot.unwrap().resources[1].inputs.values().next(), Some(&secret));
    assert_eq!(names(&source).await, ["b"]);
}

/// Shows: state.md#moves-of-resources "If `pulumi` has changed the source meanwhile"
#[tokio::test(start_paused = true)]
async fn source_that_was_changed_after_an_interruption_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (changed, is_refused) in
        [(DEV.replace(r#""id":"b""#, r#""id":"c""#), true), (WEST.replace("west", "dev"), false)]
    {
        let stores = stores(false, true, folder.path()).await;
        let saved = Arc::new(AtomicUsize::new(0));
        stores.objects[0].set_faults(move |request| {
            let is_target = request.operation == "write"
                && request.key.ends_with("west.json")
                && request.key.starts_with(".pulumi");
            let count = saved.fetch_add(usize::from(is_target), Ordering::Relaxed);
            if count > 0 { Fault::NotReached } else { Fault::None }
        });
        let result = move_a(&stores.source, &stores.target).await;
        assert!(matches!(result, Err(StateError::MovePending { .. })), "{result:?}");
        stores.end_process().await;
        stores.objects[0].put(".pulumi/stacks/reef/dev.json", &changed);
        let resumed = resume_move(&stores.source, &stores.target, &holder(2)).await;
        if is_refused {
            assert!(matches!(resumed, Err(StateError::MovedTwice { .. })), "{resumed:?}");
        } else {
            assert_eq!(resumed.unwrap(), Some(MoveOutcome::Completed));
        }
    }
}
