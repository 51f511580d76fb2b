//! Check of plugin resources against the schemas of their packages, before a run changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{InputInfo, NestedObjects, PackageTypes, TypeInfo, expand_index_module};
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::tree::{Entry, Node, Value};
use config::{Resource, ResourceImplementation, Stack};
use engine::events::{Message, Severity};
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::urn::TypeToken;

use super::option_check::CheckedOptions;
use super::schema_findings::{SchemaFindings, SchemaWarning, first_names};
use super::value_check::CheckedValue;
use super::{positions, types};

const TYPE_CASE: Code = Code("type-case");
const UNKNOWN_TYPE: Code = Code("unknown-resource-type");
const UNKNOWN_PROPERTY: Code = Code("unknown-property");
const UNKNOWN_VALUE: Code = Code("unknown-value");

/// Checks the types, the properties and the options of all plugin resources, also the properties of objects, and the configurations
/// of the plugins. Where a plugin has no schema, only scalars whose reading may surprise are reported. `types` are the types of the
/// packages, by name of the plugin.
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
        let warning = |text: MessageText| Message {
            source: Some(positions::resource_ref(stack.plugins.len(), index)),
            ..Message::new(Severity::Warning, text)
        };
        let unchecked = CheckedValue { subject: None, checks_scalars: true, warning: &warning };
        let Some(types) = types.get(plugin).filter(|types| types.has_resources()) else {
            unchecked.check(&resource.config, &PropertyPath::default(), None, &mut findings);
            continue;
        };
        if let Some(right) = &resolved.right_case {
            let text = MessageText::new(format_args!(
                "the schema of plugin {plugin} spells the type {type_text:?} as {right:?}"
            ));
            let message =
                Message { hint: Some(MessageText::new(format_args!("write `type: {right}`"))), ..warning(text) };
            findings.warnings.push(SchemaWarning { code: TYPE_CASE, message });
        }
        match &resolved.info {
            // A schema that only marks a component may omit its properties.
            Some(info) if info.inputs.is_empty() && info.outputs.is_empty() => {
                unchecked.check(&resource.config, &PropertyPath::default(), None, &mut findings);
            }
            Some(info) => {
                let short = TypeToken::new(&resolved.token).short_form().into_owned();
                let subject = format!("the type {short}");
                let subject = subject.as_str();
                let checked = CheckedType { subject, noun: "property", info, types };
                let values = CheckedValue { subject: Some(subject), ..unchecked };
                let mut check = PropertyCheck { checked, values, findings: &mut findings };
                check.check(&resource.config, &PropertyPath::default(), &info.inputs);
                findings.errors.extend(CheckedOptions { subject, info, types }.errors(&resource.options));
            }
            None if is_in_unknown_module(type_text, types) => {
                let text = MessageText::new(format_args!(
                    "the schema of plugin {plugin} has no type {type_text:?}; its properties are not checked"
                ));
                let message = Message { hint: namesake_hint(type_text, types), ..warning(text) };
                findings.warnings.push(SchemaWarning { code: UNKNOWN_TYPE, message });
                unchecked.check(&resource.config, &PropertyPath::default(), None, &mut findings);
            }
            None => {
                let names = candidates.entry(plugin).or_insert_with(|| short_forms(types));
                findings.errors.push(unknown_type(resource, type_text, plugin, names));
            }
        }
    }
    check_configurations(stack, types, &mut findings);
    config::diagnostics::finish(&mut findings.errors);
    findings
}

/// Checks the configurations of the enabled plugins. A schema that describes no configuration may be incomplete.
fn check_configurations(stack: &Stack, types: &BTreeMap<String, PackageTypes>, findings: &mut SchemaFindings) {
    for (index, declaration) in stack.plugins.iter().enumerate().filter(|(_, declaration)| declaration.plugin.enabled) {
        let Some(types) = types.get(declaration.name()) else { continue };
        let token = TypeToken::provider(declaration.package());
        let Some(info) = types.get(token.as_str()).filter(|info| !info.inputs.is_empty()) else { continue };
        let warning = |text: MessageText| Message {
            source: Some(positions::plugin_ref(index)),
            ..Message::new(Severity::Warning, text)
        };
        let subject = format!("the configuration of package {}", declaration.package());
        let checked = CheckedType { subject: &subject, noun: "property", info: &info, types };
        let values = CheckedValue { subject: Some(subject.as_str()), checks_scalars: false, warning: &warning };
        let mut check = PropertyCheck { checked, values, findings };
        check.check(&declaration.config, &PropertyPath::default(), &info.inputs);
    }
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

/// Returns the hint that names the only type of the schema with the last segment of a text, which has another module.
fn namesake_hint(text: &str, types: &PackageTypes) -> Option<MessageText> {
    let name = |token: &str| token.rsplit_once(':').map(|(_, name)| name.to_owned());
    let mut namesakes = types.tokens().filter(|token| name(token) == name(text));
    let namesake = namesakes.next().filter(|_| namesakes.next().is_none())?;
    Some(MessageText::new(format_args!("did you mean `{}`?", TypeToken::new(namesake).short_form())))
}

/// Returns the short form of each type, for suggestions.
fn short_forms(types: &PackageTypes) -> Arc<[String]> {
    types.tokens().map(|token| TypeToken::new(token).short_form().into_owned()).collect()
}

fn unknown_type(resource: &Resource, text: &str, plugin: &str, names: &Arc<[String]>) -> Diagnostic {
    let summary = MessageText::new(format_args!(
        "unknown resource type {text:?}: the schema of plugin {plugin} has no such type"
    ));
    let short = TypeToken::new(text).short_form().into_owned();
    Diagnostic::error(UNKNOWN_TYPE, resource.type_span, summary)
        .did_you_mean_one_of(&short, names)
        .help("`sc schema-gen` writes a list of the types of the plugins")
}

/// Type of a resource or a provider, or a function, with the types of its package.
#[derive(Clone, Copy)]
pub(super) struct CheckedType<'t> {
    /// Words for the type in messages.
    pub(super) subject: &'t str,
    /// Word for one of its inputs: a property or an argument.
    pub(super) noun: &'t str,
    pub(super) info: &'t TypeInfo,
    pub(super) types: &'t PackageTypes,
}

