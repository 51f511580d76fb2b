//! Check of references against the outputs that the schemas of packages have, before any resource is registered.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::TypeInfo;
use config::Stack;
use config::diagnostics::{Code, Diagnostic};
use config::graph::references;
use config::tree::Reference;

use super::goals;
use super::types::ResolvedType;

/// Outputs that each resource has, although no schema has them.
const GENERAL_OUTPUTS: [&str; 2] = ["id", "urn"];
/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Returns the errors of references to outputs that the types of the resources do not have. `types` are the types of the
/// resources, in the order of [`Stack::resources`]; `has_recorded_output` returns true if the state of the resource with a
/// name has an output.
///
/// A provider may return an output that its schema lacks, so a recorded output is accepted. Types without a schema and
/// components, whose plugins decide about their outputs, are not checked.
pub(super) fn check(
    stack: &Stack,
    types: &[Option<Arc<ResolvedType>>],
    has_recorded_output: impl Fn(&str, &str) -> bool,
) -> Vec<Diagnostic> {
    let resources = || stack.resources().zip(types);
    let by_key: BTreeMap<_, _> = resources()
        .map(|((environment, resource), resolved)| {
            ((environment.name.as_str(), resource.key.as_str()), (environment, resource, resolved))
        })
        .collect();
    let of_resources = resources().flat_map(|((environment, resource), _)| {
        let found = references(&resource.config).into_iter();
        found.map(|reference| (reference, by_key.get(&(environment.name.as_str(), reference.resource.as_str()))))
    });
    let of_outputs = stack.outputs.iter().flat_map(|output| references(&output.value)).map(|reference| {
        let target = match &reference.environment {
            Some(environment) => by_key.get(&(environment.as_str(), reference.resource.as_str())),
            None => by_key.iter().find(|((_, key), _)| *key == reference.resource).map(|(_, target)| target),
        };
        (reference, target)
    });
    let unknown = of_resources.chain(of_outputs).filter_map(|(reference, target)| {
        let (environment, resource, resolved) = target?;
        let is_recorded =
            |output: &str| has_recorded_output(&goals::resource_name(resource, &environment.name), output);
        unknown_output(reference, resolved.as_ref()?, is_recorded)
    });
    unknown.collect()
}

fn unknown_output(
    reference: &Reference,
    resolved: &ResolvedType,
    is_recorded: impl Fn(&str) -> bool,
) -> Option<Diagnostic> {
    let TypeInfo { outputs, is_component, .. } = resolved.info.as_ref()?;
    let output = reference.path[0].as_str();
    let is_known = GENERAL_OUTPUTS.contains(&output) || outputs.iter().any(|known| known == output);
    if *is_component || outputs.is_empty() || is_known || is_recorded(output) {
        return None;
    }
    let summary = format!("resource {:?} has no output {output:?}", reference.resource);
    let more = if outputs.len() > MAX_NAMES { ", …" } else { "" };
    let first = outputs[..outputs.len().min(MAX_NAMES)].join(", ");
    let diagnostic = Diagnostic::error(Code("unknown-output"), reference.span, summary)
        .detail(format!("the schema of the type {} has no such output", resolved.token))
        .did_you_mean(output, outputs.iter().map(String::as_str).chain(GENERAL_OUTPUTS));
    let has_suggestion = !diagnostic.help.is_empty();
    Some(if has_suggestion { diagnostic } else { diagnostic.help(format!("its outputs are {first}{more}")) })
}
