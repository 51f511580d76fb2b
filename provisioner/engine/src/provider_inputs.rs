//! The inputs of provider resources that concern the engine alone.

use pulumi_proto::property::PropertyMap;

/// Input of a provider resource that holds what concerns the engine alone. Never sent to a plugin.
pub(crate) const INTERNAL_KEY: &str = "__internal";
/// Input of a provider resource that holds the version of its package.
pub(crate) const VERSION_KEY: &str = "version";

/// The configuration as plugins see it.
pub(crate) fn visible(inputs: &PropertyMap) -> PropertyMap {
    inputs.iter().filter(|(key, _)| *key != INTERNAL_KEY).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The package that Pulumi's engine itself serves. Of it, only the function that looks up a resource is served here.
pub const BUILT_IN: &str = "pulumi";
