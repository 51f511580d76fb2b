//! Context that all parts of a deployment share: options, state, records, providers, jobs, and reported failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bridge::error::Hint as _;
use bridge::host::{HostError, Monitor, MonitorEndpoint, ProviderHost};
use bridge::message_text::MessageText;
use bridge::provider::Provider;
use futures_util::future::BoxFuture;
use hashbrown::{HashMap, HashSet};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Entry, ResourceState, Snapshot, StateRecorder};
use tokio::sync::{OnceCell, RwLock, Semaphore, SemaphorePermit, oneshot, watch};
use tracing::{Instrument as _, Span, debug_span};

use crate::decisions::autonaming::AutonamingConfig;
use crate::deployment_state::{DeploymentState, SharedState};
use crate::events::{Event, EventSink, Message, Severity, SourceRef, StepInfo};
use crate::jobs::Jobs;
use crate::options::{DeploymentRequest, StopSignals};
use crate::providers::{CallLimits, Instance, ProviderRegistry, Retries};
use crate::records::Records;
use crate::registrar::{Halted, Registered};
use crate::reporter::{ErrorReported, Failure, Reporter, about};

/// Progress of the reads that precede all decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialRefresh {
    /// The reads are not done yet.
    Running,
    /// All reads are done.
    Done,
}

/// Context that all parts of a deployment share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) request: DeploymentRequest,
    pub(crate) signals: StopSignals,
    pub(crate) reporter: Arc<Reporter>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) records: Records,
    pub(crate) providers: ProviderRegistry,
    pub(crate) jobs: Jobs,
    /// Permits for the resources that are worked on at once.
    pub(crate) slots: Semaphore,
    /// Permits for the registrations that are worked on at once, if some of them wait for their journal: twice as many as
    /// `--parallel` says. The number of calls is limited by itself then. `None`: they have [`Context::slots`].
    registration_slots: Option<Semaphore>,
    /// Lock that is held for reading while a registration is undecided, and for writing by a replacement that must see
    /// only decided registrations.
    pub(crate) deciding: RwLock<()>,
    pub(crate) initial_refresh: watch::Sender<InitialRefresh>,
    /// Physical names that the configuration proposes, or the error in the configuration.
    pub(crate) autonaming: Result<AutonamingConfig, String>,
    /// Registrations of default providers, and of providers that an import declares. The first resource that needs a
    /// provider starts its registration; the others wait for it.
    once_registered: Mutex<HashMap<ProviderKey, Arc<OnceRegistered>>>,
    monitor: MonitorService,
    /// Packages whose plugins were reported not to implement Read.
    pub(crate) without_read: Mutex<HashSet<String>>,
}

/// Key of a provider resource that is registered by the first resource that needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProviderKey {
    /// A default provider.
    Default {
        /// Package that the provider serves.
        package: String,
        /// Version of the package; `None`: any.
        version: Option<String>,
        /// URL that the package comes from; `None`: the default source.
        download_url: Option<String>,
    },
    /// A provider that an import declares.
    Declared(Urn),
}

/// Registration of a provider resource that several resources wait for.
pub(crate) type OnceRegistered = OnceCell<Result<Registered, Halted>>;

/// Resource monitor of components, served from the first request for its address on.
struct MonitorService {
    monitor: Arc<dyn Monitor>,
    endpoint: OnceCell<MonitorEndpoint>,
}

impl std::fmt::Debug for MonitorService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MonitorService").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Parts that a deployment works with, beside its options.
pub(crate) struct Parts {
    pub(crate) snapshot: Snapshot,
    pub(crate) host: Arc<dyn ProviderHost>,
    pub(crate) recorder: Option<Box<dyn StateRecorder>>,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) signals: StopSignals,
    pub(crate) jobs: Jobs,
    pub(crate) monitor: Arc<dyn Monitor>,
}

