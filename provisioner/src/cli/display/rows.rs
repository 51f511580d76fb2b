//! State of each resource in a phase: one row per URN, for all its steps.
//!
//! Input: events with their times. Terminals, widths and colours do not belong here.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use engine::events::{Event, Message, Operation, Phase, Severity, SourceRef, StepInfo, StepOp};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use state::ResourceState;

use super::palette::{info_style, row_op, step_style};
use super::property_changes::compare_maps;
use super::text::duration;

/// Number of running steps that are named in one line.
const MAX_NAMES: usize = 3;

/// Resources of a phase, in the order of their first events.
#[derive(Debug)]
pub(crate) struct Rows {
    phase: Phase,
    rows: Vec<Row>,
    by_urn: HashMap<Urn, usize>,
    outputs: Option<StackOutputs>,
    event_count: usize,
    /// Resources whose registration is being decided, in the order of their events.
    undecided: Vec<Urn>,
    /// Failed resources, including resources without a started step.
    failed: HashSet<Urn>,
    /// Differences that the refresh before this phase has found.
    refreshed: Refreshed,
}

/// Differences from the recorded state that a refresh has found, by resource.
pub(crate) type Refreshed = HashMap<Urn, Arc<StepInfo>>;

/// Row of one resource.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) urn: Urn,
    pub(crate) parent: Option<Urn>,
    /// FilePosition of the resource in the user's files.
    source: Option<SourceRef>,
    /// Operation on the resource: `Replace` for all steps of a replacement, and the result for a refresh.
    pub(crate) op: StepOp,
    /// Step that runs or that ran last.
    pub(crate) step: Arc<StepInfo>,
    /// Step whose changes are shown: the deletion, or else a step with both an old and a new entry, if there is one.
    pub(crate) diff_step: Arc<StepInfo>,
    pub(crate) state: RowState,
    /// Start of the first running step, as time since the start of the display.
    pub(crate) began: Duration,
    /// Total time of the finished steps.
    pub(crate) took: Duration,
    /// Sequence number of the last event: a larger number is later.
    pub(crate) last_event: usize,
    /// First line of the last message about the resource, or of its failure.
    pub(crate) status_text: String,
    pub(crate) warnings: usize,
    /// True if the resource, or the one that it replaces, leaves the state and is not deleted (`retainOnDelete`).
    pub(crate) retained: bool,
    /// URN under which the resource was recorded, if an alias has found it under another one.
    pub(crate) former: Option<Urn>,
    /// Refresh that found a difference from the recorded state, of this phase or of the one before it.
    pub(crate) refreshed: Option<Arc<StepInfo>>,
    /// True if a refresh of this phase found a difference from the recorded state.
    drifted: bool,
    /// True if a destroy need not delete the resource, because its refresh did not find it.
    pub(crate) gone: bool,
    /// True if an error about the resource was reported.
    has_errors: bool,
    running: usize,
}

/// Progress of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowState {
    Running,
    Done,
    Failed,
}

/// Outputs of the stack, before and after.
#[derive(Debug)]
pub(crate) struct StackOutputs {
    pub(crate) old: Option<Arc<ResourceState>>,
    pub(crate) new: Arc<ResourceState>,
}

impl Row {
    /// Returns whether the row shows a failure, a warning, a change or a rename that is done.
    pub(crate) fn should_show(&self) -> bool {
        let is_done = self.state == RowState::Done;
        self.state == RowState::Failed || self.warnings > 0 || (is_done && (self.is_change() || self.former.is_some()))
    }

    /// Returns whether the operation changes the resource or its entry. A read of an external resource that is recorded
    /// already changes nothing.
    pub(crate) fn is_change(&self) -> bool {
        match self.op {
            StepOp::Same => false,
            StepOp::Refresh => self.drifted,
            StepOp::Read => self.diff_step.old.is_none(),
            _ => true,
        }
    }

