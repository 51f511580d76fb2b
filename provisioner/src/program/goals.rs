//! Goals of a stack: root stack resource, providers of plugins, plugin resources.

use std::sync::Arc;

use bridge::host::TypeInfo;
use bridge::plugin::{GithubReleaseSource, PluginSource};
use bridge::provider::{Alias, AliasParent};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, ROOT_STACK_TYPE, TypeToken, Urn};

use super::packages::ResolvedPlugins;
use super::positions;
use super::references::ReferencedResources;
use crate::registry::recipe::{Inputs, ResolvedValue};
use config::diagnostics::{Diagnostic, Span};
use config::tree::Node;
use config::{AliasOption, AliasParentOption, PluginDeclaration, Resource, Stack};
use engine::Goal;

/// Returns the goal of the root stack resource, the parent of all other resources.
pub(super) fn root(stack: &Stack) -> Goal {
    let name = format!("{}-{}", stack.project, stack.name);
    let mut goal = Goal::component(TypeToken::new(ROOT_STACK_TYPE), name, PropertyMap::new());
    goal.source = Some(positions::ROOT);
    goal
}

/// Returns the goal of a plugin's provider resource. The deployment adds version and download URL to its inputs, and what its
/// parameters mean. `resolved` are the plugins once they are resolved.
pub(super) fn provider(
    declaration: &PluginDeclaration,
    index: usize,
    root: &Urn,
    resolved: Option<&ResolvedPlugins>,
) -> Goal {
    let plugin = &declaration.plugin;
    let mut inputs = Inputs::default();
    for (name, value) in &plugin.config {
        inputs = inputs.set(name, ResolvedValue::known(value.clone()));
    }
    let mut goal = inputs.into_goal(TypeToken::provider(declaration.package()), declaration.name(), &[]);
    set_version(&mut goal, declaration, resolved);
    goal.parent = Some(root.clone());
    goal.source = Some(positions::plugin_ref(index));
    goal
}

/// Sets version, download URL and parameters of the goal of a provider resource: of the resolved plugin, else of what its declaration
/// states. What parameters mean, only the plugin says.
pub(super) fn set_version(goal: &mut Goal, declaration: &PluginDeclaration, resolved: Option<&ResolvedPlugins>) {
    let (source, name) = (&declaration.plugin.source, declaration.name());
    if declaration.plugin.parameters.is_some() {
        if let Some(subpackage) = resolved.and_then(|resolved| resolved.subpackages.get(name)) {
            goal.version = Some(subpackage.version.clone());
            goal.plugin_download_url = download_url(source, &subpackage.base_name);
            goal.subpackage = Some(Arc::clone(subpackage));
        }
        return;
    }
    let version = resolved.and_then(|resolved| resolved.versions.get(name).cloned());
    if let Some(version) = version.or_else(|| source.stated_version()) {
        goal.version = Some(version.to_string());
        goal.plugin_download_url = download_url(source, declaration.package());
    }
}

/// Returns the plugin download URL for Pulumi's tools; `None` for Pulumi's default, and for a source that these tools do
/// not download from.
fn download_url(source: &PluginSource, package: &str) -> Option<String> {
    match source {
        PluginSource::Local(_) | PluginSource::Git(_) | PluginSource::Installed(_) => None,
        PluginSource::GithubRelease(release) => release_url(release, package),
    }
}

fn release_url(release: &GithubReleaseSource, package: &str) -> Option<String> {
    let without_scheme = release.repository.strip_prefix("https://");
    let (host, path) = match without_scheme.and_then(|rest| rest.split_once('/')) {
        Some((host, path)) => (Some(host), path),
        None => (None, release.repository.as_str()),
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let api = release.api_url.as_deref().and_then(|url| url.split("://").nth(1)?.split('/').next());
    let api = api.or(host.filter(|host| *host != "github.com")).unwrap_or("api.github.com");
    let is_default = api == "api.github.com" && path == format!("pulumi/pulumi-{package}");
    (!is_default).then(|| format!("github://{api}/{path}"))
}

/// Returns the name of a plugin resource in the state.
pub(super) fn resource_name(resource: &Resource, environment: &str) -> String {
    format!("{}--{environment}", resource.key)
}

/// Returns the goal that announces a plugin resource before its references are known.
pub(super) fn announced(resource: &Resource, token: &str, environment: &str, root: &Urn) -> Goal {
    let mut goal = Goal::custom(TypeToken::new(token), resource_name(resource, environment), PropertyMap::new());
    goal.parent = Some(root.clone());
    goal.protect = resource.options.protect;
    goal.retain_on_delete = resource.options.retain_on_delete;
    goal.aliases = resource.options.aliases.iter().map(alias).collect();
    goal.import_id = import_id(resource);
    goal
}

fn import_id(resource: &Resource) -> Option<ResourceId> {
    resource.options.import.as_deref().and_then(ResourceId::new)
}

/// Plugin resource whose provider is registered.
pub(super) struct PluginResource<'r> {
    pub(super) resource: &'r Resource,
    /// `config` of the resource, with the texts that its schema has.
    pub(super) config: &'r Node,
    pub(super) token: &'r str,
    pub(super) environment: &'r str,
    pub(super) root: &'r Urn,
    pub(super) provider: ProviderReference,
    pub(super) depends_on: &'r [Urn],
}

