//! What the parts of a deployment share: the tables, what is waited for, and the records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bridge::host::{MonitorEndpoint, ProviderHost};
use bridge::provider::Provider;
use futures_util::future::{BoxFuture, FutureExt as _};
use hashbrown::HashMap;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use tokio::sync::{Notify, OnceCell, RwLock, Semaphore, mpsc, oneshot, watch};

use crate::events::{Event, EventSink, Message, Severity, SourceRef};
use crate::state::secrets::SecretsError;
use crate::state::{Effect, OperationId, OperationKind, Record, ResourceState, Snapshot, StateError, StateRecorder};

use super::decide::autonaming::Naming;
use super::decide::condemn::Entry;
use super::options::{DeploymentOptions, StopSignals};
use super::providers::{Instance, Job, Providers};
use super::registrar::{Refused, Registered};
use super::tables::Tables;

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
    pub(super) read_first: watch::Sender<bool>,
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
    /// An engine that has done nothing yet.
    pub(super) fn new(
        options: DeploymentOptions,
        snapshot: Snapshot,
        host: Arc<dyn ProviderHost>,
        recorder: Option<Box<dyn StateRecorder>>,
        sink: Arc<dyn EventSink>,
        signals: StopSignals,
        jobs: mpsc::UnboundedSender<Job>,
    ) -> Self {
        Self {
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
        }
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn preview(&self) -> bool {
        self.options.preview
    }

    pub(super) fn emit(&self, event: Event) {
        self.sink.0.emit(event);
    }

    /// Says which secrets a provider is about to be told.
    pub(super) fn tell_secrets(&self, values: &PropertyMap) {
        let secret = values.iter().filter(|(_, value)| value.contains_secrets());
        let secret: PropertyMap = secret.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !secret.is_empty() {
            self.emit(Event::SecretsTold(Arc::new(secret)));
        }
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
                let loaded = tables.as_loaded(entry).1;
                let refers = |state: &Arc<ResourceState>| {
                    let provider = state.provider.iter().map(|provider| &provider.urn);
                    provider.chain(state.references()).any(|urn| *urn == loaded.urn)
                };
                let needs = |state: &Arc<ResourceState>| loaded.references().any(|urn| *urn == state.urn);
                if !tables.deleting.values().any(|state| refers(state) || needs(state)) {
                    tables.deleting.insert(entry.0, loaded);
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
