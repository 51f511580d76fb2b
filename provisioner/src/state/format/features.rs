//! What a reader must be able to do to read a checkpoint.

use std::collections::BTreeSet;

use super::FormatError;
use crate::state::resource::ResourceState;

/// A feature of a checkpoint; sorted by name.
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

/// Makes sure that all features are known. We keep what each of them stands for.
pub(super) fn check(features: &[String]) -> Result<(), FormatError> {
    let known = |name: &str| Feature::ALL.iter().any(|feature| feature.name() == name);
    match features.iter().find(|name| !known(name)) {
        Some(name) => Err(FormatError::UnknownFeature(name.clone())),
        None => Ok(()),
    }
}

/// Adds the features that an entry uses, its values aside.
pub(super) fn collect(features: &mut BTreeSet<Feature>, resource: &ResourceState) {
    let used = [
        (Feature::ExtensionParameterization, !resource.extension_ref.is_empty()),
        (Feature::Hooks, !resource.resource_hooks.is_empty()),
        (Feature::RefreshBeforeUpdate, resource.refresh_before_update),
        (Feature::ReplaceWith, !resource.replace_with.is_empty()),
        (Feature::Snippets, !resource.snippet_id.is_empty()),
        (Feature::Taint, resource.taint),
        (Feature::Views, resource.view_of.is_some()),
    ];
    features.extend(used.into_iter().filter(|(_, used)| *used).map(|(feature, _)| feature));
}
