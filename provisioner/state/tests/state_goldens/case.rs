//! Golden case and its checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{Archive, ArchiveContent, PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use serde_json::{Value, json};
use state::secrets::{
    CiphertextReuse, Crypter, Keyring, Passphrase, PassphraseManager, SecretsError, SecretsManager, SymmetricCrypter,
};
use state::store::{FileUrl, LegacyStores, StackReference, StateStore, StoreError, StoreOptions};
use state::{
    LoadedCheckpoint, ResourceState, SecretsDescription, Snapshot, decode_checkpoint, encode_checkpoint, integrity,
};
use zeroize::Zeroizing;

/// Golden case.
pub(crate) struct Case {
    pub(crate) folder: PathBuf,
    pub(crate) known: Value,
    options: StoreOptions,
    allow_different_encoding: bool,
    /// Created managers, which are used for all files because deriving a key takes long.
    managers: Mutex<Vec<Arc<dyn SecretsManager>>>,
}

impl Case {
    pub(crate) fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/state")
    }

    pub(crate) fn open(name: &str) -> Self {
        let folder = Self::root().join(name);
        let known = std::fs::read_to_string(folder.join("case.json")).unwrap();
        Self {
            folder,
            known: serde_json::from_str(&known).unwrap(),
            options: StoreOptions::default(),
            allow_different_encoding: false,
            managers: Mutex::default(),
        }
    }

    pub(crate) fn allow_different_encoding(self) -> Self {
        Self { allow_different_encoding: true, ..self }
    }

    pub(crate) fn accept_legacy(self) -> Self {
        Self { options: StoreOptions { legacy_stores: LegacyStores::Accepted, ..self.options }, ..self }
    }

    pub(crate) async fn store(&self) -> Result<StateStore, StoreError> {
        let folder = self.folder.join("backend");
        let url = FileUrl { folder, create: false, folder_mode: 0o777, sidecars: true };
        StateStore::open_folder(&url, self.options).await
    }

    pub(crate) fn stacks(&self) -> Vec<(StackReference, &Value)> {
        let stacks = self.known["stacks"].as_object().unwrap();
        let reference = |name: &str| match name.contains('/') {
            true => StackReference::parse(name, "").unwrap(),
            false => StackReference::without_project(name).unwrap(),
        };
        stacks.iter().map(|(name, known)| (reference(name), known)).collect()
    }

    pub(crate) fn passphrase(&self, stack: &StackReference) -> Passphrase {
        let passphrase = &self.known["passphrase"];
        let one_per_stack = passphrase.get(stack.to_string());
        // A case with a data key has no passphrase.
        Passphrase::new(one_per_stack.unwrap_or(passphrase).as_str().unwrap_or_default())
    }

    /// Returns the data key of a case without passphrase.
    fn data_key(&self) -> Option<DataKey> {
        let digits = self.known["data_key_hex"].as_str()?;
        let mut key = DataKey::default();
        hex::decode_to_slice(digits, &mut *key).unwrap();
        Some(key)
    }

    /// Returns the passphrase of earlier updates, if the case has changed it.
    fn old_passphrase(&self, stack: &StackReference) -> Passphrase {
        self.known["old_passphrase"].as_str().map_or_else(|| self.passphrase(stack), Passphrase::new)
    }

    pub(crate) async fn check(&self) {
        let store = self.store().await.unwrap();
        for (stack, known) in self.stacks() {
            assert!(store.list().await.unwrap().contains(&stack));
            let text = store.text(&stack).await.unwrap().unwrap();
            let (loaded, plaintexts) = self.read(&text, self.passphrase(&stack)).await;
            compare_checkpoint(&loaded, known).await;
            compare_secrets(loaded.checkpoint.snapshot.as_ref().unwrap(), &plaintexts, known);
            integrity::verify(loaded.checkpoint.snapshot.as_ref().unwrap()).unwrap();
            let written = write(&loaded).await;
            if self.allow_different_encoding {
                let again = self.read(&written, self.passphrase(&stack)).await.0;
                assert_eq!(again.checkpoint, loaded.checkpoint);
            } else {
                assert_eq!(written, text);
            }
            let locks = store.locks(&stack).await.unwrap();
            assert_eq!(json!(locks.len()), *known.get("locks").unwrap_or(&json!(0)));
            assert!(locks.iter().all(|lock| lock.to_string().contains("created by user@host (pid ")));
            self.check_copies(&stack).await;
        }
    }

    /// Checks previous checkpoints, retained copies, backups, and copies in the history.
    async fn check_copies(&self, stack: &StackReference) {
        for path in files(&self.folder.join("backend/.pulumi")) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let of_stack = name.starts_with(&format!("{}.", stack.stack()))
                || name.starts_with(&format!("{}-", stack.stack())) && name.contains(".checkpoint.json");
            if !of_stack
                || name.ends_with(".attrs")
                || name.ends_with(".pulumi-tags")
                || ["", ".gz", ".zst"].iter().any(|suffix| name == format!("{}.json{suffix}", stack.stack()))
            {
                continue;
            }
            let text = checkpoint_text(&path).await;
            let loaded = self.read(&text, self.old_passphrase(stack)).await.0;
            let initial = text.contains("\"version\":0,");
            assert_eq!(loaded.checkpoint.snapshot.is_none(), initial, "{}", path.display());
            if !initial {
                assert_eq!(write(&loaded).await, text, "{}", path.display());
            }
        }
    }

    fn manager(&self, passphrase: Passphrase, description: &SecretsDescription) -> Arc<dyn SecretsManager> {
        let mut managers = self.managers.lock().unwrap();
        if let Some(manager) = managers.iter().find(|manager| manager.describe() == *description) {
            return Arc::clone(manager);
        }
        managers.push(match self.data_key() {
            Some(key) => Arc::new(UnwrappedKeyManager { key, description: description.clone() }),
            None => Arc::new(PassphraseManager::open_described(passphrase, description).unwrap()),
        });
        managers.last().cloned().unwrap()
    }

    /// Reads a checkpoint. Returns it with the plaintexts of its secrets, in the order of the file.
    async fn read(&self, text: &str, passphrase: Passphrase) -> (LoadedCheckpoint, Vec<String>) {
        let plaintexts = Arc::default();
        let keyring = Keyring::new(Some(passphrase.clone()));
        let keyring = match description(text) {
            Some(description) => {
                let inner = self.manager(passphrase, &description);
                keyring.with_manager(Arc::new(Recording { inner, plaintexts: Arc::clone(&plaintexts) }))
            }
            None => keyring,
        };
        let loaded = decode_checkpoint(text, &keyring).await.unwrap();
        let plaintexts = plaintexts.lock().unwrap().clone();
        (loaded, plaintexts)
    }
}

