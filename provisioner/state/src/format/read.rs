//! Reads the text of a checkpoint or of an export.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::deployment_dto::magic;
use super::error::FormatError;
use super::read_value::{SecretDecryption, ValueReader};
use super::resource::{ResourceReader, StoredResource, non_empty};
use super::{features, shape};
use crate::resource::ResourceState;
use crate::snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};

/// Number of entries from which on they are read on several threads.
const PARALLEL_THRESHOLD: usize = 256;

/// Minimum number of entries for each thread.
const MIN_ENTRIES_PER_THREAD: usize = 64;

/// Members of all versions.
#[derive(Deserialize)]
struct Envelope {
    version: Option<u32>,
    features: Option<Vec<String>>,
}

/// File of a checkpoint. `R` is the form of its resources: raw JSON text, or [`StoredResource`].
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredFile<'a, R> {
    version: Option<u32>,
    features: Option<Vec<String>>,
    #[serde(borrow)]
    checkpoint: Option<StoredCheckpoint<'a, R>>,
}

/// Content of a checkpoint. Old imports wrote its members with capital letters.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredCheckpoint<'a, R> {
    #[serde(alias = "Stack")]
    stack: Option<String>,
    #[serde(alias = "Latest", borrow)]
    latest: Option<StoredDeployment<'a, R>>,
}

/// Output of `pulumi stack export`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredExport<'a, R> {
    version: Option<u32>,
    features: Option<Vec<String>>,
    #[serde(borrow)]
    deployment: Option<StoredDeployment<'a, R>>,
}

/// Checkpoint from the time before version numbers.
#[derive(Deserialize)]
struct BareCheckpoint<'a> {
    #[serde(alias = "Latest", borrow)]
    latest: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredDeployment<'a, R> {
    manifest: Option<StoredManifest>,
    secrets_providers: Option<StoredSecrets>,
    resources: Option<Vec<R>>,
    #[serde(borrow)]
    pending_operations: Option<Vec<StoredOperation<'a>>>,
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    snippets: Option<Vec<serde_json::Value>>,
    extensions: Option<BTreeMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
struct StoredManifest {
    time: Option<String>,
    magic: Option<String>,
    version: Option<String>,
}

#[derive(Clone, Deserialize)]
struct StoredSecrets {
    #[serde(rename = "type")]
    kind: Option<String>,
    state: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct StoredOperation<'a> {
    #[serde(borrow)]
    resource: StoredResource<'a>,
    #[serde(rename = "type")]
    kind: String,
}

/// Checkpoint whose resources are not parsed yet.
pub(crate) struct StoredText<'a> {
    /// Parses the whole text again to get an error with the position in the file.
    locate_error: Box<dyn Fn() -> Option<serde_json::Error> + Send + 'a>,
    checkpoint: Option<StoredCheckpoint<'a, &'a RawValue>>,
}

