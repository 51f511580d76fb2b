//! Check of functions against the schemas of their packages, before a run changes anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{PackageTypes, TypeInfo};
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::values::evaluate_constant;
use config::{Function, Stack};
use engine::events::{Message, Severity};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::urn::TypeToken;

use super::schema_findings::{SchemaFindings, SchemaWarning};
use super::type_check::{CheckedType, PropertyCheck};
use super::types::ResolvedType;
use super::value_check::CheckedValue;
use super::{positions, types};

const FUNCTION_CASE: Code = Code("function-case");
const UNKNOWN_FUNCTION: Code = Code("unknown-function");
const MISSING_ARGUMENT: Code = Code("missing-argument");

/// Checks the names and the arguments of all functions that are called. Where a plugin has no schema, only scalars whose reading may surprise
/// are reported. `types` are the types of the packages, by name of the plugin.
pub(super) fn check(stack: &Stack, types: &BTreeMap<String, PackageTypes>, findings: &mut SchemaFindings) {
    let resolved = types::resolve_functions(stack, types);
    let functions = stack.functions.iter().zip(&resolved).enumerate();
    for (index, (function, resolved)) in functions.filter(|(_, (function, _))| function.is_enabled) {
        let Some(plugin) = stack.plugins.get(function.plugin).map(config::PluginDeclaration::name) else { continue };
        let warning = |text: MessageText| Message {
            source: Some(positions::function_ref(stack, index)),
            ..Message::new(Severity::Warning, text)
        };
        let unchecked = CheckedValue { subject: None, checks_scalars: true, warning: &warning };
        let is_described = |types: &&PackageTypes| types.has_resources() || types.function_tokens().next().is_some();
        let Some(types) = types.get(plugin).filter(is_described) else {
            unchecked.check(&function.arguments, &PropertyPath::default(), None, findings);
            continue;
        };
        if let Some(right) = &resolved.right_case {
            let text = MessageText::new(format_args!(
                "the schema of plugin {plugin} spells the function {:?} as {right:?}",
                function.token_text
            ));
            let hint = Some(MessageText::new(format_args!("write `function: {right}`")));
            findings.warnings.push(SchemaWarning { code: FUNCTION_CASE, message: Message { hint, ..warning(text) } });
        }
        match &resolved.info {
            Some(info) => check_arguments(function, (resolved, info), types, unchecked, findings),
            None => findings.errors.push(unknown_function(function, plugin, types)),
        }
    }
}

fn check_arguments(
    function: &Function,
    (resolved, info): (&ResolvedType, &TypeInfo),
    types: &PackageTypes,
    unchecked: CheckedValue<'_>,
    findings: &mut SchemaFindings,
) {
    let subject = format!("the function {}", TypeToken::new(&resolved.token).short_form());
    let subject = subject.as_str();
    let checked = CheckedType { subject, noun: "argument", info, types };
    let values = CheckedValue { subject: Some(subject), ..unchecked };
    PropertyCheck { checked, values, findings }.check(&function.arguments, &PropertyPath::default(), &info.inputs);
    let argument = |name: &str| function.arguments.as_mapping().and_then(|arguments| arguments.get(name));
    let has = |name: &str| argument(name).is_some_and(|value| evaluate_constant(value) != PropertyValue::Null);
    let missing: Vec<&str> = info
        .inputs
        .iter()
        .filter(|(name, input)| input.is_required && !has(name))
        .map(|(name, _)| name.as_str())
        .collect();
    if !missing.is_empty() {
        let summary = match missing[..] {
            [one] => format!("{subject} needs the argument {one:?}"),
            [..] => format!("{subject} needs the arguments {}", missing.join(", ")),
        };
        let error = Diagnostic::error(MISSING_ARGUMENT, function.name_span, summary);
        findings.errors.push(error.help(format_args!("write `arguments: {{ {}: … }}`", missing.join(": …, "))));
    }
}

fn unknown_function(function: &Function, plugin: &str, types: &PackageTypes) -> Diagnostic {
    let text = &function.token_text;
    let summary =
        MessageText::new(format_args!("unknown function {text:?}: the schema of plugin {plugin} has no such function"));
    let names: Arc<[String]> =
        types.function_tokens().map(|token| TypeToken::new(token).short_form().into_owned()).collect();
    let short = TypeToken::new(text).short_form().into_owned();
    let error = Diagnostic::error(UNKNOWN_FUNCTION, function.token_span, summary).did_you_mean_one_of(&short, &names);
    match types.resolve(text) {
        Some(_) => error.help("it is the type of a resource"),
        None if names.is_empty() => error.help("the schema has no functions"),
        None => error,
    }
}
