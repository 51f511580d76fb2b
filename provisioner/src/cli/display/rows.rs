//! What is known of each resource in a phase: one row per URN, whatever number of steps it takes.
//!
//! Enters: events with the time they came. Never here: terminals, widths, colours.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use engine::events::{Event, Message, Operation, Phase, Severity, StepInfo, StepOp};
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use state::ResourceState;

use super::palette::row_op;

/// The resources of a phase, in the order they turned up.
#[derive(Debug)]
pub(crate) struct Rows {
    phase: Phase,
    rows: Vec<Row>,
    by_urn: HashMap<Urn, usize>,
    outputs: Option<StackOutputs>,
    touches: usize,
    /// Resources that failed, whether or not a step of theirs began.
    failed: HashSet<Urn>,
}

/// One resource.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) urn: Urn,
    pub(crate) parent: Option<Urn>,
    /// What is done to it; of a replacement `Replace`, of a refresh what it found.
    pub(crate) op: StepOp,
    /// The step that is under way, or was last.
    pub(crate) step: Arc<StepInfo>,
    /// The step that best says what changes: the one with both an old and a new entry.
    pub(crate) telling: Arc<StepInfo>,
    pub(crate) state: RowState,
    /// When it began (in time since the display began).
    pub(crate) began: Duration,
    /// How long its finished steps took.
    pub(crate) took: Duration,
    /// A place in the order of what happened: the larger, the later.
    pub(crate) touched: usize,
    /// The last word about it: progress of a plugin, or why it failed.
    pub(crate) note: String,
    pub(crate) warnings: usize,
    /// It was found to be other than recorded.
    drifted: bool,
    /// Something was said about it that fails the run.
    complained: bool,
    running: usize,
}

/// How far a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowState {
    Running,
    Done,
    Failed,
}

/// The outputs of the stack, before and after.
#[derive(Debug)]
pub(crate) struct StackOutputs {
    pub(crate) old: Option<Arc<ResourceState>>,
    pub(crate) new: Arc<ResourceState>,
}

impl Row {
    /// Whether the row says more than that nothing happened.
    pub(crate) fn is_worth_showing(&self) -> bool {
        self.state == RowState::Failed || self.warnings > 0 || (self.changes() && self.state == RowState::Done)
    }

