//! Environment variables of `sc`, from which the environments of child processes are selected.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

/// Environment variables passed in by the binary. Libraries read no other environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostEnvironment(BTreeMap<OsString, OsString>);

impl HostEnvironment {
    /// Creates an environment from variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Returns the named variables that are set.
    pub fn select<'a>(
        &'a self,
        names: impl IntoIterator<Item = &'a str, IntoIter: 'a>,
    ) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        names.into_iter().filter_map(|name| Some((name.into(), self.get(name)?.to_owned())))
    }

    /// Returns the variables whose names start with `prefix`.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        let starts = move |name: &OsString| name.to_str().is_some_and(|name| name.starts_with(prefix));
        self.0.iter().filter(move |(name, _)| starts(name)).map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Returns the first file called `name` in the folders of PATH.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let folders = self.get("PATH")?;
        std::env::split_paths(folders)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    }
}

impl fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostEnvironment").field(&self.0.keys()).finish()
    }
}
