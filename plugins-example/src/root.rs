//! Paths below one root folder, which links cannot leave.
//!
//! The text of a path is validated first ([`RelativePath`]), its links are checked while it is opened ([`Root`]). An
//! open folder cannot be replaced by a link in between.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio_util::sync::CancellationToken;

/// Normalized relative path below the root, not empty and without `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelativePath(String);

impl RelativePath {
    /// Parses and normalizes a path. The error does not quote the path.
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

    /// Returns the last component.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// Returns the path without the last component, `.` for the root.
    pub(crate) fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }
}

/// Root folder of all paths. Created by the first write.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Creates a root. A relative path starts at the working directory of the process.
    pub(crate) fn new(path: &str) -> Self {
        Self(PathBuf::from(path))
    }

    /// Returns a path below the root, relative to the working directory.
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        if self.0 == Path::new(".") { PathBuf::from(path) } else { self.0.join(path) }
    }

    /// Opens the folder that contains the last component of a path.
    ///
    /// # Errors
    /// `NotFound` if the folder does not exist; an error for which [`leads_out`] is true if a link leaves the root.
    pub(crate) fn open_folder_of(&self, path: &RelativePath) -> io::Result<Dir> {
        Dir::open_ambient_dir(&self.0, ambient_authority())?.open_dir(path.folder())
    }

    /// Creates the root folder unless it exists.
    pub(crate) fn create(&self) -> io::Result<()> {
        Dir::create_ambient_dir_all(&self.0, ambient_authority())
    }

    /// Checks that the root is a folder or does not exist yet. Returns the reason otherwise.
    pub(crate) fn check_usable(&self) -> Result<(), String> {
        match std::fs::metadata(&self.0) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(format!("the root {} is not a folder", self.0.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("cannot read the root {}: {error}", self.0.display())),
        }
    }
}

/// Returns true for the error of a path with a link that leaves the root.
pub(crate) fn leads_out(error: &io::Error) -> bool {
    // Errors of the sandbox have no number, errors of the system have one.
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// The part of the process that a call may use.
#[derive(Clone)]
pub(crate) struct CallContext {
    /// The configured root folder.
    pub(crate) root: Arc<Root>,
    /// Cancelled when the engine calls Cancel or the process stops.
    pub(crate) cancelled: CancellationToken,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn path_is_normalized() {
        let path = RelativePath::parse("./a//b/./c.txt/").unwrap();
        assert_eq!((path.as_str(), path.folder(), path.name()), ("a/b/c.txt", "a/b", "c.txt"));
        let path = RelativePath::parse("c").unwrap();
        assert_eq!((path.as_str(), path.folder(), path.name()), ("c", ".", "c"));
    }

    #[test]
    fn path_that_could_leave_the_root_is_refused() {
        for text in ["/etc/passwd", "..", "../a", "a/../../b", "a/..", "", ".", "./", "a\0b"] {
            RelativePath::parse(text).expect_err(text);
        }
        RelativePath::parse("..a/b..").unwrap();
    }

    #[test]
    fn link_inside_the_root_is_followed_and_link_out_of_it_is_refused() {
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
