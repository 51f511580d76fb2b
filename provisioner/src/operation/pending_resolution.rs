//! Resolution of pending creates before a run: imports and removals, as the options or the user say, and the refusal to create the
//! others again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bridge::host::PluginHost;
use bridge::message_text::MessageText;
use engine::events::{Event, Message, Operation, Outcome, Severity};
use engine::{
    DeploymentOptions, ImportGoal, ImportProvider, PendingWithEntry, UrnPattern, names_of_key,
    pending_operation_warnings,
};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::format::UpdateKind;
use state::{OperationKind, PendingOperation, ResourceState, Snapshot, StackState, StateError};

use super::deploy::DeployMode;
use super::error::names;
use super::pending_creates::{ImportedGuard, PendingCreateResolution, PendingCreates, ask, live_resource};
use super::{OperationError, Report, RunOptions, StackRun};

/// Stack that is open for a run, with its pending creates resolved.
pub(super) struct Opened {
    pub(super) state: StackState,
    /// State to start from.
    pub(super) snapshot: Snapshot,
    is_resolved: bool,
    guard: Option<Arc<ImportedGuard>>,
    /// Options of the deployments of the run, in which resources are selected by their names.
    deployment: DeploymentOptions,
}

/// Result of the opening of a stack.
pub(super) enum Opening {
    Opened(Box<Opened>),
    /// The run has ended: an import has failed, or the user has ended the questions (`None`).
    Ended(Option<Box<Report>>),
}

/// Result of the resolution of pending creates.
pub(super) enum Resolution {
    /// State in which nothing was resolved.
    Unchanged,
    /// State to start from, and the imported resources.
    Resolved(Box<Snapshot>, Vec<(Urn, ResourceId)>),
    /// An import has failed.
    Failed(Box<Report>),
    /// The user has ended the questions.
    Ended,
}

impl StackRun {
    /// Opens the stack, as [`StackRun::open`] does, and resolves the pending creates as the options say.
    pub(super) async fn open_and_resolve(
        &self,
        host: &Arc<PluginHost>,
        operation: Operation,
        started: i64,
    ) -> Result<Opening, OperationError> {
        let state = self.open(host, operation).await?;
        let mut run = self.clone();
        if let Err(error) = run.resolve_names(state.snapshot()).await {
            state.release().await?;
            return Err(error);
        }
        let deployment = run.options.deployment;
        let recorder = || self.applied_to(&state, UpdateKind::Import);
        let resolution = self.resolve_pending_creates(host, state.snapshot(), recorder).await;
        Ok(match resolution {
            Ok(Resolution::Unchanged) => {
                let snapshot = state.snapshot().clone();
                Opening::Opened(Box::new(Opened { state, snapshot, is_resolved: false, guard: None, deployment }))
            }
            Ok(Resolution::Resolved(snapshot, imported)) => {
                let missing = self.options.missing.clone();
                let guard = ImportedGuard { imported, missing, has_refused: AtomicBool::new(false) };
                let guard = Some(Arc::new(guard)).filter(|guard| !guard.imported.is_empty());
                Opening::Opened(Box::new(Opened { state, snapshot: *snapshot, is_resolved: true, guard, deployment }))
            }
            Ok(Resolution::Failed(report)) => {
                let history = self.history(UpdateKind::Import, started, &report).await;
                state.close(report.snapshot.clone(), Some(&history)).await?;
                Opening::Ended(Some(report))
            }
            Ok(Resolution::Ended) => {
                state.release().await?;
                Opening::Ended(None)
            }
            Err(error) => {
                state.release().await?;
                return Err(error);
            }
        })
    }

    /// Resolves the pending creates of a state as the options say; asks if they have a question and say nothing else. `mode` is
    /// that of the imports.
    pub(super) async fn resolve_pending_creates(
        &self,
        host: &Arc<PluginHost>,
        before: &Snapshot,
        mode: impl FnOnce() -> DeployMode,
    ) -> Result<Resolution, OperationError> {
        let PendingCreates { clear, resolutions, question, .. } = &self.options.pending;
        let asked = match question.as_ref().filter(|_| !clear && resolutions.is_empty()) {
            Some(question) => match ask(question.as_ref(), before).await {
                Some(asked) => asked,
                None => return Ok(Resolution::Ended),
            },
            None => Vec::new(),
        };
        let resolutions = if asked.is_empty() { resolutions } else { &asked };
        if resolutions.is_empty() && !clear {
            return Ok(Resolution::Unchanged);
        }
        let mut snapshot = before.clone();
        let (imports, mut cleared) = apply_resolutions(&mut snapshot, resolutions)?;
        let mut imported = Vec::new();
        if !imports.is_empty() {
            let pending = snapshot.clone();
            let parallel = self.options.deployment.parallel;
            let deployment = DeploymentOptions { imports, parallel, ..DeploymentOptions::default() };
            let run = StackRun { options: RunOptions { deployment, ..RunOptions::default() }, ..self.clone() };
            let mut report = run.deploy(host, Operation::Import, false, snapshot, mode()).await;
            imported = remove_resolved_creates(&mut report.snapshot, &pending, &run.options.deployment.imports);
            if report.summary.outcome != Outcome::Succeeded {
                return Ok(Resolution::Failed(Box::new(report)));
            }
            snapshot = report.snapshot;
        }
        if *clear {
            cleared.extend(pending_creates(&snapshot).map(|operation| operation.resource.urn.clone()));
            snapshot.pending_operations.retain(|operation| operation.kind != OperationKind::Creating);
        }
        self.report_cleared(&cleared, *clear);
        Ok(Resolution::Resolved(Box::new(snapshot), imported))
    }