    /// Returns the key that orders rows as the user's files are, and then by name: resources that are not in the files, such
    /// as those to delete, come last. The order does not depend on which of several resources was ready first.
    pub(crate) fn place_key(&self) -> impl Ord + use<'_> {
        (self.source.is_none(), self.source, self.urn.name(), self.urn.qualified_type())
    }

    /// Returns whether the resource leaves the state and is not deleted.
    pub(crate) fn is_retained(&self) -> bool {
        self.retained && self.op == StepOp::Delete
    }

    /// Returns whether the only change is that of the URN.
    pub(crate) fn is_renamed(&self) -> bool {
        self.op == StepOp::Same && self.former.is_some()
    }

    /// Returns whether the resource leaves the state because a refresh did not find it.
    pub(crate) fn is_missing(&self) -> bool {
        self.step.op == StepOp::Refresh && self.step.result == Some(StepOp::Delete)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.urn.qualified_type() == ROOT_STACK_TYPE
    }

    /// Returns the names of the changed properties, those that force a replacement first.
    pub(crate) fn changed_properties(&self) -> Vec<Cow<'_, str>> {
        let info = &self.diff_step;
        let names = info.replace_keys.iter().chain(&info.diffs).map(|name| Cow::Borrowed(name.as_str()));
        let mut shown: Vec<Cow<'_, str>> = Vec::new();
        for name in names.chain(info.detailed_diff.keys().map(|path| first_name(path))) {
            let is_hidden = info.new.as_ref().is_some_and(|new| new.hide_diff.iter().any(|hidden| *hidden == *name));
            if !name.starts_with("__") && !is_hidden && !shown.contains(&name) {
                shown.push(name);
            }
        }
        shown
    }
}

impl Rows {
    pub(crate) fn new(phase: Phase) -> Self {
        Self {
            phase,
            rows: Vec::new(),
            by_urn: HashMap::new(),
            outputs: None,
            event_count: 0,
            undecided: Vec::new(),
            failed: HashSet::new(),
            refreshed: Refreshed::new(),
        }
    }

    /// Creates the rows of a phase that follows a refresh of the stack.
    pub(crate) fn after_refresh(phase: Phase, refreshed: Refreshed) -> Self {
        Self { refreshed, ..Self::new(phase) }
    }

    /// Returns the differences from the recorded state that a refresh has found, in this phase or before it.
    pub(crate) fn into_refreshed(self) -> Refreshed {
        let found = self.rows.into_iter().filter_map(|row| Some((row.urn, row.refreshed?)));
        self.refreshed.into_iter().chain(found).collect()
    }

    /// Returns whether the outputs of the stack differ from those before the phase.
    pub(crate) fn has_changed_outputs(&self) -> bool {
        let empty = PropertyMap::new();
        self.outputs.as_ref().is_some_and(|outputs| {
            let old = outputs.old.as_ref().map_or(&empty, |old| &*old.outputs);
            !compare_maps(old, &outputs.new.outputs).is_empty()
        })
    }

    /// Returns the number of resources that are only renamed.
    pub(crate) fn renamed_count(&self) -> usize {
        self.rows.iter().filter(|row| row.is_renamed() && row.state == RowState::Done).count()
    }

    /// Returns the number of resources that a destroy need not delete, because its refresh did not find them.
    pub(crate) fn gone_count(&self) -> usize {
        self.rows.iter().filter(|row| row.gone && row.is_missing()).count()
    }

    /// Returns whether the phase is that of a refresh, whose deletions are missing resources.
    pub(crate) fn is_refresh(&self) -> bool {
        self.phase.operation == Operation::Refresh
    }

    /// Returns the number of resources that leave the state and are not deleted. Replaced ones do not count.
    pub(crate) fn retained_count(&self) -> usize {
        self.rows.iter().filter(|row| row.is_retained() && row.state == RowState::Done).count()
    }