/// Returns the text of a checkpoint file, decompressed by a store.
async fn checkpoint_text(path: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let stacks = folder.path().join(".pulumi/stacks/reef");
    std::fs::create_dir_all(&stacks).unwrap();
    std::fs::copy(path, stacks.join("copy.json")).unwrap();
    let url = FileUrl { folder: folder.path().to_owned(), create: false, folder_mode: 0o777, sidecars: true };
    let stack = StackReference::new("reef", "copy").unwrap();
    StateStore::open_folder(&url, StoreOptions::default()).await.unwrap().text(&stack).await.unwrap().unwrap()
}

fn description(text: &str) -> Option<SecretsDescription> {
    let file: Value = serde_json::from_str(text).unwrap();
    let secrets = file.pointer("/checkpoint/latest/secrets_providers")?;
    Some(SecretsDescription { kind: secrets["type"].as_str()?.to_owned(), state: secrets["state"].clone() })
}

async fn write(loaded: &LoadedCheckpoint) -> String {
    let (checkpoint, manager) = (&loaded.checkpoint, loaded.manager.clone().map(Result::unwrap));
    encode_checkpoint(&checkpoint.stack, checkpoint.snapshot.as_ref(), manager.as_deref(), &loaded.reuse).await.unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

async fn compare_checkpoint(loaded: &LoadedCheckpoint, known: &Value) {
    // A case has only the members that are known of it.
    let compare =
        |name: &str, found: Value| assert_eq!(known.get(name).map_or_else(|| found.clone(), as_doubles), found);
    compare("checkpoint_stack", json!(loaded.checkpoint.stack));
    let snapshot = loaded.checkpoint.snapshot.as_ref().unwrap();
    assert_eq!(known["resource_count"], json!(snapshot.resources.len()));
    let resources: Vec<_> = snapshot.resources.iter().map(|resource| flags(resource)).collect();
    compare("resources", json!(resources));
    let pending = snapshot
        .pending_operations
        .iter()
        .map(|operation| json!({ "type": operation.kind.as_str(), "urn": operation.resource.urn.as_str() }));
    let pending: Vec<_> = pending.collect();
    assert_eq!(known["pending_operations"], json!(pending));
    let outputs = snapshot.stack_outputs().cloned().unwrap_or_default();
    assert_eq!(as_doubles(&known["outputs"]), as_doubles(&to_plain_json(&outputs).await));
}

/// Returns the URN of a resource and the members that `case.json` lists.
fn flags(resource: &ResourceState) -> Value {
    let mut known = BTreeMap::from([("urn", json!(resource.urn.as_str()))]);
    let texts = [("id", &resource.id), ("importID", &resource.import_id)];
    known.extend(texts.into_iter().filter_map(|(name, id)| Some((name, json!(id.as_ref()?.as_str())))));
    let flags = [
        ("delete", resource.delete),
        ("external", resource.external),
        ("protect", resource.protect),
        ("taint", resource.taint),
        ("pendingReplacement", resource.pending_replacement),
        ("retainOnDelete", resource.retain_on_delete),
        ("refreshBeforeUpdate", resource.refresh_before_update),
    ];
    known.extend(flags.into_iter().filter(|(_, flag)| *flag).map(|(name, flag)| (name, json!(flag))));
    let replace_with: Vec<_> = resource.replace_with.iter().map(ToString::to_string).collect();
    let lists = [
        ("additionalSecretOutputs", &resource.additional_secret_outputs),
        ("initErrors", &resource.init_errors),
        ("replaceWith", &replace_with),
        ("ignoreChanges", &resource.ignore_changes),
        ("replaceOnChanges", &resource.replace_on_changes),
    ];
    known.extend(lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name, json!(list))));
    known.extend(resource.deleted_with.iter().map(|urn| ("deletedWith", json!(urn.as_str()))));
    let Timeouts { create, update, delete, read } = resource.custom_timeouts.durations();
    let timeouts = [("create", create), ("update", update), ("delete", delete), ("read", read)];
    let timeouts: BTreeMap<_, _> =
        timeouts.into_iter().filter_map(|(name, timeout)| Some((name, timeout?.as_secs_f64()))).collect();
    known.extend((!timeouts.is_empty()).then(|| ("customTimeouts", json!(timeouts))));
    as_doubles(&json!(known))
}

