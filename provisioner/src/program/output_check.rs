//! Check of references against the outputs that the schemas of packages have, before any resource is registered.

use bridge::host::TypeInfo;
use config::diagnostics::{Code, Diagnostic};
use config::tree::Reference;
use engine::Registrar;

use super::types::ResolvedType;

/// Outputs that each resource has, although no schema has them.
const GENERAL_OUTPUTS: [&str; 2] = ["id", "urn"];
/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Returns the error of a reference to an output that the type does not have. `name` is the name of the resource in the
/// state.
///
/// A provider may return an output that its schema lacks, so a recorded output is accepted. Types without a schema and
/// components, whose plugins decide about their outputs, are not checked.
pub(super) fn unknown_output(
    reference: &Reference,
    name: &str,
    resolved: &ResolvedType,
    registrar: &dyn Registrar,
) -> Option<Diagnostic> {
    let TypeInfo { outputs, is_component, .. } = resolved.info.as_ref()?;
    let output = reference.path[0].as_str();
    let is_known = GENERAL_OUTPUTS.contains(&output) || outputs.iter().any(|known| known == output);
    if *is_component || outputs.is_empty() || is_known || registrar.has_recorded_output(name, output) {
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
