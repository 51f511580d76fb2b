//! Packages that the core types of a stack need, and the plugins that serve them.

use std::collections::BTreeSet;

use crate::registry::provision::{Package, ProvisionTable};
use config::diagnostics::{Code, Diagnostic};
use config::{PluginDeclaration, Resource, Stack, Target};

const PACKAGE: Code = Code("package");

/// Returns the resources of core types with their packages, in the order of the file.
fn core_resources<'s>(
    stack: &'s Stack,
    core: &'s ProvisionTable,
) -> impl Iterator<Item = (&'s Resource, &'s str, Package)> {
    stack.resources().filter_map(|(_, resource)| match &resource.target {
        Target::Core { type_name } => Some((resource, type_name.as_str(), core.get(type_name)?.package())),
        Target::Plugin { .. } => None,
    })
}

/// Returns the names of the plugins whose type facts a run needs: those of plugin resources, and enabled ones with a
/// configuration of their own, unless a core type needs their package.
pub(super) fn with_types(stack: &Stack, core: &ProvisionTable) -> BTreeSet<String> {
    let sources = of_core_types(stack, core);
    let is_configured = |declaration: &&PluginDeclaration| {
        let plugin = &declaration.plugin;
        plugin.enabled && !plugin.config.is_empty() && !sources.contains(declaration.package())
    };
    let plugins = plugins_of_resources(stack).chain(stack.plugins.iter().filter(is_configured));
    plugins.map(|plugin| plugin.name().to_owned()).collect()
}

/// Returns the packages of the stack's plugin resources.
pub(super) fn of_plugin_types(stack: &Stack) -> BTreeSet<String> {
    plugins_of_resources(stack).map(|plugin| plugin.package().to_owned()).collect()
}

fn plugins_of_resources(stack: &Stack) -> impl Iterator<Item = &PluginDeclaration> {
    stack.resources().filter_map(|(_, resource)| match resource.target {
        Target::Plugin { plugin, .. } => stack.plugins.get(plugin),
        Target::Core { .. } => None,
    })
}

/// Returns the enabled plugins that children of components use: each is the only enabled one of its package. Leaves out
/// packages that only core types need, as their plugins may have no configuration of their own.
pub(super) fn of_children(stack: &Stack, core: &ProvisionTable) -> Vec<usize> {
    let (sources, used) = (of_core_types(stack, core), of_plugin_types(stack));
    let enabled = || stack.plugins.iter().enumerate().filter(|(_, plugin)| plugin.plugin.enabled);
    let alone = |package: &str| enabled().filter(|(_, plugin)| plugin.package() == package).count() == 1;
    let is_source_only = |package: &str| sources.contains(package) && !used.contains(package);
    let serves = |plugin: &PluginDeclaration| alone(plugin.package()) && !is_source_only(plugin.package());
    enabled().filter(|(_, plugin)| serves(plugin)).map(|(index, _)| index).collect()
}

/// Returns the packages that core types of the stack need.
pub(super) fn of_core_types(stack: &Stack, core: &ProvisionTable) -> BTreeSet<&'static str> {
    core_resources(stack, core).map(|(_, _, package)| package.name).collect()
}

/// Returns the mistakes that keep plugins from serving core types, one per package, at the first resource that needs
/// it.
pub(super) fn check(stack: &Stack, core: &ProvisionTable) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    core_resources(stack, core)
        .filter(|(_, _, package)| seen.insert(package.name))
        .filter_map(|(resource, type_name, package)| check_package(stack, resource, type_name, package))
        .collect()
}

fn check_package(stack: &Stack, resource: &Resource, type_name: &str, package: Package) -> Option<Diagnostic> {
    let Package { name, version } = package;
    let declared: Vec<&PluginDeclaration> = stack.plugins.iter().filter(|plugin| plugin.package() == name).collect();
    let enabled: Vec<&PluginDeclaration> = declared.iter().copied().filter(|plugin| plugin.plugin.enabled).collect();
    let error = |summary: String| Diagnostic::error(PACKAGE, resource.type_span, summary);
    match enabled[..] {
        [] => {
            let missing = error(format!(
                "the core type {type_name:?} needs the package {name:?}, and no enabled plugin serves it"
            ));
            Some(match declared.first() {
                Some(disabled) => {
                    missing.also(disabled.name_span, "this plugin is disabled").help("set `enabled: true` to use it")
                }
                None => missing.help(format!(
                    "declare it in `plugins`: `name: {name}`, version {version} of pulumi/pulumi-{name}"
                )),
            })
        }
        [plugin] => {
            let wrong = plugin.plugin.source.version().filter(|declared| declared.to_string() != version)?;
            let summary = format!("the core type {type_name:?} needs version {version} of the package {name:?}");
            Some(error(summary).also(plugin.name_span, format!("the plugin is declared with version {wrong}")))
        }
        [first, ..] => {
            let names: Vec<&str> = enabled.iter().map(|plugin| plugin.name()).collect();
            let summary = format!("several plugins serve the package {name:?} of the core type {type_name:?}");
            Some(
                error(summary)
                    .also(first.name_span, "one of them")
                    .help(format!("leave one of {} enabled: a core type cannot choose", names.join(", "))),
            )
        }
    }
}
