//! Errors of the disk at each call of a run that changes files: open, write, flush, rename, link, remove. A run is
//! never reported as successful unless its state was saved, and the id of each existing resource is in the checkpoint,
//! in a journal, or in the changes that are reported as unrecorded.
//!
//! By default only some calls fail; `SC_CRASH_EVERY=1` tests all.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bridge::fs::faults::{Errno, Fault};
use engine::events::{Event, EventSink, Operation, Outcome};
use engine::{Deployment, DeploymentOptions, DeploymentRequest, ProgramEnd, StopSignals};
use pulumi_proto::property::PropertyValue;
use state::format::{UpdateInfo, UpdateKind, UpdateResult};
use state::secrets::{Keyring, MarkerManager, SecretsManager};
use state::store::{FileUrl, LockHolder, StackReference, StateStore, StoreOptions};
use state::{
    ChangeKind, JournalFolders, ResourceState, StackAccess, StackState, StackView, StateError, Unrecorded,
    UnrecordedReport,
};

use crate::fake_cloud::FakeCloud;
use crate::program::{self, PROJECT, ProgramResource, STACK, component, provider, resource};

const SECRET: &str = "otter";
const ERRORS: [Errno; 4] = [Errno::NOSPC, Errno::IO, Errno::MFILE, Errno::ROFS];

/// Stack in a folder, and the cloud with its resources.
struct Fixture {
    folder: tempfile::TempDir,
    cloud: FakeCloud,
}

/// Result of a run: its error, or `None` after a success; what it could not record.
struct Ended {
    error: Option<String>,
    unrecorded: UnrecordedReport,
}

struct Discarded;

impl EventSink for Discarded {
    fn emit(&self, _: Event) {}
}

impl Fixture {
    /// Returns a stack with resources, and a second program whose steps are of all kinds.
    async fn new() -> (Self, Vec<ProgramResource>) {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), cloud: FakeCloud::default() };
        for folder in ["backend", "user"] {
            std::fs::create_dir(fixture.folder.path().join(folder)).unwrap();
        }
        let program = |value: &str| {
            vec![
                provider("p"),
                component("g"),
                resource("updated").input("v", value).parent("g"),
                resource("replaced").input("k", value).provider("p"),
                resource("recreated").input("d", value).depends_on("updated"),
            ]
        };
        let first = [program("1"), vec![resource("deleted")]].concat();
        assert_eq!(fixture.run(&first).await.error, None);
        let created = resource("created").input("v", PropertyValue::secret(PropertyValue::from(SECRET)));
        (fixture, [program("2"), vec![created, resource("last").input_from("v", "created")]].concat())
    }

    fn copy(&self) -> Self {
        let copy = Self { folder: tempfile::tempdir().unwrap(), cloud: self.cloud.fork(&self.cloud.state()) };
        copy_folder(self.folder.path(), copy.folder.path());
        copy
    }

    fn backend(&self) -> PathBuf {
        self.folder.path().join("backend")
    }

    async fn access(&self) -> StackAccess {
        let backend = self.backend();
        let url = FileUrl { folder: backend.clone(), create: false, folder_mode: 0o777, sidecars: true };
        let marker: Arc<dyn SecretsManager> = Arc::new(MarkerManager::new("marker"));
        StackAccess {
            store: StateStore::open_folder(&url, StoreOptions::default()).await.unwrap(),
            stack: StackReference::new(PROJECT, STACK).unwrap(),
            configured_secrets: Some(marker.describe()),
            keyring: Arc::new(Keyring::new(None).with_manager(marker)),
            config: Default::default(),
            journals: JournalFolders::of_backend(&backend)
                .with_fallbacks(&backend, vec![self.folder.path().join("user/sc")]),
            journal_mode: Default::default(),
            unrecorded: Unrecorded::default(),
            locks: state::LockSettings::default(),
            begins_anew: false,
            engine_version: "v0.1.0".to_owned(),
        }
    }

    async fn run(&self, program: &[ProgramResource]) -> Ended {
        let access = self.access().await;
        let error = match self.run_with(access.clone(), program).await {
            Ok(Outcome::Succeeded) => None,
            Ok(outcome) => Some(format!("{outcome:?}")),
            Err(error) => Some(bridge::error::chain(&error)),
        };
        Ended { error, unrecorded: access.unrecorded.take() }
    }

    async fn run_with(&self, access: StackAccess, program: &[ProgramResource]) -> Result<Outcome, StateError> {
        let holder = LockHolder {
            pid: 1,
            username: "ada".to_owned(),
            hostname: "reefbox".to_owned(),
            process: None,
            lease: None,
        };
        let state = StackState::open(access, &holder).await?;
        let options = DeploymentOptions { parallel: 4, ..DeploymentOptions::default() };
        let request = DeploymentRequest { options, ..DeploymentRequest::new(STACK, PROJECT, Operation::Update) };
        let (host, recorder) = (Arc::new(self.cloud.clone()), Box::new(state.recorder(UpdateKind::Update)));
        let (events, signals) = (Arc::new(Discarded), StopSignals::default());
        let snapshot = state.snapshot().clone();
        let (deployment, run) = Deployment::new(request, snapshot, host, Some(recorder), events, signals);
        let (end, _) = tokio::join!(run, async {
            let (_, result) = program::register_all(program, &deployment).await;
            deployment.finish(result.map_or(ProgramEnd::Failed, |()| ProgramEnd::Completed)).await;
        });
        drop(deployment);
        state.close(end.snapshot, Some(&update())).await?;
        Ok(end.outcome)
    }

    /// Returns the ids of existing resources in the checkpoint and the journals.
    async fn recorded(&self) -> BTreeSet<String> {
        let view = StackView::open(&self.access().await).await.unwrap();
        let resources = view.snapshot.unwrap_or_default().resources;
        let exists = |state: &ResourceState| state.custom && !state.is_provider() && !state.pending_replacement;
        let recorded = resources.iter().filter(|state| exists(state));
        let created = view.conflict.into_iter().flat_map(|conflict| conflict.created);
        let created = created.filter_map(|(_, id)| Some(id?.to_string()));
        recorded.map(|state| state.id_text().to_owned()).chain(created).collect()
    }

    fn existing(&self) -> BTreeSet<String> {
        self.cloud.existing()
    }
}