    /// Whether the operation changes the resource or its entry. A read of what is not ours changes nothing.
    pub(crate) fn changes(&self) -> bool {
        match self.op {
            StepOp::Same => false,
            StepOp::Refresh => self.drifted,
            StepOp::Read => self.telling.old.is_none(),
            _ => true,
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.urn.qualified_type() == ROOT_STACK_TYPE
    }

    /// Names of the properties that change, first those that force a replacement.
    pub(crate) fn changed(&self) -> Vec<&str> {
        let info = &self.telling;
        let paths = info.detailed_diff.keys().map(|path| path.split(['.', '[']).next().unwrap_or(path));
        let mut names: Vec<&str> = Vec::new();
        for name in info.replace_keys.iter().chain(&info.diffs).map(String::as_str).chain(paths) {
            let is_hidden = info.new.as_ref().is_some_and(|new| new.hide_diff.iter().any(|hidden| hidden == name));
            if !name.starts_with("__") && !is_hidden && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl Rows {
    pub(crate) fn new(phase: Phase) -> Self {
        Self { phase, rows: Vec::new(), by_urn: HashMap::new(), outputs: None, touches: 0, failed: HashSet::new() }
    }

    /// How many resources failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn get(&self, urn: &Urn) -> Option<&Row> {
        self.by_urn.get(urn).map(|index| &self.rows[*index])
    }

    /// The outputs of the stack, once they are registered.
    pub(crate) fn outputs(&self) -> Option<&StackOutputs> {
        self.outputs.as_ref()
    }

    /// Takes an event in.
    pub(crate) fn apply(&mut self, at: Duration, event: &Event) {
        match event {
            Event::StepStarted(info) if !info.internal => {
                let row = self.row(info, at);
                if row.running == 0 {
                    row.began = at;
                }
                row.running += 1;
                row.state = RowState::Running;
                row.note.clear();
            }
            Event::StepSucceeded(info, took) if !info.internal => {
                let row = self.row(info, at);
                row.took += *took;
                row.end(RowState::Done);
                row.note.clear();
            }
            // Also an internal step that fails is worth a row: something else cannot go on because of it.
            Event::StepFailed(info, failure) => {
                let row = self.row(info, at);
                row.took = at.saturating_sub(row.began);
                row.note = first_line(&failure.message).to_owned();
                row.end(RowState::Failed);
                self.failed.insert(info.urn.clone());
            }
            Event::StepStarted(_) | Event::StepSucceeded(..) => {}
            Event::OutputsRegistered(state) => self.outputs_registered(at, state),
            Event::Message(message) => self.message(message),
            Event::PhaseStarted(_) | Event::Download(_) | Event::SecretsTold(_) => {}
            Event::PhaseEnded(_) => self.rows.iter_mut().filter(|row| row.state == RowState::Running).for_each(|row| {
                if row.complained {
                    // A preview tells of a failure by a message alone.
                    row.end(RowState::Failed);
                } else if !row.is_custom() {
                    // Components whose outputs nobody registered are as done as they will ever be.
                    row.end(RowState::Done);
                }
            }),
        }
    }

    fn message(&mut self, message: &Message) {
        let Some(urn) = &message.urn else { return };
        if message.severity == Severity::Error {
            self.failed.insert(urn.clone());
        }
        let Some(row) = self.by_urn.get(urn).map(|index| &mut self.rows[*index]) else { return };
        row.warnings += usize::from(message.severity == Severity::Warning);
        row.complained |= message.severity == Severity::Error;
        if row.state != RowState::Failed && message.severity != Severity::Debug {
            row.note = first_line(&message.text).to_owned();
        }
    }

    fn outputs_registered(&mut self, at: Duration, state: &Arc<ResourceState>) {
        let Some(index) = self.by_urn.get(&state.urn) else { return };
        let row = &mut self.rows[*index];
        if row.is_root() {
            self.outputs = Some(StackOutputs { old: row.telling.old.clone(), new: Arc::clone(state) });
        }
        if row.state == RowState::Running && !row.is_custom() {
            row.took = at.saturating_sub(row.began);
            row.end(RowState::Done);
        }
    }

    fn row(&mut self, info: &Arc<StepInfo>, at: Duration) -> &mut Row {
        self.touches += 1;
        let index = *self.by_urn.entry(info.urn.clone()).or_insert_with(|| {
            self.rows.push(Row::new(info, at));
            self.rows.len() - 1
        });
        let row = &mut self.rows[index];
        row.touched = self.touches;
        // A resource may be refreshed and then worked on in one phase: the later says more, unless it says "same".
        let op = match (info.op, info.result) {
            (StepOp::Refresh, Some(found)) if self.phase.operation == Operation::Refresh => found,
            (StepOp::Refresh, Some(found)) if found != StepOp::Same => {
                row.drifted = true;
                StepOp::Refresh
            }
            (StepOp::Refresh, Some(_)) => StepOp::Same,
            (op, _) => row_op(op),
        };
        let is_news = op != StepOp::Same || !row.drifted;
        if is_news && (op != StepOp::Same || matches!(row.op, StepOp::Same | StepOp::Refresh)) {
            row.op = op;
        }
        if is_news && info.new.is_some() && (info.old.is_some() || row.telling.old.is_none()) {
            row.telling = Arc::clone(info);
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
            op: row_op(info.op),
            step: Arc::clone(info),
            telling: Arc::clone(info),
            state: RowState::Running,
            began: at,
            took: Duration::ZERO,
            touched: 0,
            note: String::new(),
            warnings: 0,
            drifted: false,
            complained: false,
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

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
