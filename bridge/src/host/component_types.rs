//! Which types of a package are components: what its schema (GetSchema) marks with `isComponent`.
//!
//! A schema may have tens of megabytes, so what one says is remembered for the digest that pins its package.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::fs::{Access, create_folders, read_if_there, write_atomically};
use crate::plugin::Sha256Digest;

/// The part of a package schema that says so. What is not named here is skipped unread.
#[derive(Deserialize)]
struct Package<'a> {
    #[serde(borrow, default)]
    resources: BTreeMap<Cow<'a, str>, Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default)]
    is_component: bool,
}

/// The component types in the text of a schema. Of a text that is no schema there are none: a plugin need not have one.
pub(super) fn read(schema: &str) -> BTreeSet<String> {
    let package: Package<'_> = serde_json::from_str(schema).unwrap_or(Package { resources: BTreeMap::new() });
    let components = package.resources.into_iter().filter(|(_, resource)| resource.is_component);
    components.map(|(token, _)| token.into_owned()).collect()
}

/// Where the component types of one package are remembered: a JSON list of type tokens.
#[derive(Clone, Debug)]
pub(super) struct Memory(PathBuf);

impl Memory {
    pub(super) fn new(folder: &Path, package: Sha256Digest) -> Self {
        Self(folder.join(format!("{}.json", package.to_hex())))
    }

    /// What is remembered. What cannot be read is not.
    pub(super) async fn recall(self) -> Option<BTreeSet<String>> {
        let read = move || serde_json::from_slice(&read_if_there(&self.0).ok()??).ok();
        tokio::task::spawn_blocking(read).await.ok()?
    }

    /// Remembers them, if it can: whoever forgets asks again.
    pub(super) async fn remember(self, types: BTreeSet<String>) {
        let write = move || {
            let text = serde_json::to_vec(&types).ok()?;
            create_folders(self.0.parent()?).ok()?;
            write_atomically(&self.0, &text, Access::Private).ok()
        };
        drop(tokio::task::spawn_blocking(write).await);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn components_are_what_the_schema_calls_so() {
        let schema = r#"{"name": "p", "resources": {
            "p:index:A": {"isComponent": true, "inputProperties": {"x": {"type": "string"}}},
            "p:index:B": {"isComponent": false}, "p:index:C": {}}}"#;
        assert_eq!(super::read(schema).into_iter().collect::<Vec<_>>(), ["p:index:A"]);
        for other in ["", "{}", "[]", r#"{"resources": null}"#] {
            assert!(super::read(other).is_empty(), "{other}");
        }
    }
}
