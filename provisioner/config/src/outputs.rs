//! Reads `outputs` of server.yaml: names with any values.
//!
//! Placeholders are resolved, except for references to resources and functions, which a run resolves.

use crate::asset_function::{self, AssetRule};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section};
use crate::stack::Output;
use crate::tree::Entry;
use crate::values;

/// Reads the section, in the order of the file.
pub(super) fn read(root: Section<'_>, resolver: &mut Resolver<'_>) -> Vec<Output> {
    let mut diagnostics = Vec::new();
    let section = Reader::new(&mut diagnostics).section(root, "outputs", "outputs");
    if let Some(section) = section {
        Reader::new(&mut diagnostics).reject_empty_names(section, "an output");
    }
    let outputs = section.map(|section| {
        let read = |entry: &Entry| {
            values::check(&entry.value, &mut diagnostics);
            asset_function::check(&entry.value, AssetRule::Rejected, &mut diagnostics);
            let value = resolver.resolve(&entry.value, ReferenceRule::AnyEnvironment);
            Output { name: entry.key.clone(), span: entry.key_span, value }
        };
        section.mapping.into_iter().map(read).collect()
    });
    resolver.diagnostics.extend(diagnostics);
    outputs.unwrap_or_default()
}