/// Check of the properties of one resource or provider, or of the arguments of a function.
pub(super) struct PropertyCheck<'t, 'f> {
    pub(super) checked: CheckedType<'t>,
    pub(super) values: CheckedValue<'t>,
    pub(super) findings: &'f mut SchemaFindings,
}

impl PropertyCheck<'_, '_> {
    /// Checks the entries of a mapping, which is the config of the resource or an object in it, at this path.
    pub(super) fn check(&mut self, mapping: &Node, path: &PropertyPath, known: &BTreeMap<String, InputInfo>) {
        for entry in mapping.as_mapping().into_iter().flatten() {
            let path = path.child(Element::Key(entry.key.clone()));
            let Some(property) = known.get(&entry.key) else {
                self.findings.errors.push(self.checked.unknown_property(entry, &path, known));
                continue;
            };
            if let Some(value) = unknown_enum_value(entry, property) {
                let subject = self.checked.subject;
                let text = MessageText::new(format_args!(
                    "{subject} has no value {value:?} of the property {:?}",
                    path.to_string()
                ));
                let hint = MessageText::new(format_args!(
                    "the schema has {}",
                    first_names(property.enum_values.iter().map(ToString::to_string))
                ));
                let property = Some(path.to_string());
                let message = Message { property, hint: Some(hint), ..(self.values.warning)(text) };
                self.findings.warnings.push(SchemaWarning { code: UNKNOWN_VALUE, message });
            }
            if let Some(nested) = &property.nested {
                self.check_nested(&entry.value, &path, nested);
            }
            if property.nested.is_none() || property.kind.is_some() {
                self.values.check(&entry.value, &path, property.kind.as_ref(), self.findings);
            }
        }
    }

    /// Checks the objects in a value. A value of another kind is left to the provider, which may accept it.
    fn check_nested(&mut self, value: &Node, path: &PropertyPath, nested: &NestedObjects) {
        match nested {
            NestedObjects::Object(token) => {
                if let Some(object) = self.checked.types.object(token) {
                    self.check(value, path, &object.properties);
                }
            }
            NestedObjects::List(items) => {
                for (index, item) in value.as_sequence().into_iter().flatten().enumerate() {
                    self.check_nested(item, &path.child(Element::Index(index)), items);
                }
            }
            NestedObjects::Map(values) => {
                for entry in value.as_mapping().into_iter().flatten() {
                    self.check_nested(&entry.value, &path.child(Element::Key(entry.key.clone())), values);
                }
            }
        }
    }
}

impl CheckedType<'_> {
    fn unknown_property(self, entry: &Entry, path: &PropertyPath, known: &BTreeMap<String, InputInfo>) -> Diagnostic {
        let is_first = path.elements().len() == 1;
        let noun = if is_first { self.noun } else { "property" };
        let summary = MessageText::new(format_args!("{} has no {noun} {:?}", self.subject, path.to_string()));
        let unknown = Diagnostic::error(UNKNOWN_PROPERTY, entry.key_span, summary);
        if is_first && self.info.outputs.contains_key(&entry.key) {
            return unknown.help(match self.noun {
                "argument" => "it is a result of the function",
                _ => "it is an output, which the provider computes",
            });
        }
        let names: Arc<[String]> = known.keys().cloned().collect();
        let unknown = unknown.did_you_mean_one_of(&entry.key, &names);
        if known.is_empty() {
            return unknown.help(if self.noun == "argument" { "it has no arguments" } else { "it has no properties" });
        }
        let of = if is_first { "it has" } else { "the object has" };
        unknown.help(format_args!("{of} {}", first_names(known.keys().cloned())))
    }
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
