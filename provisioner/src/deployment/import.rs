//! The import operation: takes existing resources into the state, without a program (engine semantics, section 5.6).
//!
//! Everything that is recorded is confirmed as it is, the stack and the providers that are missing are made, and then each
//! resource is read and recorded with what was read. What Check says of that is only told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bridge::provider::{Alias, CheckRequest};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, ROOT_STACK_TYPE, TypeToken, Urn};

use crate::events::{Event, Message, Severity, SourceRef, StepOp};
use crate::state::ResourceState;

use super::decide::aliases;
use super::decide::condemn::Entry;
use super::decide::existing::known_id;
use super::door::default_name;
use super::engine::Engine;
use super::goal::Goal;
use super::providers::Instance;
use super::register::random_seed;
use super::registrar::Refused;
use super::report;
use super::step::{Actor, Step};
use super::tables::Inheritance;

/// An existing resource that is to be recorded.
#[derive(Clone, Debug)]
pub struct ImportGoal {
    /// Its type.
    pub type_token: TypeToken,
    /// Its name in the stack.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its parent; `None`: the stack.
    pub parent: Option<Urn>,
    /// Who reads it.
    pub provider: ImportProvider,
    /// Refuse deletion.
    pub protect: bool,
    /// What it was called before.
    pub aliases: Vec<Alias>,
    /// Inputs that are known of it: those that are secret are secret in what is read, too.
    pub inputs: Arc<PropertyMap>,
    /// Outputs to keep secret.
    pub additional_secret_outputs: Vec<String>,
    /// Where the user wrote what it is.
    pub source: Option<SourceRef>,
}

/// The provider of an imported resource.
#[derive(Clone, Debug)]
pub enum ImportProvider {
    /// The default one of its package; of this version, or of any if empty.
    Default(String),
    /// One that is recorded.
    Recorded(ProviderReference),
    /// This one, made if it is not recorded.
    Declared(Box<Goal>),
}

impl Engine {
    /// Does the whole operation. Says whether the user stopped it with work left.
    pub(super) async fn import_all(self: &Arc<Self>) -> bool {
        if self.confirm_everything().await.is_err() || self.make_root().await.is_err() {
            return self.signals.stop.is_cancelled();
        }
        // By depth: the qualified type of a child holds that of its parent.
        let mut levels: BTreeMap<usize, Vec<&ImportGoal>> = BTreeMap::new();
        let mut named: BTreeSet<Urn> = BTreeSet::new();
        for goal in &self.options.imports {
            let urn = self.urn_of(goal);
            let depth = urn.qualified_type().split('$').count();
            if named.insert(urn) {
                levels.entry(depth).or_default().push(goal);
            } else {
                self.refuse_import(goal, "it is named twice, and can be imported once");
            }
        }
        for level in levels.into_values() {
            let imports = level.into_iter().map(|goal| async {
                let _slot = self.slots.acquire().await.ok();
                if !self.halted() {
                    // What went wrong has been told.
                    self.import_one(goal).await.ok();
                }
            });
            join_all(imports).await;
        }
        self.signals.stop.is_cancelled()
    }

    pub(super) fn urn_of(&self, goal: &ImportGoal) -> Urn {
        let (stack, project) = (&self.options.stack, &self.options.project);
        let parent = goal.parent.clone().unwrap_or_else(|| Urn::root_stack(stack, project));
        Urn::new(stack, project, Some(&parent), goal.type_token.as_str(), &goal.name)
    }

    /// Carries everything over that is recorded, with its providers at work.
    async fn confirm_everything(self: &Arc<Self>) -> Result<(), Refused> {
        let base: Vec<Entry> = self.tables().base.clone();
        for entry in base.into_iter().filter(|(_, state)| !state.delete && state.view_of.is_none()) {
            if self.halted() {
                return Err(Refused);
            }
            let urn = entry.1.urn.clone();
            if let Some(reference) = entry.1.as_provider_reference() {
                // One that cannot be started fails what is imported with it, and nothing else.
                self.load_instance(&reference).await.ok();
            }
            let inheritance = Inheritance {
                protect: entry.1.protect,
                retain_on_delete: entry.1.retain_on_delete,
                deleted_with: entry.1.deleted_with.clone(),
                provider: entry.1.provider.clone(),
                providers: BTreeMap::new(),
            };
            self.tables().goals.insert(urn.clone(), inheritance);
            self.execute(Step::carry(entry, urn)).await.map_err(|_| Refused)?;
        }
        Ok(())
    }

    async fn make_root(self: &Arc<Self>) -> Result<(), Refused> {
        let root = Urn::root_stack(&self.options.stack, &self.options.project);
        if self.tables().old(&root).is_some() {
            return Ok(());
        }
        let goal = Goal::component(TypeToken::new(ROOT_STACK_TYPE), root.name(), PropertyMap::new());
        Box::pin(self.register(goal, false)).await.map(drop)
    }

