//! The deployment itself: one task that owns the tables and polls everything under way.
//!
//! The program talks to it through [`Deployment`]; what it asks becomes jobs that this task polls beside the providers'
//! answers. So nothing that began is lost because somebody stopped waiting for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bridge::host::{MonitorEndpoint, ProviderHost};
use bridge::provider::Provider;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use hashbrown::HashMap;
use pulumi_proto::urn::Urn;
use tokio::sync::{Notify, OnceCell, RwLock, Semaphore, mpsc, oneshot, watch};

use crate::events::{Event, EventSink, Message, Operation, Outcome, Phase, Severity, Summary};
use crate::state::secrets::SecretsError;
use crate::state::{
    Effect, OperationId, OperationKind, PendingOperation, Record, ResourceState, Snapshot, StateError, StateRecorder,
    free_aside,
};

use super::decide::autonaming::Naming;
use super::decide::condemn::Entry;
use super::options::{DeploymentOptions, StopSignals};
use super::providers::{Instance, Job, Providers};
use super::registrar::{Refused, Registered};
use super::tables::Tables;
use crate::events::SourceRef;

/// What the parts of a deployment share.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) options: DeploymentOptions,
    pub(super) providers: Providers,
    pub(super) jobs: mpsc::UnboundedSender<Job>,
    tables: Mutex<Tables>,
    recorder: tokio::sync::Mutex<Option<RecorderBox>>,
    secrets_ready: OnceCell<()>,
    sink: SinkBox,
    /// How many resources may be worked on at once.
    pub(super) slots: Semaphore,
    /// Held for reading while a registration is undecided, for writing by who must see a decided picture.
    pub(super) deciding: RwLock<()>,
    /// Whether all that is to be read before anything is decided has been read.
    read_first: watch::Sender<bool>,
    /// Rung when a URN is settled.
    pub(super) progress: Notify,
    /// Providers that the first who wants them registers: default ones by package, version and download URL, those of
    /// imports by URN.
    pub(super) lazy_providers: Mutex<HashMap<String, Arc<OnceCell<Option<Registered>>>>>,
    /// Something went wrong: the run fails.
    failed: AtomicBool,
    /// A step failed: nothing new starts, unless the user wants to go on.
    stumbled: AtomicBool,
    /// Nothing new starts, whatever the user wants.
    broken: AtomicBool,
    pub(super) signals: StopSignals,
    /// Physical names that the configuration proposes, or what is wrong with it.
    pub(super) naming: Result<Naming, String>,
    /// Where component plugins register what they make; from the first one on.
    pub(super) monitor: OnceCell<MonitorEndpoint>,
}

struct RecorderBox(Box<dyn StateRecorder>);
struct SinkBox(Arc<dyn EventSink>);

impl std::fmt::Debug for RecorderBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("recorder")
    }
}

impl std::fmt::Debug for SinkBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("sink")
    }
}

impl Engine {
    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn preview(&self) -> bool {
        self.options.preview
    }

    pub(super) fn emit(&self, event: Event) {
        self.sink.0.emit(event);
    }

