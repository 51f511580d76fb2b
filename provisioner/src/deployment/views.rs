//! Views: the parts of a resource that its provider shows while it works on it (engine semantics, section 4.2; provider
//! protocol, section 2.2).
//!
//! Nobody asks for a view: what the provider publishes during a call is told as steps, and recorded with the call's own
//! end. A view follows its resource wherever that goes: it is confirmed, superseded, renamed and removed with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bridge::provider::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};
use hashbrown::{HashMap, HashSet};
use pulumi_proto::urn::Urn;

use crate::events::{Event, Message, Severity, StepFailure, StepInfo, StepOp};
use crate::state::{Effect, EntryId, ResourceState};

use super::decide::condemn::Entry;
use super::engine::Engine;
use super::report;
use super::step::Step;
use super::steps::mark_secrets;
use super::tables::Tables;

/// What became of the views of one resource in one step.
#[derive(Debug)]
pub(super) struct ViewLog {
    engine: Arc<Engine>,
    /// The resource, by the name that its provider is told.
    owner: Urn,
    /// The entry whose views are recorded: a new resource has none yet.
    recorded: Option<Entry>,
    /// They are only looked at: what is not recorded is not added.
    refresh: bool,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    steps: Vec<Published>,
    /// The record of the step is made: nothing is taken any more.
    closed: bool,
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
    fate: Fate,
}

/// What the record of the resource's step says of a view's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing: there is no such record, or no place for the view in it.
    Lost,
    /// Its name is another one's.
    Taken,
    /// What it came to.
    Recorded,
}

impl ViewLog {
    /// The log of a step.
    pub(super) fn of_step(engine: &Arc<Engine>, step: &Step) -> Arc<Self> {
        let succeeds =
            matches!(step.op, StepOp::Same | StepOp::Update | StepOp::Read | StepOp::Delete | StepOp::DeleteReplaced);
        let recorded = step.old.clone().filter(|_| succeeds);
        Arc::new(Self::new(engine, &step.urn, recorded, false))
    }

    /// The log of a reading that changes nothing but what is known.
    pub(super) fn of_refresh(engine: &Arc<Engine>, urn: &Urn, recorded: Entry) -> Arc<Self> {
        Arc::new(Self::new(engine, urn, Some(recorded), true))
    }

    fn new(engine: &Arc<Engine>, owner: &Urn, recorded: Option<Entry>, refresh: bool) -> Self {
        let (engine, owner) = (Arc::clone(engine), owner.clone());
        Self { engine, owner, recorded, refresh, book: Mutex::default() }
    }

    /// What a call says of views.
    pub(super) fn views(self: &Arc<Self>) -> Views {
        let known = self.recorded_views().into_iter().map(|(_, state)| {
            let above = state.parent.as_ref().filter(|parent| state.view_of.as_ref() != Some(parent));
            View {
                type_token: state.urn.type_token().to_owned(),
                name: state.urn.name().to_owned(),
                within: above.map(|parent| (parent.type_token().to_owned(), parent.name().to_owned())),
                inputs: Arc::clone(&state.inputs),
                outputs: Arc::clone(&state.outputs),
            }
        });
        Views { known: known.collect(), listener: Some(Arc::clone(self) as Arc<dyn ViewListener>) }
    }

    /// Notes what nobody publishes because nobody is asked: an unchanged resource, a delete in a preview.
    pub(super) fn note(&self, op: ViewOp) {
        for (_, state) in self.recorded_views() {
            let new = (op != ViewOp::Delete).then(|| Arc::clone(&state));
            self.push(op, info(state.urn.clone(), StepOp::from_view(op), Some(state), new), None);
        }
    }

    fn recorded_views(&self) -> Vec<Entry> {
        self.views_in(&self.engine.tables())
    }

    /// The recorded views, under the name that their resource has by now.
    fn views_in(&self, tables: &Tables) -> Vec<Entry> {
        let Some((id, recorded)) = &self.recorded else { return Vec::new() };
        tables.views_of(tables.ledger.get(*id).unwrap_or(recorded))
    }

