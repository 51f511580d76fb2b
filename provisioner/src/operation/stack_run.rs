//! Stack with the inputs of an operation on it.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use bridge::host::PluginHost;
use bridge::message_text::MessageText;
use config::Stack;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::OnceCell;

use engine::events::{ActivityKind, Event, EventSink, Message, Severity};
use engine::masking::SecretMasker;
use engine::{ConfigEntry, DeploymentOptions, PlanGuard, RandomSeeds, StopSignals};
use state::StackAccess;
use state::format::UpdateOrigin;
use state::secrets::SecretsError;
use state::store::LockHolder;

use super::clouds;
use super::missing::{MissingGuard, WarningQuestion};
use super::pending_creates::{ImportedGuard, PendingCreates};
use super::plugin_settings::PluginSettings;
use super::running_activity::RunningActivity;
use super::setup_error::SetupError;
use super::stack_reader::StackReader;
use super::stacks::Stacks;
use crate::program::Program;
use crate::registry::recipe::Effects;

/// Stack with the inputs of an operation on it.
#[derive(Clone)]
pub struct StackRun {
    /// Program that registers the resources of the stack's files.
    pub program: Program,
    /// Effects of its core types that are no resources.
    pub effects: Arc<dyn Effects>,
    /// Access to the recorded state of the stack.
    pub access: StackAccess,
    /// Holder that is recorded in the lock of the stack.
    pub holder: LockHolder,
    /// Settings for finding and starting plugins.
    pub plugins: PluginSettings,
    /// Sink that receives all events of the run.
    pub events: Arc<dyn EventSink>,
    /// Signals that stop or abort the run.
    pub signals: StopSignals,
    /// Options of the run.
    pub options: RunOptions,
    /// Configuration of the stack, decrypted.
    pub config: Vec<ConfigEntry>,
    /// Secrets to mask in texts of providers. The run adds those that it learns of; receivers of its events mask them.
    pub masker: Arc<SecretMasker>,
    /// Reads the stack again, once what decides about it is known.
    pub(super) reader: Arc<StackReader>,
    /// Wait for the lock of the stack, while it lasts.
    pub(super) lock_wait: Arc<Mutex<Option<RunningActivity>>>,
    /// Guard of the resources that the operation has imported before, in place of that in the options.
    pub(super) imported: Option<Arc<ImportedGuard>>,
    /// Guard of the deployments of the run. The preview and the update of one operation have the same seeds.
    pub(super) guard: Arc<dyn PlanGuard>,
    /// Plugins of the stack, loaded by the first operation. Close them with [`StackRun::close`].
    pub host: Arc<OnceCell<Arc<PluginHost>>>,
}

/// Inputs of a run that do not follow from its stack.
#[derive(Clone)]
pub struct RunInputs {
    /// Settings for finding and starting plugins.
    pub plugins: PluginSettings,
    /// Sink that receives all events of the run.
    pub events: Arc<dyn EventSink>,
    /// Signals that stop or abort the run.
    pub signals: StopSignals,
    /// Options of the run.
    pub options: RunOptions,
}

