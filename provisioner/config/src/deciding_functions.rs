//! Functions whose results are needed before a run, since they decide what it registers: those in `forEach` and `enabled`, and in the
//! `config` of plugins and the registrar.

use std::collections::BTreeSet;

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::function::Function;
use crate::graph::references;
use crate::plugins::PluginDeclaration;
use crate::stack_outputs::{DecidingReference, FunctionName};
use crate::tree::{Reference, ReferenceKind};

const CODE: Code = Code("deciding-function");

/// Returns the functions with these references, and those in their arguments: they are called before the run. Reports those that need
/// something of the run. The references are led to their functions.
pub(super) fn check(
    deciding: &[DecidingReference],
    functions: &[Function],
    plugins: &[PluginDeclaration],
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeSet<FunctionName> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&Reference> = deciding.iter().map(|deciding| &deciding.reference).collect();
    while let Some(reference) = waiting.pop() {
        let name = (reference.environment.clone(), reference.resource.clone());
        let is_it = |function: &&Function| (&function.environment, &function.name) == (&name.0, &name.1);
        let Some(function) = functions.iter().find(is_it).filter(|function| function.is_enabled) else { continue };
        if !found.insert(name) {
            continue;
        }
        let refused = |at, text: &str| {
            let summary =
                MessageText::new(format_args!("function {:?} is called before the run, and {text}", function.name));
            let error = Diagnostic::error(CODE, at, summary).label(reference.span, "its result is needed here");
            error.help("such a function has arguments that are known before the run, and waits for no resource")
        };
        if let Some((_, span)) = function.depends_on.first() {
            diagnostics.push(refused(*span, "`dependsOn` names a resource"));
        }
        for argument in references(&function.arguments) {
            match argument.kind {
                ReferenceKind::Function => waiting.push(argument),
                ReferenceKind::Resource => {
                    diagnostics.push(refused(argument.span, "an argument is an output of a resource"))
                }
            }
        }
    }
    report_own_plugins(deciding, functions, plugins, diagnostics);
    found
}

/// Reports functions in the `config` of the plugin that serves them: it has to be configured first.
fn report_own_plugins(
    deciding: &[DecidingReference],
    functions: &[Function],
    plugins: &[PluginDeclaration],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for DecidingReference { reference, environment } in deciding {
        let is_it =
            |function: &&Function| function.environment == reference.environment && function.name == reference.resource;
        let Some(function) = functions.iter().find(is_it).filter(|_| environment.is_none()) else { continue };
        let Some(plugin) = plugins.get(function.plugin) else { continue };
        let (start, end) = (plugin.config.span.start, plugin.config.span.end);
        if plugin.config.span.file == reference.span.file && (start..end).contains(&reference.span.start) {
            let summary = MessageText::new(format_args!(
                "the plugin {:?} serves function {:?}, so its `config` cannot depend on it",
                plugin.name(),
                function.name
            ));
            diagnostics.push(Diagnostic::error(CODE, reference.span, summary));
        }
    }
}
