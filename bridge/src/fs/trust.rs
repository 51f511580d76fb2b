//! Check that no other user can have changed a file or folder.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::FileError;
use crate::error::Hint;
use crate::message_text::MessageText;
use crate::shell::{operand, quoted};

/// Error of a check whether files are trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file or folder could not be read.
    #[error(transparent)]
    Path(#[from] FileError),
    /// The file or folder belongs to another user.
    #[error("{} is refused: it belongs to user {owner} (mode {mode:04o}), neither to you (user {user}) nor to root", path.display())]
    ForeignOwner {
        /// The file or folder.
        path: PathBuf,
        /// Owner of the file or folder.
        owner: u32,
        /// Permissions of the file or folder.
        mode: u32,
        /// User of this process.
        user: u32,
        /// Program of the file or folder.
        origin: PathOrigin,
    },
    /// The group or all users may write to the file or folder.
    #[error("{} is refused: other users can write to it (owner {owner}, mode {mode:04o})", path.display())]
    WritableByOthers {
        /// The file or folder.
        path: PathBuf,
        /// Owner of the file or folder.
        owner: u32,
        /// Permissions of the file or folder.
        mode: u32,
        /// Program of the file or folder.
        origin: PathOrigin,
    },
}

/// Program that a file or folder belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// Part of this program, such as its cache: a missing one is created anew.
    Own,
    /// Part of the system or of the user, such as a home folder: it must stay where it is.
    Foreign,
}

impl Hint for TrustError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::Path(_) => None,
            Self::ForeignOwner { path, origin: PathOrigin::Own, .. } => {
                Some(format!("move it away (`{}`), and it is created anew", move_away(path)).into())
            }
            Self::ForeignOwner { path, user, origin: PathOrigin::Foreign, .. } => {
                let advice = format!(
                    "if you trust its content, let root run `chown {user} {}`",
                    operand(&path.to_string_lossy())
                );
                Some(advice.into())
            }
            Self::WritableByOthers { path, origin: PathOrigin::Own, .. } => {
                let advice = format!(
                    "move it away (`{}`), and it is created anew; or, if you trust its content, run `chmod -R go-w {}`",
                    move_away(path),
                    operand(&path.to_string_lossy())
                );
                Some(advice.into())
            }
            Self::WritableByOthers { path, origin: PathOrigin::Foreign, .. } => {
                Some(format!("if you trust its content, run `chmod go-w {}`", operand(&path.to_string_lossy())).into())
            }
        }
    }
}

/// Returns the command that gives a file or folder another name.
fn move_away(path: &Path) -> String {
    let path = path.to_string_lossy();
    format!("mv {} {}", operand(&path), quoted(&format!("{path}.refused")))
}

/// Returns an error if a user other than the current one and root may have changed the file or folder with this
/// metadata. The target of a symbolic link is not checked.
///
/// # Errors
/// [`TrustError::ForeignOwner`], [`TrustError::WritableByOthers`].
pub fn check_trusted(path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
    // Links have no permissions of their own.
    let mode = if metadata.is_symlink() { 0 } else { metadata.mode() & 0o7777 };
    check(path, metadata.uid(), mode, rustix::process::geteuid().as_raw(), PathOrigin::Own)
}

/// Checks that a user other than the current one and root cannot change a folder of another program and what is in it, at
/// any depth: each file, and the target of each link ([`check_trusted_target`]). A link to a missing file leads to nothing.
///
/// # Errors
/// [`TrustError`].
pub(crate) fn check_trusted_tree(folder: &Path) -> Result<(), TrustError> {
    let mut open = vec![fs::canonicalize(folder).map_err(FileError::of("read", folder))?];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).map_err(FileError::of("read", &path))?;
        if metadata.is_symlink() {
            if path.exists() {
                check_trusted_target(&path)?;
            }
            continue;
        }
        check(
            &path,
            metadata.uid(),
            metadata.mode() & 0o7777,
            rustix::process::geteuid().as_raw(),
            PathOrigin::Foreign,
        )?;
        if metadata.is_dir() {
            for member in fs::read_dir(&path).map_err(FileError::of("list", &path))? {
                open.push(member.map_err(FileError::of("list", &path))?.path());
            }
        }
    }
    Ok(())
}

