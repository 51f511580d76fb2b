//! Inputs of provider resources that only the engine uses.

use pulumi_proto::property::PropertyMap;

/// Input of a provider resource that contains the values for the engine alone. It is never sent to a plugin.
pub(crate) const INTERNAL_KEY: &str = "__internal";
/// Input of a provider resource that holds the version of its package.
pub(crate) const VERSION_KEY: &str = "version";

/// Returns the inputs without those for the engine alone: the configuration that plugins receive.
pub(crate) fn visible(inputs: &PropertyMap) -> PropertyMap {
    inputs.iter().filter(|(key, _)| *key != INTERNAL_KEY).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Package that Pulumi's engine itself serves. This engine serves only its function `getResource`.
pub const BUILT_IN: &str = "pulumi";
