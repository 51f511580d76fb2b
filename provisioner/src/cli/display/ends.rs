//! End of a phase, whose last lines wait: the next phase makes those of an unchanged stack redundant, and only the last line of a
//! command has the time of the whole command.

use std::collections::BTreeMap;
use std::time::Duration;

use bridge::message_text::MessageText;
use engine::events::{Operation, Outcome, Phase, StepOp, Summary};

use super::palette::{Palette, phase_noun};
use super::report;
use super::rows::Rows;
use super::text::{Line, duration};
use super::tree::{count_words, join_lines};

/// End of a phase whose last lines are not printed yet.
#[derive(Debug)]
pub(super) struct HeldEnd {
    phase: Phase,
    stack: String,
    outcome: Outcome,
    took: Duration,
    /// Number of unchanged resources; `None` if the phase has changed or shown something.
    unchanged: Option<usize>,
    /// Numbers of changes, in words.
    counts: Line,
    /// Line about the journal in the store.
    journal: Option<Line>,
}

impl HeldEnd {
    pub(super) fn new(summary: &Summary, stack: &str, rows: &Rows) -> Self {
        let count = summary.changes.get(&StepOp::Same).copied().unwrap_or_default();
        Self {
            phase: summary.phase,
            stack: stack.to_owned(),
            outcome: summary.outcome,
            took: summary.duration,
            unchanged: is_unchanged(summary, rows).then_some(count),
            counts: counts(summary, rows),
            journal: report::journal(summary),
        }
    }

    /// Returns the stack if the lines say that it has no changes.
    pub(super) fn unchanged_stack(&self) -> Option<&str> {
        self.unchanged.is_some().then_some(self.stack.as_str())
    }

    /// Returns whether a phase of a stack makes the lines redundant: it continues a run that has found no changes so far.
    pub(super) fn is_redundant_before(&self, stack: &str) -> bool {
        self.unchanged.is_some() && self.stack == stack
    }

    /// Returns the last lines of the phase. `whole` is the time of the whole command, if they are its last ones.
    pub(super) fn lines(&self, whole: Option<Duration>) -> Vec<Line> {
        let took = duration(whole.unwrap_or(self.took));
        let line = match self.unchanged {
            Some(count) => Line::new().styled(Palette::BOLD, "No changes").text(unchanged_text(self, count, &took)),
            None => self.summary(&took),
        };
        self.journal.iter().cloned().chain([line]).collect()
    }

    /// Returns the summary: `Update of aquarium done in 12s: 3 created, 22 unchanged`.
    fn summary(&self, took: &str) -> Line {
        let (noun, stack) = (phase_noun(self.phase), &self.stack);
        let line = match self.outcome {
            Outcome::Succeeded => Line::new().styled(Palette::BOLD, noun).text(format!(" of {stack} done in {took}")),
            Outcome::Failed => Line::new().styled(Palette::ERROR, format!("{noun} of {stack} failed after {took}")),
            Outcome::Canceled => {
                Line::new().styled(Palette::WARNING, format!("{noun} of {stack} cancelled after {took}"))
            }
        };
        if self.counts == Line::new() { line.text(": no changes") } else { line.text(": ").join(self.counts.clone()) }
    }
}

/// Returns whether a phase has neither changed nor shown anything of the resources of its stack.
pub(super) fn is_unchanged(summary: &Summary, rows: &Rows) -> bool {
    let is_shown = rows.iter().any(|row| row.is_change() || row.former.is_some());
    let succeeded = summary.outcome == Outcome::Succeeded && rows.failed_count() == 0;
    succeeded && !is_shown && summary.deletions.total() == 0 && !rows.has_changed_outputs()
}

/// Returns the rest of the sentence about a stack without changes.
fn unchanged_text(end: &HeldEnd, count: usize, took: &str) -> String {
    let stack = &end.stack;
    match (count, end.phase.operation) {
        (0, _) => format!(": {stack} has no resources ({took})"),
        (1, Operation::Refresh) => format!(": the resource of {stack} is as recorded ({took})"),
        (_, Operation::Refresh) => format!(": all {count} resources of {stack} are as recorded ({took})"),
        (1, _) => format!(": the resource of {stack} is unchanged ({took})"),
        (..) => format!(": all {count} resources of {stack} are unchanged ({took})"),
    }
}

fn counts(summary: &Summary, rows: &Rows) -> Line {
    let failed = rows.failed_count();
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(Line::new().styled(Palette::ERROR, format!("{failed} failed")));
    }
    parts.extend(count_words(&summary.changes, rows, report::tense(summary.phase)));
    join_lines(parts, ", ")
}

/// Returns what runs on several stacks have done together: `3 stacks done in 4.1s: 2 created, 12 unchanged`.
pub(crate) fn total_text(summaries: &[Summary], elapsed: Duration) -> MessageText {
    let mut total: BTreeMap<StepOp, usize> = BTreeMap::new();
    for (op, count) in summaries.iter().flat_map(|summary| &summary.changes) {
        *total.entry(*op).or_default() += count;
    }
    let phase = summaries.last().map_or(Phase { operation: Operation::Update, preview: false }, |last| last.phase);
    let failed = summaries.iter().any(|summary| summary.outcome != Outcome::Succeeded);
    let words = count_words(&total, &Rows::new(phase), report::tense(phase));
    let words = if words.is_empty() { "no changes".to_owned() } else { join_lines(words, ", ").render(false) };
    let state = if failed { "ended" } else { "done" };
    MessageText::new(format_args!("{} stacks {state} in {}: {words}", summaries.len(), duration(elapsed)))
}