fn update() -> UpdateInfo {
    UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 1,
        message: String::new(),
        environment: Default::default(),
        config: Default::default(),
        result: UpdateResult::Succeeded,
        end_time: 2,
        resource_changes: Default::default(),
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap(), to.join(entry.as_ref().unwrap().file_name()));
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Folder in which calls fail.
#[derive(Clone, Copy, Debug)]
enum Disk {
    Backend,
    All,
}

/// Counts of runs by what they left.
#[derive(Debug, Default)]
struct Tally {
    runs: usize,
    succeeded: usize,
    in_fallback: usize,
    unrecorded: usize,
}

/// Runs with a fault at a call, and checks what is recorded. Returns false if the run has no such call.
async fn check(prepared: &Fixture, program: &[ProgramResource], disk: Disk, fault: &Fault, tally: &mut Tally) -> bool {
    let fixture = prepared.copy();
    let folder = match disk {
        Disk::Backend => fixture.backend(),
        Disk::All => fixture.folder.path().to_owned(),
    };
    let injected = Fault { folder, ..fault.clone() }.inject();
    let ended = fixture.run(program).await;
    let failed = injected.failed();
    drop(injected);
    if failed.is_empty() {
        assert_eq!(ended.error, None);
        return false;
    }
    let at = format!("{} at {disk:?} call {} (lasts: {}): {failed:?}", fault.error, fault.at, fault.lasts);
    let at = format!("{at}\nerror: {:?}\nunrecorded: {:?}", ended.error, ended.unrecorded);
    let (recorded, existing) = (fixture.recorded().await, fixture.existing());
    let listed = |kinds: &[ChangeKind]| -> BTreeSet<String> {
        let changes = ended.unrecorded.changes.iter().filter(|change| kinds.contains(&change.kind));
        changes.map(|change| change.id.to_string()).collect()
    };
    if ended.error.is_none() {
        assert_eq!((&recorded, &ended.unrecorded), (&existing, &UnrecordedReport::default()), "{at}");
    }
    let known: BTreeSet<_> = recorded.union(&listed(&[ChangeKind::Added])).cloned().collect();
    let lost: Vec<_> = existing.difference(&known).collect();
    assert!(lost.is_empty(), "{lost:?} are lost: {at}");
    let removed = listed(&[ChangeKind::Removed]);
    let stale: Vec<_> = recorded.iter().filter(|id| !existing.contains(*id) && !removed.contains(*id)).collect();
    assert!(stale.is_empty(), "{stale:?} are recorded and do not exist: {at}");

    let fallback = files(&fixture.folder.path().join("user"));
    for (path, content) in &fallback {
        use std::os::unix::fs::PermissionsExt as _;
        let count = |part: &str| content.matches(part).count();
        assert_eq!(count(SECRET), count("\"ciphertext\":\"marker:"), "{at}");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{at}");
    }
    tally.runs += 1;
    tally.succeeded += usize::from(ended.error.is_none());
    tally.in_fallback += usize::from(!fallback.is_empty());
    tally.unrecorded += usize::from(!ended.unrecorded.changes.is_empty());
    if ended.unrecorded.changes.is_empty() {
        // The disk works again: the next run completes the program from what was recorded.
        let access = fixture.access().await;
        access.store.break_locks(&access.stack, &access.store.locks(&access.stack).await.unwrap()).await.unwrap();
        assert_eq!(fixture.run(program).await.error, None, "{at}");
        assert_eq!(fixture.recorded().await, fixture.existing(), "{at}");
        assert!(files(&fixture.folder.path().join("user")).is_empty(), "the journal stays: {at}");
    }
    true
}

/// Returns the files below a folder, with their texts.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push((entry.path(), std::fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found
}

/// Checks runs with a fault at the first call and at each `every`th call after it, until a run has no such call.
async fn check_calls(disk: Disk, lasts: bool, every: usize) -> Tally {
    let every = std::env::var("SC_CRASH_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(every);
    let (prepared, program) = Fixture::new().await;
    let mut tally = Tally::default();
    for error in ERRORS {
        let fault = |at| Fault { folder: Default::default(), at, error, lasts };
        for at in (1..).step_by(every) {
            if !check(&prepared, &program, disk, &fault(at), &mut tally).await {
                break;
            }
        }
    }
    tally
}

/// Shows: state.md#the-journal-could-not-be-written "An error of the disk at any call loses no id, and no such run is
///   reported as successful unless its state was saved."
#[tokio::test]
async fn single_error_of_the_disk_loses_no_id() {
    let tally = check_calls(Disk::All, false, 4).await;
    assert!(tally.runs >= 40 && tally.unrecorded == 0, "{tally:?}");
}

#[tokio::test]
async fn lasting_error_of_the_backend_leaves_the_journal_in_a_fallback_folder() {
    let tally = check_calls(Disk::Backend, true, 4).await;
    assert!(tally.runs >= 40 && tally.in_fallback > 0 && tally.unrecorded == 0, "{tally:?}");
}

#[tokio::test]
async fn lasting_error_of_all_disks_is_reported_with_each_id() {
    let tally = check_calls(Disk::All, true, 4).await;
    assert!(tally.runs >= 40 && tally.unrecorded > 0, "{tally:?}");
}
