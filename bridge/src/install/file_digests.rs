//! Digests of the files of a folder, and the two digests of the whole folder that are derived from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileType, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use sha2::{Digest as _, Sha256};

use super::InstallError;
use crate::fs::{FileError, check_trusted, open_regular};
use crate::plugin::Sha256Digest;

/// Number of characters of a digest in hexadecimal form.
const DIGEST_LENGTH: usize = 64;
/// Name of the folder that is neither hashed nor copied.
pub(super) const GIT_FOLDER: &str = ".git";

/// Name of the folders of compiled files of Python, which are neither hashed nor copied.
const COMPILED_FOLDER: &str = "__pycache__";
/// File that makes a folder a virtual environment of Python (PEP 405).
const ENVIRONMENT_FILE: &str = "pyvenv.cfg";

/// Returns whether the checksum of a local folder leaves out what is at a path below it.
pub(super) fn is_left_out(root: &Path, path: &Path, kind: FileType) -> bool {
    // Python writes its compiled files in a run without a checksum, and does not need them.
    let is_compiled = kind.is_dir() && path.ends_with(COMPILED_FOLDER);
    // It differs between machines, and is used where it was made.
    let is_environment = path.parent() == Some(root) && kind.is_dir() && path.join(ENVIRONMENT_FILE).is_file();
    is_compiled || is_environment || path.ends_with(GIT_FOLDER)
}

/// Digests of all files of a folder, by relative path.
///
/// The checksum of the folder is the sha256 of the lines `"<sha256>  <path>\n"`, sorted as text, one for each file
/// outside `.git`. Paths are relative, with `/`. The line of a symbolic link is `"<sha256> @<path>\n"` with the digest of
/// the path of its target, so that no file has the line of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileDigests(BTreeMap<String, FileEntry>);

/// Digest and kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    pub(super) digest: Sha256Digest,
    pub(super) kind: FileKind,
}

/// Kind of a file of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Regular file that is not executable.
    Plain,
    /// Regular file that is executable.
    Executable,
    /// Symbolic link.
    Link,
}

impl FileKind {
    /// Returns the kind of a regular file with these permissions.
    pub(super) fn of_mode(mode: u32) -> Self {
        if mode & 0o111 == 0 { Self::Plain } else { Self::Executable }
    }

    /// Returns the character that stands for the kind beside a digest.
    pub(super) fn mark(self) -> char {
        match self {
            Self::Plain => '-',
            Self::Executable => '*',
            Self::Link => '@',
        }
    }

    /// Returns the kind that a character stands for.
    pub(super) fn of_mark(mark: &str) -> Option<Self> {
        [Self::Plain, Self::Executable, Self::Link].into_iter().find(|kind| mark.chars().eq([kind.mark()]))
    }
}

/// Returns the entry of a file that need not be read, by its path in its package and what the file system says about it.
pub(super) type KnownFiles<'k> = &'k dyn Fn(&str, &Metadata) -> Option<FileEntry>;

impl FileDigests {
    /// Hashes all files of a fetched or cached package. Links must not lead out of its folder.
    ///
    /// # Errors
    /// [`InstallError`]: [`InstallError::Trust`] if another user could have changed a file or folder of the package.
    pub(super) fn of(root: &Path) -> Result<Self, InstallError> {
        Self::of_changed(root, &|_, _| None)
    }

    /// Hashes the files of a package as [`FileDigests::of`], except those that are known, by their path in it.
    ///
    /// # Errors
    /// [`InstallError`], as [`FileDigests::of`].
    pub(super) fn of_changed(root: &Path, known: KnownFiles<'_>) -> Result<Self, InstallError> {
        let mut digests = Self::default();
        digests.read(root, root, 0, known)?;
        Ok(digests)
    }

