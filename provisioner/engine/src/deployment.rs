//! The deployment: the handle that programs drive it with, and the one task that polls everything and orders the
//! phases.
//!
//! Each request of a program becomes a job that this task polls together with the replies of providers, so the request
//! goes on even if its caller stops waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bridge::host::{PackageTypes, ProviderHost};
use futures_util::future::{FusedFuture, FutureExt as _, try_join_all};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use state::{Snapshot, StateRecorder, drop_in_background};
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument as _, debug_span, info_span};

use crate::context::{Context, InitialRefresh, Parts, host_error};
use crate::deployment_state::DeploymentState;
use crate::events::{Event, EventSink, Operation, Outcome, Phase, Summary};
use crate::goal::{Goal, InvokeGoal, ReadGoal};
use crate::jobs::JobQueue;
use crate::missing::ProviderReadings;
use crate::options::{DeploymentRequest, StopSignals};
use crate::phases::{self, PhaseEnd};
use crate::registrar::{Announcement, Halted, Registered, Registrar};
use crate::reporter::Failure;
use crate::resource_monitor::ResourceMonitor;

/// Handle of a deployment, with which a program registers resources and reports its end.
#[derive(Clone, Debug)]
pub struct Deployment {
    context: Arc<Context>,
    ends: mpsc::UnboundedSender<(ProgramEnd, oneshot::Sender<()>)>,
}

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// The program registered all its resources.
    Completed,
    /// The program failed, so a missing registration does not mean that the user removed the resource: the deployment
    /// neither deletes resources nor reads the unregistered ones.
    Failed,
}

/// Result of a deployment.
#[derive(Debug)]
pub struct DeploymentEnd {
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Snapshot at the end of the run, pending operations included. In a preview, the snapshot that the run would
    /// record.
    pub snapshot: Snapshot,
    /// Summary of the run, as in [`Event::PhaseEnded`].
    pub summary: Summary,
    /// Results of reading recorded resources, by provider.
    pub readings: Vec<ProviderReadings>,
    /// URNs of the resources that were deleted; in a preview, of those that would be.
    pub deleted: BTreeSet<Urn>,
    /// URNs of the resources with pending creates of earlier runs that the run has created again, or would in a preview.
    pub may_exist: BTreeSet<Urn>,
    /// True if [`DeploymentRequest::missing`] refused the refresh, and nothing was recorded.
    pub is_refused: bool,
}

impl Deployment {
    /// Returns the handle for the program of a deployment, and the future that does the work. The caller polls both
    /// concurrently.
    ///
    /// `recorder` is `None` in previews.
    pub fn new(
        request: DeploymentRequest,
        snapshot: Snapshot,
        host: Arc<dyn ProviderHost>,
        recorder: Option<Box<dyn StateRecorder>>,
        sink: Arc<dyn EventSink>,
        signals: StopSignals,
    ) -> (Self, impl Future<Output = DeploymentEnd>) {
        let (jobs, queue) = JobQueue::new();
        let (ends, end_queue) = mpsc::unbounded_channel();
        let context = Arc::new_cyclic(|context| {
            let monitor = Arc::new(ResourceMonitor::new(context.clone(), &request));
            Context::new(request, Parts { snapshot, host, recorder, sink, signals, jobs, monitor })
        });
        let run = run(Arc::clone(&context), queue, end_queue);
        (Self { context, ends }, run)
    }

    /// Reports the end of the program, and returns once the deployment has completed all jobs. After a completed
    /// program, an update deletes the unregistered resources, a refresh reads them, and a destroy deletes all
    /// resources in scope.
    pub async fn finish(&self, end: ProgramEnd) {
        let (sender, taken) = oneshot::channel();
        if self.ends.send((end, sender)).is_ok() {
            // An error means that the deployment has ended already.
            taken.await.ok();
        }
    }
}

#[async_trait]
impl Registrar for Deployment {
    fn is_preview(&self) -> bool {
        self.context.is_preview()
    }

    fn changes_resources(&self) -> bool {
        !self.context.is_preview() && self.context.request.operation == Operation::Update
    }

    fn parallel(&self) -> usize {
        self.context.request.options.parallel.max(1)
    }