impl<'a> StoredText<'a> {
    /// Parses a checkpoint except its resources.
    ///
    /// # Errors
    /// [`FormatError`] if the text is not a checkpoint, or has an unsupported version or feature.
    pub(crate) fn parse(text: &'a str) -> Result<Self, FormatError> {
        let with_checkpoint = |checkpoint| {
            let locate_error = Box::new(|| serde_json::from_str::<StoredFile<'_, StoredResource<'_>>>(text).err());
            Self { locate_error, checkpoint }
        };
        // Fast path: a valid text, however large, is parsed once. Errors are examined below.
        let malformed = match serde_json::from_str::<StoredFile<'a, &'a RawValue>>(text) {
            Ok(StoredFile { version: Some(version @ 3..=4), features, checkpoint }) => {
                if version == 4 {
                    features::check_known(&features.unwrap_or_default())?;
                }
                if !checkpoint.as_ref().is_some_and(StoredCheckpoint::has_resources) {
                    shape::check_checkpoint(text)?;
                }
                return Ok(with_checkpoint(checkpoint));
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        shape::object("", Some(&shape::parse(text)?))?;
        let envelope: Envelope = serde_json::from_str(text).map_err(FormatError::Malformed)?;
        check_version(text, envelope.version.unwrap_or_default(), &envelope.features.unwrap_or_default())?;
        if let Some(error) = malformed {
            return Err(FormatError::Malformed(error));
        }
        shape::check_checkpoint(text)?;
        Ok(with_checkpoint(None))
    }

    /// Parses an exported deployment except its resources.
    ///
    /// # Errors
    /// [`FormatError`] if the text is not an export, or has an unsupported version or feature.
    pub(crate) fn parse_export(text: &'a str) -> Result<Self, FormatError> {
        let export: StoredExport<'a, &'a RawValue> = match serde_json::from_str(text) {
            Ok(export) => export,
            Err(error) => {
                shape::object("", Some(&shape::parse(text)?))?;
                return Err(FormatError::Malformed(error));
            }
        };
        match export.version.unwrap_or_default() {
            version @ 0..=2 => return Err(FormatError::TooOld(version)),
            3 => {}
            4 => features::check_known(&export.features.unwrap_or_default())?,
            version => return Err(FormatError::TooNew(version)),
        }
        let locate_error = Box::new(|| serde_json::from_str::<StoredExport<'_, StoredResource<'_>>>(text).err());
        let checkpoint = export.deployment.map(|latest| StoredCheckpoint { stack: None, latest: Some(latest) });
        if !checkpoint.as_ref().is_some_and(StoredCheckpoint::has_resources) {
            shape::check_export(text)?;
        }
        Ok(Self { locate_error, checkpoint })
    }

    /// Returns the secrets manager that the text names.
    pub(crate) fn secrets(&self) -> Option<SecretsDescription> {
        self.checkpoint.as_ref()?.latest.as_ref()?.secrets_providers.clone().map(SecretsDescription::from)
    }

    /// Reads the resources and their values.
    ///
    /// # Errors
    /// [`FormatError`]; [`FormatError::needs_key`] is `true` if there are secrets and no key.
    pub(crate) fn read(self, decryption: SecretDecryption<'_>) -> Result<Checkpoint, FormatError> {
        let Some(checkpoint) = self.checkpoint else { return Ok(Checkpoint::default()) };
        let snapshot = checkpoint.latest.map(|deployment| snapshot(deployment, decryption)).transpose();
        let snapshot = snapshot.map_err(|error| match error {
            // The position within the resource alone is of little use.
            FormatError::Malformed(error) => FormatError::Malformed((self.locate_error)().unwrap_or(error)),
            error => error,
        })?;
        Ok(Checkpoint { stack: checkpoint.stack.unwrap_or_default(), snapshot })
    }
}

impl<R> StoredCheckpoint<'_, R> {
    fn has_resources(&self) -> bool {
        let resources = self.latest.as_ref().and_then(|latest| latest.resources.as_ref());
        resources.is_some_and(|resources| !resources.is_empty())
    }
}

/// Checks that the version and the features of a checkpoint are supported.
fn check_version(text: &str, version: u32, features: &[String]) -> Result<(), FormatError> {
    match version {
        0 => {
            let bare: BareCheckpoint<'_> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
            if bare.latest.is_some() { Err(FormatError::TooOld(0)) } else { Ok(()) }
        }
        version @ 1..=2 => Err(FormatError::TooOld(version)),
        3 => Ok(()),
        4 => features::check_known(features),
        version => Err(FormatError::TooNew(version)),
    }
}

impl From<StoredSecrets> for SecretsDescription {
    fn from(stored: StoredSecrets) -> Self {
        Self { kind: stored.kind.unwrap_or_default(), state: stored.state.unwrap_or_default() }
    }
}

/// Reads one resource.
///
/// # Errors
/// Errors of [`StoredText::read`].
pub(crate) fn read_resource(text: &str, decryption: SecretDecryption<'_>) -> Result<ResourceState, FormatError> {
    let stored = serde_json::from_str(text).map_err(FormatError::Malformed)?;
    ResourceReader::new(ValueReader::new(decryption)).read_entry(0, stored)
}

fn snapshot(
    stored: StoredDeployment<'_, &RawValue>,
    decryption: SecretDecryption<'_>,
) -> Result<Snapshot, FormatError> {
    let manifest = manifest(stored.manifest);
    let stored_resources = stored.resources.unwrap_or_default();
    let for_other_threads = decryption.for_other_threads().filter(|_| stored_resources.len() >= PARALLEL_THRESHOLD);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(stored_resources.len() / MIN_ENTRIES_PER_THREAD).max(1);
    let mut reader = ResourceReader::new(ValueReader::new(decryption));
    let resources = match for_other_threads {
        Some(for_other_threads) => read_entries_in_parallel(stored_resources, for_other_threads, threads)?,
        None => read_entries(&mut reader, 0, stored_resources)?,
    };
    let mut pending_operations = Vec::new();
    for (index, operation) in stored.pending_operations.unwrap_or_default().into_iter().enumerate() {
        let resource = reader.read_entry(index, operation.resource)?;
        let Some(kind) = operation_kind(&operation.kind) else {
            return Err(FormatError::OperationKind { resource: resource.urn.to_string(), kind: operation.kind });
        };
        pending_operations.push(PendingOperation { resource: Arc::new(resource), kind });
    }
    Ok(Snapshot {
        manifest,
        secrets: stored.secrets_providers.map(SecretsDescription::from),
        resources,
        pending_operations,
        rest: SnapshotRest {
            metadata: stored.metadata.unwrap_or_default(),
            snippets: stored.snippets.unwrap_or_default(),
            extensions: stored.extensions.unwrap_or_default(),
        },
    })
}

/// Reads entries on the given number of threads; each thread shares URNs among its own entries.
fn read_entries_in_parallel(
    mut stored: Vec<&RawValue>,
    decryption: fn() -> SecretDecryption<'static>,
    threads: usize,
) -> Result<Vec<Arc<ResourceState>>, FormatError> {
    let share = stored.len().div_ceil(threads);
    let mut shares = Vec::new();
    while stored.len() > share {
        let first = stored.len() - share;
        shares.push((first, stored.split_off(first)));
    }
    let read =
        move |first, stored| read_entries(&mut ResourceReader::new(ValueReader::new(decryption())), first, stored);
    std::thread::scope(|scope| {
        let spawn = |(first, share): (usize, Vec<_>)| {
            let work = share.clone();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || read(first, work));
            // If the system refuses another thread, this thread reads the entries itself.
            thread.map_err(|_| (first, share))
        };
        let others: Vec<_> = shares.into_iter().map(spawn).collect();
        let mut resources = read(0, stored)?;
        for other in others.into_iter().rev() {
            resources.extend(match other {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                Err((first, share)) => read(first, share)?,
            });
        }
        Ok(resources)
    })
}

