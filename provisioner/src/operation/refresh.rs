//! Refresh, which updates the recorded state to the actual state of the resources, and destroy, which deletes them.

use std::sync::Arc;

use bridge::message_text::MessageText;
use jiff::Timestamp;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

use engine::events::{Event, Message, Operation, Outcome, Severity};
use engine::{DeploymentOptions, ImportGoal, ImportProvider, UrnPattern, interrupted};
use state::format::UpdateKind;
use state::{LateReport, OperationKind, PendingOperation, RecoveredRun, ResourceState, Snapshot};

use super::deploy::DeployMode;
use super::{OperationError, Report, RunOptions, StackRun};

/// Options of a refresh.
#[derive(Clone, Debug, Default)]
pub struct RefreshOptions {
    /// True if all pending creates of earlier runs are cleared.
    pub clear_pending_creates: bool,
    /// Resolutions of single pending creates, each with the name or URN of its resource.
    pub pending_creates: Vec<(String, PendingCreateResolution)>,
}

/// Resolution of a pending create of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingCreateResolution {
    /// Removes the pending create: no resource was created.
    Clear,
    /// Imports the resource that was created, with this id.
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
    run.refresh_or_destroy(Operation::Refresh, UpdateKind::Refresh, false, options).await
}

impl StackRun {
    /// Runs a refresh or a destroy on the recorded resources, under the lock. Resolves the pending creates in `options`
    /// first. `refresh_before`: true if a destroy reads the actual state of the resources first.
    pub(super) async fn refresh_or_destroy(
        &self,
        operation: Operation,
        kind: UpdateKind,
        refresh_before: bool,
        options: RefreshOptions,
    ) -> Result<Report, OperationError> {
        let host = self.load_plugins(1).await?;
        let started = Timestamp::now().as_second();
        self.check_types(&host, operation).await?;
        let state = self.open(&host, operation).await?;
        let mut snapshot = state.snapshot().clone();
        let imports = match resolve_pending_creates(&mut snapshot, &options.pending_creates) {
            Ok(imports) => imports,
            Err(error) => {
                state.release().await?;
                return Err(error);
            }
        };
        if !imports.is_empty() {
            let before = snapshot.clone();
            let parallel = self.options.deployment.parallel;
            let deployment = DeploymentOptions { imports, parallel, ..DeploymentOptions::default() };
            let run = StackRun { options: RunOptions { deployment, ..RunOptions::default() }, ..self.clone() };
            let mode = DeployMode::Apply(state.recorder(UpdateKind::Import));
            let mut report = run.deploy(&host, Operation::Import, false, snapshot, mode).await;
            remove_resolved_creates(&mut report.snapshot, &before, &run.options.deployment.imports);
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
            // The refresh reads the resources of all other pending operations.
            self.report_pending_creates(&snapshot);
        }
        let recorded_nothing = options.pending_creates.is_empty() && !options.clear_pending_creates;
        let refused = self.approve_missing_first(&host, operation, refresh_before, &snapshot).await;
        let report = match refused {
            Some(refused) => refused,
            None => {
                let mode = DeployMode::Apply(state.recorder(kind));
                self.deploy(&host, operation, refresh_before, snapshot, mode).await
            }
        };
        if report.is_refused && recorded_nothing {
            state.release().await?;
            return Ok(report);
        }
        if operation == Operation::Destroy {
            self.report_nothing_found(&report);
        }
        state.close(report.snapshot.clone(), Some(&self.history(kind, started, &report))).await?;
        Ok(report)
    }

    /// Reports the pending creates without an id: they stay pending, because their resources cannot be read.
    pub(super) fn report_pending_creates(&self, snapshot: &Snapshot) {
        for pending in snapshot.pending_operations.iter().filter(|operation| operation.is_create_without_id()) {
            let recorded = live_resource(snapshot, &pending.resource.urn);
            self.events.emit(Event::Message(interrupted(pending, recorded.map(|recorded| &**recorded))));
        }
    }

    /// Reports the operations that were recovered from the journal of an interrupted run. `has_ended` is as in
    /// [`recovery_text`].
    pub(super) fn report_recovery(&self, recovered: Option<&RecoveredRun>, has_ended: bool) {
        if let Some(recovered) = recovered {
            self.warn_of_journal(recovery_text(recovered, has_ended));
        }
    }

    /// Reports resources that runs have recorded after their journals had been taken over.
    pub(super) fn report_late(&self, late: &LateReport) {
        if !late.is_empty() {
            self.warn_of_journal(MessageText::of(late));
        }
    }

    /// Reports the interrupted runs whose journals are not merged, although nothing that they created is missing from
    /// the state. `obsolete` has the starts of the runs.
    pub(super) fn report_obsolete(&self, obsolete: &[String]) {
        obsolete.iter().for_each(|started| self.warn_of_journal(obsolete_text(started)));
    }

    /// Reports the location of journals that the store does not allow to remove.
    pub(super) fn report_undeleted_journals(&self, location: Option<String>) {
        if let Some(location) = location {
            self.warn_of_journal(MessageText::new(format_args!(
                "the store does not allow to remove journals of runs that have ended, in {location}: each run reads them again. Allow the \
                 removal of objects there, or remove them yourself"
            )));
        }
    }

    fn warn_of_journal(&self, text: MessageText) {
        self.events.emit(Event::Message(Message { repeated: true, ..Message::new(Severity::Warning, text) }));
    }
}

