//! Features of a checkpoint that a reader has to support.

use std::collections::BTreeSet;

use pulumi_proto::property::{ArchiveContent, PropertyMap, PropertyValue};

use super::error::FormatError;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;

/// Feature of a checkpoint. The variants are sorted by name, because checkpoints list features in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Feature {
    ByteString,
    ExtensionParameterization,
    Hooks,
    RefreshBeforeUpdate,
    ReplaceWith,
    Snippets,
    Taint,
    Views,
}

impl Feature {
    const ALL: [Self; 8] = [
        Self::ByteString,
        Self::ExtensionParameterization,
        Self::Hooks,
        Self::RefreshBeforeUpdate,
        Self::ReplaceWith,
        Self::Snippets,
        Self::Taint,
        Self::Views,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ByteString => "byteString",
            Self::ExtensionParameterization => "extensionParameterization",
            Self::Hooks => "hooks",
            Self::RefreshBeforeUpdate => "refreshBeforeUpdate",
            Self::ReplaceWith => "replaceWith",
            Self::Snippets => "snippets-prototype",
            Self::Taint => "taint",
            Self::Views => "views",
        }
    }
}

/// Fails if a feature is unknown. All known features are preserved.
pub(super) fn check_known(features: &[String]) -> Result<(), FormatError> {
    let known = |name: &str| Feature::ALL.iter().any(|feature| feature.name() == name);
    match features.iter().find(|name| !known(name)) {
        Some(name) => Err(FormatError::UnknownFeature(name.clone())),
        None => Ok(()),
    }
}

/// Adds the features of an entry, except those of its property values.
fn collect_features(features: &mut BTreeSet<Feature>, resource: &ResourceState) {
    let used = [
        (Feature::ExtensionParameterization, resource.extension_ref.is_some()),
        (Feature::Hooks, !resource.resource_hooks.is_empty()),
        (Feature::RefreshBeforeUpdate, resource.refresh_before_update),
        (Feature::ReplaceWith, !resource.replace_with.is_empty()),
        (Feature::Snippets, resource.snippet_id.is_some()),
        (Feature::Taint, resource.taint),
        (Feature::Views, resource.view_of.is_some()),
    ];
    features.extend(used.into_iter().filter(|(_, used)| *used).map(|(feature, _)| feature));
}

pub(super) fn used_by(snapshot: &Snapshot) -> BTreeSet<Feature> {
    let mut features = BTreeSet::new();
    for resource in snapshot.all_resources() {
        collect_features(&mut features, resource);
        if has_bytes(resource) {
            features.insert(Feature::ByteString);
        }
    }
    if !snapshot.rest.snippets.is_empty() {
        features.insert(Feature::Snippets);
    }
    features
}

/// Returns `true` if a resource has a string that is not UTF-8, at any depth.
fn has_bytes(resource: &ResourceState) -> bool {
    fn map_has_bytes(map: &PropertyMap) -> bool {
        map.values().any(value_has_bytes)
    }
    fn value_has_bytes(value: &PropertyValue) -> bool {
        match value {
            PropertyValue::Bytes(_) => true,
            PropertyValue::List(items) => items.iter().any(value_has_bytes),
            PropertyValue::Map(map) => map_has_bytes(map),
            PropertyValue::Archive(archive) => match &archive.content {
                ArchiveContent::Assets(assets) => map_has_bytes(assets),
                ArchiveContent::Elided | ArchiveContent::Path(_) | ArchiveContent::Uri(_) => false,
            },
            PropertyValue::Secret(secret) => value_has_bytes(secret.expose()),
            PropertyValue::Output(output) => output.value.as_ref().is_some_and(value_has_bytes),
            PropertyValue::Null
            | PropertyValue::Bool(_)
            | PropertyValue::Number(_)
            | PropertyValue::String(_)
            | PropertyValue::Asset(_)
            | PropertyValue::Resource(_)
            | PropertyValue::Unknown(_) => false,
        }
    }
    map_has_bytes(&resource.inputs)
        || map_has_bytes(&resource.outputs)
        || value_has_bytes(&resource.replacement_trigger)
}
