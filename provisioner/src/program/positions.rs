//! From a registration back to the file.

use pulumi_proto::property::path::{Element, PropertyPath};

use crate::config::diagnostics::Span;
use crate::config::yaml::{Node, Value};
use crate::config::{Environment, Stack};
use crate::events::SourceRef;

/// The root stack resource: nobody wrote it.
pub(super) const ROOT: SourceRef = SourceRef(0);

/// The reference to a plugin's provider resource.
pub(super) fn of_plugin(index: usize) -> SourceRef {
    SourceRef(1 + index as u64)
}

/// The reference to a resource; resources are counted through all environments.
pub(super) fn of_resource(plugins: usize, index: usize) -> SourceRef {
    SourceRef(1 + plugins as u64 + index as u64)
}

/// Places by reference.
#[derive(Clone, Debug)]
pub(super) struct Positions(Vec<Place>);

#[derive(Clone, Debug)]
struct Place {
    /// Of the key or name.
    span: Span,
    /// The `config` that the inputs were made from.
    config: Node,
}

impl Positions {
    pub(super) fn of(stack: &Stack) -> Self {
        let plugins = stack.plugins.iter().map(|plugin| (plugin.name_span, &plugin.config));
        let resources = stack.environments.iter().flat_map(|Environment { resources, .. }| resources);
        let resources = resources.map(|resource| (resource.key_span, &resource.config));
        let place = |(span, config): (Span, &Node)| Place { span, config: config.clone() };
        Self(plugins.chain(resources).map(place).collect())
    }

    pub(super) fn find(&self, source: SourceRef, property: Option<&PropertyPath>) -> Option<Span> {
        let index = usize::try_from(source.0).ok()?.checked_sub(1)?;
        let place = self.0.get(index)?;
        Some(property.map_or(place.span, |path| deepest(place, path)))
    }
}

/// The key or item at the end of the path, or the last one on the way that the file has.
fn deepest(place: &Place, path: &PropertyPath) -> Span {
    let (mut node, mut span) = (&place.config, place.span);
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
