//! Views: the parts of a resource that its provider shows while it works on it (engine semantics, section 4.2; provider
//! protocol, section 2.2).
//!
//! Nobody asks for a view: what the provider publishes during a call is told as steps, and recorded with the call's own
//! end. A view follows its resource wherever that goes: it is confirmed, superseded, renamed and removed with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bridge::provider::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};
use pulumi_proto::urn::Urn;

use crate::events::{Event, Message, Severity, StepFailure, StepInfo, StepOp};
use crate::state::{Effect, EntryId, ResourceState};

use super::decide::condemn::Entry;
use super::engine::Engine;
use super::report;
use super::step::Step;
use super::tables::Tables;

/// What became of the views of one resource in one step.
#[derive(Debug)]
pub(super) struct ViewLog {
    engine: Arc<Engine>,
    /// The resource, by the name that its provider is told.
    owner: Urn,
    /// The entry whose views are recorded: a new resource has none yet.
    recorded: Option<Arc<ResourceState>>,
    /// They are only looked at: what is not recorded is not added.
    refresh: bool,
    steps: Mutex<Vec<Published>>,
}

#[derive(Clone, Debug)]
struct Published {
    info: Arc<StepInfo>,
    /// What it comes to for the view.
    op: ViewOp,
    failure: Option<ViewFailure>,
    /// For what is new.
    entry: EntryId,
    started: Instant,
}

impl ViewLog {
    /// The log of a step.
    pub(super) fn of_step(engine: &Arc<Engine>, step: &Step) -> Arc<Self> {
        let succeeds =
            matches!(step.op, StepOp::Same | StepOp::Update | StepOp::Read | StepOp::Delete | StepOp::DeleteReplaced);
        let recorded = step.old.as_ref().filter(|_| succeeds).map(|(_, state)| Arc::clone(state));
        let log = Self::new(engine, &step.urn, recorded, false);
        let unasked = match step.op {
            StepOp::Same if !step.carried => Some(ViewOp::Same),
            // In a preview nobody is asked to delete anything.
            StepOp::Delete if engine.preview() => Some(ViewOp::Delete),
            _ => None,
        };
        if let (Some(op), Some(old)) = (unasked, &log.recorded) {
            let views = engine.tables().views_of(old);
            log.note(op, &views);
        }
        Arc::new(log)
    }

    /// The log of a reading that changes nothing but what is known.
    pub(super) fn of_refresh(engine: &Arc<Engine>, urn: &Urn, recorded: &Arc<ResourceState>) -> Arc<Self> {
        Arc::new(Self::new(engine, urn, Some(Arc::clone(recorded)), true))
    }

    fn new(engine: &Arc<Engine>, owner: &Urn, recorded: Option<Arc<ResourceState>>, refresh: bool) -> Self {
        let (engine, owner) = (Arc::clone(engine), owner.clone());
        Self { engine, owner, recorded, refresh, steps: Mutex::default() }
    }

    /// What a call says of views.
    pub(super) fn views(self: &Arc<Self>) -> Views {
        let recorded = self.recorded.iter().flat_map(|state| self.engine.tables().views_of(state));
        let known = recorded.map(|(_, state)| View {
            type_token: state.urn.type_token().to_owned(),
            name: state.urn.name().to_owned(),
            inputs: Arc::clone(&state.inputs),
            outputs: Arc::clone(&state.outputs),
        });
        Views { known: known.collect(), listener: Some(Arc::clone(self) as Arc<dyn ViewListener>) }
    }

    /// What becomes of the recorded views, and, where the resource itself is recorded by the same record, what is added
    /// behind it. Without that a view can only change where it stands.
    pub(super) fn effects(&self, tables: &Tables, with_owner: bool) -> Vec<Effect> {
        let recorded: Vec<Entry> = self.recorded.iter().flat_map(|state| tables.views_of(state)).collect();
        let mut effects = Vec::new();
        for (published, new) in outcomes(&self.steps()) {
            let key = (published.info.urn.type_token(), published.info.urn.name());
            let old = recorded.iter().find(|(_, state)| (state.urn.type_token(), state.urn.name()) == key);
            match (old, new) {
                (Some((id, old)), Some(new)) => {
                    // The resource gets another name only when it is recorded itself.
                    let named = if with_owner { new } else { old };
                    let new = ResourceState {
                        urn: named.urn.clone(),
                        parent: named.parent.clone(),
                        view_of: named.view_of.clone(),
                        inputs: Arc::clone(&new.inputs),
                        outputs: Arc::clone(&new.outputs),
                        ..(**old).clone()
                    };
                    if new != **old {
                        effects.push(Effect::Rewrite(*id, Arc::new(new)));
                    }
                    effects.extend(with_owner.then_some(Effect::Keep(*id)));
                }
                (None, Some(new)) if with_owner && !self.refresh => {
                    effects.push(Effect::Add(published.entry, Arc::clone(new)))
                }
                (Some((id, _)), None) => effects.push(Effect::Remove(*id)),
                (None, _) => {}
            }
        }
        effects
    }