    fn read(&mut self, root: &Path, folder: &Path, depth: usize, known: KnownFiles<'_>) -> Result<(), InstallError> {
        check_trusted(folder, &folder.symlink_metadata().map_err(FileError::of("read", folder))?)?;
        for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
            let member = member.map_err(FileError::of("list", folder))?;
            if member.file_name() == GIT_FOLDER {
                continue;
            }
            let path = member.path();
            let not_hashable = |reason| InstallError::NotHashable { path: path.clone(), reason };
            let kind = member.file_type().map_err(FileError::of("read", &path))?;
            if kind.is_dir() {
                self.read(root, &path, depth + 1, known)?;
            } else if kind.is_symlink() {
                check_trusted(&path, &member.metadata().map_err(FileError::of("read", &path))?)?;
                let target = fs::read_link(&path).map_err(FileError::of("read link", &path))?;
                if may_lead_out(&target, depth) {
                    return Err(not_hashable("the link may lead out of the package"));
                }
                self.add(root, &path, Sha256Digest::of(target.as_os_str().as_bytes()), FileKind::Link)?;
            } else if kind.is_file() {
                let metadata = member.metadata().map_err(FileError::of("read", &path))?;
                check_trusted(&path, &metadata)?;
                let inside = path.strip_prefix(root).ok().and_then(Path::to_str);
                let (digest, kind) = match inside.and_then(|inside| known(inside, &metadata)) {
                    Some(FileEntry { digest, kind }) => (digest, kind),
                    None => hash_file(&path)?,
                };
                self.add(root, &path, digest, kind)?;
            } else {
                return Err(not_hashable("it is neither file, folder nor link"));
            }
        }
        Ok(())
    }

    /// Adds the digest of a file. `path` is below `root`.
    pub(super) fn add(
        &mut self,
        root: &Path,
        path: &Path,
        digest: Sha256Digest,
        kind: FileKind,
    ) -> Result<(), InstallError> {
        let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
        let not_hashable = |reason| InstallError::NotHashable { path: path.to_owned(), reason };
        let relative = relative.ok_or_else(|| not_hashable("its name is not UTF-8"))?;
        if relative.contains('\n') {
            return Err(not_hashable("its name contains a line end"));
        }
        self.0.insert(relative.to_owned(), FileEntry { digest, kind });
        Ok(())
    }

    /// Adds a file with the content and the kind of another one. Returns false if there is no other one.
    pub(super) fn add_copy(&mut self, path: &Path, other: &Path) -> bool {
        let Some((path, file)) = path.to_str().zip(other.to_str().and_then(|other| self.0.get(other)).copied()) else {
            return false;
        };
        self.0.insert(path.to_owned(), file);
        true
    }

    /// Adds a file by its path.
    pub(super) fn insert(&mut self, path: String, file: FileEntry) {
        self.0.insert(path, file);
    }

    /// Returns the paths of all files, sorted.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the digest and the kind of the file at a path.
    pub(super) fn entry(&self, path: &str) -> Option<FileEntry> {
        self.0.get(path).copied()
    }

    /// Returns the digest of the file at a relative path.
    pub(super) fn file(&self, path: &Path) -> Option<Sha256Digest> {
        self.0.get(path.to_str()?).map(|file| file.digest)
    }

    /// Returns the digest of the folder that a declared `checksum` pins.
    pub(super) fn checksum_digest(&self) -> Sha256Digest {
        Sha256Digest::of(self.checksum_lines())
    }

    /// Returns the digest that is the name of the folder in the cache. Unlike
    /// [`checksum_digest`](Self::checksum_digest) it covers executable bits.
    pub(super) fn cache_digest(&self) -> Sha256Digest {
        self.of_lines(|file| match file.kind {
            FileKind::Plain => ' ',
            FileKind::Executable => '*',
            FileKind::Link => '@',
        })
    }

    /// Returns the lines of which [`checksum_digest`](Self::checksum_digest) is the digest.
    pub(super) fn checksum_lines(&self) -> String {
        self.lines(|file| match file.kind {
            FileKind::Plain | FileKind::Executable => ' ',
            FileKind::Link => '@',
        })
    }

    /// Returns the files that differ from those of the lines of another folder, in words, sorted by path.
    pub(super) fn differences(&self, lines: &str) -> Vec<String> {
        let own = self.checksum_lines();
        let by_path = |lines: &'_ str| -> BTreeMap<String, String> {
            let parts =
                lines.lines().filter_map(|line| Some((line.get(DIGEST_LENGTH + 2..)?, line.get(..DIGEST_LENGTH + 2)?)));
            parts.map(|(path, rest)| (path.to_owned(), rest.to_owned())).collect()
        };
        let (own, other) = (by_path(&own), by_path(lines));
        let paths: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        let difference = |path: &String| match (own.get(path), other.get(path)) {
            (Some(_), None) => Some(format!("{path} (new)")),
            (None, Some(_)) => Some(format!("{path} (missing)")),
            (own, other) if own != other => Some(format!("{path} (changed)")),
            _ => None,
        };
        paths.into_iter().filter_map(difference).collect()
    }

    fn of_lines(&self, mark: impl Fn(&FileEntry) -> char) -> Sha256Digest {
        Sha256Digest::of(self.lines(mark))
    }

    fn lines(&self, mark: impl Fn(&FileEntry) -> char) -> String {
        let line = |(path, file): (&String, &FileEntry)| format!("{} {}{path}\n", file.digest.to_hex(), mark(file));
        let mut lines: Vec<String> = self.0.iter().map(line).collect();
        lines.sort_unstable();
        lines.concat()
    }
}