    async fn import_one(self: &Arc<Self>, goal: &ImportGoal) -> Result<(), Refused> {
        let urn = self.urn_of(goal);
        let root = Urn::root_stack(&self.options.stack, &self.options.project);
        let parent = goal.parent.clone().unwrap_or(root);
        let (is_there, old) = {
            let tables = self.tables();
            (tables.old(&parent).is_some() || tables.news.contains_key(&parent), tables.old(&urn))
        };
        if !is_there {
            self.refuse_import(goal, &format!("its parent {parent} is not recorded"));
            return Err(Refused);
        }
        if let Some(name) = self.recorded_under_another_name(goal, &urn, &parent) {
            self.refuse_import(goal, &format!("it was {name} before, and is recorded so: provision to rename it"));
            return Err(Refused);
        }
        if old.as_ref().is_some_and(|(_, old)| known_id(old) == goal.id) {
            return Ok(());
        }
        let reference = self.import_provider(goal, &urn).await?;
        let instance = match self.load_instance(&reference).await {
            Ok(instance) => instance,
            Err(error) => {
                let message = Message { hint: error.hint, ..Message::new(Severity::Error, error.message) };
                self.complain(&urn, goal.source, message);
                self.note_complaint();
                return Err(Refused);
            }
        };
        let mut new = ResourceState::new(urn.clone(), true);
        new.id.clone_from(&goal.id);
        new.parent = Some(parent);
        new.provider = Some(reference);
        new.protect = goal.protect;
        new.additional_secret_outputs.clone_from(&goal.additional_secret_outputs);
        let mut step = Step::new(StepOp::Import, urn.clone());
        // What is recorded under another id is refused, and shown as it is.
        step.new = Some(old.as_ref().map_or_else(|| Arc::new(new), |(_, old)| Arc::clone(old)));
        step.old = old;
        step.actor = Actor::Instance(Arc::clone(&instance));
        step.source = goal.source;
        step.known_inputs = Arc::clone(&goal.inputs);
        self.tables().decided.insert(urn.clone());
        let (entry, state) = self.execute(step).await.ok().flatten().ok_or(Refused)?;
        self.tables().news.insert(urn.clone(), (entry, Arc::clone(&state)));
        self.check_imported(&instance, &state, goal.source).await;
        Ok(())
    }

    /// The name under which the state knows the resource, if it has another one now.
    fn recorded_under_another_name(&self, goal: &ImportGoal, urn: &Urn, parent: &Urn) -> Option<String> {
        let registration = Goal {
            parent: Some(parent.clone()),
            aliases: goal.aliases.clone(),
            ..Goal::custom(goal.type_token.clone(), goal.name.as_str(), PropertyMap::new())
        };
        let tables = self.tables();
        let candidates = aliases::candidates(urn, &registration, |_| None);
        candidates
            .into_iter()
            .find(|known| known != urn && tables.old(known).is_some())
            .map(|old| old.name().to_owned())
    }

    async fn import_provider(self: &Arc<Self>, goal: &ImportGoal, urn: &Urn) -> Result<ProviderReference, Refused> {
        let (stack, project) = (&self.options.stack, &self.options.project);
        let recorded = |urn: &Urn| self.tables().old(urn).and_then(|(_, state)| state.as_provider_reference());
        match &goal.provider {
            // It may have been replaced since.
            ImportProvider::Recorded(reference) => Ok(recorded(&reference.urn).unwrap_or_else(|| reference.clone())),
            ImportProvider::Default(version) => {
                let package = goal.type_token.package();
                let type_token = TypeToken::provider(package);
                let known = Urn::new(stack, project, None, type_token.as_str(), &default_name(version, ""));
                match recorded(&known) {
                    Some(reference) => Ok(reference),
                    None => self.default_provider(urn, package, version, "", goal.source).await,
                }
            }
            ImportProvider::Declared(provider) => {
                let type_token = provider.type_token.as_str();
                let known = Urn::new(stack, project, provider.parent.as_ref(), type_token, &provider.name);
                match recorded(&known) {
                    Some(reference) => Ok(reference),
                    None => self.made_once(provider, known).await,
                }
            }
        }
    }

    /// Several resources may want the same provider.
    async fn made_once(self: &Arc<Self>, goal: &Goal, urn: Urn) -> Result<ProviderReference, Refused> {
        let cell = self.lazy_provider(urn.to_string());
        let made = cell.get_or_init(|| async { Box::pin(self.register(goal.clone(), false)).await.ok() }).await;
        made.as_ref().map(super::registrar::Registered::as_provider_reference).ok_or(Refused)
    }

    /// Asks whether what was read would do as inputs. It is recorded in any case.
    async fn check_imported(&self, instance: &Instance, state: &ResourceState, source: Option<SourceRef>) {
        let check = async {
            let Some(provider) = instance.ready().await? else { return Ok(Vec::new()) };
            let request = CheckRequest {
                urn: state.urn.clone(),
                olds: Arc::clone(&state.inputs),
                news: Arc::clone(&state.inputs),
                random_seed: random_seed(),
                autonaming: None,
                preview: self.preview(),
            };
            provider.check(request).await.map(|reply| reply.failures)
        };
        match check.await {
            Ok(failures) => {
                for failure in &failures {
                    let message = report::refused_input(&state.urn, failure);
                    let urn = Some(state.urn.clone());
                    self.emit(Event::Message(Message { severity: Severity::Warning, urn, source, ..message }));
                }
            }
            Err(error) => {
                self.complain(&state.urn, source, Message::new(Severity::Error, report::chain(&error)));
                self.note_complaint();
            }
        }
    }

    fn refuse_import(&self, goal: &ImportGoal, text: &str) {
        self.complain(&self.urn_of(goal), goal.source, Message::new(Severity::Error, text));
        self.note_complaint();
    }
}