    async fn package_types(&self, plugins: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted> {
        let host = self.context.providers.host();
        let load = async |plugin: String| host.package_types(&plugin).await.map(|types| (plugin, types));
        let signals = &self.context.signals;
        let types = tokio::select! {
            types = try_join_all(plugins.into_iter().map(load)) => types,
            // No resource is registered after a stop or an abort.
            () = signals.stop.cancelled() => return Err(Halted::Stopped),
            () = signals.abort.cancelled() => return Err(Halted::Stopped),
        };
        let types = types.map_err(|error| self.context.report_general_error(host_error(error), Failure::Fatal))?;
        Ok(types.into_iter().collect())
    }

    fn announce(&self, Announcement { goals, incomplete_packages }: Announcement) {
        let request = &self.context.request;
        // The root stack is none of the goals.
        self.context.emit(Event::PhaseTotal(recorded_count(&self.context).max(goals.len() + 1)));
        let with_urn = |goal: Goal| {
            let parent = goal.parent.as_ref();
            (Urn::new(&request.stack, &request.project, parent, goal.type_token.as_str(), &goal.name), goal)
        };
        self.context.state().announce(goals.into_iter().map(with_urn), incomplete_packages);
    }

    async fn register(&self, goal: Goal) -> Result<Registered, Halted> {
        let (type_token, name) = (&goal.type_token, &goal.name);
        let span = debug_span!(parent: None, "job", kind = "register", r#type = %type_token, %name);
        self.context.run_job(span, |ctx| async move { phases::register(&ctx, goal).await }.boxed()).await
    }

    async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Halted> {
        let urn = urn.clone();
        let span = debug_span!(parent: None, "job", kind = "outputs", %urn);
        let work = |ctx: Arc<Context>| async move { phases::register_outputs(&ctx, &urn, outputs).await }.boxed();
        self.context.run_job(span, work).await
    }

    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted> {
        let (type_token, name) = (&goal.type_token, &goal.name);
        let span = debug_span!(parent: None, "job", kind = "read", r#type = %type_token, %name);
        self.context.run_job(span, |ctx| async move { phases::read(&ctx, goal).await }.boxed()).await
    }

    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Halted> {
        let span = debug_span!(parent: None, "job", kind = "invoke", function = %goal.token);
        self.context.run_job(span, |ctx| async move { phases::invoke(&ctx, goal).await }.boxed()).await
    }
}

type ProgramEnds = mpsc::UnboundedReceiver<(ProgramEnd, oneshot::Sender<()>)>;

async fn run(ctx: Arc<Context>, mut queue: JobQueue, ends: ProgramEnds) -> DeploymentEnd {
    let started = Instant::now();
    let phase = Phase { operation: ctx.request.operation, preview: ctx.is_preview() };
    ctx.emit(Event::PhaseStarted(phase));
    ctx.emit(Event::PhaseTotal(recorded_count(&ctx).max(ctx.request.options.imports.len())));

    let abort = ctx.signals.abort.clone();
    let end = tokio::select! {
        biased;
        () = abort.cancelled() => PhaseEnd::Stopped,
        end = run_phases(&ctx, &mut queue, ends) => end,
    };
    drop(queue);
    ctx.providers.close_all().await;

    let outcome = match (end, ctx.reporter.has_failed(Failure::AtEnd)) {
        (PhaseEnd::Stopped, _) => Outcome::Canceled,
        (PhaseEnd::Complete, true) => Outcome::Failed,
        (PhaseEnd::Complete, false) => Outcome::Succeeded,
    };
    let (snapshot, changes, deletions, deleted, may_exist, readings, is_refused) = {
        let mut state = ctx.state();
        let snapshot = state.ledger_mut().snapshot();
        let changes = state.take_counts();
        let (deleted, may_exist) = (state.take_deleted_urns(), state.take_creations_that_may_exist());
        let (deletions, readings, is_refused) = (state.deletions(), state.readings(), state.is_refresh_refused());
        drop_in_background(std::mem::replace(&mut *state, DeploymentState::new(Snapshot::default())));
        (snapshot, changes, deletions, deleted, may_exist, readings, is_refused)
    };
    let journal = ctx.records.segment_statistics().await;
    let summary = Summary { phase, changes, deletions, outcome, duration: started.elapsed(), journal };
    ctx.emit(Event::PhaseEnded(summary.clone()));
    DeploymentEnd { outcome, snapshot, summary, readings, deleted, may_exist, is_refused }
}

/// Returns the number of recorded resources that the display shows.
fn recorded_count(ctx: &Context) -> usize {
    let state = ctx.state();
    state.loaded_entries().iter().filter(|(_, entry)| !entry.is_default_provider()).count()
}

/// Runs the phases: refresh, program or import, deletion of unregistered resources.
async fn run_phases(ctx: &Arc<Context>, queue: &mut JobQueue, mut ends: ProgramEnds) -> PhaseEnd {
    let canceller = Arc::clone(ctx);
    let cancel = async move {
        canceller.signals.stop.cancelled().await;
        canceller.shared.wake();
        canceller.providers.cancel_all().await;
    };
    // Polled together with the phases, and dropped with them if the run is not stopped.
    let mut cancel = Box::pin(cancel.fuse());

    phases::report_pending_operations(ctx);
    let mut end = PhaseEnd::Complete;
    if phases::check_names(ctx).and_then(|()| phases::check_hooks(ctx)).is_ok() {
        let refresh = phases::refresh_first(ctx).boxed().instrument(info_span!("phase", name = "refresh"));
        end = poll_with_cancel(&mut cancel, queue.run_until(refresh)).await;
    }
    ctx.initial_refresh.send_replace(InitialRefresh::Done);

    if ctx.request.has_program() {
        let program = ends.recv().instrument(info_span!("phase", name = "program"));
        let program_end = poll_with_cancel(&mut cancel, queue.run_until(program)).await;
        poll_with_cancel(&mut cancel, queue.run_to_end()).await;
        end = end.and(PhaseEnd::of_program(ctx));
        let program_end = program_end.map(|(program_end, received)| {
            received.send(()).ok();
            program_end
        });
        match program_end {
            Some(ProgramEnd::Completed) => {}
            Some(ProgramEnd::Failed) | None => {
                ctx.reporter.program_failed();
                ctx.shared.wake();
            }
        }
    }
    if ctx.request.operation == Operation::Import && !ctx.is_halted() {
        let import = phases::import_all(ctx).boxed().instrument(info_span!("phase", name = "import"));
        end = end.and(poll_with_cancel(&mut cancel, queue.run_until(import)).await);
    }
    phases::check_targets_found(ctx);
    if ctx.is_halted() {
        // A refresh without the program has no phase after the first one.
        let has_skipped_phase = ctx.request.operation != Operation::Refresh || ctx.request.has_program();
        end = end.and(PhaseEnd::of(ctx, has_skipped_phase));
    } else {
        phases::report_unregistered_replacements(ctx);
        let refresh =
            phases::refresh_unregistered(ctx).boxed().instrument(info_span!("phase", name = "refresh of unregistered"));
        end = end.and(poll_with_cancel(&mut cancel, queue.run_until(refresh)).await);
        if has_deletion_phase(ctx) {
            let deletion = phases::delete_unregistered(ctx).boxed().instrument(info_span!("phase", name = "deletion"));
            end = end.and(poll_with_cancel(&mut cancel, queue.run_until(deletion)).await);
        }
    }
    poll_with_cancel(&mut cancel, queue.run_to_end()).await;
    phases::rename_pending_deletes(ctx).await;
    poll_with_cancel(&mut cancel, queue.run_until(phases::record_stack_outputs(ctx))).await;
    poll_with_cancel(&mut cancel, queue.run_to_end()).await;
    let has_errors = ctx.reporter.has_failed(Failure::AtEnd);
    end.and(PhaseEnd::of(ctx, has_errors))
}

fn has_deletion_phase(ctx: &Context) -> bool {
    matches!(ctx.request.operation, Operation::Update | Operation::Destroy)
}

/// Polls work together with the future that cancels the providers once the user stops the run.
async fn poll_with_cancel<T>(cancel: &mut (impl FusedFuture<Output = ()> + Unpin), work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = &mut *cancel, if !cancel.is_terminated() => {}
            output = &mut work => return output,
        }
    }
}
