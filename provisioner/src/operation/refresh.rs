//! Refresh: makes the state match the world.

use std::sync::Arc;

use bridge::host::PluginHost;
use jiff::Timestamp;

use crate::deployment::{ImportGoal, ImportProvider, UrnPattern};
use crate::events::{Event, Message, Operation, Outcome, Severity};
use crate::state::format::UpdateKind;
use crate::state::{OperationKind, Recovered, Snapshot};

use super::deploy::Effect;
use super::{OperationError, Report, RunOptions, StackRun};

/// What else a refresh does.
#[derive(Clone, Debug, Default)]
pub struct RefreshOptions {
    /// Forget creations that earlier runs began and did not end.
    pub clear_pending_creates: bool,
    /// What came of single ones: name or URN of the resource, and what is to be done.
    pub pending_creates: Vec<(String, Fate)>,
}

/// What becomes of a creation that an earlier run began and did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing came of it: it is forgotten.
    Forget,
    /// It came to a resource with this id, which is read and recorded.
    Import(String),
}

/// Reads everything that is recorded, and records what there is.
///
/// # Errors
/// As [`super::provision()`].
///
/// # Cancellation
/// As [`super::provision()`].
pub async fn refresh(run: &StackRun, options: RefreshOptions) -> Result<Report, OperationError> {
    run.without_program(Operation::Refresh, UpdateKind::Refresh, false, options).await
}

impl StackRun {
    /// An operation that has no program, under the lock.
    pub(super) async fn without_program(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let host = self.load_plugins().await?;
        let outcome = self.without_program_on(&host, operation, kind, refresh, options).await;
        host.close().await;
        outcome
    }

    async fn without_program_on(
        &self,
        host: &Arc<PluginHost>,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let started = Timestamp::now().as_second();
        let state = self.open(host).await?;
        let mut snapshot = state.snapshot().clone();
        let imports = match take_pending(&mut snapshot, &options.pending_creates) {
            Ok(imports) => imports,
            Err(error) => {
                state.release().await?;
                return Err(error);
            }
        };
        if !imports.is_empty() {
            let run = StackRun { options: RunOptions { imports, ..self.options.clone() }, ..self.clone() };
            let effect = Effect::Real(state.recorder());
            let report = run.deploy(host, Operation::Import, false, snapshot, effect).await;
            if report.summary.outcome != Outcome::Succeeded {
                state.close(report.snapshot.clone(), Some(&run.history(UpdateKind::Import, started, &report))).await?;
                return Ok(report);
            }
            snapshot = report.snapshot;
        }
        if options.clear_pending_creates {
            snapshot.pending_operations.retain(|operation| operation.kind != OperationKind::Creating);
        }
        let effect = Effect::Real(state.recorder());
        let report = self.deploy(host, operation, refresh, snapshot, effect).await;
        state.close(report.snapshot.clone(), Some(&self.history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Tells what a run that died had done, and what it left begun.
    pub(super) fn tell_recovery(&self, recovered: Option<&Recovered>) {
        if let Some(recovered) = recovered {
            self.events.emit(Event::Message(Message::new(Severity::Warning, recovery_text(recovered))));
        }
    }
}

/// Takes creations of which the user knows what came off the list of what is pending. Leaves what is to be imported.
fn take_pending(snapshot: &mut Snapshot, known: &[(String, Fate)]) -> Result<Vec<ImportGoal>, OperationError> {
    let mut imports = Vec::new();
    for (name, fate) in known {
        let pattern = UrnPattern::new(name);
        let pending = &mut snapshot.pending_operations;
        let found = pending.iter().position(|operation| {
            operation.kind == OperationKind::Creating && pattern.matches(&operation.resource.urn)
        });
        let resource = pending.remove(found.ok_or_else(|| OperationError::NotPending(name.clone()))?).resource;
        let Fate::Import(id) = fate else { continue };
        imports.push(ImportGoal {
            type_token: resource.type_token.clone(),
            name: resource.urn.name().to_owned(),
            id: id.clone(),
            parent: resource.parent.clone(),
            provider: match &resource.provider {
                Some(reference) => ImportProvider::Recorded(reference.clone()),
                None => ImportProvider::Default(String::new()),
            },
            protect: resource.protect,
            source: None,
        });
    }
    Ok(imports)
}

/// What is told of a run that died.
pub fn recovery_text(recovered: &Recovered) -> String {
    let mut text = format!("a run that was begun {} died; what it did is taken from its journal", recovered.started);
    if !recovered.pending.is_empty() {
        text.push_str("\nit did not come to the end of:");
    }
    for (kind, urn) in &recovered.pending {
        text.push_str(&format!("\n{} {} ({})", kind.as_str(), urn.name(), urn.type_token()));
    }
    text
}
