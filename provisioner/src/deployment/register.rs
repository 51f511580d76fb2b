//! From a registration to its steps (engine semantics, sections 2.1 to 2.11).

use std::sync::Arc;

use bridge::host::HostError;
use bridge::provider::{
    CheckConfigRequest, CheckReply, CheckRequest, DiffChanges, DiffConfigRequest, DiffReply, DiffRequest, Provider,
    ProviderError,
};
use pulumi_proto::property::{PropertyMap, UNKNOWN_STRING};
use pulumi_proto::urn::{ProviderReference, Urn};
use tokio::sync::RwLockReadGuard;

use crate::events::{Event, Message, Severity, StepOp};
use crate::state::ResourceState;

use super::decide::condemn::Entry;
use super::decide::{
    Answers, Decision, Kind, ProviderChange, Question, Refusal, ReplaceOrder, Replacement, Settlement, Situation,
    aliases, decide, inputs, scope,
};
use super::engine::Engine;
use super::goal::Goal;
use super::providers::{INTERNAL_KEY, Instance, VERSION_KEY, visible};
use super::registrar::{Refused, Registered, RegistrationResult};
use super::report;
use super::steps::{Actor, Step};
use super::tables::Inheritance;

/// A registration on its way to a settlement.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) goal: Goal,
    pub(super) urn: Urn,
    pub(super) kind: Kind,
    pub(super) old: Option<Entry>,
    internal: bool,
    imported: bool,
    in_scope: bool,
    seed: [u8; 32],
    answers: Answers,
    /// Who serves it; nobody for components and provider resources.
    instance: Option<Arc<Instance>>,
    /// The new instance of a provider resource, checked and not configured.
    parked: Option<Arc<dyn Provider>>,
}

impl Engine {
    /// Takes a registration through to its end. `internal` marks what no program asked for.
    pub(super) async fn register(self: &Arc<Self>, mut goal: Goal, internal: bool) -> Result<Registered, Refused> {
        if self.halted() {
            return Err(Refused);
        }
        let urn = Urn::new(
            &self.options.stack,
            &self.options.project,
            goal.parent.as_ref(),
            goal.type_token.as_str(),
            &goal.name,
        );
        let kind = match (goal.custom, goal.type_token.is_provider()) {
            (false, _) => Kind::Component,
            (true, true) => Kind::Provider,
            (true, false) => Kind::Custom,
        };
        self.inherit(&urn, &mut goal)?;
        if kind == Kind::Custom && goal.provider.is_none() {
            let package = goal.type_token.package().to_owned();
            let reference =
                self.default_provider(&urn, &package, &goal.version, &goal.plugin_download_url, goal.source).await?;
            goal.provider = Some(reference);
        }
        if kind == Kind::Provider {
            complete_provider_inputs(&mut goal);
        }
        let _slot = match kind {
            Kind::Custom => self.slots.acquire().await.ok(),
            Kind::Component | Kind::Provider => None,
        };
        if self.halted() {
            return Err(Refused);
        }
        let deciding = self.deciding.read().await;
        let registration = match self.identify(goal, urn, kind, internal).await {
            Ok(registration) => registration,
            Err(answer) => return answer,
        };
        self.converse(registration, deciding).await
    }

    /// Options that a child takes from its parent where it says nothing (section 2.1).
    fn inherit(&self, urn: &Urn, goal: &mut Goal) -> Result<(), Refused> {
        let Some(parent) = &goal.parent else { return Ok(()) };
        let inherited = self.tables().goals.get(parent).cloned();
        let Some(inherited) = inherited else {
            let text = format!("its parent {parent} has not been registered in this run");
            self.break_off(urn, goal.source, Message::new(Severity::Error, text));
            return Err(Refused);
        };
        goal.protect = goal.protect.or(Some(inherited.protect));
        goal.retain_on_delete = goal.retain_on_delete.or(Some(inherited.retain_on_delete));
        goal.deleted_with = goal.deleted_with.take().or(inherited.deleted_with);
        let serves = |provider: &ProviderReference| {
            let package = pulumi_proto::urn::TypeToken::new(provider.urn.type_token());
            !goal.custom || package.provider_package() == Some(goal.type_token.package())
        };
        if goal.provider.is_none() && !goal.type_token.is_provider() {
            goal.provider = inherited.provider.filter(serves);
        }
        Ok(())
    }

