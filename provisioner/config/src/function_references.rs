//! Leads references to functions to those that they mean, and checks that each is declared.

use std::collections::HashMap;
use std::sync::Arc;

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::function::Function;
use crate::functions::ReadFunctions;
use crate::stack::{Environment, Output};
use crate::stack_outputs::DecidingReference;
use crate::tree::{Reference, ReferenceKind};

const UNKNOWN: Code = Code("unknown-function");

/// State of a declared function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Enabled,
    Disabled,
    Invalid,
}

/// Declared functions by name, each with its environment.
struct Names<'r> {
    by_name: HashMap<&'r str, Vec<(Option<&'r str>, Declared)>>,
    all: Arc<[String]>,
}

/// Place of a reference.
#[derive(Clone, Copy)]
enum Holder<'h> {
    /// A resource or a function of this environment.
    In(&'h str),
    /// A function of all environments.
    Shared,
    /// An output.
    Output,
}

/// Leads all references to functions to those that they mean: from then on, their environment is that of the function. Reports names that are not
/// declared, and references to a function that is switched off without a default.
pub(super) fn link(
    read: &mut ReadFunctions,
    environments: &mut [Environment],
    outputs: &mut [Output],
    deciding: &mut [DecidingReference],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut functions = std::mem::take(&mut read.functions);
    let declared = functions.clone();
    let names = Names::new(&declared, &read.invalid);
    for Environment { name, resources, .. } in environments {
        for resource in resources {
            let mut link = |reference: &mut Reference| names.link(reference, Holder::In(name), diagnostics);
            resource.config.each_reference(&mut link);
            resource.options.replacement_trigger.iter_mut().for_each(|trigger| trigger.each_reference(&mut link));
        }
    }
    for Function { environment, arguments, .. } in &mut functions {
        let holder = environment.as_deref().map_or(Holder::Shared, Holder::In);
        arguments.each_reference(&mut |reference| names.link(reference, holder, diagnostics));
    }
    for output in outputs {
        output.value.each_reference(&mut |reference| names.link(reference, Holder::Output, diagnostics));
    }
    for DecidingReference { reference, environment } in deciding {
        let holder = environment.as_deref().map_or(Holder::Output, Holder::In);
        names.link(reference, holder, diagnostics);
    }
    read.functions = functions;
}

impl<'r> Names<'r> {
    fn new(functions: &'r [Function], invalid: &'r [(Option<String>, String)]) -> Self {
        let mut by_name: HashMap<&str, Vec<(Option<&str>, Declared)>> = HashMap::new();
        for function in functions {
            let declared = if function.is_enabled { Declared::Enabled } else { Declared::Disabled };
            by_name.entry(&function.name).or_default().push((function.environment.as_deref(), declared));
        }
        for (environment, name) in invalid {
            by_name.entry(name).or_default().push((environment.as_deref(), Declared::Invalid));
        }
        let all = functions.iter().map(|function| function.name.clone()).collect();
        Self { by_name, all }
    }

    fn link(&self, reference: &mut Reference, holder: Holder<'_>, diagnostics: &mut Vec<Diagnostic>) {
        if reference.kind == ReferenceKind::Resource {
            if let Holder::Shared = holder {
                let text = "a function of all environments refers to no resource";
                let error = Diagnostic::error(Code("misplaced-reference"), reference.span, text);
                let help = "declare it in an environment: `resources.resources.ENVIRONMENT.functions`";
                diagnostics.push(error.help(help));
            }
            return;
        }
        let written = reference.environment.clone();
        let own = match holder {
            Holder::In(environment) => Some(environment),
            Holder::Shared | Holder::Output => None,
        };
        let wanted = written.as_deref().or(own);
        let known = self.by_name.get(reference.resource.as_str()).map(Vec::as_slice).unwrap_or_default();
        let is_meant = |(environment, _): &&(Option<&str>, Declared)| environment.is_none() || *environment == wanted;
        let found = match (known.iter().find(is_meant), holder, known) {
            (Some(found), ..) => Some(*found),
            (None, Holder::Output, [only]) if written.is_none() => Some(*only),
            _ => None,
        };
        if let (Some((Some(_), _)), Holder::Shared) = (found, holder) {
            let text = "a function of all environments refers to functions of all environments only";
            return diagnostics.push(Diagnostic::error(Code("misplaced-reference"), reference.span, text));
        }
        match found {
            None => diagnostics.push(self.unknown_error(reference, wanted, known)),
            Some((environment, declared)) => {
                if declared == Declared::Disabled && reference.default.is_none() {
                    diagnostics.push(missing_default_error(reference));
                }
                reference.environment = environment.map(str::to_owned);
            }
        }
    }

    fn unknown_error(
        &self,
        reference: &Reference,
        wanted: Option<&str>,
        known: &[(Option<&str>, Declared)],
    ) -> Diagnostic {
        let name = reference.resource.as_str();
        let summary = match (wanted, known) {
            (None, [_, _, ..]) => MessageText::new(format_args!("function {name:?} is defined in several envs")),
            (Some(environment), _) => {
                MessageText::new(format_args!("function {name:?} is not defined in env {environment:?}"))
            }
            (None, _) => MessageText::new(format_args!("function {name:?} is not defined")),
        };
        let error = Diagnostic::error(UNKNOWN, reference.span, summary);
        match known.iter().find_map(|(environment, _)| *environment) {
            Some(environment) => {
                let named = Reference { environment: Some(environment.to_owned()), ..reference.clone() };
                error.help(format_args!("env {environment:?} has it: write `{named}`"))
            }
            None => error.did_you_mean_one_of(name, &self.all),
        }
    }
}

/// Returns the error of a reference to a function that is switched off, which needs a default.
fn missing_default_error(reference: &Reference) -> Diagnostic {
    let summary = MessageText::new(format_args!(
        "function {:?} is switched off (`enabled`), and the reference has no default",
        reference.resource
    ));
    let written = reference.to_string();
    let help = MessageText::new(format_args!("write `{}:DEFAULT}}`", written.trim_end_matches('}')));
    Diagnostic::error(Code("switched-off"), reference.span, summary).help(help)
}
