//! Names of recorded resources, which commands keep for completions below the cache folder of the user: a completion reads
//! no state, because that may be behind a connection that the files of a repository choose.
//!
//! ```text
//! <cache folder>/sc/completion/        mode 0700
//! <cache folder>/sc/completion/<hash>  mode 0600: {"root": …, "stack": …, "names": [ … ]}
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
use state::Snapshot;

/// Maximum number of names of a stack, so that a completion stays fast.
const MAX_NAMES: usize = 10_000;

/// Names of a stack.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Document {
    /// Root of the repository.
    root: PathBuf,
    stack: String,
    names: BTreeSet<String>,
}

/// Keeps the names of the resources of a snapshot. An error is ignored: the completion lacks the names.
pub(crate) fn keep(environment: &BTreeMap<String, String>, root: &Path, stack: &str, snapshot: &Snapshot) {
    let Some(file) = file(environment, root, stack) else { return };
    let names = snapshot.resources.iter().take(MAX_NAMES).map(|state| state.urn.name().to_owned());
    let document = Document { root: root.to_owned(), stack: stack.to_owned(), names: names.collect() };
    if read(&file).as_ref() != Some(&document) {
        write(&file, &document).unwrap_or_default();
    }
}

/// Returns the names that were kept last; none if the file is one of another account.
pub(crate) fn find(environment: &BTreeMap<String, String>, root: &Path, stack: &str) -> BTreeSet<String> {
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

    use state::ResourceState;

    use super::*;

    #[test]
    fn names_are_kept_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("HOME".to_owned(), folder.path().to_str().unwrap().to_owned())]);
        let (root, stack) = (Path::new("/repository"), "dev");
        let state = ResourceState::new("urn:pulumi:dev::reef::t:m:T::crab".parse().unwrap(), true);
        let snapshot = Snapshot { resources: vec![Arc::new(state)], ..Snapshot::default() };
        keep(&environment, root, stack, &snapshot);
        assert_eq!(find(&environment, root, stack), BTreeSet::from(["crab".to_owned()]));
        assert!(find(&environment, root, "other").is_empty());
        let file = file(&environment, root, stack).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert!(!std::fs::read_to_string(&file).unwrap().contains("urn:"));
        // A folder that others can write to names nothing.
        std::fs::set_permissions(file.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find(&environment, root, stack).is_empty());
        keep(&BTreeMap::new(), root, stack, &snapshot);
    }
}
