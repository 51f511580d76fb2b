//! The environment that children get a part of.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

/// The environment this program was started with, as far as it was handed in. Libraries read no other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostEnvironment(BTreeMap<OsString, OsString>);

impl HostEnvironment {
    /// Takes variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Those of the named variables that are set.
    pub fn select<'a>(
        &'a self,
        names: impl IntoIterator<Item = &'a str, IntoIter: 'a>,
    ) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        names.into_iter().filter_map(|name| Some((name.into(), self.get(name)?.to_owned())))
    }

    /// The variables whose names start like this.
    pub fn starting_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        let starts = move |name: &OsString| name.to_str().is_some_and(|name| name.starts_with(prefix));
        self.0.iter().filter(move |(name, _)| starts(name)).map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The first file of that name in the folders of PATH.
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