impl Context {
    /// Creates the context of a deployment that has done nothing yet.
    pub(crate) fn new(request: DeploymentRequest, parts: Parts) -> Self {
        let Parts { snapshot, host, recorder, sink, signals, jobs, monitor } = parts;
        snapshot.all_resources().for_each(|resource| request.masker.add_resource(resource));
        let secret_config = request.config.iter().filter(|entry| entry.secret);
        secret_config.for_each(|entry| request.masker.add_text(&entry.value));
        let shared = Arc::new(SharedState::new(snapshot));
        let reporter = Arc::new(Reporter::new(sink, Arc::clone(&request.masker)));
        let lease = recorder.as_ref().and_then(|recorder| recorder.lease());
        let parallel = request.options.parallel.max(1);
        let waits = recorder.as_ref().is_some_and(|recorder| recorder.delays_operations());
        let calls = waits.then(|| CallLimits::new(parallel));
        let doubled = parallel.saturating_mul(2).min(Semaphore::MAX_PERMITS);
        let retries = Retries { reporter: Arc::clone(&reporter), stop: signals.stop.clone(), lease, calls };
        Self {
            reporter,
            records: Records::new(Arc::clone(&shared), request.mode(), recorder),
            shared,
            providers: ProviderRegistry::new(host, retries),
            jobs,
            slots: Semaphore::new(parallel),
            registration_slots: waits.then(|| Semaphore::new(doubled)),
            deciding: RwLock::new(()),
            initial_refresh: watch::Sender::new(InitialRefresh::Running),
            autonaming: AutonamingConfig::read(&request.config, &request.project, &request.stack),
            once_registered: Mutex::default(),
            without_read: Mutex::default(),
            monitor: MonitorService { monitor, endpoint: OnceCell::new() },
            signals,
            request,
        }
    }

