//! JSON Schema for editors: of server.yaml, and of each type that its resources may have.
//!
//! Enters: the types of the registry, and the schemas of packages. Leaves: files by path, as `sc schema-gen` writes
//! them (simple-container §9). Never here: plugins, folders, the reading of a server.yaml. Tests compare the keys in
//! `server.json` with those that `config` accepts.
//!
//! ```text
//! server.schema.json          the whole of server.yaml, in one file
//! index.json                  the folders and how many types each has
//! <provider>/index.json       the types of a provider
//! <provider>/<name>.json      a type: name, description, and the schema of its `config`
//! <package>/types.json        what the types of a package share
//! ```

mod folders;
mod json_schema;
mod package;
mod server;

use std::collections::BTreeMap;

use config::types::TypeTable;

use json_schema::text;
pub use package::Package;

/// Returns all files by their paths, with `/` as separator.
///
/// Without `packages` the types of plugins are unknown, and any of them is accepted.
pub fn files(types: &TypeTable, packages: Option<Vec<Package>>) -> BTreeMap<String, String> {
    let mut files = folders::files(types, packages.as_deref().unwrap_or_default());
    // `server` consumes the packages, so it comes last: the schemas of a large package are too large to copy.
    files.insert("server.schema.json".to_owned(), text(&server::server(types, packages)));
    files
}
