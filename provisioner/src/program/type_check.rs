//! Check of plugin resources against the schemas of their packages, before a run changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{InputInfo, PackageTypes, TypeInfo, expand_index_module};
use config::diagnostics::{Code, Diagnostic};
use config::tree::{Entry, Value};
use config::{Resource, ResourceImplementation, Stack};
use engine::events::{Message, Severity};
use pulumi_proto::urn::TypeToken;

use super::{positions, types};

const UNKNOWN_TYPE: Code = Code("unknown-resource-type");
const UNKNOWN_PROPERTY: Code = Code("unknown-property");

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Differences between the plugin resources of a stack and the schemas of their packages.
#[derive(Debug, Default)]
pub struct SchemaFindings {
    /// Types and properties that the schemas lack.
    pub errors: Vec<Diagnostic>,
    /// Types and values that the schemas lack, but that a provider may accept.
    pub warnings: Vec<Message>,
}

/// Checks the types and the first level of the properties of all plugin resources. Checks no resource whose plugin has
/// no schema. `types` are the types of the packages, by name of the plugin.
///
/// A missing required property is left to the provider's Check, because the provider may have a default for it.
pub(super) fn check(stack: &Stack, types: &BTreeMap<String, PackageTypes>) -> SchemaFindings {
    let mut findings = SchemaFindings::default();
    // Many resources may have the same type.
    let mut candidates: BTreeMap<&str, Arc<[String]>> = BTreeMap::new();
    let resolved = types::resolve_all(stack, types);
    for (index, ((_, resource), resolved)) in stack.resources().zip(resolved).enumerate() {
        let (Some(resolved), ResourceImplementation::Plugin { type_text, plugin }) =
            (resolved, &resource.implementation)
        else {
            continue;
        };
        let Some(plugin) = stack.plugins.get(*plugin).map(config::PluginDeclaration::name) else { continue };
        let Some(types) = types.get(plugin).filter(|types| types.has_resources()) else { continue };
        let warning = |text: String| Message {
            source: Some(positions::resource_ref(stack.plugins.len(), index)),
            ..Message::new(Severity::Warning, text)
        };
        match &resolved.info {
            // A schema that only marks a component may omit its properties.
            Some(info) if info.inputs.is_empty() && info.outputs.is_empty() => {}
            Some(info) => check_properties(resource, &resolved.token, info, warning, &mut findings),
            None if is_in_unknown_module(type_text, types) => {
                let text =
                    format!("the schema of plugin {plugin} has no type {type_text:?}; its properties are not checked");
                findings.warnings.push(warning(text));
            }
            None => {
                let names = candidates.entry(plugin).or_insert_with(|| short_forms(types));
                findings.errors.push(unknown_type(resource, type_text, plugin, names));
            }
        }
    }
    config::diagnostics::finish(&mut findings.errors);
    findings
}

/// Returns true if a text is a type of three parts, and the schema has no type in its module: the plugin may serve types
/// that it learns of at run time, such as the custom resources of Kubernetes.
fn is_in_unknown_module(text: &str, types: &PackageTypes) -> bool {
    let modules = |token: &str| {
        let short = TypeToken::new(token).short_form().into_owned();
        [token, &*expand_index_module(&short)].map(|token| token.rsplit_once(':').map(|(module, _)| module.to_owned()))
    };
    let written = modules(text);
    text.matches(':').count() == 2
        && !types.tokens().any(|token| modules(token).iter().any(|module| written.contains(module)))
}

/// Returns the short form of each type, for suggestions.
fn short_forms(types: &PackageTypes) -> Arc<[String]> {
    types.tokens().map(|token| TypeToken::new(token).short_form().into_owned()).collect()
}

fn unknown_type(resource: &Resource, text: &str, plugin: &str, names: &Arc<[String]>) -> Diagnostic {
    let summary = format!("unknown resource type {text:?}: the schema of plugin {plugin} has no such type");
    let short = TypeToken::new(text).short_form().into_owned();
    Diagnostic::error(UNKNOWN_TYPE, resource.type_span, summary)
        .did_you_mean_one_of(&short, names)
        .help("`sc schema-gen` writes a list of the types of the plugins")
}

fn check_properties(
    resource: &Resource,
    token: &str,
    info: &TypeInfo,
    warning: impl Fn(String) -> Message,
    findings: &mut SchemaFindings,
) {
    let short = || TypeToken::new(token).short_form().into_owned();
    for entry in resource.config.as_mapping().into_iter().flatten() {
        match info.inputs.get(&entry.key) {
            None => findings.errors.push(unknown_property(entry, &short(), info)),
            Some(input) => {
                if let Some(value) = unknown_enum_value(entry, input) {
                    let text = format!("the type {} has no value {value:?} of the property {:?}", short(), entry.key);
                    let hint =
                        format!("the schema has {}", first_names(input.enum_values.iter().map(ToString::to_string)));
                    let property = Some(entry.key.clone());
                    findings.warnings.push(Message { property, hint: Some(hint), ..warning(text) });
                }
            }
        }
    }
}

fn unknown_property(entry: &Entry, short: &str, info: &TypeInfo) -> Diagnostic {
    let summary = format!("the type {short} has no property {:?}", entry.key);
    let unknown = Diagnostic::error(UNKNOWN_PROPERTY, entry.key_span, summary);
    if info.outputs.contains(&entry.key) {
        return unknown.help("it is an output, which the provider computes");
    }
    let inputs: Arc<[String]> = info.inputs.keys().cloned().collect();
    let unknown = unknown.did_you_mean_one_of(&entry.key, &inputs);
    if inputs.is_empty() {
        return unknown.help("it has no properties");
    }
    unknown.help(format!("it has {}", first_names(info.inputs.keys().cloned())))
}

/// Returns a constant value that the enum of the property lacks.
fn unknown_enum_value<'e>(entry: &'e Entry, input: &InputInfo) -> Option<&'e str> {
    let Value::Scalar(scalar) = &entry.value.value else { return None };
    let is_value = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => *text == scalar.text,
        serde_json::Value::Number(number) => scalar.text.parse().ok() == number.as_f64(),
        serde_json::Value::Bool(value) => scalar.text.parse() == Ok(*value),
        // Schemas have no such values.
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => false,
    };
    if entry.value.is_null() {
        return None;
    }
    (!input.enum_values.is_empty() && !input.enum_values.iter().any(is_value)).then_some(scalar.text.as_str())
}

/// Returns the first names, separated by commas, and the number of further ones.
fn first_names(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let shown = names.take(MAX_NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