    /// Locks the deployment state.
    pub(crate) fn state(&self) -> MutexGuard<'_, DeploymentState> {
        self.shared.lock()
    }

    /// Returns whether the run is a preview, which changes no resource.
    pub(crate) fn is_preview(&self) -> bool {
        self.request.preview
    }

    /// Emits an event.
    pub(crate) fn emit(&self, event: Event) {
        self.reporter.emit(event);
    }

    /// Emits a message about a resource that is not an error.
    pub(crate) fn emit_message(&self, urn: &Urn, source: Option<SourceRef>, message: Message) {
        self.emit(Event::Message(about(urn, source, message)));
    }

    /// Adds entries to those that the run is going to delete.
    ///
    /// # Errors
    /// The message that the limit of the run does not allow this. `deleted` says of what, at the start of the sentence. None of the
    /// entries may be deleted then.
    pub(crate) fn claim_deletions<'e>(
        &self,
        deleted: impl FnOnce() -> MessageText,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), Box<Message>> {
        let Some(limit) = &self.request.options.deletion_limit else { return Ok(()) };
        let refused = self.state().claim_deletions(entries, limit);
        refused.map_or(Ok(()), |refused| Err(Box::new(limit.refusal(deleted(), &refused))))
    }

    /// Reports an error of a resource.
    pub(crate) fn report_error(
        &self,
        urn: &Urn,
        source: Option<SourceRef>,
        message: Message,
        failure: Failure,
    ) -> ErrorReported {
        self.report_general_error(about(urn, source, message), failure)
    }

    /// Reports an error that is not about one resource.
    pub(crate) fn report_general_error(&self, message: Message, failure: Failure) -> ErrorReported {
        let error = self.reporter.report_error(message, failure);
        self.shared.wake();
        error
    }

    /// Asks the guard of the run whether a step may begin that belongs to no decided registration.
    ///
    /// # Errors
    /// [`ErrorReported`] if the guard refuses the step; fatal.
    pub(crate) async fn approve_step(&self, step: &StepInfo) -> Result<(), ErrorReported> {
        let guard = &self.request.guard;
        if !guard.approves_steps() {
            return Ok(());
        }
        let approved = guard.approve_step(step).await;
        approved.map_err(|message| self.report_fatal(&step.urn, step.source, *message))
    }

    /// Raises the failure of the run to `failure`, at least, for an error that has been reported.
    pub(crate) fn escalate(&self, error: ErrorReported, failure: Failure) -> ErrorReported {
        let error = self.reporter.escalate(error, failure);
        self.shared.wake();
        error
    }

    /// Reports a fatal error of a resource outside of its steps: nothing new starts.
    pub(crate) fn report_fatal(&self, urn: &Urn, source: Option<SourceRef>, message: Message) -> ErrorReported {
        self.report_error(urn, source, message, Failure::Fatal)
    }

    /// Returns whether nothing new may start: after a fatal error, after a stop, or after a failed step unless the run
    /// continues on errors.
    pub(crate) fn is_halted(&self) -> bool {
        self.reporter.has_failed(Failure::Fatal)
            || self.signals.stop.is_cancelled()
            || (self.reporter.has_failed(Failure::Step) && !self.request.options.continue_on_error)
    }

    /// Checks that something new may start.
    ///
    /// # Errors
    /// [`Halted`] if nothing new may start.
    pub(crate) fn check_running(&self) -> Result<(), Halted> {
        if self.is_halted() { Err(self.halted()) } else { Ok(()) }
    }

    /// Returns the reason that the run is halted.
    pub(crate) fn halted(&self) -> Halted {
        self.reporter.first_error().map_or(Halted::Stopped, Halted::Failed)
    }

    /// Waits until every resource that a resource refers to, and that this run has begun, is finished; or until nothing
    /// new may start.
    pub(crate) async fn wait_for_references(&self, resource: &ResourceState) {
        self.wait_until("references", |state| {
            resource.provider_and_dependencies().all(|urn| {
                let urn = state.new_urn(urn);
                !state.has_begun(urn) || state.is_finished(urn)
            })
        })
        .await;
    }

    /// Waits until the steps of another resource have carried the entry of a URN over, if there are such steps; or
    /// until nothing new may start.
    pub(crate) async fn wait_until_carried_over(&self, urn: &Urn) {
        self.wait_until("carry-over", |state| !state.is_carried_over(urn) || state.is_finished(urn)).await;
    }

    /// Waits until the work on all these URNs is finished, or until nothing new may start.
    pub(crate) async fn wait_until_finished(&self, urns: &[Urn]) {
        self.wait_until("resources", |state| urns.iter().all(|urn| state.is_finished(urn))).await;
    }

    async fn wait_until(&self, subject: &'static str, holds: impl Fn(&DeploymentState) -> bool) {
        let waiting = self.shared.wait_until(|state| holds(state) || self.is_halted());
        waiting.instrument(debug_span!("wait", subject)).await;
    }

    /// Waits for one of the slots of `--parallel`, and returns it.
    pub(crate) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.acquire().instrument(debug_span!("wait", subject = "slot")).await.ok()
    }

    /// Waits for a slot of a registration, and returns it.
    pub(crate) async fn registration_slot(&self) -> Option<SemaphorePermit<'_>> {
        let slots = self.registration_slots.as_ref().unwrap_or(&self.slots);
        slots.acquire().instrument(debug_span!("wait", subject = "slot")).await.ok()
    }

    /// Closes an instance that no resource refers to, as a job of the deployment.
    pub(crate) fn start_closing(self: &Arc<Self>, provider: Arc<dyn Provider>) {
        let context = Arc::clone(self);
        let closing = async move {
            provider.close().await;
            context.providers.remove_closed(&provider);
        };
        // A deployment that has ended has closed every instance.
        self.jobs.start(closing).ok();
    }

    /// Closes an instance, as a job of the deployment, once nothing uses it any more.
    pub(crate) fn retire(self: &Arc<Self>, instance: Arc<Instance>) {
        let (provider, unused) = instance.retire();
        let context = Arc::clone(self);
        let closing = async move {
            unused.await;
            provider.close().await;
            context.providers.remove_closed(&provider);
        };
        self.jobs.start(closing).ok();
    }

    /// Runs work as a job of the deployment, so that it goes on even if the caller stops waiting.
    ///
    /// `span` has no parent: the caller may stop waiting, or wait for several jobs. The work is boxed: tens of thousands of
    /// registrations may wait at once, so each must be small.
    ///
    /// # Errors
    /// The error of the work; [`Halted`] if the deployment has ended.
    pub(crate) async fn run_job<T: Send + 'static, E: From<Halted> + Send + 'static>(
        self: &Arc<Self>,
        span: Span,
        work: impl FnOnce(Arc<Self>) -> BoxFuture<'static, Result<T, E>>,
    ) -> Result<T, E> {
        let (sender, reply) = oneshot::channel();
        let mut initial_refresh = self.initial_refresh.subscribe();
        let work = work(Arc::clone(self));
        let job = async move {
            // Work decides by recorded entries, so it waits until these have been read.
            let read = initial_refresh.wait_for(|refresh| *refresh == InitialRefresh::Done);
            read.instrument(debug_span!("wait", subject = "refresh")).await.ok();
            sender.send(work.await).ok();
        };
        let job = job.instrument(span);
        self.jobs.start(job).map_err(|_| self.halted())?;
        reply.await.unwrap_or_else(|_| Err(self.halted().into()))
    }

    /// Returns the cell of a provider resource that is registered by the first resource that needs it.
    pub(crate) fn once_registered(&self, key: ProviderKey) -> Arc<OnceRegistered> {
        let mut cells = self.once_registered.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(key).or_default())
    }

    /// Returns the instance of a provider reference: the running one, or one that is started from its recorded inputs.
    ///
    /// # Errors
    /// [`HostError`] if the provider is neither recorded nor running, or does not start.
    pub(crate) async fn load_instance(&self, reference: &ProviderReference) -> Result<Arc<Instance>, HostError> {
        if let Some(instance) = self.providers.get(reference) {
            return Ok(instance);
        }
        let recorded = self.state().loaded_provider(reference).map(|state| Arc::clone(&state.inputs));
        let Some(recorded) = recorded else {
            let name = reference.urn.name();
            return Err(HostError::new(format_args!("the provider {name} is not recorded and was not registered")));
        };
        self.providers.load(reference, &recorded, &self.jobs).await
    }

    /// Returns the instance of a provider reference, for a resource that requires it.
    ///
    /// # Errors
    /// The error of [`Context::load_instance`], which is fatal.
    pub(crate) async fn require_instance(
        &self,
        reference: &ProviderReference,
        urn: &Urn,
        source: Option<SourceRef>,
    ) -> Result<Arc<Instance>, ErrorReported> {
        self.load_instance(reference).await.map_err(|error| self.report_fatal(urn, source, host_error(error)))
    }

    /// Adds the secrets in values that are sent to a provider, or returned by it, to those that are masked in texts.
    pub(crate) fn add_secrets(&self, values: &PropertyMap) {
        self.request.masker.add_values(values);
    }

    /// Adds the secrets of a resource that a provider returned to those that are masked in texts, and masks them in the
    /// errors of its initialization, which are texts of the provider and are recorded in plaintext.
    pub(crate) fn mask_init_errors(&self, resource: &mut ResourceState) {
        // The error of a partial failure, which is reported next, may quote them even if there is no such text.
        self.request.masker.add_resource(resource);
        resource.init_errors.iter_mut().for_each(|error| self.request.masker.mask_in_place(error));
    }

    /// Returns the address of the resource monitor, which is served from the first call on.
    ///
    /// # Errors
    /// [`std::io::Error`] if the resource monitor cannot listen.
    pub(crate) async fn monitor_address(&self) -> std::io::Result<String> {
        let MonitorService { monitor, endpoint } = &self.monitor;
        let host = self.providers.host();
        let serve =
            || MonitorEndpoint::serve(Arc::clone(monitor), host.directory().to_owned(), host.connection_guard());
        Ok(endpoint.get_or_try_init(serve).await?.address())
    }
}

/// Returns the message for the error of a provider that does not start.
pub(crate) fn host_error(error: HostError) -> Message {
    let hint = error.hint();
    Message { hint, ..Message::new(Severity::Error, MessageText::chain(&error)) }
}
