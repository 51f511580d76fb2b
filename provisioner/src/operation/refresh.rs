//! Refresh: updates the recorded state to the actual state of the resources.

use std::sync::Arc;

use bridge::host::PluginHost;
use jiff::Timestamp;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use engine::events::{Event, Message, Operation, Outcome, Severity};
use engine::{ImportGoal, ImportProvider, UrnPattern, interrupted};
use state::format::UpdateKind;
use state::{OperationKind, PendingOperation, Recovered, ResourceState, Snapshot};

use super::deploy::Effect;
use super::{OperationError, Report, RunOptions, StackRun};

/// Options of a refresh.
#[derive(Clone, Debug, Default)]
pub struct RefreshOptions {
    /// True if all pending creations of earlier runs are forgotten.
    pub clear_pending_creates: bool,
    /// Fates of single pending creations, each by the name or URN of its resource.
    pub pending_creates: Vec<(String, Fate)>,
}

/// Fate of a pending creation of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Forget it: no resource was created.
    Forget,
    /// It came to a resource with this id, which is read and recorded.
    Import(ResourceId),
}

/// Reads all recorded resources, and records their actual state.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn refresh(run: &StackRun, options: RefreshOptions) -> Result<Report, OperationError> {
    run.on_recorded(Operation::Refresh, UpdateKind::Refresh, false, options).await
}

impl StackRun {
    /// Runs an operation on the recorded resources, under the lock.
    pub(super) async fn on_recorded(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let host = self.load_plugins().await?;
        let outcome = self.on_recorded_with(&host, operation, kind, refresh, options).await;
        host.close().await;
        outcome
    }