/// Returns true if a link in a folder at `depth` below the root may lead out of the root. `..` is allowed at the start
/// of the target only: after a folder name, which may be a link itself, `..` could lead anywhere.
pub(super) fn may_lead_out(target: &Path, depth: usize) -> bool {
    let mut climbed = 0;
    let mut descended = false;
    for component in target.components() {
        match component {
            Component::ParentDir if descended => return true,
            Component::ParentDir => climbed += 1,
            Component::Normal(_) => descended = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    climbed > depth
}

/// Returns the digest of a regular file, and its kind.
fn hash_file(path: &Path) -> Result<(Sha256Digest, FileKind), InstallError> {
    let mut file = open_regular(path).map_err(FileError::of("read", path))?;
    let metadata = file.metadata().map_err(FileError::of("read", path))?;
    check_trusted(path, &metadata)?;
    let kind = FileKind::of_mode(metadata.permissions().mode());
    Ok((hash_while_reading(&mut file, path, |_| Ok(()))?, kind))
}

/// Reads a file to its end, passes its content to `on_chunk` in chunks, and returns the digest of the content.
pub(super) fn hash_while_reading(
    file: &mut File,
    path: &Path,
    mut on_chunk: impl FnMut(&[u8]) -> Result<(), FileError>,
) -> Result<Sha256Digest, FileError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(FileError::of("read", path))?;
        if read == 0 {
            return Ok(Sha256Digest::finish(hash));
        }
        on_chunk(&buffer[..read])?;
        hash.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_that_may_leave_the_folder_is_detected() {
        let cases = [
            ("a", 0, false),
            ("./a/b", 0, false),
            ("..", 0, true),
            ("../a", 1, false),
            ("../../a", 1, true),
            ("/etc", 3, true),
            // `x/y` could be a link to the root.
            ("x/y/..", 2, true),
        ];
        for (target, depth, out) in cases {
            assert_eq!(may_lead_out(Path::new(target), depth), out, "{target} at depth {depth}");
        }
    }

    #[test]
    fn folder_digest_matches_the_documented_format() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub/.git")).unwrap();
        fs::write(folder.path().join("sub/.git/x"), "never").unwrap();
        fs::write(folder.path().join("a"), "one").unwrap();
        fs::write(folder.path().join("sub/b"), "two").unwrap();
        std::os::unix::fs::symlink("../a", folder.path().join("sub/l")).unwrap();
        let digests = FileDigests::of(folder.path()).unwrap();
        let line = |content: &str, path: &str| format!("{} {path}\n", Sha256Digest::of(content).to_hex());
        let mut lines = [line("one", " a"), line("two", " sub/b"), line("../a", "@sub/l")];
        lines.sort();
        assert_eq!(digests.checksum_digest(), Sha256Digest::of(lines.concat()));
        assert_eq!(digests.file(Path::new("sub/b")), Some(Sha256Digest::of("two")));
        // The cache digest covers executable bits, the checksum does not.
        fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        let executable = FileDigests::of(folder.path()).unwrap();
        assert_eq!(executable.checksum_digest(), digests.checksum_digest());
        assert_ne!(executable.cache_digest(), digests.cache_digest());
    }

    /// Shows: plugins.md#what-is-checked "the line of a link is `<sha256> @<path>`"
    /// Shows: plugins.md#what-is-checked "`sc` refuses the link if another account can change what it leads to"
    #[test]
    fn file_with_the_target_of_a_link_has_another_digest_than_the_link() {
        let [link, file] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        std::os::unix::fs::symlink("b", link.path().join("a")).unwrap();
        fs::write(file.path().join("a"), "b").unwrap();
        let [link, file] = [link, file].map(|folder| FileDigests::of(folder.path()).unwrap());
        assert_ne!(link.checksum_digest(), file.checksum_digest());
        assert_ne!(link.cache_digest(), file.cache_digest());
    }
}
