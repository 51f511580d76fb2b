//! Checks states that `sc` wrote with Pulumi's own Go packages: they decode strictly, can be decrypted, and equal the
//! output of Go's encoder.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use serde_json::Value;
use state::format::{UpdateInfo, UpdateKind, UpdateResult};
use state::secrets::{Keyring, Passphrase, PassphraseManager, SecretsManager as _};
use state::store::{FileUrl, LockHolder, StackReference, StateStore, StoreOptions};
use state::{
    Effect, Ledger, OperationKind, Record, ResourceState, StackAccess, StackState, StateRecorder as _, Subject,
};
use tests::{commands, sdks};

const PASSPHRASE: &str = "kelp & \"forest\" ü";

/// Tests states of every shape that Pulumi's command line wrote, encrypted again with our own key.
#[tokio::test]
async fn rewritten_state_with_new_key_is_read_by_pulumi() {
    let cases = [
        "assets",
        "features",
        "init-errors",
        "killed",
        "options",
        "pending-delete",
        "provider",
        "read-and-imported",
        "references",
        "secrets",
        "unversioned",
        "up",
        "values",
        "version-4",
    ];
    for case in cases {
        let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/state").join(case);
        let stack = Stack::with_checkpoint(&goldens.join("backend/.pulumi/stacks/reef/dev.json"));
        let state = stack.open().await;
        let snapshot = state.snapshot().clone();
        state.close(snapshot, Some(&update())).await.unwrap();
        let known: Value = serde_json::from_str(&std::fs::read_to_string(goldens.join("case.json")).unwrap()).unwrap();
        let known = known["stacks"]["organization/reef/dev"]["secrets"].as_array().unwrap();
        let known: Vec<_> = known.iter().map(|secret| secret["plaintext"].as_str().unwrap().to_owned()).collect();
        let secrets = stack.read_with_pulumi(PASSPHRASE).unwrap();
        // A pending operation has secrets of its own, after those of the resources.
        assert_eq!(secrets[..known.len()], known, "{case}");
        assert!(secrets.len() == known.len() || case == "killed", "{case}");
    }
}

#[tokio::test]
async fn state_of_a_run_is_read_by_pulumi() {
    let stack = Stack::empty();
    let state = stack.open().await;
    let mut recorder = state.recorder(UpdateKind::Update);
    recorder.wait_for_secrets().await.unwrap();
    let mut ledger = Ledger::new(state.snapshot().clone());
    let root = Arc::new(ResourceState::new(Urn::root_stack("dev", "reef"), false));
    let mut clam = ResourceState::new(Urn::new("dev", "reef", None, "t:m:T", "clam"), true);
    clam.id = ResourceId::new("clam-1");
    clam.parent = Some(root.urn.clone());
    clam.inputs = Arc::new(PropertyMap::from([
        ("big".to_owned(), PropertyValue::Number(1e21)),
        ("markup".to_owned(), PropertyValue::from("<&>\u{2028}")),
        ("token".to_owned(), PropertyValue::secret("<otter>".into())),
    ]));
    let clam = Arc::new(clam);
    let operation = ledger.new_operation();
    let (first, second) = (ledger.new_entry(), ledger.new_entry());
    let records = [
        Record::Change(vec![Effect::Add(first, root)]),
        Record::Begin { operation, kind: OperationKind::Creating, subject: Subject::Resource(Arc::clone(&clam)) },
        Record::End { operation, effects: vec![Effect::Add(second, clam)] },
    ];
    for record in &records {
        ledger.apply(record);
        recorder.append(record).unwrap();
    }
    state.close(ledger.snapshot(), None).await.unwrap();
    assert_eq!(stack.read_with_pulumi(PASSPHRASE).unwrap(), ["\"\\u003cotter\\u003e\""]);
    let error = stack.read_with_pulumi("another").unwrap_err().to_string();
    assert!(error.contains("incorrect passphrase"), "{error}");
}

/// Stack `reef/dev` in a temporary folder.
struct Stack {
    folder: tempfile::TempDir,
}

impl Stack {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with_checkpoint(file: &Path) -> Self {
        let stack = Self::empty();
        std::fs::create_dir_all(stack.checkpoint().parent().unwrap()).unwrap();
        std::fs::copy(file, stack.checkpoint()).unwrap();
        stack
    }

    fn checkpoint(&self) -> PathBuf {
        self.folder.path().join(".pulumi/stacks/reef/dev.json")
    }

    /// Opens the stack with a new key.
    async fn open(&self) -> StackState {
        let folder = self.folder.path().to_owned();
        let url = FileUrl { folder: folder.clone(), create: false, folder_mode: 0o777, sidecars: true };
        let manager = Arc::new(PassphraseManager::create(Passphrase::new(PASSPHRASE)).await.unwrap());
        let configured_secrets = Some(manager.describe());
        let access = StackAccess {
            store: StateStore::open_folder(&url, StoreOptions::default()).await.unwrap(),
            stack: StackReference::new("reef", "dev").unwrap(),
            keyring: Arc::new(Keyring::new(Some(Passphrase::new("tide-pool 42"))).with_manager(manager)),
            configured_secrets,
            config: Default::default(),
            journals: state::JournalFolders::of_backend(folder),
            journal_mode: Default::default(),
            unrecorded: Default::default(),
            locks: state::LockSettings::default(),
            begins_anew: false,
            engine_version: "v0.1.0".to_owned(),
        };
        let holder = LockHolder {
            pid: 1,
            username: "ada".to_owned(),
            hostname: "reefbox".to_owned(),
            process: None,
            lease: None,
        };
        StackState::open(access, &holder).await.unwrap()
    }

    /// Reads the checkpoint with Pulumi's packages, and returns its decrypted secrets.
    fn read_with_pulumi(&self, passphrase: &str) -> std::io::Result<Vec<String>> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_state/reader");
        let reader = sdks::go_program("state-reader", &sources)?;
        let mut command = Command::new(reader);
        let report = commands::run(
            command.arg("checkpoint").arg(self.checkpoint()).env("PULUMI_CONFIG_PASSPHRASE", passphrase),
        )?;
        let report: Value = serde_json::from_slice(&report)?;
        assert_eq!(report["written"], std::fs::read_to_string(self.checkpoint())?);
        Ok(serde_json::from_value::<Option<Vec<String>>>(report["secrets"].clone())?.unwrap_or_default())
    }
}

fn update() -> UpdateInfo {
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
