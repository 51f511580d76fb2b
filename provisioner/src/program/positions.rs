//! Positions of registrations in the file.

use pulumi_proto::property::path::{Element, PropertyPath};

use config::diagnostics::Span;
use config::tree::{Node, Value};
use config::{ResourceImplementation, Stack};
use engine::events::SourceRef;

/// Reference of the root stack resource, which no file declares.
pub(super) const ROOT: SourceRef = SourceRef(0);

/// Returns the reference of a plugin's provider resource.
pub(super) fn plugin_ref(index: usize) -> SourceRef {
    SourceRef(1 + index as u64)
}

/// Returns the reference of a resource, given its index in [`Stack::declarations`].
pub(super) fn resource_ref(plugins: usize, index: usize) -> SourceRef {
    SourceRef(1 + plugins as u64 + index as u64)
}

/// Returns the reference of a function, given its index in [`Stack::functions`].
pub(super) fn function_ref(stack: &Stack, index: usize) -> SourceRef {
    resource_ref(stack.plugins.len(), stack.declarations().count() + index)
}

/// Returns whether a registration is one of a core resource.
pub(super) fn is_core_resource(stack: &Stack, source: SourceRef) -> bool {
    let index = usize::try_from(source.0).ok().and_then(|index| index.checked_sub(1 + stack.plugins.len()));
    let resource = index.and_then(|index| stack.declarations().nth(index));
    resource.is_some_and(|(_, resource)| matches!(resource.implementation, ResourceImplementation::Core { .. }))
}

/// Returns the position of a registration: its key or name, or the part of its `config` at a property path.
pub(super) fn find(stack: &Stack, source: SourceRef, property: Option<&PropertyPath>) -> Option<Span> {
    let index = usize::try_from(source.0).ok()?.checked_sub(1)?;
    let (span, config) = match index.checked_sub(stack.plugins.len()) {
        None => stack.plugins.get(index).map(|plugin| (plugin.name_span, &plugin.config))?,
        Some(index) => match stack.declarations().nth(index) {
            Some((_, resource)) => (resource.key_span, &resource.config),
            None => {
                let function = stack.functions.get(index.checked_sub(stack.declarations().count())?)?;
                (function.name_span, &function.arguments)
            }
        },
    };
    Some(property.map_or(span, |path| deepest_position(config, span, path)))
}

/// Returns the position of the last element of the path that the file has: a key or an item.
fn deepest_position(config: &Node, default: Span, path: &PropertyPath) -> Span {
    let (mut node, mut span) = (config, default);
    for element in path.elements() {
        match (element, &node.value) {
            (Element::Key(key), Value::Mapping(mapping)) => {
                let Some(entry) = mapping.entry(key) else { return span };
                (node, span) = (&entry.value, entry.key_span);
            }
            (Element::Index(index), Value::Sequence(items)) => {
                let Some(item) = items.get(*index) else { return span };
                (node, span) = (item, item.span);
            }
            _ => return span,
        }
    }
    span
}