    /// What becomes of the recorded views, and, where the resource itself is recorded by the same record (`so_far`), what is
    /// added behind it. Without that a view can only change where it stands.
    pub(super) fn effects(&self, tables: &Tables, so_far: &[Effect], with_owner: bool) -> Vec<Effect> {
        let book = &mut *self.book();
        book.closed = true;
        if book.steps.is_empty() {
            return Vec::new();
        }
        let recorded = self.views_in(tables);
        let by_name: HashMap<_, _> = recorded.iter().map(|entry| (name_of(&entry.1.urn), entry)).collect();
        let mut effects = Vec::new();
        let mut gone: HashSet<&Urn> = HashSet::new();
        let mut fates: HashMap<Urn, Fate> = HashMap::new();
        for (place, new) in outcomes(&book.steps) {
            let Some(published) = book.steps.get(place) else { continue };
            let fate = match (by_name.get(&name_of(&published.info.urn)), new) {
                (Some((id, old)), Some(new)) => {
                    // Where the resource gets another name, the view has got its own by now.
                    let old = rewritten(so_far, *id).unwrap_or(old);
                    let (inputs, outputs) = (Arc::clone(&new.inputs), Arc::clone(&new.outputs));
                    if old.inputs != inputs || old.outputs != outputs {
                        effects
                            .push(Effect::Rewrite(*id, Arc::new(ResourceState { inputs, outputs, ..(**old).clone() })));
                    }
                    effects.extend(with_owner.then_some(Effect::Keep(*id)));
                    Fate::Recorded
                }
                (Some((id, old)), None) => {
                    gone.insert(&old.urn);
                    effects.push(Effect::Remove(*id));
                    Fate::Recorded
                }
                (None, Some(_)) if !with_owner => Fate::Lost,
                (None, Some(new)) if is_taken(tables, so_far, &new.urn) => Fate::Taken,
                (None, Some(new)) => {
                    effects.push(Effect::Add(published.entry, Arc::clone(new)));
                    Fate::Recorded
                }
                (None, None) => Fate::Recorded,
            };
            fates.insert(published.info.urn.clone(), fate);
        }
        for step in &mut book.steps {
            step.fate = fates.get(&step.info.urn).copied().unwrap_or(step.fate);
        }
        // What is within a view goes with it.
        for (id, state) in &recorded {
            if state.parent.as_ref().is_some_and(|parent| gone.contains(parent)) && gone.insert(&state.urn) {
                effects.push(Effect::Remove(*id));
            }
        }
        effects
    }

