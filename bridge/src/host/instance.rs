//! Instance of a plugin: a process with its client, and what is known of its configuration and its use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pulumi_proto::urn::Urn;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::HostEvent;
use super::attachment::Attachment;
use super::brokered::EngineOffer;
use super::events::{PluginWork, WorkInProgress};
use super::monitor_relay::MonitorRelay;
use super::pool::Pooled;
use super::sandbox_hint::sandbox_hint;
use crate::error::chain;
use crate::install::VerifiedPackage;
use crate::plugin::{Dialect, PluginConfig, Sandbox, Sha256Digest};
use crate::provider::grpc::{GrpcProvider, PluginInit};
use crate::provider::{ConfigureRequest, ParameterizeReply, ParameterizeRequest, Provider as _, ProviderError};

/// Number of a run, unique in this process and all others.
pub(super) type RunId = Uuid;

/// Common properties of instances that can replace each other. Holds environment variables, which may be secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ProcessKey {
    plugin: String,
    package: PackageKey,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    dialect: Dialect,
    sandbox: Sandbox,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PackageKey {
    Digest(Sha256Digest),
    /// The files of the package may change from run to run, or there is none.
    OfRun(RunId),
}

impl ProcessKey {
    /// Returns the key of a process that runs already, in one run.
    pub(super) fn of_attached(plugin: &PluginConfig, directory: &Path, run: RunId) -> Self {
        Self {
            plugin: plugin.name.to_string(),
            package: PackageKey::OfRun(run),
            program: PathBuf::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: directory.to_owned(),
            dialect: plugin.dialect.clone(),
            sandbox: Sandbox::None,
        }
    }

    pub(super) fn new(
        plugin: &PluginConfig,
        package: &VerifiedPackage,
        environment: Vec<(OsString, OsString)>,
        directory: &Path,
        run: RunId,
    ) -> Self {
        // A package with a checksum may lie in a private copy, in another folder for each run.
        let in_package = |path: &Path| path.strip_prefix(package.folder()).unwrap_or(path).to_owned();
        Self {
            plugin: plugin.name.to_string(),
            package: package.digest().map_or(PackageKey::OfRun(run), PackageKey::Digest),
            program: in_package(package.program()),
            arguments: package.arguments().iter().map(|argument| in_package(Path::new(argument)).into()).collect(),
            environment,
            directory: directory.to_owned(),
            dialect: plugin.dialect.clone(),
            sandbox: plugin.sandbox.clone(),
        }
    }
}

/// Configuration that an instance has been given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Configuration {
    pub(super) parameters: Option<ParameterizeRequest>,
    pub(super) request: ConfigureRequest,
    pub(super) init: PluginInit,
}

impl Configuration {
    /// Returns whether a provider that pays no attention to its provider resource works alike with another configuration.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let Self { parameters, request: ConfigureRequest { urn: _, id: _, inputs }, init } = self;
        *parameters == other.parameters && *inputs == other.request.inputs && *init == other.init
    }
}

/// Provider resource whose configuration an instance has checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckedConfig {
    /// URN of the provider resource; `None`: those of all provider resources that share instances.
    pub(super) urn: Option<Urn>,
    pub(super) parameters: Option<ParameterizeRequest>,
}

/// Instance of a plugin.
///
/// # Invariants
/// A lease uses it alone, except for GetSchema, or shares it with leases that are configured alike. It receives CheckConfig and
/// DiffConfig only before Configure. Once it was used in a way that the next user could notice, it is not kept.
pub(super) struct Instance {
    pub(super) provider: GrpcProvider,
    pub(super) attachment: Arc<Attachment>,
    /// Engine behind the broker of the plugin, if it has one.
    engine: Option<EngineOffer>,
    /// Run that alone can use it.
    pub(super) run: OnceLock<RunId>,
    parameters: OnceLock<(ParameterizeRequest, ParameterizeReply)>,
    /// Set before the first CheckConfig or DiffConfig.
    checked: OnceLock<CheckedConfig>,
    pub(super) configuration: OnceLock<Configuration>,
    sandbox: Sandbox,
    /// Port at which the plugin reaches monitors; `None` if it can reach every port.
    monitor_relay: Option<MonitorRelay>,
    has_hinted_at_sandbox: AtomicBool,
    calls: AtomicUsize,
    is_used_up: AtomicBool,
    /// True once a call has failed because the process has exited.
    is_exit_reported: AtomicBool,
    is_ending: AtomicBool,
    /// Signal that the process has announced its end.
    deregistered: CancellationToken,
}