    /// Notes that the run fails in the end, and goes on.
    pub(super) fn note_complaint(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Notes that something failed; without continue-on-error nothing new starts.
    pub(super) fn note_failure(&self) {
        self.note_complaint();
        self.stumbled.store(true, Ordering::Relaxed);
        self.progress.notify_waiters();
    }

    /// Notes a failure after which nothing new starts, whatever the user said.
    pub(super) fn note_break(&self) {
        self.note_failure();
        self.broken.store(true, Ordering::Relaxed);
        self.progress.notify_waiters();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether nothing new may start.
    pub(super) fn halted(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
            || self.signals.stop.is_cancelled()
            || (self.stumbled.load(Ordering::Relaxed) && !self.options.continue_on_error)
    }

    /// Tells of an error of a resource.
    pub(super) fn complain(&self, urn: &Urn, source: Option<SourceRef>, message: Message) {
        self.emit(Event::Message(Message { severity: Severity::Error, urn: Some(urn.clone()), source, ..message }));
    }

    /// Tells of an error of a resource that no step of it failed for, and ends the run.
    pub(super) fn break_off(&self, urn: &Urn, source: Option<SourceRef>, message: Message) {
        self.complain(urn, source, message);
        self.note_break();
    }

    /// Ends an instance that nobody has been told of, beside everything else.
    pub(super) fn close_later(self: &Arc<Self>, provider: Arc<dyn Provider>) {
        let engine = Arc::clone(self);
        let closing = async move {
            provider.close().await;
            engine.providers.closed(&provider);
        };
        // Nobody takes the job only once the deployment has ended, which closes every instance anyway.
        self.jobs.send(closing.boxed()).ok();
    }

    /// Ends an instance beside everything else, once nobody works with it any more.
    pub(super) fn retire(self: &Arc<Self>, instance: Arc<Instance>) {
        let (provider, idle) = instance.retire();
        let engine = Arc::clone(self);
        let closing = async move {
            idle.await;
            provider.close().await;
            engine.providers.closed(&provider);
        };
        self.jobs.send(closing.boxed()).ok();
    }

    /// Runs something as a job of the deployment, so that it goes on even if the caller stops waiting.
    ///
    /// The work is boxed, for what waits its turn by the thousand has to be small.
    pub(super) async fn job<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> BoxFuture<'static, Result<T, Refused>>,
    ) -> Result<T, Refused> {
        let (sender, answer) = oneshot::channel();
        let mut read_first = self.read_first.subscribe();
        let work = work(Arc::clone(self));
        let job = async move {
            // Whoever decides by what is recorded must not do so while that is still being read.
            read_first.wait_for(|read| *read).await.ok();
            drop(sender.send(work.await));
        };
        self.jobs.send(job.boxed()).map_err(|_| Refused)?;
        answer.await.unwrap_or(Err(Refused))
    }

    /// Notes that a URN that was decided is done, and with it the name of the entry that it took over, unless that is
    /// carried over by somebody else.
    pub(super) fn settle(&self, urn: &Urn) {
        {
            let tables = &mut *self.tables();
            let recorded = tables.alias_of.get(urn).map(|loaded| tables.name_now(loaded));
            let recorded = recorded.filter(|recorded| !tables.carried.contains(recorded));
            tables.settled.extend(recorded);
            tables.settled.insert(urn.clone());
        }
        self.progress.notify_waiters();
    }

    /// Waits until everything that an entry refers to, and that this run has decided on, is done.
    pub(super) async fn wait_for_references(&self, state: &ResourceState) {
        self.wait_until(|tables| {
            let provider = state.provider.iter().map(|provider| &provider.urn);
            provider.chain(state.references()).all(|urn| {
                let urn = tables.aliased.get(urn).unwrap_or(urn);
                !tables.begun(urn) || tables.settled.contains(urn)
            })
        })
        .await;
    }

    /// Waits until the chain that carries an entry over has done so, if one does.
    pub(super) async fn wait_until_carried(&self, urn: &Urn) {
        self.wait_until(|tables| !tables.carried.contains(urn) || tables.settled.contains(urn)).await;
    }

    /// Waits until something holds that comes with the settling of URNs, or nothing new may start.
    async fn wait_until(&self, holds: impl Fn(&Tables) -> bool) {
        loop {
            let rung = self.progress.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            if holds(&self.tables()) || self.halted() {
                return;
            }
            rung.await;
        }
    }

    /// Waits until nothing that refers to an entry is being deleted, nor what it refers to, and notes that the entry now is.
    ///
    /// Two chains may have decided on their own to delete the one and the other: they go one after the other then. Who is
    /// noted waits for nobody any more, so this comes to an end.
    pub(super) async fn begin_deletion(&self, entry: &Entry) {
        loop {
            let rung = self.progress.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            {
                let mut tables = self.tables();
                let refers = |state: &Arc<ResourceState>| {
                    let provider = state.provider.iter().map(|provider| &provider.urn);
                    provider.chain(state.references()).any(|urn| *urn == entry.1.urn)
                };
                let needs = |state: &Arc<ResourceState>| entry.1.references().any(|urn| *urn == state.urn);
                if !tables.deleting.values().any(|state| refers(state) || needs(state)) {
                    tables.deleting.insert(entry.0, Arc::clone(&entry.1));
                    return;
                }
            }
            rung.await;
        }
    }

    /// Notes that an entry is not being deleted any more.
    pub(super) fn end_deletion(&self, entry: &Entry) {
        self.tables().deleting.remove(&entry.0);
        self.progress.notify_waiters();
    }

    /// Writes a record down and takes it in. What could not be written is taken in all the same, so that the state at the
    /// end knows of it; only what was to begin must then not happen.
    ///
    /// The record is made once nothing else can be written in between, from the list as it then is.
    async fn write(&self, record: impl FnOnce(&Tables) -> Record) -> Result<(), StateError> {
        let mut recorder = self.recorder.lock().await;
        let record = record(&self.tables());
        if matches!(&record, Record::Change(effects) if effects.is_empty()) {
            return Ok(());
        }
        let written = match &mut *recorder {
            Some(RecorderBox(recorder)) => self.append(recorder.as_mut(), &record).await,
            None => Ok(()),
        };
        if written.is_ok() || !matches!(record, Record::Begin { .. }) {
            self.tables().ledger.apply(&record);
        }
        written
    }

    /// Nothing may begin whose outcome could not be written down for want of a key; what merely confirms or forgets entries
    /// needs none, unless there are secrets in it.
    async fn append(&self, recorder: &mut dyn StateRecorder, record: &Record) -> Result<(), StateError> {
        if self.secrets_ready.get().is_none() {
            if !matches!(record, Record::Begin { .. }) {
                match recorder.append(record) {
                    Err(StateError::Secrets(SecretsError::KeyNeeded)) => {}
                    written => return written,
                }
            }
            recorder.secrets_ready().await?;
            self.secrets_ready.set(()).ok();
        }
        recorder.append(record)
    }

    /// Records that an operation is about to begin.
    pub(super) async fn begin(
        &self,
        kind: OperationKind,
        resource: &Arc<ResourceState>,
    ) -> Result<OperationId, StateError> {
        let operation = self.tables().ledger.new_operation();
        if !self.preview() {
            self.write(|tables| Record::Begin { operation, kind, subject: tables.ledger.subject(resource) }).await?;
        }
        Ok(operation)
    }

    /// Records what came of an operation, or what changed without one.
    pub(super) async fn end(
        &self,
        operation: Option<OperationId>,
        effects: impl FnOnce(&Tables) -> Vec<Effect>,
    ) -> Result<(), StateError> {
        self.write(|tables| match operation {
            Some(operation) => Record::End { operation, effects: effects(tables) },
            None => Record::Change(effects(tables)),
        })
        .await
    }

    /// Records that nothing came of an operation.
    pub(super) async fn end_without_effect(&self, operation: Option<OperationId>) -> Result<(), StateError> {
        self.end(operation, |_| Vec::new()).await
    }

    /// Records what may be lost in a crash without harm. All of it survives or nothing does.
    pub(super) async fn defer(&self, effects: impl FnOnce(&Tables) -> Vec<Effect>) {
        let mut recorder = self.recorder.lock().await;
        let effects = effects(&self.tables());
        if effects.is_empty() {
            return;
        }
        let record = Record::Change(effects);
        self.tables().ledger.apply(&record);
        if let Some(RecorderBox(recorder)) = &mut *recorder {
            recorder.defer(record);
        }
    }
}

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
        let engine = Arc::new(Engine {
            providers: Providers::new(host),
            jobs,
            tables: Mutex::new(Tables::new(snapshot)),
            recorder: tokio::sync::Mutex::new(recorder.map(RecorderBox)),
            secrets_ready: OnceCell::new(),
            sink: SinkBox(sink),
            slots: Semaphore::new(options.parallel.max(1)),
            deciding: RwLock::new(()),
            read_first: watch::Sender::new(false),
            progress: Notify::new(),
            lazy_providers: Mutex::default(),
            failed: AtomicBool::new(false),
            stumbled: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            signals,
            naming: Naming::read(&options.config, &options.project, &options.stack),
            monitor: OnceCell::new(),
            options,
        });
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
    if engine.check_names() {
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