    /// Returns the number of failed resources.
    pub(crate) fn failed_count(&self) -> usize {
        self.failed.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Returns the resources with running steps, in the order of their first events. Components count only if there are no
    /// others: the step of a component lasts as long as those of its children.
    pub(crate) fn running(&self) -> Vec<&Row> {
        let running = || self.rows.iter().filter(|row| row.state == RowState::Running && !row.is_root());
        let custom: Vec<&Row> = running().filter(|row| row.is_custom()).collect();
        if custom.is_empty() { running().collect() } else { custom }
    }

    /// Returns the number of resources that are done, also with a failure.
    pub(crate) fn ended_count(&self) -> usize {
        self.rows.iter().filter(|row| row.state != RowState::Running).count()
    }

    /// Returns what runs: `creating site--prod (12s), checking logo--prod and 3 more`; `None` if nothing does.
    pub(crate) fn running_text(&self, at: Duration) -> Option<String> {
        let running = self.running();
        let is_running = |urn: &Urn| running.iter().any(|row| row.urn == *urn);
        let steps = running.iter().map(|row| {
            let took = duration(at.saturating_sub(row.began));
            format!("{} {} ({took})", info_style(&row.step).present, row.urn.name())
        });
        let checks = self.undecided.iter().filter(|urn| !is_running(urn));
        let checks = checks.map(|urn| format!("{} {}", step_style(StepOp::Same).present, urn.name()));
        let texts: Vec<String> = steps.chain(checks).collect();
        let (named, others) = texts.split_at_checked(MAX_NAMES).unwrap_or((&texts, &[]));
        let named = named.join(", ");
        match (texts.len(), others.len()) {
            (0, _) => None,
            (_, 0) => Some(named),
            (_, more) => Some(format!("{named} and {more} more")),
        }
    }

    /// Returns the resources whose registration is being decided.
    pub(crate) fn undecided(&self) -> &[Urn] {
        &self.undecided
    }

    pub(crate) fn get(&self, urn: &Urn) -> Option<&Row> {
        self.by_urn.get(urn).map(|index| &self.rows[*index])
    }

    /// Returns the outputs of the stack, once they are registered.
    pub(crate) fn outputs(&self) -> Option<&StackOutputs> {
        self.outputs.as_ref()
    }

    /// Applies an event to the rows.
    pub(crate) fn apply(&mut self, at: Duration, event: &Event) {
        match event {
            Event::RegistrationStarted(urn) => self.undecided.push(urn.clone()),
            Event::RegistrationDecided(urn) => self.undecided.retain(|undecided| undecided != urn),
            Event::StepStarted(info) if !info.internal => {
                let row = self.row(info, at);
                if row.running == 0 {
                    row.began = at;
                }
                row.running += 1;
                row.state = RowState::Running;
                row.status_text.clear();
            }
            Event::StepSucceeded(info, took) if !info.internal => {
                let row = self.row(info, at);
                row.took += *took;
                row.end(RowState::Done);
                row.status_text.clear();
            }
            // A failed internal step also has a row, as steps of other resources depend on it.
            Event::StepFailed(info, failure) => {
                let row = self.row(info, at);
                row.took = at.saturating_sub(row.began);
                row.status_text = first_line(&failure.message).to_owned();
                row.end(RowState::Failed);
                self.failed.insert(info.urn.clone());
            }
            Event::StepStarted(_) | Event::StepSucceeded(..) => {}
            Event::OutputsRegistered(state) => self.outputs_registered(at, state),
            Event::Message(message) => self.message(message),
            Event::PhaseStarted(_)
            | Event::PhaseTotal(_)
            | Event::Activity(_)
            | Event::Download(_)
            | Event::RetryScheduled(_)
            | Event::Unrecorded(_) => {}
            Event::PhaseEnded(_) => {
                let is_refresh = self.phase.operation == Operation::Refresh;
                self.rows.iter_mut().for_each(|row| {
                    let is_running = row.state == RowState::Running;
                    // Its refresh has ended, and no step of its registration has begun.
                    let is_only_read = row.step.op == StepOp::Refresh && !is_refresh;
                    if row.has_errors && (is_running || is_only_read) {
                        // A preview reports a failure only by a message, as each phase does that of a Check.
                        row.end(RowState::Failed);
                    } else if is_running && !row.is_custom() {
                        // Components whose outputs are not registered are done at the end of the phase.
                        row.end(RowState::Done);
                    }
                });
            }
        }
    }

    fn message(&mut self, message: &Message) {
        let Some(urn) = &message.urn else { return };
        if message.severity == Severity::Error {
            self.failed.insert(urn.clone());
        }
        if message.severity == Severity::Error && !self.by_urn.contains_key(urn) {
            self.add_failed(urn, message);
        }
        let Some(row) = self.by_urn.get(urn).map(|index| &mut self.rows[*index]) else { return };
        row.warnings += usize::from(message.severity == Severity::Warning);
        row.has_errors |= message.severity == Severity::Error;
        if row.state != RowState::Failed && message.severity != Severity::Debug {
            row.status_text = first_line(&message.text).to_owned();
        }
    }

    /// Adds the row of a resource that has failed before its first step, as after a Check.
    fn add_failed(&mut self, urn: &Urn, message: &Message) {
        let info = StepInfo { source: message.source, ..StepInfo::new(StepOp::Same, urn.clone(), None, None) };
        let mut row = Row::new(&Arc::new(info), Duration::ZERO);
        let own_type = urn.qualified_type().rsplit_once('$').map(|(parent, _)| parent);
        let is_parent = |other: &&Row| match own_type {
            Some(parent) => other.urn.qualified_type() == parent,
            None => other.is_root(),
        };
        row.parent = self.rows.iter().find(is_parent).map(|parent| parent.urn.clone());
        (row.state, row.status_text) = (RowState::Failed, first_line(&message.text).to_owned());
        self.by_urn.insert(urn.clone(), self.rows.len());
        self.rows.push(row);
    }

    fn outputs_registered(&mut self, at: Duration, state: &Arc<ResourceState>) {
        let Some(index) = self.by_urn.get(&state.urn) else { return };
        let row = &mut self.rows[*index];
        if row.is_root() {
            self.outputs = Some(StackOutputs { old: row.diff_step.old.clone(), new: Arc::clone(state) });
        }
        if row.state == RowState::Running && !row.is_custom() {
            row.took = at.saturating_sub(row.began);
            row.end(RowState::Done);
        }
    }

    fn row(&mut self, info: &Arc<StepInfo>, at: Duration) -> &mut Row {
        self.event_count += 1;
        let index = *self.by_urn.entry(info.urn.clone()).or_insert_with(|| {
            self.rows.push(Row::new(info, at));
            self.rows.len() - 1
        });
        let row = &mut self.rows[index];
        row.last_event = self.event_count;
        row.refreshed = row.refreshed.take().or_else(|| self.refreshed.get(&info.urn).cloned());
        if info.op == StepOp::Refresh && info.result.is_some_and(|result| result != StepOp::Same) {
            row.refreshed = Some(Arc::clone(info));
            row.gone = info.result == Some(StepOp::Delete) && self.phase.operation == Operation::Destroy;
        }
        row.source = row.source.or(info.source);
        row.retained |= info.is_retained();
        row.former = row.former.take().or_else(|| info.former_urn().cloned());
        // A phase may refresh a resource and then change it: the later operation replaces the refresh, unless it is
        // `Same`.
        let op = match (info.op, info.result) {
            (StepOp::Refresh, Some(result)) if self.phase.operation == Operation::Refresh => result,
            (StepOp::Refresh, Some(result)) if result != StepOp::Same => {
                row.drifted = true;
                StepOp::Refresh
            }
            (StepOp::Refresh, Some(_)) => StepOp::Same,
            (op, _) => row_op(op),
        };
        let is_relevant = op != StepOp::Same || !row.drifted;
        if is_relevant && (op != StepOp::Same || matches!(row.op, StepOp::Same | StepOp::Refresh)) {
            row.op = op;
        }
        let has_both_entries = info.new.is_some() && (info.old.is_some() || row.diff_step.old.is_none());
        // A deletion may follow a refresh, which has both entries. A creation may follow one that did not find the resource.
        let is_deletion = matches!(op, StepOp::Delete | StepOp::Discard);
        let is_creation = info.op == StepOp::Create && info.new.is_some();
        if is_relevant && (has_both_entries || is_deletion || is_creation) {
            row.diff_step = Arc::clone(info);
        }
        row.step = Arc::clone(info);
        row
    }
}

impl Row {
    fn new(info: &Arc<StepInfo>, at: Duration) -> Self {
        let entry = info.new.as_ref().or(info.old.as_ref());
        Self {
            urn: info.urn.clone(),
            parent: entry.and_then(|entry| entry.parent.clone()),
            source: info.source,
            op: row_op(info.op),
            step: Arc::clone(info),
            diff_step: Arc::clone(info),
            state: RowState::Running,
            began: at,
            took: Duration::ZERO,
            last_event: 0,
            status_text: String::new(),
            warnings: 0,
            retained: false,
            former: None,
            refreshed: None,
            drifted: false,
            gone: false,
            has_errors: false,
            running: 0,
        }
    }

    fn end(&mut self, state: RowState) {
        self.running = self.running.saturating_sub(1);
        self.state = match (self.state, state, self.running) {
            (RowState::Failed, ..) | (_, RowState::Failed, _) => RowState::Failed,
            (_, _, 0) => RowState::Done,
            (state, ..) => state,
        };
    }

    fn is_custom(&self) -> bool {
        self.step.new.as_ref().or(self.step.old.as_ref()).is_none_or(|entry| entry.custom)
    }
}

/// Returns the first name of a property path; of a text that is no path, such as a masked name, the text.
fn first_name(path: &str) -> Cow<'_, str> {
    match path.parse::<PropertyPath>().as_ref().map(PropertyPath::elements) {
        Ok([Element::Key(name), ..]) => name.clone().into(),
        _ => path.into(),
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
