//! Opening of a stack for a run: its lock and its state, and what has to hold before anything is changed. The packages of the
//! recorded resources are served, the state has not lost its resources, and outputs refer to what there is.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use bridge::host::PluginHost;
use bridge::message_text::MessageText;
use engine::events::{ActivityKind, Event, Message, Operation, Severity};
use engine::{BUILT_IN, base_package};
use pulumi_proto::urn::{TypeToken, Urn};
use state::store::StoreError;
use state::{JournalMode, ResourceState, Snapshot, StackState, StateError, UnexplainedEmptyState};

use super::secrets_access::{other_provider_text, secrets_change_text};
use super::{OperationError, StackRun};

impl StackRun {
    /// Locks the stack, loads its state, and reports operations that were recovered from the journal of a crashed run.
    pub(super) async fn open(&self, host: &PluginHost, operation: Operation) -> Result<StackState, OperationError> {
        let state = self.lock_and_load().await?;
        self.report_recovery(state.recovered(), true);
        self.report_late(state.late());
        self.report_local_journal();
        self.report_obsolete(state.obsolete());
        self.report_undeleted_journals(state.undeleted_journals());
        self.report_secrets_change(&state);
        let emptied = state.unexplained_empty().cloned();
        self.report_unexplained_empty(emptied.as_ref().filter(|_| self.options.allow_empty));
        let checked = match emptied.filter(|_| !self.options.allow_empty) {
            Some(emptied) => Err(StateError::from(Box::new(emptied)).into()),
            None => self.check_before(host, operation, &state).await,
        };
        match checked {
            Ok(()) => Ok(state),
            Err(error) => {
                state.release().await?;
                Err(error)
            }
        }
    }

    /// Checks what has to hold before a run on a stack that is locked.
    async fn check_before(
        &self,
        host: &PluginHost,
        operation: Operation,
        state: &StackState,
    ) -> Result<(), OperationError> {
        if state.is_new() {
            self.check_new_stack(operation, state.namesakes(), false).await?;
        }
        self.check_recorded(host, operation, state.snapshot()).await
    }

    /// Loads the packages and plugins that only recorded resources need. Checks that each recorded resource is served, and the references
    /// to outputs.
    pub(super) async fn check_recorded(
        &self,
        host: &PluginHost,
        operation: Operation,
        recorded: &Snapshot,
    ) -> Result<(), OperationError> {
        self.check_moved(operation, recorded)?;
        self.load_recorded_packages(host, recorded).await?;
        self.load_recorded_plugins(host, recorded).await?;
        check_packages_are_served(host, recorded)?;
        self.check_outputs(host, operation, recorded).await
    }

    /// Says that a lost machine loses what the run has not saved.
    fn report_local_journal(&self) {
        if self.access.journals.is_remote() && self.access.journal_mode == JournalMode::Local {
            let text = "the journal of this run is on this machine alone (`journal: local`): if the machine is lost, the state lacks \
                        what the run has created";
            self.events.emit(Event::Message(Message::new(Severity::Info, text)));
        }
    }

    /// Emits that the state is encrypted anew with another secrets provider, and warns of two providers.
    fn report_secrets_change(&self, state: &StackState) {
        let change = state.secrets_change().map(|change| secrets_change_text(&self.access, change));
        let change = change.map(|text| Message::new(Severity::Info, text));
        let others = other_provider_text(&self.access).map(|text| Message::new(Severity::Warning, text));
        change.into_iter().chain(others).for_each(|message| self.events.emit(Event::Message(message)));
    }

    /// Warns of a state that has lost its resources.
    pub(super) fn report_unexplained_empty(&self, emptied: Option<&UnexplainedEmptyState>) {
        if let Some(emptied) = emptied {
            self.events.emit(Event::Message(Message::new(Severity::Warning, MessageText::of(emptied))));
        }
    }

    /// Locks the stack and loads its state. Waits if another run has the lock, for the time in the settings of the access.
    ///
    /// # Errors
    /// [`OperationError::State`] if the stack is still locked then, or the state cannot be loaded;
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub(super) async fn lock_and_load(&self) -> Result<StackState, OperationError> {
        let opening = self.begin(ActivityKind::OpenState);
        let opened = StackState::open(self.access.clone(), &self.holder).await;
        drop((opening, self.lock_wait.lock().unwrap_or_else(PoisonError::into_inner).take()));
        match opened {
            Err(StateError::Store(StoreError::Locked { .. })) if self.signals.stop.is_cancelled() => {
                Err(OperationError::Stopped)
            }
            opened => Ok(opened?),
        }
    }
}

/// Returns the recorded resources whose packages no plugin of a run serves, each with its package.
pub(super) fn unserved_resources<'s>(
    host: &PluginHost,
    snapshot: &'s Snapshot,
) -> impl Iterator<Item = (String, &'s Urn)> {
    // Providers whose plugins serve their packages after Parameterize.
    let has_base = |provider: &&Arc<ResourceState>| {
        provider.is_provider() && base_package(provider).is_some_and(|base| host.serves_base(base))
    };
    let of_bases: BTreeSet<&Urn> = snapshot.resources.iter().filter(has_base).map(|provider| &provider.urn).collect();
    snapshot.resources.iter().filter_map(move |resource| {
        let provider = &resource.provider.as_ref()?.urn;
        let type_token = TypeToken::new(provider.type_token());
        let package = type_token.provider_package()?;
        // A resource with `retainOnDelete` is removed from the state without a call to its provider.
        let is_unserved = !resource.retain_on_delete && package != BUILT_IN && !host.serves(package);
        (is_unserved && !of_bases.contains(provider)).then(|| (package.to_owned(), &resource.urn))
    })
}

/// Checks that an enabled plugin serves the package of each recorded resource.
fn check_packages_are_served(host: &PluginHost, snapshot: &Snapshot) -> Result<(), OperationError> {
    let mut found = unserved_resources(host, snapshot);
    let Some((package, first)) = found.next() else { return Ok(()) };
    let others = found.filter(|(other, _)| *other == package).map(|(_, urn)| urn);
    let urns = std::iter::once(first).chain(others).cloned().collect();
    Err(OperationError::Unserved { package, urns })
}