    /// Finds what a registration was before, and whether it can be at all (section 2.3).
    async fn identify(
        self: &Arc<Self>,
        goal: Goal,
        urn: Urn,
        kind: Kind,
        internal: bool,
    ) -> Result<Registration, Result<Registered, Refused>> {
        let instance = match (&goal.provider, kind) {
            (Some(reference), Kind::Custom) => Some(self.instance(reference, &urn, goal.source).await.map_err(Err)?),
            _ => None,
        };
        let mut registration = Registration {
            old: None,
            kind,
            internal,
            imported: false,
            in_scope: true,
            seed: random_seed(),
            answers: Answers::default(),
            instance,
            parked: None,
            goal,
            urn,
        };
        let clash = self.find_old(&mut registration);
        if let Some(text) = clash {
            self.complain(&registration.urn, registration.goal.source, Message::new(Severity::Error, text));
            // What is wrong is told at once, and the run ends once the provider has checked the inputs.
            if registration.kind == Kind::Custom && registration.old.is_some() {
                let old = registration.old.clone();
                let news = old.map(|(_, old)| Arc::new(inputs::ignoring_changes(&registration.goal, &old).0));
                if let Some(news) = news {
                    self.check(&mut registration, Question::CheckCarried { news }).await.map_err(Err)?;
                }
            } else if registration.kind == Kind::Custom {
                self.check(&mut registration, Question::CheckFresh).await.map_err(Err)?;
            }
            self.note_break();
            return Err(Err(Refused));
        }
        let goal = &registration.goal;
        let hangs_on_failure = {
            let tables = self.tables();
            goal.parent
                .iter()
                .chain(&goal.dependencies)
                .chain(goal.property_dependencies.values().flatten())
                .chain(&goal.deleted_with)
                .chain(&goal.replace_with)
                .any(|urn| tables.failed.contains(urn))
        };
        if hangs_on_failure {
            self.tables().failed.insert(registration.urn.clone());
            return Err(Ok(Registered {
                urn: registration.urn,
                id: None,
                outputs: Arc::default(),
                result: RegistrationResult::Skipped,
            }));
        }
        let probe = self.new_state(&registration, Arc::default());
        let mut tables = self.tables();
        registration.in_scope = self.options.scope.admits(&probe, &mut tables.scoped);
        drop(tables);
        Ok(registration)
    }

    /// Looks for the recorded entry under every name it may have. Returns what is wrong with the name, if anything.
    fn find_old(&self, registration: &mut Registration) -> Option<String> {
        let (goal, urn) = (&registration.goal, &registration.urn);
        let tables = &mut *self.tables();
        if tables.goals.contains_key(urn) {
            return Some(format!("{urn} is registered twice"));
        }
        tables.goals.insert(
            urn.clone(),
            Inheritance {
                protect: goal.protect.unwrap_or_default(),
                retain_on_delete: goal.retain_on_delete.unwrap_or_default(),
                deleted_with: goal.deleted_with.clone(),
                provider: goal.provider.clone(),
            },
        );
        let candidates = aliases::candidates(urn, goal, |urn| tables.alias_of.get(urn));
        let found = candidates.into_iter().find_map(|candidate| Some((tables.old(&candidate)?, candidate)));
        let mut clash = None;
        if let Some((old, candidate)) = found {
            registration.old = Some(old);
            if candidate != *urn {
                if tables.goals.contains_key(&candidate) {
                    clash = Some(format!("its alias {candidate} is a resource of this run"));
                } else if let Some(other) = tables.aliased.get(&candidate) {
                    clash = Some(format!("its alias {candidate} is taken by {other}"));
                } else {
                    tables.aliased.insert(candidate.clone(), urn.clone());
                    tables.alias_of.insert(urn.clone(), candidate);
                }
            }
        }
        if let Some(other) = tables.aliased.get(urn).filter(|other| *other != urn) {
            clash = Some(format!("{other} has taken over what was recorded under this name"));
        }
        clash
    }