/// Returns the URNs of the resources that an option names.
pub(super) fn named<'n>(
    keys: impl IntoIterator<Item = &'n (String, Span)>,
    environment: &str,
    referenced: &ReferencedResources,
) -> Vec<Urn> {
    let resources = keys.into_iter().filter_map(|(key, _)| referenced.get(environment, key));
    resources.flat_map(|resource| resource.urns()).collect()
}

/// Returns texts without their positions.
pub(super) fn texts(positioned: &[(String, Span)]) -> Vec<String> {
    positioned.iter().map(|(text, _)| text.clone()).collect()
}

impl PluginResource<'_> {
    /// Returns the goal of the resource, with resolved references.
    pub(super) fn goal(self, referenced: &ReferencedResources) -> Result<Goal, Box<Diagnostic>> {
        let mut inputs = Inputs::default();
        for entry in self.config.as_mapping().into_iter().flatten() {
            inputs = inputs.set(&entry.key, referenced.evaluate(&entry.value, Some(self.environment))?);
        }
        let options = &self.resource.options;
        let name = resource_name(self.resource, self.environment);
        let mut goal = inputs.into_goal(TypeToken::new(self.token), &name, self.depends_on);
        goal.parent = Some(self.root.clone());
        goal.provider = Some(self.provider);
        goal.protect = options.protect;
        goal.delete_before_replace = options.delete_before_replace;
        goal.retain_on_delete = options.retain_on_delete;
        goal.ignore_changes = texts(&options.ignore_changes);
        goal.replace_on_changes = texts(&options.replace_on_changes);
        if let Some(trigger) = &options.replacement_trigger {
            let trigger = referenced.evaluate(trigger, Some(self.environment))?.value;
            goal.replacement_trigger = Some(trigger).filter(|trigger| *trigger != PropertyValue::Null);
        }
        goal.replace_with = named(&options.replace_with, self.environment, referenced);
        goal.deleted_with = named(&options.deleted_with, self.environment, referenced).into_iter().next();
        goal.hide_diff = options.hide_diffs.clone();
        goal.additional_secret_outputs = texts(&options.additional_secret_outputs);
        goal.aliases = options.aliases.iter().map(alias).collect();
        goal.import_id = import_id(self.resource);
        goal.custom_timeouts = options.custom_timeouts;
        Ok(goal)
    }
}

/// Adds the constants, secret marks and options except aliases that the schema of the type specifies, as an SDK or language host does.
pub(super) fn apply_type_info(goal: &mut Goal, type_info: &TypeInfo) {
    let inputs = Arc::make_mut(&mut goal.inputs);
    for name in &type_info.secret_inputs {
        // An unknown value is not marked as secret.
        if let Some(value) = inputs.get_mut(name).filter(|value| !matches!(value, PropertyValue::Unknown(_))) {
            *value = PropertyValue::secret(std::mem::replace(value, PropertyValue::Null));
        }
    }
    for (name, value) in &type_info.constants {
        let constant = match value {
            serde_json::Value::Bool(value) => PropertyValue::Bool(*value),
            serde_json::Value::Number(value) => PropertyValue::Number(value.as_f64().unwrap_or_default()),
            serde_json::Value::String(value) => PropertyValue::from(value.as_str()),
            // Schemas have no constants of other types.
            serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => continue,
        };
        inputs.insert(name.clone(), constant);
        goal.property_dependencies.insert(name.clone(), Vec::new());
    }
    goal.additional_secret_outputs.extend(type_info.secret_outputs.iter().cloned());
    goal.replace_on_changes.extend(type_info.replace_on_changes.iter().cloned());
}

/// Returns the aliases of a resource that may be recorded under another type.
pub(super) fn type_aliases(former_types: &[String]) -> impl Iterator<Item = Alias> {
    former_types.iter().map(|former| Alias::Spec {
        name: None,
        type_token: Some(former.clone()),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    })
}

pub(super) fn alias(option: &AliasOption) -> Alias {
    match option {
        AliasOption::Urn(urn) => Alias::Urn(urn.clone()),
        AliasOption::Spec { name, type_token, stack, project, parent } => Alias::Spec {
            name: name.clone(),
            type_token: type_token.clone(),
            stack: stack.clone(),
            project: project.clone(),
            parent: match parent {
                AliasParentOption::Urn(parent) => AliasParent::Urn(parent.clone()),
                AliasParentOption::None => AliasParent::None,
                AliasParentOption::Same => AliasParent::Same,
            },
        },
    }
}

/// Adds a stack output, unless its value is null.
pub(super) fn insert_output(outputs: &mut PropertyMap, name: &str, value: PropertyValue) {
    if value != PropertyValue::Null {
        outputs.insert(name.to_owned(), value);
    }
}