impl Instance {
    pub(super) fn new(provider: GrpcProvider, attachment: Arc<Attachment>, engine: Option<EngineOffer>) -> Self {
        Self {
            provider,
            attachment,
            engine,
            run: OnceLock::new(),
            parameters: OnceLock::new(),
            checked: OnceLock::new(),
            configuration: OnceLock::new(),
            sandbox: Sandbox::None,
            monitor_relay: None,
            has_hinted_at_sandbox: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            is_used_up: AtomicBool::new(false),
            is_exit_reported: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            deregistered: CancellationToken::new(),
        }
    }

    /// Sets the signal after which the instance counts as exited.
    pub(super) fn deregistered_by(self, deregistered: CancellationToken) -> Self {
        Self { deregistered, ..self }
    }

    /// Sets the sandbox of the process, and the port at which it reaches monitors, if it cannot reach every port.
    pub(super) fn in_sandbox(self, sandbox: Sandbox, monitor_relay: Option<MonitorRelay>) -> Self {
        Self { sandbox, monitor_relay, ..self }
    }

    /// Returns the address at which the process reaches the monitor with an address.
    pub(super) fn monitor_address(&self, monitor: String) -> String {
        match &self.monitor_relay {
            Some(relay) => relay.forward_to(&monitor),
            None => monitor,
        }
    }

    /// Returns true if the process has received neither CheckConfig, DiffConfig nor Configure.
    pub(super) fn is_new(&self) -> bool {
        self.configuration.get().is_none() && self.checked.get().is_none()
    }

    /// Returns the rank for calls that need no configuration and may reach a configured process: GetSchema of the package that
    /// the plugin serves with these parameters.
    pub(super) fn rank_for_schema(&self, wanted: Option<&ParameterizeRequest>) -> Option<u8> {
        match (self.parameters.get(), wanted) {
            (Some((known, _)), Some(wanted)) if known == wanted => Some(if self.is_new() { 2 } else { 0 }),
            (Some(_), _) => None,
            (None, Some(_)) => self.is_new().then_some(1),
            (None, None) if self.configuration.get().is_some() => Some(0),
            (None, None) => self.is_new().then_some(1),
        }
    }

    /// Returns the rank for Parameterize: a process that serves the package already, or none.
    pub(super) fn rank_to_parameterize(&self, wanted: &ParameterizeRequest) -> Option<u8> {
        match self.parameters.get() {
            Some((known, _)) => (known == wanted).then_some(1),
            None => self.is_new().then_some(0),
        }
    }

    /// Returns the rank for CheckConfig and DiffConfig: a process that has received them for the same provider resource, or a new
    /// one.
    pub(super) fn rank_to_check(&self, wanted: &CheckedConfig) -> Option<u8> {
        match (self.configuration.get(), self.checked.get()) {
            (Some(_), _) => None,
            (None, Some(checked)) => (checked == wanted).then_some(2),
            (None, None) => self.rank_to_configure(wanted.parameters.as_ref()),
        }
    }

    /// Returns the rank for Configure of a provider resource whose configuration the process has not checked: a new one.
    pub(super) fn rank_to_configure(&self, wanted: Option<&ParameterizeRequest>) -> Option<u8> {
        match (self.parameters.get(), wanted) {
            _ if !self.is_new() => None,
            (None, _) => Some(0),
            (Some((known, _)), wanted) => (Some(known) == wanted).then_some(1),
        }
    }

    /// Returns whether the process has a configuration. `is_shared`: for any provider resource.
    pub(super) fn is_configured(&self, wanted: &Configuration, is_shared: bool) -> bool {
        let is_wanted = |known: &Configuration| if is_shared { known.is_alike(wanted) } else { known == wanted };
        self.configuration.get().is_some_and(is_wanted)
    }

    /// Returns whether a process that has checked a configuration can receive Configure.
    pub(super) fn can_be_configured(&self, wanted: &Configuration) -> bool {
        let is_checked = |known: &CheckedConfig| {
            known.urn.as_ref() == Some(&wanted.request.urn) && known.parameters == wanted.parameters
        };
        self.checked.get().is_some_and(is_checked) && self.is_alive() && !self.is_used_up()
    }

    /// Marks that the process, which belongs to the run from now on, receives CheckConfig or DiffConfig.
    pub(super) fn begin_check(&self, checked: CheckedConfig, run: RunId) {
        self.run.set(run).unwrap_or_default();
        self.checked.set(checked).unwrap_or_default();
    }

