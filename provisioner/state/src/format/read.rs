//! The text of a checkpoint to a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::checkpoint::Checkpoint;
use super::checksum::magic;
use super::error::FormatError;
use super::features;
use super::read_value::{Opening, ValueReader};
use super::resource::{ResourceReader, StoredResource, filled};
use crate::resource::ResourceState;
use crate::snapshot::{Manifest, OperationKind, PendingOperation, SecretsDescription, Snapshot, SnapshotRest};

/// How many entries make it worth while to read on several threads.
const WORTH_A_THREAD: usize = 256;

/// How many of them are enough for one.
const WORTH_A_SHARE: usize = 64;

/// What all versions have in common.
#[derive(Deserialize)]
struct Envelope {
    version: Option<u32>,
    features: Option<Vec<String>>,
}

/// `R` is what its resources are: their text, or what that was taken apart into.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredFile<'a, R> {
    version: Option<u32>,
    features: Option<Vec<String>>,
    #[serde(borrow)]
    checkpoint: Option<StoredCheckpoint<'a, R>>,
}

/// Old imports left these members with capital letters.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredCheckpoint<'a, R> {
    #[serde(alias = "Stack")]
    stack: Option<String>,
    #[serde(alias = "Latest", borrow)]
    latest: Option<StoredDeployment<'a, R>>,
}

/// What `pulumi stack export` writes.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct StoredExport<'a, R> {
    version: Option<u32>,
    features: Option<Vec<String>>,
    #[serde(borrow)]
    deployment: Option<StoredDeployment<'a, R>>,
}

/// A checkpoint from before there were versions.
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

/// A checkpoint that was taken apart, with its resources not read yet.
pub(crate) struct StoredText<'a> {
    /// Reads it once more at a stretch, which says where in the file something is wrong.
    place: Box<dyn Fn() -> Option<serde_json::Error> + Send + 'a>,
    checkpoint: Option<StoredCheckpoint<'a, &'a RawValue>>,
}