    /// Says which pending creates were cleared. `clears_all`: also that there was none.
    fn report_cleared(&self, cleared: &[Urn], clears_all: bool) {
        let text = match cleared.len() {
            0 if clears_all => "there is no pending create to clear".into(),
            0 => return,
            1 => MessageText::new(format_args!("cleared the pending create of {}", names(cleared))),
            count => MessageText::new(format_args!("cleared {count} pending creates: {}", names(cleared))),
        };
        let message = Message { repeated: true, ..Message::new(Severity::Info, text) };
        self.events.emit(Event::Message(message));
    }

    /// Warns of the pending creates without an id: they stay pending, because their resources cannot be read.
    pub(super) fn report_pending_creates(&self, snapshot: &Snapshot) {
        let pending = snapshot.pending_operations.iter().filter(|operation| operation.is_create_without_id());
        let with_entry = |operation: &PendingOperation| -> PendingWithEntry {
            (operation.clone(), live_resource(snapshot, &operation.resource.urn).cloned())
        };
        let pending: Vec<PendingWithEntry> = pending.map(with_entry).collect();
        pending_operation_warnings(&pending).into_iter().for_each(|warning| self.events.emit(Event::Message(warning)));
    }

    /// Refuses to create resources that a preview would create although they may exist.
    ///
    /// # Errors
    /// [`OperationError::MayExist`].
    pub(super) fn refuse_pending_creates(&self, preview: &Report) -> Result<(), OperationError> {
        if self.options.pending.recreates || preview.may_exist.is_empty() {
            return Ok(());
        }
        Err(OperationError::MayExist(preview.may_exist.iter().cloned().collect()))
    }
}

impl Opened {
    /// Returns the run on the opened stack.
    pub(super) fn run(&self, run: &StackRun) -> StackRun {
        let mut run = run.clone();
        run.imported.clone_from(&self.guard);
        run.options.deployment.clone_from(&self.deployment);
        run.options.deployment.refuses_pending_creates = !run.options.pending.recreates;
        run
    }

    /// Unlocks the stack after a run that has recorded nothing. Saves what was resolved before it.
    pub(super) async fn close_unchanged(self) -> Result<(), StateError> {
        if self.is_resolved { self.state.close(self.snapshot, None).await } else { self.state.release().await }
    }

    /// Unlocks the stack after a refresh that was refused: nothing of it is recorded, and if it was refused because of a wrong
    /// id, neither are the imports before it.
    pub(super) async fn close_refused(self) -> Result<(), StateError> {
        match &self.guard {
            Some(guard) if guard.has_refused.load(Ordering::Relaxed) => {
                let before = self.state.snapshot().clone();
                self.state.close(before, None).await
            }
            _ => self.close_unchanged().await,
        }
    }
}

/// Removes the pending creates with [`PendingCreateResolution::Clear`], and returns import goals for those with
/// [`PendingCreateResolution::Import`], which stay pending until they are imported, and the URNs of the removed ones.
fn apply_resolutions(
    snapshot: &mut Snapshot,
    resolutions: &[(String, PendingCreateResolution)],
) -> Result<(Vec<ImportGoal>, Vec<Urn>), OperationError> {
    let (mut imports, mut cleared) = (Vec::new(), Vec::new());
    for (name, resolution) in resolutions {
        let pattern = pattern_of(snapshot, name)?;
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
    let urn_at =
        |index: &usize| snapshot.pending_operations.get(*index).map(|operation| operation.resource.urn.clone());
    let urns = cleared.iter().filter_map(urn_at).collect();
    let mut index = 0..;
    snapshot.pending_operations.retain(|_| index.next().is_none_or(|index| !cleared.contains(&index)));
    Ok((imports, urns))
}

/// Returns the pattern of the pending creates that a text names: by name, URN, `TYPE::NAME`, or the key of one.
///
/// # Errors
/// [`OperationError::SeveralNames`]: the key is one of several.
fn pattern_of(snapshot: &Snapshot, text: &str) -> Result<UrnPattern, OperationError> {
    let pattern = UrnPattern::new(text);
    let urns = || pending_creates(snapshot).map(|operation| &operation.resource.urn);
    if urns().any(|urn| pattern.matches(urn)) {
        return Ok(pattern);
    }
    let names: Vec<&str> = urns().map(Urn::name).collect();
    let names: Vec<&str> = names_of_key(text, names.iter().copied()).into_iter().collect();
    match names[..] {
        [] => Ok(pattern),
        [name] => Ok(UrnPattern::new(name)),
        _ => {
            let names = names.into_iter().map(str::to_owned).collect();
            Err(OperationError::SeveralNames { key: text.to_owned(), names })
        }
    }
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

/// Removes the pending create of each goal that is now recorded with its id, and returns these resources. A second goal for the
/// same URN removes none, because its import was rejected. `before` is the snapshot before the imports.
fn remove_resolved_creates(
    snapshot: &mut Snapshot,
    before: &Snapshot,
    imports: &[ImportGoal],
) -> Vec<(Urn, ResourceId)> {
    let (mut seen, mut imported): (Vec<Urn>, Vec<_>) = (Vec::new(), Vec::new());
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
            imported.push((urn.clone(), goal.id.clone()));
        }
        seen.push(urn);
    }
    imported
}