/// Returns outputs in JSON, as a state without encryption has them.
async fn to_plain_json(outputs: &PropertyMap) -> Value {
    let mut root = ResourceState::new(Urn::root_stack("s", "p"), false);
    root.outputs = Arc::new(outputs.iter().map(|(name, value)| (name.clone(), value.without_wrappers())).collect());
    let snapshot = Snapshot { resources: vec![Arc::new(root)], ..Snapshot::default() };
    let text = encode_checkpoint("", Some(&snapshot), None, &CiphertextReuse::default()).await.unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file.pointer("/checkpoint/latest/resources/0/outputs").cloned().unwrap_or_else(|| json!({}))
}

fn as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(as_doubles).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), as_doubles(value))).collect(),
        other => other.clone(),
    }
}

fn compare_secrets(snapshot: &Snapshot, plaintexts: &[String], known: &Value) {
    let mut places = Vec::new();
    let pending = snapshot.pending_operations.iter().map(|operation| &operation.resource);
    for (index, resource) in snapshot.resources.iter().chain(pending).enumerate() {
        let (inputs, outputs) = ((*resource.inputs).clone(), (*resource.outputs).clone());
        let values = [
            ("inputs", PropertyValue::Map(inputs)),
            ("outputs", PropertyValue::Map(outputs)),
            ("replacementTrigger", resource.replacement_trigger.clone()),
        ];
        for (name, value) in values {
            find_secrets(&value, &mut Vec::new(), &mut |at| places.push((index, name, json!(at))));
        }
    }
    assert_eq!(places.len(), plaintexts.len());
    let found: Vec<_> = places
        .into_iter()
        .zip(plaintexts)
        .filter(|((index, ..), _)| *index < snapshot.resources.len())
        .map(
            |((index, name, at), plaintext)| json!({ "resource": index, "in": name, "at": at, "plaintext": plaintext }),
        )
        .collect();
    assert_eq!(known["secrets"], json!(found));
}

fn find_secrets(value: &PropertyValue, at: &mut Vec<Value>, found: &mut impl FnMut(&[Value])) {
    let mut visit = |step: Value, value: &PropertyValue| {
        at.push(step);
        find_secrets(value, at, found);
        at.pop();
    };
    match value {
        PropertyValue::Secret(_) => found(at),
        PropertyValue::List(items) => {
            items.iter().enumerate().for_each(|(index, item)| visit(json!(index), item));
        }
        PropertyValue::Map(map) => map.iter().for_each(|(name, value)| visit(json!(name), value)),
        PropertyValue::Archive(Archive { content: ArchiveContent::Assets(assets), .. }) => {
            assets.iter().for_each(|(name, value)| visit(json!(name), value));
        }
        _ => {}
    }
}

type DataKey = Zeroizing<[u8; 32]>;

/// Secrets manager with a key that is already unwrapped.
struct UnwrappedKeyManager {
    key: DataKey,
    description: SecretsDescription,
}

#[async_trait]
impl SecretsManager for UnwrappedKeyManager {
    fn describe(&self) -> SecretsDescription {
        self.description.clone()
    }

    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        Ok(Arc::new(SymmetricCrypter::new(&self.key)))
    }
}

/// Secrets manager or crypter that records the decrypted plaintexts.
struct Recording<T> {
    inner: T,
    plaintexts: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl SecretsManager for Recording<Arc<dyn SecretsManager>> {
    fn describe(&self) -> SecretsDescription {
        self.inner.describe()
    }

    async fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        Ok(Arc::new(Recording { inner: self.inner.crypter().await?, plaintexts: Arc::clone(&self.plaintexts) }))
    }
}

impl Crypter for Recording<Arc<dyn Crypter>> {
    fn encrypt(&self, plaintext: &str) -> Result<String, SecretsError> {
        self.inner.encrypt(plaintext)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<String, SecretsError> {
        let plaintext = self.inner.decrypt(ciphertext)?;
        self.plaintexts.lock().unwrap().push(plaintext.clone());
        Ok(plaintext)
    }
}
