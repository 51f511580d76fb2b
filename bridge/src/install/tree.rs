//! The files of a folder, by their digests: what names a package in the cache, and what `checksum` means for a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use sha2::{Digest as _, Sha256};

use super::InstallError;
use crate::fs::PathError;
use crate::plugin::Sha256Digest;

/// What a checksum never covers and what is never copied.
pub(super) const GIT: &str = ".git";

/// The digests of all files of a folder, by their paths in it.
///
/// Their own digest is the sha256 of the lines `"<sha256>  <path>\n"`, sorted as text, one for each file but those in
/// `.git`; paths are relative, with `/`; a symbolic link counts as a file that holds its target's path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileDigests(BTreeMap<String, FileDigest>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileDigest {
    digest: Sha256Digest,
    executable: bool,
}

impl FileDigests {
    /// Reads every file of a folder that was made here: links must not lead out of it.
    pub(super) fn of(root: &Path) -> Result<Self, InstallError> {
        let mut digests = Self::default();
        digests.read(root, root, 0)?;
        Ok(digests)
    }

    fn read(&mut self, root: &Path, folder: &Path, depth: usize) -> Result<(), InstallError> {
        for member in fs::read_dir(folder).map_err(PathError::of("list", folder))? {
            let member = member.map_err(PathError::of("list", folder))?;
            if member.file_name() == GIT {
                continue;
            }
            let path = member.path();
            let uncoverable = |reason| InstallError::Uncoverable { path: path.clone(), reason };
            let kind = member.file_type().map_err(PathError::of("read", &path))?;
            if kind.is_dir() {
                self.read(root, &path, depth + 1)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(PathError::of("read link", &path))?;
                if leads_out(&target, depth) {
                    return Err(uncoverable("the link may lead out of the package"));
                }
                self.note(root, &path, Sha256Digest::of(target.as_os_str().as_bytes()), false)?;
            } else if kind.is_file() {
                let (digest, executable) = digest_of_file(&path)?;
                self.note(root, &path, digest, executable)?;
            } else {
                return Err(uncoverable("it is neither file, folder nor link"));
            }
        }
        Ok(())
    }

    /// Adds a file.
    pub(super) fn note(
        &mut self,
        root: &Path,
        path: &Path,
        digest: Sha256Digest,
        executable: bool,
    ) -> Result<(), InstallError> {
        let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
        let uncoverable = |reason| InstallError::Uncoverable { path: path.to_owned(), reason };
        let relative = relative.ok_or_else(|| uncoverable("its name is not UTF-8"))?;
        if relative.contains('\n') {
            return Err(uncoverable("its name holds a line end"));
        }
        self.0.insert(relative.to_owned(), FileDigest { digest, executable });
        Ok(())
    }

    /// The digest of the file at a path in the folder.
    pub(super) fn file(&self, path: &Path) -> Option<Sha256Digest> {
        self.0.get(path.to_str()?).map(|file| file.digest)
    }

    /// Their own digest, as `checksum` takes it.
    pub(super) fn digest(&self) -> Sha256Digest {
        self.of_lines(|path, file| format!("{}  {path}\n", file.digest.to_hex()))
    }

    /// What names them in the cache: their own digest, with a mark at those that may be executed.
    pub(super) fn identity(&self) -> Sha256Digest {
        self.of_lines(|path, file| {
            format!("{} {}{path}\n", file.digest.to_hex(), if file.executable { '*' } else { ' ' })
        })
    }

    fn of_lines(&self, line: impl Fn(&str, &FileDigest) -> String) -> Sha256Digest {
        let mut lines: Vec<String> = self.0.iter().map(|(path, file)| line(path, file)).collect();
        lines.sort_unstable();
        Sha256Digest::of(lines.concat())
    }
}

/// Whether a link may lead out of the folder it is in, which lies so deep below the root. It may climb first and descend
/// then; where it climbed after it descended, a link on its way could take it anywhere.
pub(super) fn leads_out(target: &Path, depth: usize) -> bool {
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

/// The digest of a file, and whether it may be executed.
fn digest_of_file(path: &Path) -> Result<(Sha256Digest, bool), InstallError> {
    let mut file = File::open(path).map_err(PathError::of("read", path))?;
    let mode = file.metadata().map_err(PathError::of("read", path))?.permissions().mode();
    Ok((digest_of_reading(&mut file, path, |_| Ok(()))?, mode & 0o111 != 0))
}

/// Reads a file to its end, hands on what it holds, and says the digest of that.
pub(super) fn digest_of_reading(
    file: &mut File,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), PathError>,
) -> Result<Sha256Digest, PathError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(PathError::of("read", path))?;
        if read == 0 {
            return Ok(Sha256Digest::finish(hash));
        }
        take(&buffer[..read])?;
        hash.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_or_is_refused() {
        let table = [
            ("a", 0, false),
            ("./a/b", 0, false),
            ("..", 0, true),
            ("../a", 1, false),
            ("../../a", 1, true),
            ("/etc", 3, true),
            // `x/y` could be a link to the root.
            ("x/y/..", 2, true),
        ];
        for (target, depth, out) in table {
            assert_eq!(leads_out(Path::new(target), depth), out, "{target} at depth {depth}");
        }
    }

    #[test]
    fn a_folder_has_the_digest_that_the_documentation_says() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub/.git")).unwrap();
        fs::write(folder.path().join("sub/.git/x"), "never").unwrap();
        fs::write(folder.path().join("a"), "one").unwrap();
        fs::write(folder.path().join("sub/b"), "two").unwrap();
        std::os::unix::fs::symlink("../a", folder.path().join("sub/l")).unwrap();
        let digests = FileDigests::of(folder.path()).unwrap();
        let line = |content: &str, path: &str| format!("{}  {path}\n", Sha256Digest::of(content).to_hex());
        let mut lines = [line("one", "a"), line("two", "sub/b"), line("../a", "sub/l")];
        lines.sort();
        assert_eq!(digests.digest(), Sha256Digest::of(lines.concat()));
        assert_eq!(digests.file(Path::new("sub/b")), Some(Sha256Digest::of("two")));
        // Who may be executed is no part of a checksum, and one of what is kept.
        fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        let executable = FileDigests::of(folder.path()).unwrap();
        assert_eq!(executable.digest(), digests.digest());
        assert_ne!(executable.identity(), digests.identity());
    }
}
