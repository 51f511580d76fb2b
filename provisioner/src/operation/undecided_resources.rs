//! Resources of which an output of another stack decides whether they exist, while that stack is not provisioned yet.

use std::collections::HashSet;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::{Collection, Environment};
use engine::UrnPattern;
use engine::events::{Event, Message, Severity};
use state::Snapshot;

use super::{OperationError, StackRun};

/// Treatment of resources that a preview cannot decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndecidedRule {
    /// Told, and what is recorded of them is kept.
    Kept,
    /// Refused: a plan has to say what becomes of each resource.
    Refused,
}

impl StackRun {
    /// Tells of the resources that a preview cannot decide about, and keeps what is recorded of them.
    pub(super) fn keep_undecided(&mut self, recorded: &Snapshot) {
        let stack = self.program.stack();
        let declared: HashSet<String> = stack
            .resources()
            .map(|(environment, resource)| format!("{}--{}", resource.key, environment.name))
            .collect();
        let mut kept = Vec::new();
        for (environment, collection, awaited) in undecided(&stack.environments) {
            let (key, name) = (&collection.key, &environment.name);
            let text = MessageText::new(format_args!("{key} of env {name}: decided once {awaited}"));
            self.events.emit(Event::Message(Message::new(Severity::Info, text)));
            let is_of_collection = |name: &str| {
                let of_environment = name.strip_suffix(&format!("--{}", environment.name));
                of_environment
                    .and_then(|name| name.strip_prefix(key.as_str()))
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            let entries = recorded.resources.iter().filter(|entry| {
                let name = entry.urn.name();
                entry.custom && is_of_collection(name) && !declared.contains(name)
            });
            kept.extend(entries.map(|entry| UrnPattern::new(entry.urn.as_str())));
        }
        self.options.deployment.scope.excludes.extend(kept);
    }

    /// Refuses a run that cannot decide about a resource: it could only delete it, or leave it as it is.
    ///
    /// # Errors
    /// [`OperationError::Types`].
    pub(super) fn refuse_undecided(&self) -> Result<(), OperationError> {
        let found = undecided(&self.program.stack().environments).map(|(_, collection, awaited)| {
            let summary = MessageText::new(format_args!(
                "{:?} cannot be decided: that is possible once {awaited}",
                collection.key
            ));
            Diagnostic::error(Code("undecided"), collection.span, summary)
        });
        let found: Vec<Diagnostic> = found.collect();
        if found.is_empty() { Ok(()) } else { Err(OperationError::Types(found)) }
    }
}

/// Returns the collections, and single resources in their place, that await a stack.
fn undecided(environments: &[Environment]) -> impl Iterator<Item = (&Environment, &Collection, &str)> {
    let collections = environments
        .iter()
        .flat_map(|environment| environment.collections.iter().map(move |collection| (environment, collection)));
    collections.filter_map(|(environment, collection)| Some((environment, collection, collection.awaited.as_deref()?)))
}
