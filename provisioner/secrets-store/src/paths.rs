//! Paths of secret files. They start at the root of the repository, whatever the working folder, and do not leave it.

use std::path::{Component, Path, PathBuf};

/// Path of the store, from the root of the repository.
pub const STORE_PATH: &str = ".sc/secrets.yaml";

/// Reason why a path is not one of a secret file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path leaves the repository.
    #[error("the path {0:?} leaves the repository")]
    Outside(String),
    /// The path is empty, or has control characters.
    #[error("{0:?} is not a path of a file")]
    Invalid(String),
    /// The path is one of git or of the store itself.
    #[error("the path {0:?} is not one of a secret file: it belongs to git or to the store")]
    Reserved(String),
}

/// Returns a path as it is registered: relative to the root, without `.` and `..`.
///
/// # Errors
/// [`PathError`].
pub fn normalize(root: &Path, path: &str) -> Result<String, PathError> {
    let outside = || PathError::Outside(path.to_owned());
    let given = Path::new(path);
    let relative = if given.is_absolute() { given.strip_prefix(root).map_err(|_| outside())? } else { given };
    components(relative, path)
}

/// Returns the place of a registered path. An absolute path in a store starts at the root, as it does in the Go
/// program. Symbolic links that lead out of the repository are refused.
///
/// # Errors
/// [`PathError`].
pub(crate) fn locate(root: &Path, path: &str) -> Result<PathBuf, PathError> {
    let place = root.join(components(Path::new(path.trim_start_matches('/')), path)?);
    let outside = || PathError::Outside(path.to_owned());
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    // The nearest folder that exists decides: those below are created.
    let existing = place.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).ok_or_else(outside)?;
    if !existing.starts_with(&real_root) || existing.starts_with(real_root.join(".git")) {
        return Err(outside());
    }
    // A link to a file that does not exist could lead anywhere.
    if !place.exists() && place.symlink_metadata().is_ok() {
        return Err(outside());
    }
    Ok(if place.exists() { existing } else { place })
}

/// Joins the components of a relative path. `path` is the path that an error shows.
fn components(relative: &Path, path: &str) -> Result<String, PathError> {
    let mut names: Vec<&str> = Vec::new();
    for component in relative.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                names.pop().ok_or_else(|| PathError::Outside(path.to_owned()))?;
            }
            Component::Normal(name) => names.push(name.to_str().unwrap_or_default()),
            Component::RootDir | Component::Prefix(_) => return Err(PathError::Outside(path.to_owned())),
        }
    }
    let joined = names.join("/");
    if joined.is_empty() || joined.contains(char::is_control) {
        return Err(PathError::Invalid(path.to_owned()));
    }
    if joined == STORE_PATH || names.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
        return Err(PathError::Reserved(path.to_owned()));
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_path_starts_at_the_root_and_stays_below_it() {
        let outside = |path: &str| Err(PathError::Outside(path.to_owned()));
        let reserved = |path: &str| Err(PathError::Reserved(path.to_owned()));
        let invalid = |path: &str| Err(PathError::Invalid(path.to_owned()));
        for (path, expected) in [
            ("a.txt", Ok("a.txt".to_owned())),
            ("./dir//b", Ok("dir/b".to_owned())),
            ("dir/../b", Ok("b".to_owned())),
            ("/root/c", Ok("c".to_owned())),
            ("../x", outside("../x")),
            ("a/../../x", outside("a/../../x")),
            ("/etc/passwd", outside("/etc/passwd")),
            ("", invalid("")),
            (".", invalid(".")),
            ("a\nb", invalid("a\nb")),
            (".git/config", reserved(".git/config")),
            ("sub/.Git/hooks/x", reserved("sub/.Git/hooks/x")),
            (".sc/secrets.yaml", reserved(".sc/secrets.yaml")),
        ] {
            assert_eq!(normalize(Path::new("/root"), path), expected, "{path}");
        }
    }

    #[test]
    fn place_of_a_path_is_below_the_root_also_behind_links() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("inside")).unwrap();
        for (link, target) in [
            ("out", elsewhere.path().to_owned()),
            ("in", root.join("inside")),
            ("dangling", elsewhere.path().join("new")),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        assert_eq!(locate(&root, "/new/file"), Ok(root.join("new/file")));
        assert_eq!(locate(&root, "in/file"), Ok(root.join("in/file")));
        for path in ["out/file", "dangling", "../x", "x/../../y"] {
            assert_eq!(locate(&root, path), Err(PathError::Outside(path.to_owned())), "{path}");
        }
    }
}
