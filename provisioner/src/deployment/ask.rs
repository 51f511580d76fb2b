//! Asking providers what a decision wants to know (engine semantics, sections 2.6, 2.9 and 2.13).

use std::sync::Arc;

use bridge::host::HostError;
use bridge::provider::{
    CheckConfigRequest, CheckFailure, CheckReply, CheckRequest, DiffChanges, DiffConfigRequest, DiffReply, DiffRequest,
    Provider, ProviderError,
};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};

use crate::events::{Event, Message, Severity, SourceRef};

use super::decide::{Checked, Kind, Question, inputs};
use super::engine::Engine;
use super::providers::{INTERNAL_KEY, Instance, VERSION_KEY, visible};
use super::register::Registration;
use super::registrar::Refused;
use super::report;

impl Engine {
    /// The instance behind a reference: live, or made from what is recorded.
    pub(super) async fn instance(
        &self,
        reference: &ProviderReference,
        urn: &Urn,
        source: Option<SourceRef>,
    ) -> Result<Arc<Instance>, Refused> {
        match self.load_instance(reference).await {
            Ok(instance) => Ok(instance),
            Err(error) => {
                let mut message = Message::new(Severity::Error, error.message);
                message.hint = error.hint;
                self.break_off(urn, source, message);
                Err(Refused)
            }
        }
    }

    pub(super) async fn load_instance(&self, reference: &ProviderReference) -> Result<Arc<Instance>, HostError> {
        if let Some(instance) = self.providers.get(reference) {
            return Ok(instance);
        }
        let recorded = self.tables().old_providers.get(reference).map(|state| Arc::clone(&state.inputs));
        let Some(recorded) = recorded else {
            return Err(HostError {
                message: format!("the provider {} is not recorded and was not registered", reference.urn.name()),
                hint: String::new(),
            });
        };
        self.tell_secrets(&recorded);
        self.providers.load(reference, &recorded, &self.jobs).await
    }

    pub(super) async fn ask(
        self: &Arc<Self>,
        registration: &mut Registration,
        question: Question,
    ) -> Result<(), Refused> {
        match question {
            Question::CheckFresh => {
                let news = Arc::clone(&registration.goal.inputs);
                registration.answers.fresh = Some(self.check(registration, Arc::default(), news).await?);
                Ok(())
            }
            Question::CheckCarried { news } => {
                let olds = registration.old.as_ref().map(|(_, old)| Arc::clone(&old.inputs)).unwrap_or_default();
                self.tell_unignored(registration);
                registration.answers.carried = Some(self.check(registration, olds, news).await?);
                Ok(())
            }
            Question::DiffProvider => {
                let reply = self.diff_provider(registration).await;
                registration.answers.provider_diff = Some(self.or_break(registration, reply)?);
                Ok(())
            }
            Question::Diff { news } => {
                let reply = self.diff(registration, news).await;
                registration.answers.diff = Some(self.or_break(registration, reply)?);
                Ok(())
            }
        }
    }

    fn or_break<T>(&self, registration: &Registration, reply: Result<T, ProviderError>) -> Result<T, Refused> {
        reply.map_err(|error| {
            let mut message = Message::new(Severity::Error, report::chain(&error));
            message.plugin = Some(registration.goal.type_token.package().to_owned());
            self.break_off(&registration.urn, registration.goal.source, message);
            Refused
        })
    }

    async fn check(
        self: &Arc<Self>,
        registration: &mut Registration,
        olds: Arc<PropertyMap>,
        news: Arc<PropertyMap>,
    ) -> Result<Checked, Refused> {
        let reply = match registration.kind {
            Kind::Provider => self.check_config(registration, olds, news).await?,
            Kind::Component | Kind::Custom => {
                let reply = self.check_inputs(registration, olds, news).await;
                self.or_break(registration, reply)?
            }
        };
        Ok(if reply.failures.is_empty() { Ok(Arc::new(reply.inputs)) } else { Err(reply.failures) })
    }

    /// Tells what is wrong with the inputs, and ends the run.
    pub(super) fn refuse_inputs(self: &Arc<Self>, registration: &mut Registration, failures: &[CheckFailure]) {
        for failure in failures {
            let message = report::refused_input(&registration.urn, failure);
            self.complain(&registration.urn, registration.goal.source, message);
        }
        self.note_break();
        if let Some(parked) = registration.parked.take() {
            self.close_later(parked);
        }
    }

    /// Tells which paths of `ignoreChanges` could not be set back.
    fn tell_unignored(&self, registration: &Registration) {
        let Some((_, old)) = registration.old.as_ref().filter(|_| !registration.goal.ignore_changes.is_empty()) else {
            return;
        };
        let (_, failed) = inputs::ignoring_changes(&registration.goal, old);
        if failed.is_empty() {
            return;
        }
        let text = format!("changes of {} cannot be ignored: old and new values differ in shape", failed.join(", "));
        let mut message = Message::new(Severity::Info, text);
        message.urn = Some(registration.urn.clone());
        message.source = registration.goal.source;
        self.emit(Event::Message(message));
    }

    async fn check_inputs(
        &self,
        registration: &Registration,
        olds: Arc<PropertyMap>,
        news: Arc<PropertyMap>,
    ) -> Result<CheckReply, ProviderError> {
        let unchecked = |news: &PropertyMap| Ok(CheckReply { inputs: news.clone(), failures: Vec::new() });
        let Some(instance) = &registration.instance else { return unchecked(&news) };
        let Some(provider) = instance.ready().await? else { return unchecked(&news) };
        self.tell_unnamed(registration, provider);
        let request = CheckRequest {
            urn: registration.urn.clone(),
            olds,
            news,
            random_seed: registration.seed,
            autonaming: registration.naming.as_ref().map(|proposal| proposal.autonaming.clone()),
            preview: self.preview(),
        };
        provider.check(request).await
    }

