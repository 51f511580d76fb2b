//! Stack in a temporary folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::format::{UpdateInfo, UpdateKind, UpdateResult};
use state::secrets::{CiphertextReuse, Keyring, MarkerManager, SecretsManager};
use state::store::{Expected, FileUrl, LockHolder, StackReference, StateStore, StoreOptions};
use state::{
    Effect, EntryId, JournalRecorder, OperationId, OperationKind, Record, ResourceState, Snapshot, StackAccess,
    StackState, StackView, StateError, StateRecorder as _, Subject, encode_checkpoint,
};

pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: StateStore,
    pub(crate) stack: StackReference,
    pub(crate) access: StackAccess,
    pub(crate) marker: Arc<MarkerManager>,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = FileUrl { folder: folder.path().to_owned(), create: false, folder_mode: 0o777, sidecars: true };
        let store = StateStore::open_folder(&url, StoreOptions::default()).await.unwrap();
        let stack = StackReference::new("reef", "dev").unwrap();
        let marker = Arc::new(MarkerManager::new("marker"));
        let access = StackAccess {
            store: store.clone(),
            stack: stack.clone(),
            keyring: Arc::new(Keyring::new(None).with_manager(Arc::clone(&marker) as Arc<dyn SecretsManager>)),
            configured_secrets: Some(marker.describe()),
            config: Default::default(),
            journals: state::JournalFolders::of_backend(folder.path()),
            journal_mode: Default::default(),
            unrecorded: Default::default(),
            locks: state::LockSettings::default(),
            begins_anew: false,
            engine_version: "v0.1.0".to_owned(),
        };
        Self { folder, store, stack, access, marker }
    }

    pub(crate) async fn open(&self) -> Result<StackState, StateError> {
        StackState::open(self.access.clone(), &holder()).await
    }

    /// Returns access to the same stack with another secrets manager.
    pub(crate) fn with_other_key(&self) -> (StackAccess, Arc<MarkerManager>) {
        let other = Arc::new(MarkerManager::new("other"));
        let managers = [Arc::clone(&self.marker), Arc::clone(&other)];
        let keyring = managers.into_iter().fold(Keyring::new(None), |keyring, manager| keyring.with_manager(manager));
        let configured_secrets = Some(other.describe());
        (StackAccess { keyring: Arc::new(keyring), configured_secrets, ..self.access.clone() }, other)
    }

    /// Saves a checkpoint without a run of this stack, as another program would.
    pub(crate) async fn save(&self, resources: &[Arc<ResourceState>]) {
        let snapshot =
            Snapshot { secrets: Some(self.marker.describe()), resources: resources.to_vec(), ..Snapshot::default() };
        let reuse = CiphertextReuse::default();
        let text = encode_checkpoint("", Some(&snapshot), Some(&*self.marker), &reuse).await.unwrap();
        let lock = self.store.lock(&self.stack, &holder()).await.unwrap();
        self.store.save(&lock, text, &Expected::Any).await.unwrap();
        self.store.unlock(lock).await.unwrap();
    }

    /// Returns a run that loaded `a`, has created `b` and has not ended.
    pub(crate) async fn unfinished_run(&self) -> (StackState, JournalRecorder) {
        self.save(&[resource("a")]).await;
        let state = self.open().await.unwrap();
        let mut recorder = state.recorder(UpdateKind::Update);
        for record in creation(0, 1, resource("b")) {
            recorder.append(&record).unwrap();
        }
        (state, recorder)
    }

    /// Returns the names of the resources in the state, including the changes in the journal of an interrupted run.
    pub(crate) async fn names(&self) -> Vec<String> {
        let snapshot = StackView::open(&self.access).await.unwrap().snapshot.unwrap();
        snapshot.resources.iter().map(|resource| resource.urn.name().to_owned()).collect()
    }

    /// Breaks the lock of a run that has ended without releasing it.
    pub(crate) async fn break_locks(&self) {
        self.store.break_locks(&self.stack, &self.store.locks(&self.stack).await.unwrap()).await.unwrap();
    }

    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join(".sc/journal/reef/dev");
        std::fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()).collect()
    }
}

pub(crate) fn holder() -> LockHolder {
    LockHolder { pid: 4711, username: "ada".to_owned(), hostname: "reefbox".to_owned(), process: None, lease: None }
}

pub(crate) fn resource(name: &str) -> Arc<ResourceState> {
    let urn = Urn::new("dev", "reef", None, "t:m:T", name);
    Arc::new(ResourceState { id: ResourceId::new(name), ..ResourceState::new(urn, true) })
}

/// Returns a resource whose create has begun: it has no id yet.
pub(crate) fn begun(resource: &ResourceState) -> Arc<ResourceState> {
    Arc::new(ResourceState { id: None, ..resource.clone() })
}

pub(crate) fn secret_resource(name: &str) -> Arc<ResourceState> {
    let mut resource = ResourceState::clone(&resource(name));
    let token = PropertyValue::secret(PropertyValue::from("otter<7>"));
    resource.inputs = Arc::new(PropertyMap::from([("token".to_owned(), token)]));
    Arc::new(resource)
}

pub(crate) fn creation(operation: u64, entry: u64, resource: Arc<ResourceState>) -> [Record; 2] {
    let (operation, entry) = (OperationId(operation), EntryId(entry));
    [
        Record::Begin { operation, kind: OperationKind::Creating, subject: Subject::Resource(begun(&resource)) },
        Record::End { operation, effects: vec![Effect::Add(entry, resource)] },
    ]
}

pub(crate) fn update() -> UpdateInfo {
    UpdateInfo {
        kind: UpdateKind::Update,
        start_time: 1,
        message: String::new(),
        environment: BTreeMap::new(),
        config: BTreeMap::new(),
        result: UpdateResult::Succeeded,
        end_time: 2,
        resource_changes: BTreeMap::new(),
    }
}