impl<'a> StoredText<'a> {
    /// Takes the text of a checkpoint apart.
    ///
    /// # Errors
    /// [`FormatError`] if it is none, or of a version that we do not read.
    pub(crate) fn parse(text: &'a str) -> Result<Self, FormatError> {
        let of = |checkpoint| {
            let place = Box::new(|| serde_json::from_str::<StoredFile<'_, StoredResource<'_>>>(text).err());
            Self { place, checkpoint }
        };
        // Once through a text that is as it should be, however large; what is wrong with another is looked at closer.
        let malformed = match serde_json::from_str::<StoredFile<'a, &'a RawValue>>(text) {
            Ok(StoredFile { version: Some(3), checkpoint, .. }) => return Ok(of(checkpoint)),
            Ok(StoredFile { version: Some(4), features, checkpoint }) => {
                features::check(&features.unwrap_or_default())?;
                return Ok(of(checkpoint));
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        let envelope: Envelope = serde_json::from_str(text).map_err(FormatError::Malformed)?;
        let (version, features) = (envelope.version.unwrap_or_default(), envelope.features.unwrap_or_default());
        match (holds_deployment(text, version, &features)?, malformed) {
            (true, Some(error)) => Err(FormatError::Malformed(error)),
            (true, None) | (false, _) => Ok(of(None)),
        }
    }

    /// Takes the text of an export apart.
    ///
    /// # Errors
    /// [`FormatError`] if it is none, or of a version that we do not read.
    pub(crate) fn parse_export(text: &'a str) -> Result<Self, FormatError> {
        let export: StoredExport<'a, &'a RawValue> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
        match export.version.unwrap_or_default() {
            version @ 0..=2 => return Err(FormatError::TooOld(version)),
            3 => {}
            4 => features::check(&export.features.unwrap_or_default())?,
            version => return Err(FormatError::TooNew(version)),
        }
        let place = Box::new(|| serde_json::from_str::<StoredExport<'_, StoredResource<'_>>>(text).err());
        let latest = export.deployment;
        Ok(Self { place, checkpoint: latest.map(|latest| StoredCheckpoint { stack: None, latest: Some(latest) }) })
    }

    /// The secrets manager that it names.
    pub(crate) fn secrets(&self) -> Option<SecretsDescription> {
        self.checkpoint.as_ref()?.latest.as_ref()?.secrets_providers.clone().map(SecretsDescription::from)
    }

    /// Reads the values.
    ///
    /// # Errors
    /// [`FormatError`]; see there for [`FormatError::needs_key`].
    pub(crate) fn read(self, opening: Opening<'_>) -> Result<Checkpoint, FormatError> {
        let Some(checkpoint) = self.checkpoint else { return Ok(Checkpoint::default()) };
        let snapshot = checkpoint.latest.map(|deployment| snapshot(deployment, opening)).transpose();
        let snapshot = snapshot.map_err(|error| match error {
            // Where in a resource says little.
            FormatError::Malformed(error) => FormatError::Malformed((self.place)().unwrap_or(error)),
            error => error,
        })?;
        Ok(Checkpoint { stack: checkpoint.stack.unwrap_or_default(), snapshot })
    }
}

/// Makes sure that a checkpoint is of a version that we read, and says whether it can hold a deployment.
pub(super) fn holds_deployment(text: &str, version: u32, features: &[String]) -> Result<bool, FormatError> {
    match version {
        0 => {
            // What stands in its `checkpoint` does not count.
            let bare: BareCheckpoint<'_> = serde_json::from_str(text).map_err(FormatError::Malformed)?;
            if bare.latest.is_some() { Err(FormatError::TooOld(0)) } else { Ok(false) }
        }
        version @ 1..=2 => Err(FormatError::TooOld(version)),
        3 => Ok(true),
        4 => features::check(features).map(|()| true),
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
/// [`FormatError`], as for a whole checkpoint.
pub(crate) fn read_resource(text: &str, opening: Opening<'_>) -> Result<ResourceState, FormatError> {
    let stored = serde_json::from_str(text).map_err(FormatError::Malformed)?;
    ResourceReader::new(ValueReader::new(opening)).entry(0, stored)
}

fn snapshot(stored: StoredDeployment<'_, &RawValue>, opening: Opening<'_>) -> Result<Snapshot, FormatError> {
    let manifest = manifest(stored.manifest);
    let stored_resources = stored.resources.unwrap_or_default();
    let alike = opening.alike().filter(|_| stored_resources.len() >= WORTH_A_THREAD);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(stored_resources.len() / WORTH_A_SHARE).max(1);
    let mut reader = ResourceReader::new(ValueReader::new(opening));
    let resources = match alike {
        Some(alike) => entries_at_once(stored_resources, alike, threads)?,
        None => entries(&mut reader, 0, stored_resources)?,
    };
    let mut pending_operations = Vec::new();
    for (index, operation) in stored.pending_operations.unwrap_or_default().into_iter().enumerate() {
        let resource = reader.entry(index, operation.resource)?;
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

/// Reads entries on so many threads; each shares URNs among its own.
fn entries_at_once(
    mut stored: Vec<&RawValue>,
    opening: fn() -> Opening<'static>,
    threads: usize,
) -> Result<Vec<Arc<ResourceState>>, FormatError> {
    let share = stored.len().div_ceil(threads);
    let mut shares = Vec::new();
    while stored.len() > share {
        let first = stored.len() - share;
        shares.push((first, stored.split_off(first)));
    }
    let read = move |first, stored| entries(&mut ResourceReader::new(ValueReader::new(opening())), first, stored);
    std::thread::scope(|scope| {
        let begin = |(first, share): (usize, Vec<_>)| {
            let work = share.clone();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || read(first, work));
            // Where the system gives no more threads, this one does it all.
            thread.map_err(|_| (first, share))
        };
        let others: Vec<_> = shares.into_iter().map(begin).collect();
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

/// Reads entries; the first has that number.
fn entries(
    reader: &mut ResourceReader<'_>,
    first: usize,
    stored: Vec<&RawValue>,
) -> Result<Vec<Arc<ResourceState>>, FormatError> {
    let entry = |(index, stored): (usize, &RawValue)| {
        let stored = serde_json::from_str(stored.get()).map_err(FormatError::Malformed)?;
        reader.entry(first + index, stored).map(Arc::new)
    };
    stored.into_iter().enumerate().map(entry).collect()
}

fn manifest(stored: Option<StoredManifest>) -> Manifest {
    let stored = stored.unwrap_or(StoredManifest { time: None, magic: None, version: None });
    let version = filled(stored.version);
    let found = stored.magic.unwrap_or_default();
    let expected = magic(version.as_deref()).unwrap_or_default();
    Manifest { time: filled(stored.time), version, wrong_checksum: Some(found).filter(|found| *found != expected) }
}

/// The operation that a word stands for.
pub(crate) fn operation_kind(word: &str) -> Option<OperationKind> {
    use OperationKind::{Creating, Deleting, Importing, Reading, Updating};
    [Creating, Updating, Deleting, Reading, Importing].into_iter().find(|kind| kind.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_any_number_of_threads_the_order_is_that_of_the_text() {
        let text = |number: &usize| format!(r#"{{"urn":"urn:pulumi:s::p::t:m:T::{number}","type":"t:m:T"}}"#);
        let texts: Vec<_> = (0..23).map(|number| RawValue::from_string(text(&number)).expect("it is JSON")).collect();
        for threads in [1, 2, 3, 7, 23, 40] {
            let stored = texts.iter().map(|text| &**text).collect();
            let read = entries_at_once(stored, || Opening::Impossible, threads).expect("they are resources");
            let names: Vec<usize> = read.iter().map(|state| state.urn.name().parse().expect("a number")).collect();
            assert_eq!(names, (0..23).collect::<Vec<_>>(), "{threads} threads");
        }
    }
}
