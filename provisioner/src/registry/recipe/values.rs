//! Values of registered resources, for holes.

use pulumi_proto::property::{PropertyMap, PropertyValue, ResourceReference};
use pulumi_proto::resource_id::ReferenceId;

use super::node::{Node, NodeKind};
use super::resolved::ResolvedValue;
use crate::registry::packages::Package;
use crate::registry::sdk;
use engine::Registered;

/// Returns an output of a registered resource, with the resource as its dependency. An output that does not exist is
/// null.
pub(super) fn output(registered: &Registered, path: &str) -> ResolvedValue {
    let missing = if registered.has_all_outputs { PropertyValue::Null } else { PropertyValue::UNKNOWN };
    let value = part(&registered.outputs, path).unwrap_or(missing);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns the id of a registered resource, with the resource as its dependency.
pub(super) fn id(registered: &Registered) -> ResolvedValue {
    let value = registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns a reference to a registered resource as a value, with the resource as its dependency.
pub(super) fn reference(registered: &Registered, node: &Node) -> ResolvedValue {
    let is_custom = node.kind != NodeKind::Component;
    let reference = ResourceReference {
        urn: registered.urn.clone(),
        id: is_custom.then(|| ReferenceId::from(registered.id.as_ref())),
        package_version: None,
    };
    ResolvedValue { value: PropertyValue::Resource(reference), dependencies: vec![registered.urn.clone()] }
}

pub(super) fn version(node: &Node) -> Option<String> {
    let is_in_sdk = node.kind == NodeKind::Function || sdk::resource(&node.token).is_some();
    node.package.filter(|_| is_in_sdk).and_then(Package::version).map(str::to_owned)
}

/// Returns the part of a value at a path of names and indices that are joined by dots. A part of a secret is secret, a part
/// of an unknown is unknown.
pub(super) fn part(outputs: &PropertyMap, path: &str) -> Option<PropertyValue> {
    let mut names = path.split('.');
    let mut value = outputs.get(names.next()?)?;
    let mut secret = false;
    for name in names {
        while let PropertyValue::Secret(inner) = value {
            (value, secret) = (inner.expose(), true);
        }
        value = match value {
            PropertyValue::Map(map) => map.get(name)?,
            PropertyValue::List(items) => items.get(name.parse::<usize>().ok()?)?,
            PropertyValue::Unknown(_) => return Some(PropertyValue::UNKNOWN),
            _ => return None,
        };
    }
    Some(if secret { PropertyValue::secret(value.clone()) } else { value.clone() })
}