/// Checks `root`, and each folder between it and `path`, and `path`, like [`check_trusted`]. Stops without an error at
/// the first that does not exist. The parents of `root` are not checked.
///
/// # Errors
/// [`TrustError`].
pub fn check_trusted_below(root: &Path, path: &Path) -> Result<(), TrustError> {
    let mut current = root.to_owned();
    let mut inside = path.strip_prefix(root).unwrap_or(Path::new("")).components();
    loop {
        match fs::metadata(&current) {
            Ok(metadata) => check_trusted(&current, &metadata)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FileError::of("read", &current)(error).into()),
        }
        match inside.next() {
            Some(component) => current.push(component),
            None => return Ok(()),
        }
    }
}

/// Checks that a user other than the current one and root cannot change what an absolute path leads to: each folder, link
/// and file on the way, and those on the way to the target of each link. In a folder with the sticky bit, others cannot
/// replace what the current user and root have created.
///
/// # Errors
/// [`TrustError`], also if the path does not exist.
pub(crate) fn check_trusted_target(path: &Path) -> Result<(), TrustError> {
    const MAX_LINKS: usize = 40;
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let parts = |path: &Path| path.iter().rev().map(ToOwned::to_owned).collect::<Vec<_>>();
    let (mut current, mut left, mut links) = (PathBuf::new(), parts(path), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            current.pop();
            continue;
        }
        current.push(part);
        let metadata = fs::symlink_metadata(&current).map_err(FileError::of("read", &current))?;
        let mode = metadata.mode() & 0o7777;
        let is_protected = metadata.is_symlink() || metadata.is_dir() && mode & STICKY != 0;
        check(&current, metadata.uid(), if is_protected { 0 } else { mode }, user, PathOrigin::Foreign)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(FileError::of("read", &current)(rustix::io::Errno::LOOP.into()).into());
            }
            // An absolute target begins with the root, which replaces the path.
            left.extend(parts(&fs::read_link(&current).map_err(FileError::of("read link", &current))?));
            current.pop();
        }
    }
    Ok(())
}

