//! JSON Schemas for editors: of server.yaml, and of each resource type.
//!
//! Input: the types of the registry, and the schemas of packages. Output: files by path, as `sc schema-gen` writes them
//! (docs/spec/simple-container.md#9). Excluded: plugins, access to files, reading of server.yaml. Tests compare the
//! keys of plugins, of each kind of source, and of options in `server.schema.json` with the keys that `config` accepts;
//! its top-level keys are not compared.
//!
//! ```text
//! server.schema.json          schema of server.yaml, in one file
//! index.json                  the folders and the number of types in each
//! <provider>/index.json       the types of a provider
//! <provider>/<name>.json      a type: name, description, and the schema of its `config`
//! <package>/types.json        definitions that the types of a package share
//! ```

mod folders;
mod json_schema;
mod server;

use std::collections::BTreeMap;

use config::types::TypeTable;

use json_schema::to_json_text;
pub use server::Package;

/// Returns all files by their paths, with `/` as separator.
///
/// Without `packages`, all types of plugins are accepted.
pub fn files(types: &TypeTable, packages: Option<Vec<Package>>) -> BTreeMap<String, String> {
    let mut files = folders::files(types, packages.as_deref().unwrap_or_default());
    // `server_schema` consumes the packages, so it is called last: the schemas of a large package are too large to
    // copy.
    files.insert("server.schema.json".to_owned(), to_json_text(&server::server_schema(types, packages)));
    files
}