    async fn on_recorded_with(
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
        let imports = match settle_pending(&mut snapshot, &options.pending_creates) {
            Ok(imports) => imports,
            Err(error) => {
                state.release().await?;
                return Err(error);
            }
        };
        if !imports.is_empty() {
            let before = snapshot.clone();
            let options = RunOptions { imports, parallel: self.options.parallel, ..RunOptions::default() };
            let run = StackRun { options, ..self.clone() };
            let effect = Effect::Real(state.recorder());
            let mut report = run.deploy(host, Operation::Import, false, snapshot, effect).await;
            drop_settled(&mut report.snapshot, &before, &run.options.imports);
            if report.summary.outcome != Outcome::Succeeded {
                state.close(report.snapshot.clone(), Some(&run.history(UpdateKind::Import, started, &report))).await?;
                return Ok(report);
            }
            snapshot = report.snapshot;
        }
        if options.clear_pending_creates {
            snapshot.pending_operations.retain(|operation| operation.kind != OperationKind::Creating);
        }
        if operation == Operation::Refresh {
            // The refresh reads what became of all other pending operations.
            for pending in creations(&snapshot) {
                self.events.emit(Event::Message(interrupted(&pending.resource.urn, pending.kind)));
            }
        }
        let effect = Effect::Real(state.recorder());
        let report = self.deploy(host, operation, refresh, snapshot, effect).await;
        state.close(report.snapshot.clone(), Some(&self.history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Reports what was recovered from the journal of an unfinished run. `is_certain`: that run has crashed.
    pub(super) fn tell_recovery(&self, recovered: Option<&Recovered>, is_certain: bool) {
        if let Some(recovered) = recovered {
            let text = recovery_text(recovered, is_certain);
            self.events.emit(Event::Message(Message::new(Severity::Warning, text)));
        }
    }
}

/// Forgets the pending creations with [`Fate::Forget`], and returns the imports of those with [`Fate::Import`], which
/// stay pending until they are imported.
fn settle_pending(snapshot: &mut Snapshot, known: &[(String, Fate)]) -> Result<Vec<ImportGoal>, OperationError> {
    let (mut imports, mut forgotten) = (Vec::new(), Vec::new());
    for (name, fate) in known {
        let pattern = UrnPattern::new(name);
        let is_it = |operation: &PendingOperation| {
            operation.kind == OperationKind::Creating && pattern.matches(&operation.resource.urn)
        };
        let mut pending = snapshot.pending_operations.iter().enumerate();
        let found = pending.find(|(index, operation)| is_it(operation) && !forgotten.contains(index));
        let not_pending = || {
            let pending = creations(snapshot).map(|operation| operation.resource.urn.name().to_owned());
            OperationError::NotPending { name: name.clone(), pending: pending.collect() }
        };
        let (index, operation) = found.ok_or_else(not_pending)?;
        match fate {
            Fate::Forget => forgotten.push(index),
            Fate::Import(id) => imports.push(import_of(&operation.resource, id)),
        }
    }
    let mut index = 0..;
    snapshot.pending_operations.retain(|_| index.next().is_none_or(|index| !forgotten.contains(&index)));
    Ok(imports)
}

fn import_of(resource: &ResourceState, id: &ResourceId) -> ImportGoal {
    ImportGoal {
        type_token: resource.type_token.clone(),
        name: resource.urn.name().to_owned(),
        id: id.clone(),
        parent: resource.parent.clone(),
        provider: match &resource.provider {
            Some(reference) => ImportProvider::Recorded(reference.clone()),
            None => ImportProvider::Default(None),
        },
        protect: resource.protect,
        aliases: Vec::new(),
        inputs: Arc::clone(&resource.inputs),
        additional_secret_outputs: resource.additional_secret_outputs.clone(),
        source: None,
    }
}

/// Returns the pending creations.
fn creations(snapshot: &Snapshot) -> impl Iterator<Item = &PendingOperation> {
    snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating)
}

/// Removes the pending creations whose resources were imported. Each resource settles one creation, as a second id for
/// it was refused.
fn drop_settled(snapshot: &mut Snapshot, before: &Snapshot, imports: &[ImportGoal]) {
    let live = |snapshot: &Snapshot, urn: &Urn| {
        snapshot.resources.iter().find(|resource| resource.urn == *urn && !resource.delete).cloned()
    };
    let mut seen: Vec<Urn> = Vec::new();
    for goal in imports {
        let is_it = |operation: &PendingOperation| {
            let resource = &operation.resource;
            let is_of_goal = resource.urn.name() == goal.name && resource.parent == goal.parent;
            operation.kind == OperationKind::Creating && is_of_goal && resource.type_token == goal.type_token
        };
        let Some(index) = snapshot.pending_operations.iter().position(is_it) else { continue };
        let urn = snapshot.pending_operations[index].resource.urn.clone();
        // What was recorded under another id before is what it was: that one was refused, too.
        let is_another = live(before, &urn).is_some_and(|resource| resource.id.as_ref() != Some(&goal.id));
        if live(snapshot, &urn).is_some() && !is_another && !seen.contains(&urn) {
            snapshot.pending_operations.remove(index);
        }
        seen.push(urn);
    }
}

/// Returns the report about an unfinished run. `is_certain`: it has crashed; without the lock, it may still be running.
pub fn recovery_text(recovered: &Recovered, is_certain: bool) -> String {
    let ended = if is_certain { "died" } else { "has not come to its end" };
    let mut text = format!("a run that was begun {} {ended}; what it did is taken from its journal", recovered.started);
    for (index, (kind, count)) in recovered.done.iter().enumerate() {
        let done = match kind {
            OperationKind::Creating => "created",
            OperationKind::Updating => "updated",
            OperationKind::Deleting => "deleted",
            OperationKind::Reading => "read",
            OperationKind::Importing => "imported",
        };
        text.push_str(if index == 0 { ": " } else { ", " });
        text.push_str(&format!("{count} {done}"));
    }
    if !recovered.pending.is_empty() {
        text.push_str("\nit did not come to the end of:");
    }
    for (kind, urn) in &recovered.pending {
        text.push_str(&format!("\n{} {} ({})", kind.as_str(), urn.name(), urn.type_token()));
    }
    text
}
