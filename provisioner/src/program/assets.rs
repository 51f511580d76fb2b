//! Assets and archives in the `config` of plugin resources: the check of their places before a run, and their hashes in it.

use std::sync::Arc;

use bridge::host::AssetHashes;
use bridge::message_text::MessageText;
use config::asset_function::{AssetFunction, visit};
use config::diagnostics::{Code, Diagnostic};
use config::tree::{Mapping, Node, Value};
use config::values::evaluate_constant;
use config::{ResourceImplementation, Stack};
use engine::Goal;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::property::path::{Element, PropertyPath};

use super::positions;

const ASSET: Code = Code("asset");

/// Returns the errors of assets and archives whose files are missing, of another kind or outside of the repository, and of URLs
/// that cannot be read. A place that depends on other resources is checked when they are registered.
pub(super) fn check(stack: &Stack, hashes: &AssetHashes) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for (_, resource) in stack.resources() {
        if matches!(resource.implementation, ResourceImplementation::Core { .. }) {
            continue;
        }
        visit(&resource.config, &mut |function, entry| {
            // The members of an archive are visited themselves.
            if function == AssetFunction::AssetArchive || function == AssetFunction::StringAsset {
                return;
            }
            let node = Node { value: Value::Mapping(Mapping(vec![entry.clone()])), span: entry.value.span };
            let value = match evaluate_constant(&node) {
                PropertyValue::Secret(secret) => secret.into_exposed(),
                value => value,
            };
            errors.extend(hashes.check(&value).err().map(|reason| {
                let summary = MessageText::new(format_args!("`{}`: {reason}", function.key()));
                Diagnostic::error(ASSET, entry.value.span, summary).help(match function {
                    AssetFunction::FileAsset | AssetFunction::FileArchive => {
                        "paths start at the root of the repository; build or fetch the file before the run"
                    }
                    _ => "the URL begins with `https://` or `http://`",
                })
            }));
        });
    }
    errors
}

/// Returns the paths of files and folders of assets and archives. A path that depends on other resources is left out.
pub(super) fn paths(stack: &Stack) -> Vec<String> {
    let mut paths = Vec::new();
    for (_, resource) in stack.resources() {
        visit(&resource.config, &mut |function, entry| {
            if matches!(function, AssetFunction::FileAsset | AssetFunction::FileArchive) {
                let path = match evaluate_constant(&entry.value) {
                    PropertyValue::Secret(secret) => secret.into_exposed(),
                    path => path,
                };
                if let PropertyValue::String(path) = path {
                    paths.push(path.to_string());
                }
            }
        });
    }
    paths
}

/// Adds the hashes of the assets and archives in the inputs of a goal.
///
/// # Errors
/// The content of one cannot be read; the error is at its property in the file.
pub(super) async fn add_hashes(mut goal: Goal, hashes: &AssetHashes, stack: &Stack) -> Result<Goal, Box<Diagnostic>> {
    if !goal.inputs.values().any(has_asset) {
        return Ok(goal);
    }
    let source = goal.source;
    match hashes.add_to(Arc::unwrap_or_clone(goal.inputs)).await {
        Ok(inputs) => {
            goal.inputs = Arc::new(inputs);
            Ok(goal)
        }
        Err((property, reason)) => {
            let path = PropertyPath::default().child(Element::Key(property.clone()));
            let span = source.and_then(|source| positions::find(stack, source, Some(&path)));
            let summary = MessageText::new(format_args!("`{property}`: {reason}"));
            Err(Diagnostic::error(ASSET, span, summary).into())
        }
    }
}

/// Returns whether a value has an asset or an archive.
pub(super) fn has_asset(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Asset(_) | PropertyValue::Archive(_) => true,
        PropertyValue::List(items) => items.iter().any(has_asset),
        PropertyValue::Map(members) => members.values().any(has_asset),
        PropertyValue::Secret(secret) => has_asset(secret.expose()),
        PropertyValue::Output(output) => output.value.as_ref().is_some_and(has_asset),
        _ => false,
    }
}