/// Removes the pending creates with [`PendingCreateResolution::Clear`], and returns import goals for those with
/// [`PendingCreateResolution::Import`], which stay pending until they are imported.
fn resolve_pending_creates(
    snapshot: &mut Snapshot,
    resolutions: &[(String, PendingCreateResolution)],
) -> Result<Vec<ImportGoal>, OperationError> {
    let (mut imports, mut cleared) = (Vec::new(), Vec::new());
    for (name, resolution) in resolutions {
        let pattern = UrnPattern::new(name);
        let is_match = |operation: &PendingOperation| {
            operation.kind == OperationKind::Creating && pattern.matches(&operation.resource.urn)
        };
        let mut pending = snapshot.pending_operations.iter().enumerate();
        let found = pending.find(|(index, operation)| is_match(operation) && !cleared.contains(index));
        let not_pending = || {
            let pending = pending_creates(snapshot).map(|operation| operation.resource.urn.name().to_owned());
            OperationError::NotPending { name: name.clone(), pending: pending.collect() }
        };
        let (index, operation) = found.ok_or_else(not_pending)?;
        match resolution {
            PendingCreateResolution::Clear => cleared.push(index),
            PendingCreateResolution::Import(id) => imports.push(import_goal_of(&operation.resource, id)),
        }
    }
    let mut index = 0..;
    snapshot.pending_operations.retain(|_| index.next().is_none_or(|index| !cleared.contains(&index)));
    Ok(imports)
}

fn import_goal_of(resource: &ResourceState, id: &ResourceId) -> ImportGoal {
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

fn pending_creates(snapshot: &Snapshot) -> impl Iterator<Item = &PendingOperation> {
    snapshot.pending_operations.iter().filter(|operation| operation.kind == OperationKind::Creating)
}

/// Returns the live entry of a URN, unless its resource is deleted and its replacement is pending.
fn live_resource<'s>(snapshot: &'s Snapshot, urn: &Urn) -> Option<&'s Arc<ResourceState>> {
    let is_live = |resource: &&Arc<ResourceState>| !resource.delete && !resource.pending_replacement;
    snapshot.resources.iter().filter(is_live).find(|resource| resource.urn == *urn)
}

/// Removes the pending create of each goal that is now recorded with its id. A second goal for the same URN removes
/// none, because its import was rejected. `before` is the snapshot before the imports.
fn remove_resolved_creates(snapshot: &mut Snapshot, before: &Snapshot, imports: &[ImportGoal]) {
    let mut seen: Vec<Urn> = Vec::new();
    for goal in imports {
        let is_match = |operation: &PendingOperation| {
            let resource = &operation.resource;
            let is_of_goal = resource.urn.name() == goal.name && resource.parent == goal.parent;
            operation.kind == OperationKind::Creating && is_of_goal && resource.type_token == goal.type_token
        };
        let Some(index) = snapshot.pending_operations.iter().position(is_match) else { continue };
        let urn = snapshot.pending_operations[index].resource.urn.clone();
        // The import of a resource that was recorded with another id was rejected: the entry is unchanged.
        let has_another_id = live_resource(before, &urn).is_some_and(|resource| resource.id.as_ref() != Some(&goal.id));
        if live_resource(snapshot, &urn).is_some() && !has_another_id && !seen.contains(&urn) {
            snapshot.pending_operations.remove(index);
        }
        seen.push(urn);
    }
}

/// Returns the message about the merged journal of an interrupted run. `has_ended` is false if the stack is still
/// locked: the run of the journal may be active.
pub fn recovery_text(recovered: &RecoveredRun, has_ended: bool) -> MessageText {
    let started = &recovered.started;
    let by = recovered.by.as_ref().map(|by| format!(" of {by}")).unwrap_or_default();
    let mut text = if has_ended {
        MessageText::new(format_args!(
            "the state includes the journal of the interrupted run{by} that started {started}"
        ))
    } else {
        MessageText::new(format_args!(
            "the state includes the journal of the run{by} that started {started}, which may still be active"
        ))
    };
    if let Some(sent) = recovered.last_sent {
        // The clocks of the store and of this machine may differ.
        let age = Timestamp::now().duration_since(sent).as_secs().max(0);
        text.push_text(&MessageText::new(format_args!("; its last lines reached the store {age} s ago")));
    }
    for (index, (kind, count)) in recovered.done.iter().enumerate() {
        let done = match kind {
            OperationKind::Creating => "created",
            OperationKind::Updating => "updated",
            OperationKind::Deleting => "deleted",
            OperationKind::Reading => "read",
            OperationKind::Importing => "imported",
        };
        let separator = if index == 0 { ": " } else { ", " };
        text.push_text(&MessageText::new(format_args!("{separator}{count} {done}")));
    }
    if !recovered.pending.is_empty() {
        text.push_text(&"\npending operations:".into());
    }
    for (kind, urn) in &recovered.pending {
        let (kind, name, token) = (kind.as_str(), urn.name(), urn.type_token());
        text.push_text(&MessageText::new(format_args!("\n{kind} {name} ({token})")));
    }
    text
}

/// Returns the message about the journal of an interrupted run, started at this time, that is not merged, although
/// nothing that the run created is missing from the state.
pub fn obsolete_text(started: &str) -> MessageText {
    MessageText::new(format_args!(
        "the journal of the interrupted run that started {started} is not merged: the state has changed since, and records \
         all that the run created. Run `sc refresh` to find its other changes"
    ))
}

/// Deletes all recorded resources, dependents first. With `refresh`, reads their actual state first.
///
/// # Errors
/// Returns the errors of [`super::provision()`].
///
/// # Cancellation
/// Is cancelled like [`super::provision()`].
pub async fn destroy(run: &StackRun, refresh: bool) -> Result<Report, OperationError> {
    run.refresh_or_destroy(Operation::Destroy, UpdateKind::Destroy, refresh, RefreshOptions::default()).await
}
