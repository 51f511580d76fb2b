//! Paths of secret files. They start at the root of the repository, whatever the working folder, and do not leave it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use bridge::fs::place_below;

/// Path of the store, from the root of the repository.
pub const STORE_PATH: &str = ".sc/secrets.yaml";

/// Patterns of the profiles, the store and temporary plaintext, from the root of the repository: `*` is any text.
pub const SECRET_PATTERNS: [&str; 3] = [".sc/cfg.*.yaml", STORE_PATH, ".sc/.tmp"];

/// Folder of the profiles and of the store, from the root of the repository.
pub(crate) const FOLDER: &str = ".sc";

/// Folder of temporary files, below the folder of the store.
pub(crate) const TEMPORARY: &str = ".tmp";

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
    /// The path is that of a profile.
    #[error("the path {0:?} is that of a profile, which can hold a private key")]
    Profile(String),
    /// The file is that of a private key which opens the store, or has such a key in its text.
    #[error("{0:?} has a private key that opens this store")]
    PrivateKey(String),
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

/// Returns the place of a registered path, behind all symbolic links. An absolute path in a store starts at the root, as
/// it does in the Go program. A path that leads out of the repository is refused, and so is one that leads to a file of
/// git, of the store, or to a profile.
///
/// # Errors
/// [`PathError`].
pub(crate) fn locate(root: &Path, path: &str) -> Result<PathBuf, PathError> {
    let relative = components(Path::new(path.trim_start_matches('/')), path)?;
    let outside = |_| PathError::Outside(path.to_owned());
    let place = place_below(root, Path::new(&relative)).map_err(outside)?;
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    check_reserved(place.strip_prefix(&real_root).unwrap_or(&place).iter(), path)?;
    Ok(place)
}

/// Returns whether a name is that of a profile in its folder, on a file system that may ignore the case.
pub(crate) fn is_profile_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    name.strip_prefix("cfg.").is_some_and(|rest| rest.ends_with(".yaml"))
}

/// Checks the names of a path from the root. `path` is the path that an error shows.
fn check_reserved<'n>(names: impl Iterator<Item = &'n OsStr>, path: &str) -> Result<(), PathError> {
    let names: Vec<&OsStr> = names.collect();
    let is_name = |name: &OsStr, expected: &str| name.eq_ignore_ascii_case(expected);
    let is_of_git = names.iter().any(|name| is_name(name, ".git"));
    let is_of_store = match names[..] {
        [folder, file] => is_name(folder, FOLDER) && is_name(file, "secrets.yaml"),
        _ => false,
    };
    let is_temporary = matches!(names[..], [folder, next, ..] if is_name(folder, FOLDER) && is_name(next, TEMPORARY));
    if is_of_git || is_of_store || is_temporary {
        return Err(PathError::Reserved(path.to_owned()));
    }
    match names[..] {
        [folder, file] if is_name(folder, FOLDER) && is_profile_name(file) => Err(PathError::Profile(path.to_owned())),
        _ => Ok(()),
    }
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
    check_reserved(names.iter().map(OsStr::new), path)?;
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_path_starts_at_the_root_and_stays_below_it() {
        let outside = |path: &str| Err(PathError::Outside(path.to_owned()));
        let reserved = |path: &str| Err(PathError::Reserved(path.to_owned()));
        let profile = |path: &str| Err(PathError::Profile(path.to_owned()));
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
            (".SC/Secrets.yaml", reserved(".SC/Secrets.yaml")),
            (".sc/.tmp/x", reserved(".sc/.tmp/x")),
            (".sc/cfg.default.yaml", profile(".sc/cfg.default.yaml")),
            ("a/../.sc/./cfg.a.b.yaml", profile("a/../.sc/./cfg.a.b.yaml")),
            (".sc/CFG.x.Yaml", profile(".sc/CFG.x.Yaml")),
            (".sc/cfg.yaml.template", Ok(".sc/cfg.yaml.template".to_owned())),
            (".sc/a/cfg.x.yaml", Ok(".sc/a/cfg.x.yaml".to_owned())),
        ] {
            assert_eq!(normalize(Path::new("/root"), path), expected, "{path}");
        }
    }

    /// Shows: secrets.md#commands "must not leave it, not even through a symbolic link"
    #[test]
    fn place_of_a_path_is_below_the_root_also_behind_links() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        for inside in ["inside", ".sc", "module/.git"] {
            std::fs::create_dir_all(root.join(inside)).unwrap();
        }
        std::fs::write(root.join(STORE_PATH), "").unwrap();
        for (link, target) in [
            ("out", elsewhere.path().to_owned()),
            ("in", root.join("inside")),
            ("dangling", elsewhere.path().join("new")),
            ("folder", root.join(".sc")),
            ("hooks", root.join("module/.git")),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        assert_eq!(locate(&root, "/new/file"), Ok(root.join("new/file")));
        assert_eq!(locate(&root, "in/file"), Ok(root.join("inside/file")));
        for path in ["folder/secrets.yaml", "hooks/config", "folder/.tmp/x"] {
            assert_eq!(locate(&root, path), Err(PathError::Reserved(path.to_owned())), "{path}");
        }
        assert_eq!(locate(&root, "folder/cfg.new.yaml"), Err(PathError::Profile("folder/cfg.new.yaml".to_owned())));
        for path in ["out/file", "dangling", "../x", "x/../../y"] {
            assert_eq!(locate(&root, path), Err(PathError::Outside(path.to_owned())), "{path}");
        }
    }
}