fn check(path: &Path, owner: u32, mode: u32, user: u32, origin: PathOrigin) -> Result<(), TrustError> {
    const ROOT: u32 = 0;
    let path = || path.to_owned();
    if owner != user && owner != ROOT {
        return Err(TrustError::ForeignOwner { path: path(), owner, mode, user, origin });
    }
    if mode & 0o022 != 0 {
        return Err(TrustError::WritableByOthers { path: path(), owner, mode, origin });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Shows: plugins.md#the-cache "belongs to neither you nor root, or if the group or all users may write to it"
    #[test]
    fn owner_and_write_permissions_decide_whether_a_path_is_trusted() {
        let decide = |owner, mode| match check(Path::new("/x"), owner, mode, 1000, PathOrigin::Own) {
            Ok(()) => "trusted",
            Err(TrustError::ForeignOwner { .. }) => "foreign",
            Err(_) => "writable",
        };
        let cases = [
            (1000, 0o700, "trusted"),
            (1000, 0o755, "trusted"),
            (0, 0o755, "trusted"),
            (1001, 0o700, "foreign"),
            (1001, 0o777, "foreign"),
            (1000, 0o770, "writable"),
            (1000, 0o702, "writable"),
            (0, 0o777, "writable"),
            // The sticky bit does not prevent others from adding files.
            (0, 0o1777, "writable"),
        ];
        for (owner, mode, expected) in cases {
            assert_eq!(decide(owner, mode), expected, "owner {owner}, mode {mode:o}");
        }
    }

    #[test]
    fn error_names_path_owner_mode_and_the_command_that_mends_it() {
        let error = check(Path::new("/c/sc"), 1001, 0o755, 1000, PathOrigin::Own).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/c/sc is refused: it belongs to user 1001 (mode 0755), neither to you (user 1000) nor to root"
        );
        assert!(error.hint().unwrap().contains("`mv /c/sc /c/sc.refused`"));
        let error = check(Path::new("/c/sc"), 1000, 0o777, 1000, PathOrigin::Own).unwrap_err();
        assert_eq!(error.to_string(), "/c/sc is refused: other users can write to it (owner 1000, mode 0777)");
        assert!(error.hint().unwrap().contains("`chmod -R go-w /c/sc`"));
        // What is not one of this program stays where it is.
        for (owner, expected) in [(1000, "run `chmod go-w /home/me`"), (1001, "run `chown 1000 /home/me`")] {
            let error = check(Path::new("/home/me"), owner, 0o777, 1000, PathOrigin::Foreign).unwrap_err();
            let hint = error.hint().unwrap();
            assert!(hint.contains(expected) && !hint.contains("mv "), "{hint}");
        }
        // The command stays one command, whatever the name of the folder is.
        let hint = |origin| {
            let error = check(Path::new("/c/it's $(id)"), 1000, 0o777, 1000, origin).unwrap_err();
            error.hint().unwrap().into_string()
        };
        let (own, foreign) = (hint(PathOrigin::Own), hint(PathOrigin::Foreign));
        assert!(own.contains(r"`mv '/c/it'\''s $(id)' '/c/it'\''s $(id).refused'`"), "{own}");
        assert!(foreign.contains(r"`chmod go-w '/c/it'\''s $(id)'`"), "{foreign}");
    }

    /// Shows: plugins.md#packages-of-core-types "A plugin there that another account can change, or a file beside its
    ///   program, is not used"
    /// Shows: plugins.md#packages-of-core-types "or `~/.pulumi/plugins`, in exactly this version. It is only read."
    #[test]
    fn each_file_of_a_tree_is_checked_also_behind_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| fs::canonicalize(root.path()).unwrap().join(path);
        fs::create_dir_all(at("tree/a/b")).unwrap();
        for file in ["tree/a/b/library", "elsewhere"] {
            fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("elsewhere"), at("tree/link")).unwrap();
        std::os::unix::fs::symlink(at("missing"), at("tree/dangling")).unwrap();
        check_trusted_tree(&at("tree")).unwrap();
        for path in ["tree", "tree/a", "tree/a/b", "tree/a/b/library", "elsewhere"] {
            let before = fs::metadata(at(path)).unwrap().permissions();
            fs::set_permissions(at(path), fs::Permissions::from_mode(0o777)).unwrap();
            let error = check_trusted_tree(&at("tree")).unwrap_err();
            assert!(
                matches!(&error, TrustError::WritableByOthers { path: found, .. } if *found == at(path)),
                "{error}"
            );
            fs::set_permissions(at(path), before).unwrap();
        }
    }

    #[test]
    fn each_folder_between_root_and_path_is_checked() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/file");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        check_trusted_below(root.path(), &path).unwrap();
        check_trusted_below(root.path(), &root.path().join("a/missing/x")).unwrap();
        for refused in ["", "a", "a/b", "a/b/file"] {
            let refused = root.path().join(refused);
            let before = fs::metadata(&refused).unwrap().permissions();
            fs::set_permissions(&refused, fs::Permissions::from_mode(0o777)).unwrap();
            let error = check_trusted_below(root.path(), &path).unwrap_err();
            let named =
                matches!(&error, TrustError::WritableByOthers { path, .. } if *path.join("") == refused.join(""));
            assert!(named, "{error}");
            fs::set_permissions(&refused, before).unwrap();
        }
    }

    #[test]
    fn each_folder_link_and_file_on_the_way_to_a_target_is_checked() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| fs::canonicalize(root.path()).unwrap().join(path);
        for folder in ["a", "b"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("b/file"), "").unwrap();
        std::os::unix::fs::symlink("../b/./link", at("a/link")).unwrap();
        std::os::unix::fs::symlink(at("b/file"), at("b/link")).unwrap();
        let target = at("a/link");
        check_trusted_target(&target).unwrap();
        for (path, mode) in [("", 0o777), ("a", 0o770), ("b", 0o702), ("b/file", 0o666)] {
            let before = fs::metadata(at(path)).unwrap().permissions();
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
            let error = check_trusted_target(&target).unwrap_err();
            assert!(matches!(error, TrustError::WritableByOthers { .. }), "{error}");
            fs::set_permissions(at(path), fs::Permissions::from_mode(0o1777)).unwrap();
            assert_eq!(check_trusted_target(&target).is_ok(), path != "b/file", "sticky {path}");
            fs::set_permissions(at(path), before).unwrap();
        }
        fs::remove_file(at("b/file")).unwrap();
        std::os::unix::fs::symlink(at("a/link"), at("b/file")).unwrap();
        check_trusted_target(&target).unwrap_err();
        check_trusted_target(&at("a/missing")).unwrap_err();
    }
}
