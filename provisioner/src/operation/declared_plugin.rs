//! Plugins of a run: their declarations with the inputs of Initialize.

use bridge::host::DeclaredPlugin;
use bridge::plugin::PluginConfig;
use bridge::provider::grpc::{AuthEntry, PluginInit};
use config::{PluginDeclaration, Stack, values};
use pulumi_proto::property::PropertyValue;

use crate::registry::recipes;

/// Returns the plugin of a package that no plugin of the stack declares.
pub(super) fn undeclared(config: PluginConfig, stack: &Stack) -> DeclaredPlugin {
    let init = PluginInit { project: stack.project.clone(), stack: stack.name.clone(), ..PluginInit::default() };
    declared(config, init)
}

/// Returns a plugin of a run. Provider resources of the packages of core types share instances: these providers pay no
/// attention to their provider resource.
pub(super) fn declared(config: PluginConfig, init: PluginInit) -> DeclaredPlugin {
    let shares_equal_configurations = recipes::package(config.package.as_str()).is_some();
    DeclaredPlugin { config, init, shares_equal_configurations }
}

/// Returns the input of a plugin's Initialize. It never includes the profile, which holds keys.
pub(super) fn plugin_init(plugin: &PluginDeclaration, project: &str, stack: &str) -> PluginInit {
    let map = |value: PropertyValue| match value {
        PropertyValue::Map(map) => map,
        _ => Default::default(),
    };
    let secrets = &plugin.secrets;
    PluginInit {
        project: project.to_owned(),
        stack: stack.to_owned(),
        secrets: secrets.secrets.iter().map(|(name, text)| (name.clone(), text.expose().to_owned())).collect(),
        auth: secrets
            .auth
            .iter()
            .map(|(name, auth)| {
                let fields = auth.config.iter().map(|(key, text)| (key.clone(), text.expose().into()));
                (name.clone(), AuthEntry { kind: auth.kind.as_str().to_owned(), config: fields.collect() })
            })
            .collect(),
        config: map(values::evaluate_constant(&plugin.config).without_wrappers()),
    }
}
