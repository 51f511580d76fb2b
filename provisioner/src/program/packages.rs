//! Packages of the core types of a stack, and the plugins that serve them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::core_resources::CoreResources;
use crate::registry::packages::{CorePackage, Package};
use crate::registry::recipes::key_packages;
use bridge::host::Subpackage;
use bridge::message_text::MessageText;
use bridge::plugin::PluginVersion;
use config::diagnostics::{Code, Diagnostic, Span};
use config::{PluginDeclaration, Resource, ResourceImplementation, Stack};

const PACKAGE: Code = Code("package");

/// Facts about the plugins of a stack that are known once they are resolved, by the names of the plugins.
#[derive(Clone, Debug, Default)]
pub struct ResolvedPlugins {
    /// Versions of their packages: what the declarations of ranges, of `latest` and of branches mean.
    pub versions: BTreeMap<String, PluginVersion>,
    /// Packages that plugins serve with their parameters.
    pub subpackages: BTreeMap<String, Arc<Subpackage>>,
}

/// Package that core types of a stack use and that no plugin of the stack declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeclaredPackage {
    /// The package.
    pub package: CorePackage,
    /// Key of the first resource that uses it.
    pub resource: String,
    /// Core type of that resource.
    pub type_name: String,
    /// Position of that type.
    pub span: Span,
}

/// Returns the packages that core types of the stack use and that no plugin of the stack declares, in the order of the file.
pub(super) fn undeclared(stack: &Stack, core: &CoreResources) -> Vec<UndeclaredPackage> {
    let mut seen = BTreeSet::new();
    core_resources(stack, core)
        .filter(|(_, _, package)| !stack.plugins.iter().any(|plugin| plugin.package() == package.name))
        .filter(|(_, _, package)| seen.insert(package.name))
        .filter_map(|(resource, type_name, package)| {
            Some(UndeclaredPackage {
                package: CorePackage::of(package)?,
                resource: resource.key.clone(),
                type_name: type_name.to_owned(),
                span: resource.type_span,
            })
        })
        .collect()
}

/// Returns the resources of core types with their packages, in the order of the file.
fn core_resources<'s>(
    stack: &'s Stack,
    core: &'s CoreResources,
) -> impl Iterator<Item = (&'s Resource, &'s str, Package)> {
    let declared: Vec<&Resource> = stack.declarations().map(|(_, resource)| resource).collect();
    core.packages.iter().filter_map(move |(index, package)| {
        let resource = declared.get(*index)?;
        match &resource.implementation {
            ResourceImplementation::Core { type_name } => Some((*resource, type_name.as_str(), *package)),
            ResourceImplementation::Plugin { .. } => None,
        }
    })
}

/// Returns the names of the plugins whose package types the program needs: plugins of plugin resources and functions, and enabled
/// plugins that are configured, unless a core type needs their package.
pub(super) fn plugins_with_package_types(stack: &Stack, core: &CoreResources) -> BTreeSet<String> {
    let core_packages = core_type_packages(stack, core);
    let is_configured = |declaration: &&PluginDeclaration| {
        let plugin = &declaration.plugin;
        plugin.enabled && !plugin.config.is_empty() && !core_packages.contains(declaration.package())
    };
    let plugins = plugins_in_use(stack).chain(stack.plugins.iter().filter(is_configured));
    plugins.map(|plugin| plugin.name().to_owned()).collect()
}

/// Returns the packages of the stack's plugin resources and functions.
pub(super) fn plugin_type_packages(stack: &Stack) -> BTreeSet<String> {
    plugins_in_use(stack).map(|plugin| plugin.package().to_owned()).collect()
}

/// Returns the plugins of resources and functions.
fn plugins_in_use(stack: &Stack) -> impl Iterator<Item = &PluginDeclaration> {
    let of_resources = stack.resources().filter_map(|(_, resource)| match resource.implementation {
        ResourceImplementation::Plugin { plugin, .. } => Some(plugin),
        ResourceImplementation::Core { .. } => None,
    });
    let called = stack.functions.iter().filter(|function| function.is_enabled);
    of_resources.chain(called.map(|function| function.plugin)).filter_map(|plugin| stack.plugins.get(plugin))
}

/// Returns the enabled plugins for children of components: each is the only enabled plugin of its package. Omits
/// packages that only core types need, because their plugins may have no configuration.
pub(super) fn plugins_for_children(stack: &Stack, core: &CoreResources) -> Vec<usize> {
    let (core_packages, used) = (core_type_packages(stack, core), plugin_type_packages(stack));
    let enabled = || stack.plugins.iter().enumerate().filter(|(_, plugin)| plugin.plugin.enabled);
    let is_only_plugin = |package: &str| enabled().filter(|(_, plugin)| plugin.package() == package).count() == 1;
    let is_core_only = |package: &str| core_packages.contains(package) && !used.contains(package);
    let serves = |plugin: &PluginDeclaration| is_only_plugin(plugin.package()) && !is_core_only(plugin.package());
    enabled().filter(|(_, plugin)| serves(plugin)).map(|(index, _)| index).collect()
}

