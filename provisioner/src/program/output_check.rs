//! Check of references against the outputs that the schemas of packages have, before any resource is registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::NestedObjects;
use bridge::message_text::MessageText;
use config::Stack;
use config::diagnostics::{Code, Diagnostic};
use config::graph::references;
use config::output_part::has_output;
use config::tree::{Reference, ReferenceKind};
use pulumi_proto::property::PropertyValue;

use super::goals;
use super::types::ResolvedType;

/// Outputs that each resource has, although no schema has them.
const GENERAL_OUTPUTS: [&str; 2] = ["id", "urn"];
/// Step to the first item of a list.
const FIRST_ITEM: &str = "[0]";
/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Returns the errors of references to outputs that the types of the resources do not have, and to results that the functions do not have.
/// `types` are the types of the resources, in the order of [`Stack::resources`]; `of_functions` the functions, in the order of
/// [`Stack::functions`]; `recorded_output` returns the output that the state of the resource
/// with a name has.
///
/// A provider may return an output that its schema lacks, so a recorded output is accepted. Types without outputs in a
/// schema are not checked.
pub(super) fn check(
    stack: &Stack,
    types: &[Option<Arc<ResolvedType>>],
    of_functions: &[Arc<ResolvedType>],
    recorded_output: impl Fn(&str, &str) -> Option<PropertyValue>,
) -> Vec<Diagnostic> {
    let resources = || stack.resources().zip(types);
    let by_key: BTreeMap<_, _> = resources()
        .map(|((environment, resource), resolved)| {
            ((environment.name.as_str(), resource.key.as_str()), (environment, resource, resolved))
        })
        .collect();
    let functions: BTreeMap<_, _> = stack
        .functions
        .iter()
        .zip(of_functions)
        .map(|(function, resolved)| ((function.environment.as_deref(), function.name.as_str()), resolved))
        .collect();
    let of_resources = resources().flat_map(|((environment, resource), _)| {
        references(&resource.config).into_iter().map(|reference| (reference, Some(environment.name.as_str())))
    });
    let of_arguments = stack.functions.iter().flat_map(|function| {
        references(&function.arguments).into_iter().map(|reference| (reference, function.environment.as_deref()))
    });
    let in_outputs = stack.outputs.iter().flat_map(|output| references(&output.value));
    let all = of_resources.chain(of_arguments).chain(in_outputs.map(|reference| (reference, None)));
    let unknown = all.filter_map(|(reference, own)| {
        if reference.kind == ReferenceKind::Function {
            let resolved = functions.get(&(reference.environment.as_deref(), reference.resource.as_str()))?;
            return unknown_output(reference, resolved, |_| None);
        }
        let target = match reference.environment.as_deref().or(own) {
            Some(environment) => by_key.get(&(environment, reference.resource.as_str())),
            None => by_key.iter().find(|((_, key), _)| *key == reference.resource).map(|(_, target)| target),
        };
        let (environment, resource, resolved) = target?;
        let recorded = |output: &str| recorded_output(&goals::resource_name(resource, &environment.name), output);
        unknown_output(reference, resolved.as_ref()?, recorded)
    });
    unknown.collect()
}

/// Returns the error of a reference to an output, or to a part of it, that the schema lacks.
fn unknown_output(
    reference: &Reference,
    resolved: &ResolvedType,
    recorded: impl Fn(&str) -> Option<PropertyValue>,
) -> Option<Diagnostic> {
    let outputs = &resolved.info.as_ref().filter(|info| !info.outputs.is_empty())?.outputs;
    let (first, rest) = reference.path.split_first()?;
    let is_function = reference.kind == ReferenceKind::Function;
    let general = if is_function { &[][..] } else { &GENERAL_OUTPUTS };
    let (unknown, known) = match outputs.get(first) {
        Some(nested) => unknown_part(resolved, nested.as_ref()?, rest)?,
        None if general.contains(&first.as_str()) => return None,
        None => (first, outputs.keys().cloned().chain(general.iter().map(|name| (*name).to_owned())).collect()),
    };
    if recorded(first).is_some_and(|value| has_output(&value, rest)) {
        return None;
    }
    let (what, output, of_schema) = match is_function {
        true => ("function", "result", "function"),
        false => ("resource", "output", "type"),
    };
    let summary =
        MessageText::new(format_args!("{what} {:?} has no {output} {:?}", reference.resource, reference.path_text()));
    let diagnostic = Diagnostic::error(Code("unknown-output"), reference.span, summary)
        .detail(format_args!("the schema of the {of_schema} {} has no such {output}", resolved.token))
        .did_you_mean(unknown, known.iter().map(String::as_str));
    let has_suggestion = !diagnostic.help.is_empty();
    let of = if std::ptr::eq(unknown, first) {
        if is_function { "its results are" } else { "its outputs are" }
    } else if known == [FIRST_ITEM] {
        "the list has items, such as"
    } else {
        "the object has"
    };
    let (more, shown) = if known.len() > MAX_NAMES { (", …", &known[..MAX_NAMES]) } else { ("", &known[..]) };
    Some(if has_suggestion { diagnostic } else { diagnostic.help(format_args!("{of} {}{more}", shown.join(", "))) })
}

/// Returns the first name of a path that the object types in a value lack, with the names that the object type has.
fn unknown_part<'p>(
    resolved: &ResolvedType,
    nested: &NestedObjects,
    path: &'p [String],
) -> Option<(&'p String, Vec<String>)> {
    let (first, rest) = path.split_first()?;
    match nested {
        NestedObjects::Object(token) => {
            let object = resolved.object(token)?;
            match object.properties.get(first) {
                Some(property) => unknown_part(resolved, property.nested.as_ref()?, rest),
                None => Some((first, object.properties.keys().cloned().collect())),
            }
        }
        NestedObjects::List(_) if first.parse::<usize>().is_err() => Some((first, vec![FIRST_ITEM.to_owned()])),
        NestedObjects::List(elements) | NestedObjects::Map(elements) => unknown_part(resolved, elements, rest),
    }
}