    /// Tells how the steps ended. The resource's own step counts as failed if one of them did.
    pub(super) fn conclude(&self, counts: bool) -> Result<(), String> {
        let mut first = Ok(());
        let steps = self.steps().clone();
        for Published { info, failure, started, .. } in steps {
            let Some(failure) = failure else {
                if counts {
                    self.engine.count(info.result.unwrap_or(info.op));
                }
                self.engine.emit(Event::StepSucceeded(info, started.elapsed()));
                continue;
            };
            self.engine.tables().failed.extend([info.urn.clone(), self.owner.clone()]);
            self.engine.note_failure();
            let mut message = Message::new(Severity::Error, failure.message.clone());
            message.plugin = Some(report::package_of(&self.owner));
            self.engine.complain(&info.urn, None, message);
            first = first.and(Err(failure.message.clone()));
            if !self.engine.preview() {
                let ViewFailure { message, partial, indeterminate } = failure;
                self.engine.emit(Event::StepFailed(info, StepFailure { message, indeterminate, partial }));
            }
        }
        first
    }

    /// Notes what goes without saying.
    fn note(&self, op: ViewOp, views: &[Entry]) {
        for (_, state) in views {
            let new = (op != ViewOp::Delete).then(|| Arc::clone(state));
            let info = info(state.urn.clone(), StepOp::from_view(op), Some(Arc::clone(state)), new);
            self.push(op, info, None);
        }
    }

    /// Whether a URN is not that of a resource, nor of a view of another one: two of a name would be no state.
    fn claim(&self, urn: &Urn) -> bool {
        let tables = &mut *self.engine.tables();
        let owners = [Some(&self.owner), self.recorded.as_ref().map(|state| &state.urn)];
        let is_ours = |state: &ResourceState| state.view_of.is_some() && owners.contains(&state.view_of.as_ref());
        let free = !tables.goals.contains_key(urn) && tables.ledger.named(urn).all(|(_, state)| is_ours(state));
        free && *tables.view_owners.entry(urn.clone()).or_insert_with(|| self.owner.clone()) == self.owner
    }

    fn push(&self, op: ViewOp, info: StepInfo, failure: Option<ViewFailure>) {
        let entry = {
            let mut tables = self.engine.tables();
            tables.has_views = true;
            tables.ledger.new_entry()
        };
        let (info, started) = (Arc::new(info), Instant::now());
        self.engine.emit(Event::StepStarted(Arc::clone(&info)));
        self.steps().push(Published { info, op, failure, entry, started });
    }