    /// The instance behind a reference: live, or made from what is recorded.
    pub(super) async fn instance(
        &self,
        reference: &ProviderReference,
        urn: &Urn,
        source: Option<super::goal::SourceRef>,
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
        self.providers.load(reference, &recorded, &self.jobs).await
    }

    /// Asks until the decision stands, then does what it says.
    async fn converse(
        self: &Arc<Self>,
        mut registration: Registration,
        deciding: RwLockReadGuard<'_, ()>,
    ) -> Result<Registered, Refused> {
        if registration.in_scope && self.must_import(&registration) {
            self.import(&mut registration).await?;
        }
        let settlement = loop {
            match self.decision(&registration) {
                Decision::Ask(question) => self.ask(&mut registration, question).await?,
                Decision::Settle(settlement) => break settlement,
                Decision::Refuse(refusal) => {
                    self.break_off(
                        &registration.urn,
                        registration.goal.source,
                        report::refusal(&registration.urn, refusal),
                    );
                    self.leave(registration);
                    return Err(Refused);
                }
            }
        };
        match settlement {
            Settlement::Replace(Replacement { order: ReplaceOrder::DeleteFirst, .. }) => {
                // The walk over the dependents must see a decided picture; what it sees may change this decision, too.
                drop(deciding);
                let _alone = self.deciding.write().await;
                loop {
                    match self.decision(&registration) {
                        Decision::Ask(question) => self.ask(&mut registration, question).await?,
                        Decision::Settle(Settlement::Replace(replacement)) => {
                            let chain = self.plan_replacement(&registration, replacement).await?;
                            drop(_alone);
                            return self.run_chain(registration, chain).await;
                        }
                        Decision::Settle(settlement) => {
                            let chain = self.plan(&registration, settlement)?;
                            drop(_alone);
                            return self.run_chain(registration, chain).await;
                        }
                        Decision::Refuse(refusal) => {
                            let message = report::refusal(&registration.urn, refusal);
                            self.break_off(&registration.urn, registration.goal.source, message);
                            return Err(Refused);
                        }
                    }
                }
            }
            Settlement::Replace(replacement) => {
                let chain = self.plan_replacement(&registration, replacement).await?;
                drop(deciding);
                self.run_chain(registration, chain).await
            }
            settlement => {
                let chain = self.plan(&registration, settlement)?;
                drop(deciding);
                self.run_chain(registration, chain).await
            }
        }
    }

    fn decision(&self, registration: &Registration) -> Decision {
        let tables = self.tables();
        let goal = &registration.goal;
        let old = registration.old.as_ref().map(|(_, state)| &**state);
        let condemned = tables.condemned.get(&registration.urn).or_else(|| {
            let old_urn = tables.alias_of.get(&registration.urn)?;
            tables.condemned.get(old_urn)
        });
        let replaced_partner = if goal.replace_with.iter().any(|urn| tables.replaced.contains(urn)) {
            Some("replaceWith")
        } else if goal.deleted_with.as_ref().is_some_and(|urn| tables.replaced.contains(urn)) {
            Some("deletedWith")
        } else {
            None
        };
        let provider = match (old.and_then(|old| old.provider.as_ref()), &goal.provider, registration.kind) {
            (old, Some(new), Kind::Custom) => match old {
                None => ProviderChange::Kind,
                Some(old) if old == new || tables.alias_of.get(&new.urn) == Some(&old.urn) => ProviderChange::None,
                Some(_) => ProviderChange::Other,
            },
            (Some(_), _, Kind::Component | Kind::Provider) => ProviderChange::Kind,
            _ => ProviderChange::None,
        };
        decide(
            &Situation {
                kind: registration.kind,
                preview: self.preview(),
                goal,
                old,
                imported: registration.imported,
                in_scope: registration.in_scope,
                recreating: condemned.map(|condemned| condemned.keys.as_slice()),
                marked: self.options.replace.iter().any(|pattern| pattern.matches(&registration.urn)),
                replaced_partner,
                provider,
                protect: goal.protect.unwrap_or_default(),
                delete_before_replace: goal.delete_before_replace,
            },
            &registration.answers,
        )
    }