impl Stacks {
    /// Puts a run on a stack together. Adds the secrets of the stack's configuration to those that are masked. `access` is
    /// that of [`Stacks::access`].
    ///
    /// # Errors
    /// [`SetupError::Config`] if the configuration cannot be decrypted.
    pub async fn run(
        &self,
        stack: &Arc<Stack>,
        mut access: StackAccess,
        inputs: RunInputs,
    ) -> Result<StackRun, SetupError> {
        let RunInputs { plugins, events, signals, options } = inputs;
        let (sink, name) = (Arc::clone(&events), stack.name.clone());
        let derivation =
            move || -> Box<dyn Any + Send> { Box::new(RunningActivity::begin(&sink, ActivityKind::DeriveKey, &*name)) };
        access.keyring.report_derivations(Arc::new(derivation));
        let config = decrypt_config(&access).await.map_err(SetupError::Config)?;
        config.iter().filter(|entry| entry.secret).for_each(|entry| self.masker.add_text(&entry.value));
        let emit = |severity| {
            let events = Arc::clone(&events);
            move |text: MessageText| events.emit(Event::Message(Message::new(severity, text)))
        };
        let (warn, inform) = (emit(Severity::Warning), emit(Severity::Info));
        access.locks.report = Arc::new(move |lock| warn(MessageText::of(&lock)));
        let lock_wait = Arc::<Mutex<Option<RunningActivity>>>::default();
        let (waiting, sink, name) = (Arc::clone(&lock_wait), Arc::clone(&events), stack.name.clone());
        access.locks.wait.report = Arc::new(move |locks| {
            inform(MessageText::of(&locks));
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.get_or_insert_with(|| RunningActivity::begin(&sink, ActivityKind::WaitForLock, &*name));
        });
        access.locks.wait.stop = signals.stop.clone();
        Ok(StackRun {
            program: self.program(stack),
            effects: clouds::effects(&self.process_context),
            holder: self.holder(),
            reader: Arc::clone(&self.reader),
            lock_wait,
            imported: None,
            guard: Arc::new(RandomSeeds::draw()),
            host: Arc::default(),
            masker: Arc::clone(&self.masker),
            access,
            config,
            plugins,
            events,
            signals,
            options,
        })
    }
}

impl StackRun {
    /// Reports that the run does something that may take long, until the returned value is dropped.
    pub(super) fn begin(&self, kind: ActivityKind) -> RunningActivity {
        RunningActivity::begin(&self.events, kind, &*self.program.stack().name)
    }
}

/// Returns the configuration of the stack file (`Pulumi.<stack>.yaml`), with decrypted secrets.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be decrypted. A configuration without secrets needs no key.
pub(super) async fn decrypt_config(access: &StackAccess) -> Result<Vec<ConfigEntry>, SecretsError> {
    let crypter = match &access.configured_secrets {
        Some(description) if access.config.values().any(|value| value.is_secret()) => {
            Some(access.keyring.manager(description)?.crypter().await?)
        }
        _ => None,
    };
    let entry = |(key, value): (&String, &state::format::ConfigValue)| {
        let (namespace, name) = key.split_once(':').unwrap_or(("", key));
        Ok(ConfigEntry {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            value: value.program_text(crypter.as_deref())?,
            secret: value.is_secret(),
        })
    };
    access.config.iter().map(entry).collect()
}

/// Collection of the origin of a run: account, host, commit, build and message, under the keys of Pulumi's history files and
/// `sc.user` and `sc.host`. It takes time, and only the history at the end needs the result: whoever starts a run polls the
/// collection beside it.
#[derive(Clone, Debug)]
pub struct OriginCollection(Shared<BoxFuture<'static, UpdateOrigin>>);

impl OriginCollection {
    /// Creates a collection that begins when it is polled first.
    pub fn new(collect: impl Future<Output = UpdateOrigin> + Send + 'static) -> Self {
        Self(collect.boxed().shared())
    }

    /// Returns the origin, once it is collected.
    pub async fn collect(&self) -> UpdateOrigin {
        self.0.clone().await
    }

    /// Returns the origin, if it is collected by now.
    pub(super) fn collected(&self) -> Option<&UpdateOrigin> {
        self.0.peek()
    }
}

impl Default for OriginCollection {
    /// Returns the collection of an empty origin.
    fn default() -> Self {
        Self::new(std::future::ready(UpdateOrigin::default()))
    }
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Options of its deployments.
    pub deployment: DeploymentOptions,
    /// Guard of the refreshes of the run; `None`: resources that are missing leave the state.
    pub missing: Option<Arc<MissingGuard>>,
    /// Question whether a new stack begins although one with equal resources exists below another project; `None`: it does not.
    pub new_stack_question: Option<Arc<dyn WarningQuestion>>,
    /// Origin of the run, which the history records with secrets masked.
    pub origin: OriginCollection,
    /// Treatment of the pending creates of earlier runs.
    pub pending: PendingCreates,
    /// True if the run continues from a state that has lost its resources: see
    /// [`state::StackState::unexplained_empty`].
    pub allow_empty: bool,
}