    fn state(&self, view: View) -> Arc<ResourceState> {
        let mut state = ResourceState::new(view_urn(&self.owner, &view.type_token, &view.name), false);
        state.parent = Some(self.owner.clone());
        state.view_of = Some(self.owner.clone());
        state.inputs = view.inputs;
        state.outputs = view.outputs;
        Arc::new(state)
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Published>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewListener for ViewLog {
    fn publish(&self, steps: Vec<ViewStep>) {
        for ViewStep { op, old, new, failure, replace_keys, diffs, detailed_diff } in steps {
            let (old, new) = (old.map(|view| self.state(view)), new.map(|view| self.state(view)));
            let Some(urn) = new.as_ref().or(old.as_ref()).map(|state| state.urn.clone()) else { continue };
            if !self.claim(&urn) {
                let text = "its provider shows a view under this name, which is another one's: it is not recorded";
                let message = Message::new(Severity::Warning, text);
                self.engine.emit(Event::Message(Message { urn: Some(urn), ..message }));
                continue;
            }
            let what = StepOp::from_view(op);
            let (step, result) = if self.refresh { (StepOp::Refresh, Some(what)) } else { (what, None) };
            let told = StepInfo {
                result,
                replace_keys,
                diffs,
                detailed_diff: detailed_diff.unwrap_or_default(),
                ..info(urn, step, old, new)
            };
            self.push(op, told, failure);
        }
    }
}

/// What the steps come to for each view that they are about: how it is now, `None` if it is gone.
fn outcomes(steps: &[Published]) -> Vec<(&Published, Option<&Arc<ResourceState>>)> {
    let mut outcomes: Vec<(&Published, Option<&Arc<ResourceState>>)> = Vec::new();
    let done = |step: &&Published| step.failure.as_ref().is_none_or(|failure| failure.partial);
    for step in steps.iter().filter(done) {
        let place = outcomes.iter().position(|(other, _)| other.info.urn == step.info.urn);
        let outcome = match step.op {
            // Said beside its two halves.
            ViewOp::Replace => continue,
            // The old half of a replacement, whose new half may have come first.
            ViewOp::DeleteReplaced | ViewOp::DiscardReplaced
                if place.and_then(|place| outcomes.get(place)).is_some_and(|(_, new)| new.is_some()) =>
            {
                continue;
            }
            ViewOp::Delete
            | ViewOp::DeleteReplaced
            | ViewOp::ReadDiscard
            | ViewOp::DiscardReplaced
            | ViewOp::RemovePendingReplace => None,
            ViewOp::Same
            | ViewOp::Create
            | ViewOp::Update
            | ViewOp::CreateReplacement
            | ViewOp::Read
            | ViewOp::ReadReplacement
            | ViewOp::Refresh
            | ViewOp::Import
            | ViewOp::ImportReplacement => step.info.new.as_ref(),
        };
        match place.and_then(|place| outcomes.get_mut(place)) {
            Some(before) => *before = (step, outcome),
            None => outcomes.push((step, outcome)),
        }
    }
    outcomes
}

fn info(urn: Urn, op: StepOp, old: Option<Arc<ResourceState>>, new: Option<Arc<ResourceState>>) -> StepInfo {
    StepInfo {
        op,
        result: None,
        urn,
        old,
        new,
        replace_keys: Vec::new(),
        diffs: Vec::new(),
        detailed_diff: Default::default(),
        internal: false,
    }
}

impl StepOp {
    fn from_view(op: ViewOp) -> Self {
        match op {
            ViewOp::Same => Self::Same,
            ViewOp::Create => Self::Create,
            ViewOp::Update => Self::Update,
            ViewOp::Delete => Self::Delete,
            ViewOp::Replace => Self::Replace,
            ViewOp::CreateReplacement => Self::CreateReplacement,
            ViewOp::DeleteReplaced => Self::DeleteReplaced,
            ViewOp::Read => Self::Read,
            ViewOp::ReadReplacement => Self::ReadReplacement,
            ViewOp::Refresh => Self::Refresh,
            ViewOp::ReadDiscard => Self::Discard,
            ViewOp::DiscardReplaced => Self::DiscardReplaced,
            ViewOp::RemovePendingReplace => Self::RemovePendingReplace,
            ViewOp::Import => Self::Import,
            ViewOp::ImportReplacement => Self::ImportReplacement,
        }
    }
}

impl Tables {
    /// The views of an entry, in their order: those of a superseded copy are superseded, too.
    pub(super) fn views_of(&self, owner: &ResourceState) -> Vec<Entry> {
        if !self.has_views {
            return Vec::new();
        }
        let views = self
            .ledger
            .entries()
            .filter(|(_, state)| state.view_of.as_ref() == Some(&owner.urn) && state.delete == owner.delete);
        views.map(|(id, state)| (id, Arc::clone(state))).collect()
    }

    /// The views of an entry that gets another name.
    pub(super) fn views_under(&self, owner: &ResourceState, name: &Urn) -> Vec<Effect> {
        let views = self.views_of(owner).into_iter();
        let renamed = views.flat_map(|(view, state)| {
            let urn = view_urn(name, state.urn.type_token(), state.urn.name());
            self.rewrite(view, |state| {
                state.urn = urn;
                state.parent = Some(name.clone());
                state.view_of = Some(name.clone());
            })
        });
        renamed.collect()
    }
}

/// The URN of a view of a resource.
fn view_urn(owner: &Urn, type_token: &str, name: &str) -> Urn {
    Urn::new(owner.stack(), owner.project(), Some(owner), type_token, name)
}