    async fn ask(&self, registration: &mut Registration, question: Question) -> Result<(), Refused> {
        match question {
            Question::CheckFresh | Question::CheckCarried { .. } => self.check(registration, question).await,
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

    async fn check(&self, registration: &mut Registration, question: Question) -> Result<(), Refused> {
        let (fresh, olds, news) = match question {
            Question::CheckCarried { news } => {
                let olds = registration.old.as_ref().map(|(_, old)| Arc::clone(&old.inputs)).unwrap_or_default();
                self.tell_unignored(registration);
                (false, olds, news)
            }
            _ => (true, Arc::default(), Arc::new(registration.goal.inputs.clone())),
        };
        let reply = match registration.kind {
            Kind::Provider => self.check_config(registration, olds, news).await?,
            Kind::Component | Kind::Custom => {
                let reply = self.check_inputs(registration, olds, news).await;
                self.or_break(registration, reply)?
            }
        };
        if !reply.failures.is_empty() {
            for failure in &reply.failures {
                let message = report::refused_input(&registration.urn, failure);
                self.complain(&registration.urn, registration.goal.source, message);
            }
            self.note_break();
            if let Some(parked) = registration.parked.take() {
                self.close_later(parked);
            }
            return Err(Refused);
        }
        let inputs = Some(Arc::new(reply.inputs));
        if fresh {
            registration.answers.fresh = inputs;
        } else {
            registration.answers.carried = inputs;
        }
        Ok(())
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
        let request = CheckRequest {
            urn: registration.urn.clone(),
            olds,
            news,
            random_seed: registration.seed,
            autonaming: None,
            preview: self.preview(),
        };
        provider.check(request).await
    }

    /// Checks the configuration of a provider resource on a new instance, which is then parked.
    async fn check_config(
        &self,
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

    fn must_import(&self, registration: &Registration) -> bool {
        let wanted = &registration.goal.import_id;
        registration.kind == Kind::Custom
            && !wanted.is_empty()
            && registration.old.as_ref().is_none_or(|(_, old)| {
                old.external || wanted != if old.import_id.is_empty() { &old.id } else { &old.import_id }
            })
    }

    /// Reads what is to be taken over and records it; the conversation then goes on as with any recorded resource.
    async fn import(self: &Arc<Self>, registration: &mut Registration) -> Result<(), Refused> {
        let mut new = self.new_state(registration, Arc::default());
        new.id.clone_from(&registration.goal.import_id);
        let op = if registration.old.is_some() { StepOp::ImportReplacement } else { StepOp::Import };
        let mut step = self.step(registration, op);
        step.old.clone_from(&registration.old);
        step.new = Some(new);
        let replaces = step.old.is_some();
        let Ok(entry) = self.execute(step).await else {
            self.note_break();
            return Err(Refused);
        };
        if replaces {
            self.tables().replaced.insert(registration.urn.clone());
            // A marker for the display: it cannot fail.
            self.execute(self.step(registration, StepOp::Replace)).await.ok();
        }
        registration.old = entry;
        registration.imported = true;
        Ok(())
    }

    /// Ends what a registration holds that comes to nothing.
    fn leave(&self, registration: Registration) {
        if let Some(parked) = registration.parked {
            self.close_later(parked);
        }
    }

    pub(super) fn step(&self, registration: &Registration, op: StepOp) -> Step {
        let mut step = Step::new(op, registration.urn.clone());
        step.internal = registration.internal;
        step.source = registration.goal.source;
        step.actor = match (&registration.instance, &registration.parked) {
            (Some(instance), _) => Actor::Instance(Arc::clone(instance)),
            (None, Some(parked)) => Actor::Parked(Arc::clone(parked)),
            (None, None) => Actor::Nobody,
        };
        step
    }

    /// The entry that a goal asks for, before any provider has answered.
    pub(super) fn new_state(&self, registration: &Registration, inputs: Arc<PropertyMap>) -> ResourceState {
        let goal = &registration.goal;
        let mut state = ResourceState::new(registration.urn.clone(), goal.custom);
        state.inputs = inputs;
        state.parent.clone_from(&goal.parent);
        state.protect = goal.protect.unwrap_or_default();
        state.dependencies.clone_from(&goal.dependencies);
        state.property_dependencies.clone_from(&goal.property_dependencies);
        state.provider = if registration.kind == Kind::Custom { goal.provider.clone() } else { None };
        state.additional_secret_outputs.clone_from(&goal.additional_secret_outputs);
        state.custom_timeouts = goal.custom_timeouts;
        state.import_id.clone_from(&goal.import_id);
        state.retain_on_delete = goal.retain_on_delete.unwrap_or_default();
        state.deleted_with.clone_from(&goal.deleted_with);
        state.replace_with.clone_from(&goal.replace_with);
        state.ignore_changes.clone_from(&goal.ignore_changes);
        state.hide_diff.clone_from(&goal.hide_diff);
        state.replace_on_changes.clone_from(&goal.replace_on_changes);
        state.replacement_trigger = goal.replacement_trigger.clone();
        if let Some((_, old)) = &registration.old {
            state.created = old.created;
            state.modified = old.modified;
            state.refresh_before_update = old.refresh_before_update;
        }
        state
    }

    /// The chain of anything but a replacement, and the marks it leaves on the tables.
    fn plan(&self, registration: &Registration, settlement: Settlement) -> Result<Vec<Step>, Refused> {
        let urn = registration.urn.clone();
        if !matches!(settlement, Settlement::SkipCreate) {
            self.refuse_skipped_dependencies(registration)?;
        }
        self.tables().decided.insert(urn);
        let with = |op, inputs: Arc<PropertyMap>| {
            let mut step = self.step(registration, op);
            step.old.clone_from(&registration.old);
            step.new = Some(self.new_state(registration, inputs));
            step
        };
        Ok(match settlement {
            Settlement::Same { inputs } => vec![with(StepOp::Same, inputs)],
            Settlement::Create { inputs } => vec![with(StepOp::Create, inputs)],
            Settlement::Update { inputs, change } => {
                let mut step = with(StepOp::Update, inputs);
                step.change = change;
                vec![step]
            }
            Settlement::Untouched => self.plan_untouched(registration)?,
            Settlement::SkipCreate => {
                self.tables().skipped.insert(registration.urn.clone());
                vec![self.step(registration, StepOp::Same)]
            }
            Settlement::Imported | Settlement::Replace(_) => Vec::new(),
        })
    }

    /// What depends on something that targets kept from being made cannot be (section 2.16).
    pub(super) fn refuse_skipped_dependencies(&self, registration: &Registration) -> Result<(), Refused> {
        let state = self.new_state(registration, Arc::default());
        let skipped = {
            let tables = self.tables();
            scope::references(&state).find(|urn| tables.skipped.contains(*urn)).cloned()
        };
        let Some(skipped) = skipped else { return Ok(()) };
        let text = format!("{} depends on {}, which is not among the targets", registration.urn.name(), skipped.name());
        let mut message = Message::new(Severity::Error, text);
        message.hint = format!("add --target '{skipped}'");
        self.complain(&registration.urn, registration.goal.source, message);
        if self.preview() {
            self.note_complaint();
            return Ok(());
        }
        self.note_break();
        Err(Refused)
    }

    /// An entry out of scope is carried over as it is, and before it whatever it refers to that nobody else carries.
    fn plan_untouched(&self, registration: &Registration) -> Result<Vec<Step>, Refused> {
        let Some(old) = &registration.old else { return Ok(Vec::new()) };
        let mut chain = Vec::new();
        let stranded = self.carry(old, &registration.urn, &mut chain);
        if let Some(urn) = stranded {
            let text = format!("{} is out of scope, and the provider it was made with is replaced", urn.name());
            let mut message = Message::new(Severity::Error, text);
            message.hint = format!("add --target '{urn}'");
            self.break_off(&registration.urn, registration.goal.source, message);
            return Err(Refused);
        }
        Ok(chain)
    }

    /// Adds the steps that carry an entry over under a URN, dependencies first. Returns the URN of an entry whose
    /// provider is no longer what it was.
    pub(super) fn carry(&self, entry: &Entry, urn: &Urn, chain: &mut Vec<Step>) -> Option<Urn> {
        let (_, state) = entry;
        if let Some(provider) = &state.provider {
            let replaced = {
                let tables = self.tables();
                tables.news.get(&provider.urn).is_some_and(|(_, new)| new.id != *provider.id)
            };
            if replaced {
                return Some(urn.clone());
            }
        }
        let provider = state.provider.iter().map(|provider| &provider.urn);
        for needed in provider.chain(scope::references(state)) {
            let needed_entry = {
                let mut tables = self.tables();
                let known = tables.decided.contains(needed) || tables.aliased.contains_key(needed);
                let entry = if known { None } else { tables.old(needed) };
                if entry.is_some() {
                    tables.decided.insert(needed.clone());
                }
                entry
            };
            if let Some(needed_entry) = needed_entry
                && let Some(stranded) = self.carry(&needed_entry, needed, chain)
            {
                return Some(stranded);
            }
        }
        let mut step = Step::new(StepOp::Same, urn.clone());
        step.old = Some(entry.clone());
        step.new = Some(ResourceState { urn: urn.clone(), ..(**state).clone() });
        step.internal = state.is_provider() && state.urn.name().starts_with("default");
        chain.push(step);
        None
    }

    /// Does the steps of a chain, one after the other, and answers the registration.
    async fn run_chain(self: &Arc<Self>, registration: Registration, chain: Vec<Step>) -> Result<Registered, Refused> {
        let urn = registration.urn.clone();
        let mut outcome = if chain.is_empty() { registration.old.clone() } else { None };
        if !self.wait_until_gone(&urn).await {
            return self.failed(urn);
        }
        for step in chain {
            if self.halted() {
                return Err(Refused);
            }
            match self.execute(step).await {
                Ok(Some(entry)) if entry.1.urn == urn => outcome = Some(entry),
                Ok(_) => {}
                Err(_) => return self.failed(urn),
            }
        }
        let Some(entry) = outcome else {
            let skipped = RegistrationResult::Skipped;
            return Ok(Registered { urn, id: None, outputs: Arc::default(), result: skipped });
        };
        let state = Arc::clone(&entry.1);
        self.tables().news.insert(urn.clone(), entry);
        let id = Some(state.id.clone()).filter(|id| !id.is_empty() && id != UNKNOWN_STRING);
        Ok(Registered { urn, id, outputs: Arc::clone(&state.outputs), result: RegistrationResult::Succeeded })
    }

    fn failed(&self, urn: Urn) -> Result<Registered, Refused> {
        if self.options.continue_on_error {
            self.tables().failed.insert(urn.clone());
            Ok(Registered { urn, id: None, outputs: Arc::default(), result: RegistrationResult::Failed })
        } else {
            Err(Refused)
        }
    }

    /// Waits for a resource that another one's replacement takes down to be gone. False where that failed.
    async fn wait_until_gone(&self, urn: &Urn) -> bool {
        let condemned = self.tables().condemned.get(urn).cloned();
        match condemned {
            Some(mut condemned) => condemned.gone.wait_for(|gone| *gone).await.is_ok(),
            None => true,
        }
    }
}

impl Registration {
    /// Whether no program asked for it.
    pub(super) fn is_internal(&self) -> bool {
        self.internal
    }
}

/// The inputs that the engine itself gives a provider resource: the version of its package and where it comes from.
fn complete_provider_inputs(goal: &mut Goal) {
    use pulumi_proto::property::PropertyValue;
    if !goal.version.is_empty() {
        goal.inputs.entry(VERSION_KEY.to_owned()).or_insert_with(|| goal.version.as_str().into());
    }
    if goal.inputs.contains_key(VERSION_KEY) || !goal.plugin_download_url.is_empty() {
        let internal = goal.inputs.entry(INTERNAL_KEY.to_owned()).or_insert_with(|| PropertyMap::new().into());
        if let PropertyValue::Map(internal) = internal
            && !goal.plugin_download_url.is_empty()
        {
            internal.insert("pluginDownloadURL".to_owned(), goal.plugin_download_url.as_str().into());
        }
    }
}

fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed
}

/// Tells of a complaint that a preview goes on after.
pub(super) fn complaint(registration: &Registration, refusal: Refusal) -> Message {
    report::refusal(&registration.urn, refusal)
}
