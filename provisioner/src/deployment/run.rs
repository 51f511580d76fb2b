//! The deployment itself: one task that owns the tables and polls everything under way.
//!
//! The program talks to it through [`Deployment`]; what it asks becomes jobs that this task polls beside the providers'
//! answers. So nothing that began is lost because somebody stopped waiting for it.

use std::sync::Arc;
use std::time::Instant;

use bridge::host::ProviderHost;
use futures_util::StreamExt as _;
use futures_util::future::FutureExt as _;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::urn::Urn;
use tokio::sync::{mpsc, oneshot};

use crate::events::{Event, EventSink, Message, Operation, Outcome, Phase, Severity, Summary};
use crate::state::{PendingOperation, ResourceState, Snapshot, StateRecorder, free_aside};

use super::decide::deletes::{Deletion, Undeletable, deletion};
use super::engine::Engine;
use super::options::{DeploymentOptions, StopSignals};
use super::providers::Job;
use super::report;
use super::tables::Tables;

/// Drives a deployment: the door for programs, and the way to end it.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub(super) engine: Arc<Engine>,
    ends: mpsc::UnboundedSender<(ProgramEnd, oneshot::Sender<()>)>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It registered all it had to.
    Completed,
    /// It gave up: nothing is deleted.
    Failed,
}

/// What a deployment came to.
#[derive(Debug)]
pub struct DeploymentEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The list as it is now, pending operations included. Of a preview: as it would be.
    pub snapshot: Snapshot,
    /// What was counted.
    pub summary: Summary,
}

impl Deployment {
    /// Prepares a deployment: the handle for its program, and the future that does the work, to be polled beside it.
    ///
    /// `recorder` is `None` in previews.
    pub fn new(
        options: DeploymentOptions,
        snapshot: Snapshot,
        host: Arc<dyn ProviderHost>,
        recorder: Option<Box<dyn StateRecorder>>,
        sink: Arc<dyn EventSink>,
        signals: StopSignals,
    ) -> (Self, impl Future<Output = DeploymentEnd>) {
        let (jobs, job_queue) = mpsc::unbounded_channel();
        let (ends, end_queue) = mpsc::unbounded_channel();
        let engine = Arc::new(Engine::new(options, snapshot, host, recorder, sink, signals, jobs));
        let run = run(Arc::clone(&engine), job_queue, end_queue);
        (Self { engine, ends }, run)
    }

    /// Says that the program has ended. The deployment then finishes what is under way and deletes what nobody
    /// registered.
    pub async fn finish(&self, end: ProgramEnd) {
        let (sender, taken) = oneshot::channel();
        if self.ends.send((end, sender)).is_ok() {
            // An error says that the deployment has ended already.
            taken.await.ok();
        }
    }
}

async fn run(
    engine: Arc<Engine>,
    jobs: mpsc::UnboundedReceiver<Job>,
    ends: mpsc::UnboundedReceiver<(ProgramEnd, oneshot::Sender<()>)>,
) -> DeploymentEnd {
    let started = Instant::now();
    let phase = Phase { operation: engine.options.operation, preview: engine.preview() };
    engine.emit(Event::PhaseStarted(phase));

    let abort = engine.signals.abort.clone();
    let mut under_way = UnderWay { jobs, running: FuturesUnordered::new() };
    let interrupted = tokio::select! {
        biased;
        () = abort.cancelled() => true,
        interrupted = phases(&engine, &mut under_way, ends) => interrupted,
    };
    drop(under_way);
    engine.providers.close_all().await;

    let outcome = match (interrupted, engine.has_failed()) {
        (true, _) => Outcome::Canceled,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::Succeeded,
    };
    let (snapshot, changes) = {
        let mut tables = engine.tables();
        let snapshot = tables.ledger.snapshot();
        let changes = std::mem::take(&mut tables.counts);
        free_aside(std::mem::replace(&mut *tables, Tables::new(Snapshot::default())));
        (snapshot, changes)
    };
    let summary = Summary { phase, changes, outcome, duration: started.elapsed() };
    engine.emit(Event::PhaseEnded(summary.clone()));
    DeploymentEnd { outcome, snapshot, summary }
}

/// What a deployment is polling.
struct UnderWay {
    jobs: mpsc::UnboundedReceiver<Job>,
    running: FuturesUnordered<Job>,
}

impl UnderWay {
    /// Polls everything under way until the given work is done.
    async fn until<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(job) = self.jobs.recv() => self.running.push(job),
                Some(()) = self.running.next() => {}
                outcome = &mut work => return outcome,
            }
        }
    }

    /// Polls everything under way until nothing is left.
    async fn settle(&mut self) {
        loop {
            while let Ok(job) = self.jobs.try_recv() {
                self.running.push(job);
            }
            if self.running.next().await.is_none() {
                return;
            }
        }
    }
}

