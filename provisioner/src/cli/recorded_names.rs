//! Names in the store of a stack (of recorded resources, pending creates, copies and tags), which commands keep for completions below the cache folder of the user: a completion reads
//! no state, because that may be behind a connection that the files of a repository choose.
//!
//! ```text
//! <cache folder>/sc/completion/        mode 0700
//! <cache folder>/sc/completion/<hash>  mode 0600: {"root": …, "stack": …, "names": [ … ], "pending": [ … ], …}
//! ```

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use bridge::fs::{
    Access, FileError, MAX_DOCUMENT_BYTES, create_private_folder, is_own_file, is_private_folder, read_if_exists,
    write_atomically,
};
use serde::{Deserialize, Serialize};
use state::{OperationKind, ResourceState, Snapshot};

/// Maximum number of names of a stack, so that a completion stays fast.
const MAX_NAMES: usize = 10_000;

/// Names in the store of a stack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct RecordedNames {
    /// Recorded resources.
    #[serde(default, rename = "names")]
    pub(crate) resources: BTreeSet<String>,
    /// Resources with pending creates.
    #[serde(default)]
    pub(crate) pending: BTreeSet<String>,
    /// Copies of earlier states.
    #[serde(default)]
    pub(crate) copies: BTreeSet<String>,
    /// Tags.
    #[serde(default)]
    pub(crate) tags: BTreeSet<String>,
}

/// Names of a stack of a repository.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Document {
    /// Root of the repository.
    root: PathBuf,
    stack: String,
    #[serde(flatten)]
    names: RecordedNames,
}

/// Keeps the names of the resources of a snapshot. An error is ignored: the completion lacks the names.
pub(crate) fn keep(environment: &BTreeMap<String, String>, root: &Path, stack: &str, snapshot: &Snapshot) {
    let name = |state: &ResourceState| state.urn.name().to_owned();
    let resources = snapshot.resources.iter().take(MAX_NAMES).map(|state| name(state)).collect();
    let creates = snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating);
    let pending = creates.take(MAX_NAMES).map(|operation| name(&operation.resource)).collect();
    update(environment, root, stack, |names| RecordedNames { resources, pending, ..names });
}

/// Keeps the names of the copies of a stack, as [`keep`] does.
pub(crate) fn keep_copies(environment: &BTreeMap<String, String>, root: &Path, stack: &str, copies: BTreeSet<String>) {
    update(environment, root, stack, |names| RecordedNames { copies, ..names });
}

/// Keeps the names of the tags of a stack, as [`keep`] does.
pub(crate) fn keep_tags(environment: &BTreeMap<String, String>, root: &Path, stack: &str, tags: BTreeSet<String>) {
    update(environment, root, stack, |names| RecordedNames { tags, ..names });
}

fn update(
    environment: &BTreeMap<String, String>,
    root: &Path,
    stack: &str,
    change: impl FnOnce(RecordedNames) -> RecordedNames,
) {
    let Some(file) = file(environment, root, stack) else { return };
    let before = find(environment, root, stack);
    let names = change(before.clone());
    if names != before {
        let document = Document { root: root.to_owned(), stack: stack.to_owned(), names };
        write(&file, &document).unwrap_or_default();
    }
}

/// Returns the names that were kept last; none if the file is one of another account.
pub(crate) fn find(environment: &BTreeMap<String, String>, root: &Path, stack: &str) -> RecordedNames {
    let document = file(environment, root, stack).and_then(|file| read(&file));
    let document = document.filter(|document| document.root == root && document.stack == stack);
    document.map(|document| document.names).unwrap_or_default()
}

fn file(environment: &BTreeMap<String, String>, root: &Path, stack: &str) -> Option<PathBuf> {
    let folder = |name: &str| environment.get(name).map(Path::new).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").map(Path::to_owned).or_else(|| Some(folder("HOME")?.join(".cache")))?;
    let mut hasher = DefaultHasher::new();
    (root, stack).hash(&mut hasher);
    Some(cache.join("sc/completion").join(format!("{:016x}", hasher.finish())))
}

fn read(file: &Path) -> Option<Document> {
    let is_own = is_own_file(file) && is_private_folder(file.parent()?).unwrap_or_default();
    let text = if is_own { read_if_exists(file, MAX_DOCUMENT_BYTES).ok()?? } else { return None };
    serde_json::from_slice(&text).ok()
}

fn write(file: &Path, document: &Document) -> Result<(), FileError> {
    if let Some(folder) = file.parent() {
        create_private_folder(folder)?;
    }
    write_atomically(file, serde_json::to_string(document).unwrap_or_default().as_bytes(), Access::Private)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_are_kept_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("HOME".to_owned(), folder.path().to_str().unwrap().to_owned())]);
        let (root, stack) = (Path::new("/repository"), "dev");
        let state = ResourceState::new("urn:pulumi:dev::reef::t:m:T::crab".parse().unwrap(), true);
        let snapshot = Snapshot { resources: vec![Arc::new(state)], ..Snapshot::default() };
        keep(&environment, root, stack, &snapshot);
        let crab = BTreeSet::from(["crab".to_owned()]);
        assert_eq!(find(&environment, root, stack).resources, crab);
        assert_eq!(find(&environment, root, "other"), RecordedNames::default());
        keep_tags(&environment, root, stack, BTreeSet::from(["owner".to_owned()]));
        keep_copies(&environment, root, stack, BTreeSet::from(["bak".to_owned()]));
        let kept = find(&environment, root, stack);
        assert_eq!((kept.resources.len(), kept.tags.len(), kept.copies.len()), (1, 1, 1));
        let file = file(&environment, root, stack).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert!(!std::fs::read_to_string(&file).unwrap().contains("urn:"));
        // A folder that others can write to names nothing.
        std::fs::set_permissions(file.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(find(&environment, root, stack), RecordedNames::default());
        keep(&BTreeMap::new(), root, stack, &snapshot);
    }
}
