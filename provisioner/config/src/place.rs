//! Places of resources in a server.yaml: `ENV/KEY`, and the entries of a `forEach`.

use std::fmt;

use crate::diagnostics::Span;
use crate::placeholder::split_entry;

/// Resource with `forEach`, and the resources that it stands for.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Key of the resource in the file.
    pub key: String,
    /// Position of the key.
    pub span: Span,
    /// Key of each entry of the collection, in its order, with the key of the resource: `<key>-<key of the entry>`.
    pub instances: Vec<(String, String)>,
    /// True if the collection is not known in this process, or invalid: what refers to it is not checked.
    pub(crate) is_unknown: bool,
    /// Event that has to happen before the collection is known, or whether the resource is switched on: `net is provisioned`. `None` if nothing
    /// is awaited.
    pub awaited: Option<String>,
}

impl Collection {
    /// Returns the key of the resource of an entry.
    pub fn resource(&self, entry: &str) -> Option<&str> {
        let found = self.instances.iter().find(|(known, _)| known == entry)?;
        Some(&found.1)
    }
}

/// Place of a resource in a server.yaml. Displays `ENV/KEY`, or `ENV/KEY[ENTRY]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Name of the environment.
    pub environment: String,
    /// Key of the resource.
    pub key: String,
    /// Entry of its `forEach`.
    pub entry: Option<String>,
}

impl Place {
    /// Reads `ENV/KEY` or `ENV/KEY[ENTRY]`. The key may have slashes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (environment, key) = text.split_once('/')?;
        let (key, entry) = split_entry(key);
        let is_whole = !environment.is_empty() && !key.is_empty();
        let entry = entry.map(str::to_owned);
        is_whole.then(|| Self { environment: environment.to_owned(), key: key.to_owned(), entry })
    }

    /// Returns the key of the resource among those of its environment.
    pub(crate) fn resource_key(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{}-{entry}", self.key),
            None => self.key.clone(),
        }
    }

    /// Returns the name that a resource of a plugin at this place has in the state.
    pub fn logical_name(&self) -> String {
        format!("{}--{}", self.resource_key(), self.environment)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.environment, self.key)?;
        self.entry.as_ref().map_or(Ok(()), |entry| write!(f, "[{entry}]"))
    }
}

/// Resource that has another place than before, and keeps what is recorded for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Former place.
    pub from: Place,
    /// Place now, after all moves.
    pub to: Place,
    /// Position of the former place.
    pub span: Span,
}
