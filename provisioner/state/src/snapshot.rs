//! Snapshot of a stack: its entries in a valid order, and the pending operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::PropertyMap;

use super::resource::ResourceState;

/// Recorded state of a stack, independent of files, encryption and versions of formats.
///
/// # Invariants
/// Each entry comes after all entries that it refers to, except that of a view. The provider of an entry with a pending
/// replacement may be missing, or come later. `state::integrity` checks this.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Version and time of the writer.
    pub manifest: Manifest,
    /// The secrets manager that its secrets are encrypted with; `None` in a stack that never had one.
    pub secrets: Option<SecretsDescription>,
    /// The entries, dependencies before dependents.
    pub resources: Vec<Arc<ResourceState>>,
    /// Operations that began and are not known to have ended.
    pub pending_operations: Vec<PendingOperation>,
    /// Members that the engine preserves without using them.
    pub rest: SnapshotRest,
}

/// Version of the engine that wrote a snapshot, and the time of writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Time of writing, RFC 3339.
    pub time: Option<String>,
    /// Version of the engine with a leading `v`; builds without a version have none.
    pub version: Option<String>,
    /// The loaded checksum if it is not the checksum of the version. Saving writes the correct one.
    pub wrong_checksum: Option<String>,
}

/// Description of a secrets manager in a state: enough to find the key again, never the key.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretsDescription {
    /// `passphrase`, `cloud`, `service`.
    pub kind: String,
    /// The manager's own JSON, verbatim.
    pub state: serde_json::Value,
}

/// An operation that began and is not known to have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingOperation {
    /// State that the operation was to reach; for a deletion, the recorded state. A created resource has an id here
    /// only if its id is known although the reply to its Create was lost.
    pub resource: Arc<ResourceState>,
    /// Kind of the operation.
    pub kind: OperationKind,
}

impl PendingOperation {
    /// Returns `true` for a Create whose reply was lost except for the id, so that the resource can be read.
    pub fn is_create_with_id(&self) -> bool {
        self.kind == OperationKind::Creating && self.resource.id.is_some()
    }

    /// Returns `true` for a Create of which no id is known.
    pub fn is_create_without_id(&self) -> bool {
        self.kind == OperationKind::Creating && self.resource.id.is_none()
    }
}

/// Kind of a pending operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// A Create.
    Creating,
    /// An Update.
    Updating,
    /// A Delete.
    Deleting,
    /// A Read of an external resource.
    Reading,
    /// A Read of a resource that is being imported.
    Importing,
}

impl OperationKind {
    /// Returns the name of the kind in a checkpoint.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
            Self::Reading => "reading",
            Self::Importing => "importing",
        }
    }
}

/// Members of a deployment that the engine preserves without using them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotRest {
    /// `metadata`, normally empty.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// `snippets`, verbatim.
    pub snippets: Vec<serde_json::Value>,
    /// `extensions`, verbatim.
    pub extensions: BTreeMap<String, serde_json::Value>,
}

impl Snapshot {
    /// Returns the entries, then the resources of the pending operations.
    pub fn all_resources(&self) -> impl Iterator<Item = &Arc<ResourceState>> {
        self.resources.iter().chain(self.pending_operations.iter().map(|operation| &operation.resource))
    }

    /// Returns the outputs of the stack: those of its root resource.
    pub fn stack_outputs(&self) -> Option<&PropertyMap> {
        self.resources
            .iter()
            .find(|resource| !resource.delete && resource.type_token.as_str() == pulumi_proto::urn::ROOT_STACK_TYPE)
            .map(|resource| &*resource.outputs)
    }
}

/// Drops a value on a blocking thread: freeing a large state takes about as long as writing it. Must be called within a
/// tokio runtime.
pub fn drop_in_background(value: impl Send + 'static) {
    tokio::task::spawn_blocking(move || drop(value));
}