    /// Tells how the steps ended; those of which nothing is recorded do not count. The resource's own step counts as failed if
    /// one of them did.
    pub(super) fn conclude(&self, counts: bool) -> Result<(), String> {
        let steps = {
            let mut book = self.book();
            book.closed = true;
            book.steps.clone()
        };
        let mut first = Ok(());
        for Published { info, failure, started, fate, .. } in steps {
            let Some(failure) = failure else {
                if fate == Fate::Taken {
                    let text = "its provider shows a view under this name, which is another one's: it is not recorded";
                    let message = Message::new(Severity::Warning, text);
                    self.engine.emit(Event::Message(Message { urn: Some(info.urn.clone()), ..message }));
                } else if counts && (fate == Fate::Recorded || self.refresh) {
                    self.engine.count(info.result.unwrap_or(info.op));
                }
                self.engine.emit(Event::StepSucceeded(info, started.elapsed()));
                continue;
            };
            if !self.refresh {
                self.engine.tables().failed.extend([info.urn.clone(), self.owner.clone()]);
            }
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

    fn push(&self, op: ViewOp, info: StepInfo, failure: Option<ViewFailure>) {
        let entry = self.engine.tables().ledger.new_entry();
        let book = &mut *self.book();
        if book.closed {
            return;
        }
        let (info, started) = (Arc::new(info), Instant::now());
        self.engine.emit(Event::StepStarted(Arc::clone(&info)));
        book.steps.push(Published { info, op, failure, entry, started, fate: Fate::Lost });
    }

    fn state(&self, view: View) -> Arc<ResourceState> {
        let owner = &self.owner;
        let urn = Urn::new(owner.stack(), owner.project(), Some(owner), &view.type_token, &view.name);
        let mut state = ResourceState::new(urn, false);
        state.parent = Some(owner.clone());
        state.view_of = Some(owner.clone());
        state.inputs = view.inputs;
        state.outputs = view.outputs;
        mark_secrets(&mut state);
        Arc::new(state)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewListener for ViewLog {
    fn publish(&self, steps: Vec<ViewStep>) {
        for ViewStep { op, old, new, failure, replace_keys, diffs, detailed_diff } in steps {
            if self.refresh && old.is_none() {
                continue;
            }
            let (old, new) = (old.map(|view| self.state(view)), new.map(|view| self.state(view)));
            let Some(urn) = new.as_ref().or(old.as_ref()).map(|state| state.urn.clone()) else { continue };
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

/// What steps come to for each view that they are about: the place of its last one, and how the view is now, `None` if it is
/// gone.
fn outcomes(steps: &[Published]) -> Vec<(usize, Option<&Arc<ResourceState>>)> {
    let mut outcomes: Vec<(usize, Option<&Arc<ResourceState>>)> = Vec::new();
    let mut places: HashMap<&Urn, usize> = HashMap::new();
    let done = |step: &Published| step.failure.as_ref().is_none_or(|failure| failure.partial);
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| done(step)) {
        let before = places.get(&step.info.urn).and_then(|place| outcomes.get_mut(*place));
        let outcome = match step.op {
            // Said beside its two halves.
            ViewOp::Replace => continue,
            // The old half of a replacement, whose new half may have come first.
            ViewOp::DeleteReplaced | ViewOp::DiscardReplaced
                if before.as_ref().is_some_and(|(_, new)| new.is_some()) =>
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
        match before {
            Some(before) => *before = (number, outcome),
            None => {
                places.insert(&step.info.urn, outcomes.len());
                outcomes.push((number, outcome));
            }
        }
    }
    outcomes
}

/// What a view is known by among those of its resource, whatever that is called.
fn name_of(urn: &Urn) -> (&str, &str) {
    (urn.type_token(), urn.name())
}

/// An entry as a record leaves it, if it changes it.
fn rewritten(effects: &[Effect], entry: EntryId) -> Option<&Arc<ResourceState>> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Rewrite(id, state) if *id == entry => Some(state),
        _ => None,
    })
}

/// Whether a URN is that of another live entry, once a record is taken in, or of a resource to come.
fn is_taken(tables: &Tables, effects: &[Effect], urn: &Urn) -> bool {
    let leaves = |entry: EntryId| {
        let removed = effects.iter().any(|effect| matches!(effect, Effect::Remove(id) if *id == entry));
        removed || rewritten(effects, entry).is_some_and(|state| state.delete || state.urn != *urn)
    };
    let mut live = tables.ledger.named(urn).filter(|(_, state)| !state.delete);
    tables.goals.contains_key(urn) || live.any(|(id, _)| !leaves(id))
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
    /// The views of an entry: those of a superseded copy are superseded, too.
    pub(super) fn views_of(&self, owner: &ResourceState) -> Vec<Entry> {
        let views = self.ledger.views(&owner.urn).filter(|(_, state)| state.delete == owner.delete);
        views.map(|(id, state)| (id, Arc::clone(state))).collect()
    }
}

/// Gives a view of what is now called otherwise the name that it then has.
pub(super) fn show_under(view: &mut ResourceState, owner: &Urn) {
    view.urn = Urn::new(owner.stack(), owner.project(), Some(owner), view.urn.type_token(), view.urn.name());
    (view.parent, view.view_of) = (Some(owner.clone()), Some(owner.clone()));
}