/// Refresh, program, deletes. Says whether the user ended it with work left undone.
async fn phases(
    engine: &Arc<Engine>,
    under_way: &mut UnderWay,
    mut ends: mpsc::UnboundedReceiver<(ProgramEnd, oneshot::Sender<()>)>,
) -> bool {
    let canceller = Arc::clone(engine);
    let cancel = async move {
        canceller.signals.stop.cancelled().await;
        canceller.progress.notify_waiters();
        canceller.providers.cancel_all().await;
    };
    // Polled with the rest, and dropped with the rest if nobody stops the run.
    let mut cancel = Box::pin(cancel.fuse());

    engine.tell_pending_operations();
    let mut left_undone = false;
    if engine.check_names() && engine.check_hooks() {
        let refresh = engine.refresh_first();
        left_undone = with_cancel(&mut cancel, under_way.until(refresh)).await;
    }
    engine.read_first.send_replace(true);

    if engine.has_program() {
        let ended = with_cancel(&mut cancel, under_way.until(ends.recv())).await;
        with_cancel(&mut cancel, under_way.settle()).await;
        left_undone |= engine.signals.stop.is_cancelled();
        match ended {
            Some((ProgramEnd::Completed, taken)) => {
                taken.send(()).ok();
            }
            Some((ProgramEnd::Failed, taken)) => {
                taken.send(()).ok();
                engine.note_break();
            }
            None => engine.note_break(),
        }
    }
    if engine.options.operation == Operation::Import && !engine.halted() {
        left_undone |= with_cancel(&mut cancel, under_way.until(engine.import_all())).await;
    }
    engine.check_targets_found();
    if engine.halted() {
        left_undone |= engine.work_follows() && engine.signals.stop.is_cancelled();
    } else {
        left_undone |= with_cancel(&mut cancel, under_way.until(engine.refresh_the_rest())).await;
        if engine.deletes_follow() {
            left_undone |= with_cancel(&mut cancel, under_way.until(engine.delete_the_rest())).await;
        }
    }
    with_cancel(&mut cancel, under_way.settle()).await;
    engine.rename_leftovers().await;
    with_cancel(&mut cancel, under_way.until(engine.settle_stack_outputs())).await;
    with_cancel(&mut cancel, under_way.settle()).await;
    left_undone || (engine.signals.stop.is_cancelled() && engine.has_failed())
}

async fn with_cancel<T>(
    cancel: &mut (impl futures_util::future::FusedFuture<Output = ()> + Unpin),
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = &mut *cancel, if !cancel.is_terminated() => {}
            outcome = &mut work => return outcome,
        }
    }
}

impl Engine {
    /// Whether a program drives this deployment.
    pub(super) fn has_program(&self) -> bool {
        self.options.has_program()
    }

    fn deletes_follow(&self) -> bool {
        matches!(self.options.operation, Operation::Update | Operation::Destroy)
    }

    /// Refuses to destroy what has hooks to be run with its deletion: only the program that registered them can (section 5.3).
    /// False if the run cannot go on.
    fn check_hooks(&self) -> bool {
        if self.options.operation != Operation::Destroy {
            return true;
        }
        let hooked: Vec<Urn> = {
            let tables = self.tables();
            let hooked = |state: &ResourceState| {
                // Protected or not; what goes with its owner is looked at when it does not.
                let with_its_owner = state.deleted_with.is_some();
                deletion(state, true, with_its_owner, false) == Deletion::Refused(Undeletable::Hooked)
            };
            let entries = tables.base.iter().filter(|(_, state)| hooked(state));
            entries.map(|(_, state)| state.urn.clone()).collect()
        };
        for urn in &hooked {
            let mut message = Message::new(Severity::Error, report::undeletable("it", Undeletable::Hooked));
            message.hint = report::undeletable_hint(urn, Undeletable::Hooked);
            self.complain(urn, None, message);
        }
        if !hooked.is_empty() {
            self.note_break();
        }
        hooked.is_empty()
    }

    /// Whether anything is done once the program has ended.
    fn work_follows(&self) -> bool {
        self.deletes_follow() || self.has_program()
    }

    /// Tells of what an earlier run began and did not end.
    fn tell_pending_operations(&self) {
        if self.preview() || self.options.operation == Operation::Refresh {
            return;
        }
        let pending: Vec<PendingOperation> = self.tables().ledger.base().pending_operations.clone();
        let settled = |urn: &Urn| self.options.imports.iter().any(|goal| self.urn_of(goal) == *urn);
        for PendingOperation { resource, kind } in pending.into_iter().filter(|it| !settled(&it.resource.urn)) {
            self.emit(Event::Message(super::report::interrupted(&resource.urn, kind)));
        }
    }
}
