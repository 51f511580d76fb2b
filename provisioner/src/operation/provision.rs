//! Provision: refresh, preview and update under one lock.

use std::sync::Arc;

use bridge::host::PluginHost;
use hashbrown::HashSet;
use jiff::Timestamp;
use pulumi_proto::urn::Urn;

use engine::events::{ActivityKind, Operation, Outcome};
use state::format::UpdateKind;
use state::{Snapshot, StateError};

use super::approval::ProvisionOptions;
use super::deploy::DeployMode;
use super::pending_resolution::{Opened, Opening};
use super::{Agreement, OperationError, Report, StackRun};

/// Creates, updates and deletes resources until they match the stack. If there is a preview, `approve` decides about its
/// changes, while the stack is locked, and how many resources the update may delete. Returns `None` if it declines them, or if the user
/// ended the questions about pending creates.
///
/// # Errors
/// [`OperationError`] if plugins do not load, or the state cannot be locked, loaded or saved; the error of `approve`, before
/// anything is changed. Failures of resources are in the report.
///
/// # Cancellation
/// The signals of the run stop it. If the future is dropped, the lock stays held, and started steps stay pending
/// operations.
pub async fn provision<E: From<OperationError>>(
    run: &StackRun,
    options: ProvisionOptions,
    approve: impl AsyncFnOnce(&Report) -> Result<Agreement, E>,
) -> Result<Option<Report>, E> {
    // The refresh has a configured instance of each plugin, and the preview one, beside which the update checks configurations.
    let first_instances = if options.refresh || options.preview { 2 } else { 1 };
    let host = &run.load_plugins(first_instances).await?;
    let started = Timestamp::now().as_second();
    run.check_types(host, Operation::Update).await?;
    let opened = match run.open_and_resolve(host, Operation::Update, started).await? {
        Opening::Opened(opened) => opened,
        Opening::Ended(report) => return Ok(report.map(|report| *report)),
    };
    run.report_pending_creates(&opened.snapshot);
    let mut run = match decide(&opened.run(run), host, &opened.snapshot).await {
        Ok(run) => run,
        Err(error) => {
            opened.close_refused().await.map_err(OperationError::from)?;
            return Err(error.into());
        }
    };
    let mut snapshot = opened.snapshot.clone();
    let refresh = options.refresh && !snapshot.resources.is_empty();
    let refresh_first = refresh && options.preview;

    // A refresh before a preview is a separate deployment, and is recorded. Without a preview the update deployment
    // includes the refresh.
    let mut refreshed = None;
    let urns = snapshot.resources.iter().map(|resource| &resource.urn);
    if refresh_first && let Some(scope) = run.options.deployment.scope.restricted_to(urns) {
        let mut refresh_run = run.clone();
        refresh_run.options.deployment.scope = scope;
        if let Some(refused) = refresh_run.approve_missing_first(host, Operation::Refresh, false, &snapshot).await {
            opened.close_refused().await.map_err(OperationError::from)?;
            return Ok(Some(refused));
        }
        let mode = run.applied_to(&opened.state, UpdateKind::Refresh);
        let report = refresh_run.deploy(host, Operation::Refresh, false, snapshot, mode).await;
        if report.is_refused {
            opened.close_refused().await.map_err(OperationError::from)?;
            return Ok(Some(report));
        }
        let history = run.history(UpdateKind::Refresh, started, &report).await;
        if report.summary.outcome != Outcome::Succeeded {
            let _saving = run.begin(ActivityKind::SaveState);
            opened.state.close(report.snapshot.clone(), Some(&history)).await.map_err(OperationError::from)?;
            return Ok(Some(report));
        }
        refreshed = Some(history);
        snapshot = report.snapshot;
        let remaining: HashSet<&Urn> = snapshot.resources.iter().map(|resource| &resource.urn).collect();
        let before = opened.snapshot.resources.iter().map(|resource| &resource.urn);
        run.options.deployment.removed_by_refresh = before.filter(|urn| !remaining.contains(urn)).cloned().collect();
    }
    if options.preview {
        let mode = DeployMode::Preview(opened.state.secrets());
        let report = run.deploy(host, Operation::Update, false, snapshot.clone(), mode).await;
        let succeeded = report.summary.outcome == Outcome::Succeeded;
        let refused = if succeeded { run.refuse_pending_creates(&report).err() } else { None };
        let agreement = if succeeded && refused.is_none() { approve(&report).await } else { Ok(Agreement::Declined) };
        if let Ok(Agreement::Granted(limit)) = agreement {
            run.options.deployment.deletion_limit = limit;
        } else {
            let _saving = run.begin(ActivityKind::SaveState);
            let closed = match refreshed {
                // A refused run records nothing of its refresh.
                Some(_) if agreement.is_err() => discard(*opened).await,
                Some(history) => opened.state.close(snapshot.clone(), Some(&history)).await,
                // No change was made, so a new stack is not created.
                None => opened.close_unchanged().await,
            };
            closed.map_err(OperationError::from)?;
            agreement?;
            if let Some(refused) = refused {
                return Err(refused.into());
            }
            return Ok((!succeeded).then_some(Report { snapshot, ..report }));
        }
    }
    let refresh_within = refresh && !refresh_first;
    if let Some(refused) = run.approve_missing_first(host, Operation::Update, refresh_within, &snapshot).await {
        opened.close_refused().await.map_err(OperationError::from)?;
        return Ok(Some(refused));
    }
    let mode = run.applied_to(&opened.state, UpdateKind::Update);
    let report = run.deploy(host, Operation::Update, refresh_within, snapshot, mode).await;
    if report.is_refused {
        let closed = if refreshed.is_some() { discard(*opened).await } else { opened.close_refused().await };
        closed.map_err(OperationError::from)?;
        return Ok(Some(report));
    }
    let history = run.history(UpdateKind::Update, started, &report).await;
    let _saving = run.begin(ActivityKind::SaveState);
    opened.state.close(report.snapshot.clone(), Some(&history)).await.map_err(OperationError::from)?;
    Ok(Some(report))
}

/// Returns the run as functions and outputs of other stacks decide it.
pub(super) async fn decide(
    run: &StackRun,
    host: &Arc<PluginHost>,
    recorded: &Snapshot,
) -> Result<StackRun, OperationError> {
    let decided = run.decided(host, recorded).await?;
    if !run.program.stack().deciding.is_empty() {
        decided.check_types(host, Operation::Update).await?;
    }
    decided.refuse_undecided()?;
    Ok(decided)
}

/// Unlocks the stack with the state that it had before the refresh of the run.
async fn discard(opened: Opened) -> Result<(), StateError> {
    opened.state.close(opened.snapshot, None).await
}