/// Reads entries; `first` is the index of the first one, for messages.
fn read_entries(
    reader: &mut ResourceReader<'_>,
    first: usize,
    stored: Vec<&RawValue>,
) -> Result<Vec<Arc<ResourceState>>, FormatError> {
    let entry = |(index, stored): (usize, &RawValue)| {
        let stored = serde_json::from_str(stored.get()).map_err(FormatError::Malformed)?;
        reader.read_entry(first + index, stored).map(Arc::new)
    };
    stored.into_iter().enumerate().map(entry).collect()
}

fn manifest(stored: Option<StoredManifest>) -> Manifest {
    let stored = stored.unwrap_or(StoredManifest { time: None, magic: None, version: None });
    let version = non_empty(stored.version);
    let found = stored.magic.unwrap_or_default();
    let expected = magic(version.as_deref()).unwrap_or_default();
    Manifest { time: non_empty(stored.time), version, wrong_checksum: Some(found).filter(|found| *found != expected) }
}

/// Returns the kind of operation with a name; `None` if the name is unknown.
pub(crate) fn operation_kind(name: &str) -> Option<OperationKind> {
    use OperationKind::{Creating, Deleting, Importing, Reading, Updating};
    [Creating, Updating, Deleting, Reading, Importing].into_iter().find(|kind| kind.as_str() == name)
}

/// Content of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Name of the stack when the checkpoint was written. It may be outdated and is informational only.
    pub stack: String,
    /// Snapshot; `None` for a newly created stack.
    pub snapshot: Option<Snapshot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_on_any_number_of_threads() {
        let text = |number: &usize| format!(r#"{{"urn":"urn:pulumi:s::p::t:m:T::{number}","type":"t:m:T"}}"#);
        let texts: Vec<_> = (0..23).map(|number| RawValue::from_string(text(&number)).expect("it is JSON")).collect();
        for threads in [1, 2, 3, 7, 23, 40] {
            let stored = texts.iter().map(|text| &**text).collect();
            let read =
                read_entries_in_parallel(stored, || SecretDecryption::NoKey, threads).expect("they are resources");
            let names: Vec<usize> = read.iter().map(|state| state.urn.name().parse().expect("a number")).collect();
            assert_eq!(names, (0..23).collect::<Vec<_>>(), "{threads} threads");
        }
    }
}
