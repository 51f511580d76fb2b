//! From a settlement to steps, and the marks they leave on the tables.

use std::sync::Arc;

use hashbrown::HashSet;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use crate::events::{Message, Operation, Severity, SourceRef, StepOp};
use crate::state::ResourceState;

use super::decide::condemn::Entry;
use super::decide::{Kind, Settlement};
use super::engine::Engine;
use super::register::Registration;
use super::registrar::Refused;
use super::step::{Actor, Step};
use super::tables::Tables;

impl Engine {
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

    /// The chain of a settlement, and the marks it leaves on the tables.
    pub(super) async fn plan(
        self: &Arc<Self>,
        registration: &Registration,
        settlement: Settlement,
    ) -> Result<Vec<Step>, Refused> {
        let is_touched = !matches!(settlement, Settlement::SkipCreate | Settlement::Untouched);
        let may_refuse = self.options.operation == Operation::Update && is_touched;
        if may_refuse && !self.tables().skipped.is_empty() {
            let state = self.new_state(registration, Arc::default());
            self.refuse_skipped_dependencies(&state, registration.goal.source)?;
        }
        // What stays as it is recorded refers to what it did.
        let stays = matches!(settlement, Settlement::Doomed | Settlement::AsRecorded | Settlement::Untouched);
        if !stays {
            let old = registration.old.as_ref();
            self.refuse_circle(old, registration.goal.source, || self.new_state(registration, Arc::default()))?;
        }
        let with = |op, inputs: Arc<PropertyMap>| {
            let mut step = self.step(registration, op);
            step.old.clone_from(&registration.old);
            step.new = Some(Arc::new(self.new_state(registration, inputs)));
            step
        };
        let chain = match settlement {
            Settlement::Replace(replacement) => self.plan_replacement(registration, replacement).await?,
            Settlement::Doomed => self.plan_doomed(registration),
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
            Settlement::AsRecorded => {
                // What was not even read is confirmed by nobody else.
                if let Some((entry, _)) = &registration.old {
                    self.defer(|tables| tables.keep(*entry)).await;
                }
                Vec::new()
            }
        };
        self.tables().decided.insert(registration.urn.clone());
        Ok(chain)
    }

    /// What depends on something that targets kept from being made cannot be (section 2.16).
    pub(super) fn refuse_skipped_dependencies(
        &self,
        state: &ResourceState,
        source: Option<SourceRef>,
    ) -> Result<(), Refused> {
        let skipped = {
            let tables = self.tables();
            state.references().find(|urn| tables.skipped.contains(*urn)).cloned()
        };
        let Some(skipped) = skipped else { return Ok(()) };
        let text = format!("{} depends on {}, which is not among the targets", state.urn.name(), skipped.name());
        let mut message = Message::new(Severity::Error, text);
        message.hint = format!("add --target '{skipped}'");
        self.complain(&state.urn, source, message);
        if self.preview() {
            self.note_complaint();
            return Ok(());
        }
        self.note_break();
        Err(Refused)
    }

    /// What now depends on something that is out of scope, and that still depends on it as it is recorded, cannot be.
    pub(super) fn refuse_circle(
        &self,
        old: Option<&Entry>,
        source: Option<SourceRef>,
        new: impl FnOnce() -> ResourceState,
    ) -> Result<(), Refused> {
        let Some((old, _)) = old else { return Ok(()) };
        let dependents: HashSet<Urn> = {
            let tables = self.tables();
            let carried = tables.carried_dependents(*old);
            carried.into_iter().filter_map(|id| Some(tables.ledger.get(id)?.urn.clone())).collect()
        };
        if dependents.is_empty() {
            return Ok(());
        }
        // What was carried over may have got a new name since the program was told of it.
        let state = self.tables().as_named_now(&Arc::new(new()));
        let Some(urn) = state.references().find(|urn| dependents.contains(*urn)) else { return Ok(()) };
        let (name, other) = (state.urn.name(), urn.name());
        let text = format!("{name} depends on {other}, which is out of scope and still depends on {name}");
        let mut message = Message::new(Severity::Error, text);
        message.hint = "let the run touch both of them, or none".to_owned();
        self.break_off(&state.urn, source, message);
        Err(Refused)
    }

    /// An entry that a destroy is about to delete keeps its name and its references, which say in which order that must go.
    /// Whether, how and by whom it is deleted is as the program has it.
    fn plan_doomed(&self, registration: &Registration) -> Vec<Step> {
        let Some(old) = &registration.old else { return Vec::new() };
        let asked = self.new_state(registration, Arc::default());
        if old.1.deleted_with.is_some() && old.1.deleted_with != asked.deleted_with {
            self.tables().untied.insert(old.0);
        }
        vec![Step {
            doomed_as: Some(Arc::new(asked)),
            source: registration.goal.source,
            ..Step::carry(old.clone(), old.1.urn.clone())
        }]
    }

    /// An entry out of scope is carried over as it is, and before it whatever it refers to that nobody else carries.
    fn plan_untouched(&self, registration: &Registration) -> Result<Vec<Step>, Refused> {
        let Some(old) = &registration.old else { return Ok(Vec::new()) };
        if self.tables().carried.contains(&old.1.urn) {
            return Ok(Vec::new());
        }
        self.carry(old, &old.1.urn).map_err(|Stranded(urn)| {
            let text = format!("{} is out of scope, and the provider it was made with is replaced", urn.name());
            let mut message = Message::new(Severity::Error, text);
            message.hint = format!("add --target '{urn}'");
            self.break_off(&registration.urn, registration.goal.source, message);
            Refused
        })
    }

    /// The steps that carry an entry over under a URN, after whatever it refers to that nobody else carries. Whoever asks
    /// does them: others wait for that.
    pub(super) fn carry(&self, entry: &Entry, urn: &Urn) -> Result<Vec<Step>, Stranded> {
        let mut tables = self.tables();
        let mut along = Along::default();
        tables.take_along(entry, urn, &mut along)?;
        for (urn, _) in &along.entries {
            tables.decided.insert(urn.clone());
            tables.carried.insert(urn.clone());
        }
        Ok(along.entries.into_iter().map(|(urn, entry)| Step::carry(entry, urn)).collect())
    }
}

/// The URN of an entry that cannot be carried over: its provider is no longer what it was.
#[derive(Debug)]
pub(super) struct Stranded(Urn);

/// What is carried over with an entry, dependencies first.
#[derive(Default)]
struct Along {
    met: HashSet<Urn>,
    entries: Vec<(Urn, Entry)>,
}

impl Tables {
    fn take_along(&self, entry: &Entry, urn: &Urn, along: &mut Along) -> Result<(), Stranded> {
        let (_, state) = entry;
        along.met.insert(urn.clone());
        if let Some(provider) = &state.provider
            && self.news.get(&provider.urn).is_some_and(|(_, new)| new.id != *provider.id)
        {
            return Err(Stranded(urn.clone()));
        }
        let provider = state.provider.iter().map(|provider| &provider.urn);
        for needed in provider.chain(state.references()) {
            if along.met.contains(needed) || self.is_registered(needed) {
                continue;
            }
            if let Some(entry) = self.standing(needed) {
                self.take_along(&entry, needed, along)?;
            }
        }
        along.entries.push((urn.clone(), entry.clone()));
        Ok(())
    }
}