/// Returns the packages that core types of the stack need, and the one that creates its key.
pub(super) fn core_type_packages(stack: &Stack, core: &CoreResources) -> BTreeSet<&'static str> {
    let key = stack.provisioner.secrets_provider.provisioned_key();
    let of_key = key.into_iter().flat_map(key_packages).map(|package| package.name);
    core_resources(stack, core).map(|(_, _, package)| package.name).chain(of_key).collect()
}

/// Checks the plugins that are declared for the packages of core types. Returns one error or warning per package, about the
/// first resource that needs it.
pub(super) fn check(stack: &Stack, core: &CoreResources) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    core_resources(stack, core)
        .filter(|(_, _, package)| seen.insert(package.name))
        .filter_map(|(resource, type_name, package)| check_package(stack, resource, type_name, package))
        .collect()
}

/// Checks the versions of plugins that are declared for the packages of core types without a stated one. Returns one warning per package.
pub(super) fn check_versions(
    stack: &Stack,
    core: &CoreResources,
    versions: &BTreeMap<String, PluginVersion>,
) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    core_resources(stack, core)
        .filter(|(_, _, package)| seen.insert(package.name))
        .filter_map(|(resource, _, package)| {
            let serves = |plugin: &&PluginDeclaration| plugin.plugin.enabled && plugin.package() == package.name;
            let plugin = stack.plugins.iter().find(serves)?;
            let resolved = versions.get(plugin.name()).filter(|_| plugin.plugin.source.stated_version().is_none())?;
            other_version(plugin, &format!("is version {resolved}"), resolved, resource, package)
        })
        .collect()
}

/// Checks the versions that resources and functions expect of plugins. Returns an error for each other one.
pub(super) fn check_expected_versions(stack: &Stack, versions: &BTreeMap<String, PluginVersion>) -> Vec<Diagnostic> {
    let of_resources = stack.resources().filter_map(|(_, resource)| match &resource.implementation {
        ResourceImplementation::Plugin { plugin, .. } => Some((*plugin, resource.options.version.as_ref()?)),
        ResourceImplementation::Core { .. } => None,
    });
    let of_functions =
        stack.functions.iter().filter_map(|function| Some((function.plugin, function.version.as_ref()?)));
    let check = |(plugin, (expected, span)): (usize, &(PluginVersion, Span))| {
        let plugin = &stack.plugins[plugin];
        let resolved = versions.get(plugin.name()).filter(|resolved| *resolved != expected)?;
        let summary =
            MessageText::new(format_args!("version {expected} is not that of the plugin {:?}", plugin.name()));
        let has = format!("the plugin is version {resolved}");
        Some(Diagnostic::error(PACKAGE, *span, summary).label(plugin.name_span, has))
    };
    of_resources.chain(of_functions).filter_map(check).collect()
}

/// Returns the warning about a plugin of another version than that of the core types; `None` if it is the same.
fn other_version(
    plugin: &PluginDeclaration,
    is: &str,
    found: &PluginVersion,
    resource: &Resource,
    package: Package,
) -> Option<Diagnostic> {
    let (name, version) = (package.name, package.version()?);
    if found.to_string() == version {
        return None;
    }
    let summary = MessageText::new(format_args!(
        "the plugin {:?} {is}, but the core types are written for version {version} of the package {name:?}",
        plugin.name()
    ));
    Some(
        Diagnostic::warning(PACKAGE, plugin.name_span, summary)
            .label(resource.type_span, "this type uses it")
            .help(format_args!("declare version {version}, or remove the declaration, so that it is used")),
    )
}

fn check_package(stack: &Stack, resource: &Resource, type_name: &str, package: Package) -> Option<Diagnostic> {
    let (name, version) = (package.name, package.version()?);
    let declared: Vec<&PluginDeclaration> = stack.plugins.iter().filter(|plugin| plugin.package() == name).collect();
    let enabled: Vec<&PluginDeclaration> = declared.iter().copied().filter(|plugin| plugin.plugin.enabled).collect();
    let error = |summary: MessageText| Diagnostic::error(PACKAGE, resource.type_span, summary);
    match enabled[..] {
        [] => {
            let disabled = declared.first()?;
            let summary = MessageText::new(format_args!(
                "the core type {type_name:?} needs the package {name:?}, and no enabled plugin serves it"
            ));
            let help = MessageText::new(format_args!(
                "set `enabled: true` to use it, or remove it, so that version {version} is used"
            ));
            Some(error(summary).label(disabled.name_span, "this plugin is disabled").help(help))
        }
        [plugin] => {
            let stated = plugin.plugin.source.stated_version()?;
            other_version(plugin, &format!("is declared with version {stated}"), &stated, resource, package)
        }
        [first, ..] => {
            let names: Vec<&str> = enabled.iter().map(|plugin| plugin.name()).collect();
            let summary = MessageText::new(format_args!(
                "several plugins serve the package {name:?} of the core type {type_name:?}"
            ));
            Some(
                error(summary)
                    .label(first.name_span, "one of them")
                    .help(format_args!("enable only one of {}: a core type cannot select a plugin", names.join(", "))),
            )
        }
    }
}
