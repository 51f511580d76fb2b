//! Refresh: makes the state match the world.

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
    Import(ResourceId),
}

/// Reads everything that is recorded, and records what there is.
///
/// # Errors
/// As [`super::provision()`].
///
/// # Cancellation
/// As [`super::provision()`].
pub async fn refresh(run: &StackRun, options: RefreshOptions) -> Result<Report, OperationError> {
    run.on_recorded(Operation::Refresh, UpdateKind::Refresh, false, options).await
}

impl StackRun {
    /// An operation on what is recorded, under the lock.
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
            // What came of everything else is about to be read.
            for pending in creations(&snapshot) {
                self.events.emit(Event::Message(interrupted(&pending.resource.urn, pending.kind)));
            }
        }
        let effect = Effect::Real(state.recorder());
        let report = self.deploy(host, operation, refresh, snapshot, effect).await;
        state.close(report.snapshot.clone(), Some(&self.history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Tells what a run that died had done, and what it left begun. `is_certain`: it has died.
    pub(super) fn tell_recovery(&self, recovered: Option<&Recovered>, is_certain: bool) {
        if let Some(recovered) = recovered {
            let text = recovery_text(recovered, is_certain);
            self.events.emit(Event::Message(Message::new(Severity::Warning, text)));
        }
    }
}

/// Forgets the creations of which the user knows that nothing came. Leaves what is to be imported; until it is, those stay
/// pending.
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

/// What is being created.
fn creations(snapshot: &Snapshot) -> impl Iterator<Item = &PendingOperation> {
    snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating)
}

/// Takes the creations off the list of what is pending whose resources were imported: one for each resource, for a second
/// id of one was refused.
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

/// What is told of a run that died, or may have: who looks without the lock cannot know.
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