    /// Marks that another user must not get this instance.
    pub(super) fn use_up(&self) {
        self.is_used_up.store(true, Ordering::Release);
    }

    /// Returns true if the next user could notice how the instance was used.
    pub(super) fn is_used_up(&self) -> bool {
        self.is_used_up.load(Ordering::Acquire) || self.attachment.has_logged_error()
    }

    /// Returns true if another user cannot notice that the instance was used.
    pub(super) fn is_reusable(&self) -> bool {
        !self.is_used_up() && self.calls.load(Ordering::Acquire) == 0
    }

    /// Makes a call. A call that is given up before its reply, or whose effect is unknown, uses the instance up.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        let mut in_flight = CallInFlight { instance: self, has_ended: false };
        let reply = call.await;
        if matches!(&reply, Err(ProviderError::PluginExited { .. })) {
            self.is_exit_reported.store(true, Ordering::Release);
        }
        in_flight.has_ended = !matches!(&reply, Err(error) if error.is_indeterminate());
        if let Err(error) = &reply {
            self.hint_at_sandbox(error);
        }
        reply
    }

    /// Warns once if the sandbox may be the reason of an error.
    fn hint_at_sandbox(&self, error: &ProviderError) {
        if let Some(hint) = sandbox_hint(&self.sandbox, &chain(error))
            && !self.has_hinted_at_sandbox.swap(true, Ordering::AcqRel)
        {
            let plugin = self.provider.name().to_owned();
            self.attachment.emit(HostEvent::Warning { plugin, message: hint.to_owned() });
        }
    }

    /// Tells the process, which belongs to the run from now on, which package to serve. Returns the reply that is known, if it
    /// serves the package already.
    pub(super) async fn parameterize(
        &self,
        request: ParameterizeRequest,
        run: RunId,
    ) -> Result<ParameterizeReply, ProviderError> {
        if let Some((_, reply)) = self.parameters.get() {
            return Ok(reply.clone());
        }
        self.run.set(run).unwrap_or_default();
        let reply = self.call(self.provider.parameterize(request.clone())).await;
        match &reply {
            Ok(reply) => drop(self.parameters.set((request, reply.clone()))),
            Err(_) => self.use_up(),
        }
        reply
    }

    /// Marks that the process serves a package already, as its reply has said.
    pub(super) fn set_parameterized(&self, request: ParameterizeRequest, reply: ParameterizeReply) {
        self.parameters.set((request, reply)).unwrap_or_default();
    }

    /// Configures the process, which belongs to the run from now on, unless it is configured.
    pub(super) async fn configure(&self, configuration: Configuration, run: RunId) -> Result<(), ProviderError> {
        if self.configuration.get().is_some() {
            return Ok(());
        }
        self.run.set(run).unwrap_or_default();
        let attachment = &self.attachment;
        let _working =
            WorkInProgress::begin(self.provider.name(), PluginWork::Configuring, |event| attachment.emit(event));
        self.provider.set_init(configuration.init.clone());
        if let Some(engine) = &self.engine {
            engine.announce().await;
        }
        let reply = self.call(self.provider.configure(configuration.request.clone())).await;
        match reply {
            Ok(()) => self.configuration.set(configuration).unwrap_or_default(),
            Err(_) => self.use_up(),
        }
        reply
    }
}

/// Call in flight.
struct CallInFlight<'a> {
    instance: &'a Instance,
    has_ended: bool,
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.instance.use_up();
        }
        self.instance.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Pooled for Instance {
    fn is_alive(&self) -> bool {
        !self.deregistered.is_cancelled()
            && self.provider.process().is_none_or(|process| process.exit_status().is_none())
    }

    fn exited(&self) -> BoxFuture<'static, ()> {
        let deregistered = self.deregistered.clone().cancelled_owned();
        match self.provider.process().map(|process| process.exited()) {
            Some(exited) => Box::pin(async move {
                tokio::select! {
                    () = exited => {}
                    () = deregistered => {}
                }
            }),
            None => Box::pin(deregistered),
        }
    }

    fn end(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if self.is_ending.swap(true, Ordering::AcqRel) {
                return;
            }
            if !self.is_exit_reported.load(Ordering::Acquire)
                && let Some(message) = self.provider.unexpected_exit().await
            {
                self.attachment.emit(HostEvent::Warning { plugin: self.provider.name().to_owned(), message });
            }
            self.provider.close().await;
        })
    }
}