    /// A provider that takes no names goes on naming as it likes: told once, to who will want to know.
    fn tell_unnamed(&self, registration: &Registration, provider: &Arc<dyn Provider>) {
        let is_meant = registration.naming.as_ref().is_some_and(|proposal| proposal.meant);
        let is_first = registration.answers.fresh.is_none() && registration.answers.carried.is_none();
        if !is_meant || !is_first || provider.capabilities().supports_autonaming {
            return;
        }
        let package = registration.goal.type_token.package();
        let text = format!("{package} takes no names from pulumi:autonaming, and chooses its own");
        let message = Message::new(Severity::Warning, text);
        let (urn, source) = (Some(registration.urn.clone()), registration.goal.source);
        self.emit(Event::Message(Message { urn, source, ..message }));
    }

    /// Checks the configuration of a provider resource on a new instance, which is then parked.
    async fn check_config(
        self: &Arc<Self>,
        registration: &mut Registration,
        olds: Arc<PropertyMap>,
        news: Arc<PropertyMap>,
    ) -> Result<CheckReply, Refused> {
        if let Some(parked) = registration.parked.take() {
            self.close_later(parked);
        }
        let provider = match self.providers.boot(&registration.urn, &news).await {
            Ok(provider) => provider,
            Err(error) => {
                let mut message = Message::new(Severity::Error, error.message);
                message.hint = error.hint;
                self.break_off(&registration.urn, registration.goal.source, message);
                return Err(Refused);
            }
        };
        registration.parked = Some(Arc::clone(&provider));
        let request = CheckConfigRequest {
            urn: registration.urn.clone(),
            olds: Arc::new(visible(&olds)),
            news: Arc::new(visible(&news)),
        };
        let reply = provider.check_config(request).await;
        let mut reply = self.or_break(registration, reply)?;
        if !reply.failures.is_empty() {
            return Ok(reply);
        }
        if let Some(version) = news.get(VERSION_KEY) {
            let answered = reply.inputs.entry(VERSION_KEY.to_owned()).or_insert_with(|| version.clone());
            if answered != version {
                let text = "the provider changed the version of its own configuration".to_owned();
                self.break_off(&registration.urn, registration.goal.source, Message::new(Severity::Error, text));
                return Err(Refused);
            }
        }
        if let Some(internal) = news.get(INTERNAL_KEY) {
            reply.inputs.insert(INTERNAL_KEY.to_owned(), internal.clone());
        }
        Ok(reply)
    }

    async fn diff(&self, registration: &Registration, news: Arc<PropertyMap>) -> Result<DiffReply, ProviderError> {
        let Some((_, old)) = &registration.old else { return Ok(DiffReply::default()) };
        match (&registration.instance, &registration.parked) {
            (Some(instance), _) => {
                let Some(provider) = instance.ready().await? else {
                    self.tell_unknown_configuration(registration);
                    return Ok(DiffReply { changes: DiffChanges::Some, ..DiffReply::default() });
                };
                let request = DiffRequest {
                    urn: registration.urn.clone(),
                    id: old.id.clone(),
                    olds: Arc::clone(&old.outputs),
                    old_inputs: Arc::clone(&old.inputs),
                    news,
                    ignore_changes: registration.goal.ignore_changes.clone(),
                    allow_unknowns: self.preview(),
                };
                provider.diff(request).await
            }
            (None, Some(parked)) => {
                let request = DiffConfigRequest {
                    urn: registration.urn.clone(),
                    olds: Arc::clone(&old.outputs),
                    old_inputs: Arc::new(visible(&old.inputs)),
                    news: Arc::new(visible(&news)),
                    ignore_changes: registration.goal.ignore_changes.clone(),
                };
                parked.diff_config(request).await
            }
            (None, None) => Ok(DiffReply::default()),
        }
    }

    fn tell_unknown_configuration(&self, registration: &Registration) {
        let text = "the configuration of its provider is not known yet: taken for changed".to_owned();
        let mut message = Message::new(Severity::Warning, text);
        message.urn = Some(registration.urn.clone());
        message.source = registration.goal.source;
        self.emit(Event::Message(message));
    }

    /// Asks the new provider whether taking over from the old one replaces what it serves.
    async fn diff_provider(&self, registration: &Registration) -> Result<DiffReply, ProviderError> {
        let old = registration.old.as_ref().and_then(|(_, old)| old.provider.clone());
        let (Some(instance), Some(new), Some(old)) = (&registration.instance, &registration.goal.provider, old) else {
            return Ok(DiffReply::default());
        };
        let (old, new_inputs) = {
            let tables = self.tables();
            let new_inputs = tables.news.get(&new.urn).map(|(_, state)| Arc::clone(&state.inputs));
            (tables.old_providers.get(&old).cloned(), new_inputs.unwrap_or_default())
        };
        let (olds, old_inputs) = old.map(|old| (Arc::clone(&old.outputs), visible(&old.inputs))).unwrap_or_default();
        let request = DiffConfigRequest {
            urn: new.urn.clone(),
            olds,
            old_inputs: Arc::new(old_inputs),
            news: Arc::new(visible(&new_inputs)),
            ignore_changes: Vec::new(),
        };
        instance.provider().diff_config(request).await
    }
}
