//! Where files may be: paths that are relative and stay below one folder, whatever links lie on the way.
//!
//! The text of a path is judged first ([`RelativePath`]), what it really leads to while it is opened ([`Root`]): a
//! folder that is held open cannot be exchanged for a link by somebody else in between.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// A path below the root as text: relative, without `..`, naming something, in its shortest spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelativePath(String);

impl RelativePath {
    /// Judges a path. The reason of a refusal does not quote it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('/') {
            return Err("the path must be relative to the root of the plugin, not absolute");
        }
        if text.contains('\0') {
            return Err("a path cannot contain a zero byte");
        }
        let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if names.contains(&"..") {
            return Err("the path must stay below the root of the plugin: it may not contain \"..\"");
        }
        if names.is_empty() {
            return Err("the path must name something below the root of the plugin");
        }
        Ok(Self(names.join("/")))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The folder that holds the last name; `.` is the root itself.
    pub(crate) fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }
}

/// The folder that everything stays below. It need not exist until something is written.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Relative paths start at the working directory of the process.
    pub(crate) fn new(path: &str) -> Self {
        Self(PathBuf::from(path))
    }

    /// The path of something below the root, from the working directory.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        if self.0 == Path::new(".") { PathBuf::from(path) } else { self.0.join(path) }
    }

    /// Opens the folder that holds the path's last name.
    ///
    /// # Errors
    /// `NotFound` if it does not exist; [`leads_out`] if a link on the way leaves the root.
    pub(crate) fn open_folder_of(&self, path: &RelativePath) -> io::Result<Dir> {
        Dir::open_ambient_dir(&self.0, ambient_authority())?.open_dir(path.folder())
    }

    /// Makes sure that the root itself exists.
    pub(crate) fn create(&self) -> io::Result<()> {
        Dir::create_ambient_dir_all(&self.0, ambient_authority())
    }

    /// Whether things could be written below the root; the reason if not.
    pub(crate) fn usable(&self) -> Result<(), String> {
        match std::fs::metadata(&self.0) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(format!("the root {} is not a folder", self.0.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("cannot look at the root {}: {error}", self.0.display())),
        }
    }
}

/// Whether a path could not be opened because a link on it leaves the root.
pub(crate) fn leads_out(error: &io::Error) -> bool {
    // The sandbox says so itself; a refusal by the system has a number.
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_brought_to_their_shortest_spelling() {
        let path = RelativePath::parse("./a//b/./c.txt/").unwrap();
        assert_eq!((path.as_str(), path.folder(), path.name()), ("a/b/c.txt", "a/b", "c.txt"));
        let path = RelativePath::parse("c").unwrap();
        assert_eq!((path.as_str(), path.folder(), path.name()), ("c", ".", "c"));
    }

    #[test]
    fn paths_that_could_leave_the_root_are_refused() {
        for text in ["/etc/passwd", "..", "../a", "a/../../b", "a/..", "", ".", "./", "a\0b"] {
            RelativePath::parse(text).expect_err(text);
        }
        RelativePath::parse("..a/b..").unwrap();
    }

    #[test]
    fn links_may_lead_anywhere_below_the_root_but_not_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("real")).unwrap();
        std::fs::create_dir_all(folder.path().join("outside")).unwrap();
        symlink("real", root.join("inside")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink(folder.path().join("outside"), root.join("absolute")).unwrap();

        let root = Root::new(root.to_str().unwrap());
        let open = |path| root.open_folder_of(&RelativePath::parse(path).unwrap());
        open("inside/a").unwrap();
        for path in ["relative/a", "absolute/a"] {
            assert!(leads_out(&open(path).unwrap_err()), "{path}");
        }
        assert_eq!(open("nothing/a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
