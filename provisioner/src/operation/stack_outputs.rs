//! Outputs of other stacks, which a stack reads with `${output:STACK.NAME}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bridge::error::Hint as _;
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, SourceFiles};
use config::{OutputReference, Reading, Stack};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use state::{Snapshot, StackView};

use super::stack_reader::OutputSource;
use super::{OperationError, Stacks};
use crate::registry::recipes;

const CODE: Code = Code("unknown-output");

/// Rule for outputs that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOutputs {
    /// The stack cannot be used.
    Refused,
    /// The outputs are unknown, with a warning: an operation without program needs none, except where plugins are configured with them.
    Unknown,
}

/// Outputs of a stack as they are recorded.
struct RecordedOutputs {
    /// The outputs; `None` if the stack has not been provisioned.
    outputs: Option<Arc<PropertyMap>>,
    /// Reason why they may not be current.
    warning: Option<MessageText>,
}

impl Stacks {
    /// Returns a stack with the outputs of the other stacks that it reads: those of a run of this command ([`Stacks::keep_outputs`]), else the
    /// recorded ones, which are read without a lock, once for all stacks. `warn` receives warnings.
    ///
    /// # Errors
    /// [`OperationError::Outputs`], with the positions in the files: a stack cannot be read or has not been provisioned, or an output does
    /// not exist; and errors of values that only the outputs show.
    pub async fn with_outputs(
        &self,
        stack: &Arc<Stack>,
        rule: MissingOutputs,
        warn: impl Fn(MessageText),
    ) -> Result<Arc<Stack>, OperationError> {
        if stack.outputs_read.is_empty() {
            return Ok(Arc::clone(stack));
        }
        let read = match self.load_outputs(stack, &warn).await {
            Ok(()) => self.reader.read(stack, None).await,
            Err(found) => Err(found),
        };
        match read {
            Ok(stack) => Ok(Arc::new(stack)),
            Err(found) if rule == MissingOutputs::Refused => Err(OperationError::Outputs(found)),
            Err(found) => {
                let first = found.first().map(|found| found.summary.to_string()).unwrap_or_default();
                warn(MessageText::new(format_args!("outputs of other stacks are not known here: {first}")));
                Ok(Arc::clone(stack))
            }
        }
    }

    /// Keeps the outputs of a run for the stacks of the command that read them. `snapshot` is the state after the run; after a preview, the
    /// predicted one.
    pub async fn keep_outputs(&self, stack: &Stack, snapshot: &Snapshot) {
        let is_read = |reader: &Arc<Stack>| reader.outputs_read.iter().any(|read| read.stack == stack.name);
        if self.stacks.iter().any(is_read) {
            let outputs = Arc::new(snapshot.stack_outputs().cloned().unwrap_or_default());
            self.reader.outputs.lock().await.insert(OutputSource::Stack(stack.name.clone()), outputs);
        }
    }

    /// Loads the recorded outputs that a stack reads and that are not known yet.
    async fn load_outputs(&self, stack: &Stack, warn: &impl Fn(MessageText)) -> Result<(), Vec<Diagnostic>> {
        let mut known = self.reader.outputs.lock().await;
        let names: BTreeSet<&str> = stack.outputs_read.iter().map(|read| read.stack.as_str()).collect();
        let missing: Vec<&str> =
            names.into_iter().filter(|name| !known.contains_key(&OutputSource::of(stack, name))).collect();
        let loaded = join_all(missing.iter().map(|name| self.recorded_outputs(stack, name))).await;
        let mut found = Vec::new();
        for (name, loaded) in missing.into_iter().zip(loaded) {
            let reads = || stack.outputs_read.iter().filter(|read| read.stack == name);
            match loaded {
                Ok(RecordedOutputs { outputs, warning }) => {
                    warning.into_iter().for_each(warn);
                    found.extend(reads().filter(|_| outputs.is_none()).filter_map(not_provisioned));
                    known.insert(OutputSource::of(stack, name), outputs.unwrap_or_default());
                }
                Err((reason, hint)) => {
                    let Some(first) = reads().next() else { continue };
                    let summary = MessageText::new(format_args!("the outputs of the stack {name:?} cannot be read"));
                    let error = Diagnostic::error(CODE, first.span, summary).detail(reason);
                    found.push(hint.into_iter().fold(error, Diagnostic::help));
                }
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Reads the recorded outputs of a stack by the name that placeholders use. The error is the reason, with a hint.
    async fn recorded_outputs(
        &self,
        reader: &Stack,
        name: &str,
    ) -> Result<RecordedOutputs, (MessageText, Option<MessageText>)> {
        let stack = self.read_of_state(reader, name)?;
        let access = self.open_access(&stack).await.map_err(|error| (MessageText::chain(&error), error.hint()))?;
        let view = StackView::open(&access).await.map_err(|error| (MessageText::chain(&error), error.hint()))?;
        if let Some(conflict) = &view.conflict {
            return Err((MessageText::of(conflict), None));
        }
        let warning = match (&view.recovered, view.is_idle) {
            (_, false) => Some(MessageText::new(format_args!(
                "the stack {name} is at work: its outputs are read as they are now"
            ))),
            (Some(_), true) => Some(MessageText::new(format_args!(
                "the last run of the stack {name} was interrupted: its outputs may be those of the run before"
            ))),
            (None, true) => None,
        };
        let root = view.snapshot.iter().flat_map(|snapshot| &snapshot.resources);
        root.filter(|resource| resource.parent.is_none()).for_each(|resource| self.masker.add_resource(resource));
        let outputs = view.snapshot.map(|snapshot| Arc::new(snapshot.stack_outputs().cloned().unwrap_or_default()));
        Ok(RecordedOutputs { outputs, warning })
    }

    /// Returns a stack that is read for its state alone, by the name that placeholders of another one use.
    fn read_of_state(&self, reader: &Stack, name: &str) -> Result<Arc<Stack>, (MessageText, Option<MessageText>)> {
        if let Some(reference) = reader.references.iter().find(|reference| reference.name == name) {
            let (stack, project) = (reference.stack.clone(), reference.project.clone());
            return Ok(Arc::new(Stack::without_sections(stack, project, reference.provisioner.clone())));
        }
        if let Some(stack) = self.stacks.iter().find(|stack| stack.name == name) {
            return Ok(Arc::clone(stack));
        }
        let types = recipes::built_in_types();
        let mut sources = SourceFiles::default();
        let loaded = self.reader.workspace(&types).load_as(Reading::StateOnly, &[name.to_owned()], &mut sources);
        loaded.secrets.iter().for_each(|secret| self.masker.add_text(secret.expose()));
        loaded.stacks.into_iter().find(|stack| stack.name == name).map(Arc::new).ok_or_else(|| {
            let hint = MessageText::new(format_args!("`sc validate -s {name}` shows them"));
            ("its files have errors".into(), Some(hint))
        })
    }
}

/// Returns the error of a reference to a stack that has not been provisioned; `None` if the reference has a default.
fn not_provisioned(read: &OutputReference) -> Option<Diagnostic> {
    if read.default.is_some() {
        return None;
    }
    let summary =
        MessageText::new(format_args!("the stack {:?} has not been provisioned, so it has no outputs", read.stack));
    let help =
        "provision it first, or in the same command; a default counts until then: `${output:STACK.NAME:DEFAULT}`";
    Some(Diagnostic::error(CODE, read.span, summary).help(help))
}
