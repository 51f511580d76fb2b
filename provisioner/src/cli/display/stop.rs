//! Report that a run is being stopped: what it waits for, and what the next signal does.

use std::time::Duration;

use engine::events::{Message, Severity, StepOp};
use pulumi_proto::urn::Urn;

use super::palette::{info_style, step_style};
use super::rows::Rows;
use super::text::duration;

/// Number of running steps that are named.
const MAX_NAMES: usize = 3;

/// Way in which a run is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopNotice {
    /// Stop: the run waits for running steps.
    Stopping,
    /// Stop after the execution timeout: the run waits for running steps, but no longer than the grace.
    TimedOut { grace: Duration },
    /// Abort: the run returns without them.
    Aborting,
}

impl StopNotice {
    /// Returns the progress of the end, and the effect of the next signal. `rows` are those of the running phase, if there
    /// is one.
    pub(crate) fn lines(self, rows: Option<&Rows>) -> Vec<String> {
        let running = rows.map(running_steps);
        let waiting = running.as_deref().map(|running| match running {
            "" => "waiting for running calls of plugins".to_owned(),
            running => format!("waiting for {running}"),
        });
        match self {
            Self::Stopping => {
                let head = waiting.map_or_else(|| "stopping".to_owned(), |waiting| format!("stopping: {waiting}"));
                vec![head, "press Ctrl-C again to abort without waiting".to_owned()]
            }
            Self::TimedOut { grace } => {
                let head = "stopping: the execution timeout has expired".to_owned();
                let next = format!("aborting after {} (press Ctrl-C to abort without waiting)", duration(grace));
                std::iter::once(head).chain(waiting).chain([next]).collect()
            }
            Self::Aborting => {
                let mut lines = match running.as_deref().filter(|running| !running.is_empty()) {
                    Some(running) => vec![
                        format!("aborting: not waiting for {running}"),
                        "changes in progress stay recorded as pending operations".to_owned(),
                    ],
                    None => vec!["aborting".to_owned()],
                };
                lines.push("press Ctrl-C again to end without saving the state".to_owned());
                lines
            }
        }
    }

    /// Returns the message for a log.
    pub(crate) fn message(self, rows: Option<&Rows>) -> Message {
        Message::new(Severity::Warning, self.lines(rows).join("; "))
    }
}

/// Returns what runs, by name: `site--prod (creating)`, or `4 steps: site--prod (creating), logo--prod (checking), …`. A
/// resource whose registration is being decided is being checked. Empty if nothing runs.
fn running_steps(rows: &Rows) -> String {
    let running = rows.running();
    let is_running = |urn: &Urn| running.iter().any(|row| row.urn == *urn);
    let undecided: Vec<&Urn> = rows.undecided().iter().filter(|urn| !is_running(urn)).collect();
    let steps = running.iter().map(|row| (&row.urn, info_style(&row.step).present));
    let checks = undecided.iter().map(|urn| (*urn, step_style(StepOp::Same).present));
    let names = steps.chain(checks).take(MAX_NAMES).map(|(urn, verb)| format!("{} ({verb})", urn.name()));
    let names = names.collect::<Vec<_>>().join(", ");
    match running.len() + undecided.len() {
        0 | 1 => names,
        // A narrow terminal cuts the names, so the number is first.
        count if count <= MAX_NAMES => format!("{count} steps: {names}"),
        count => format!("{count} steps: {names}, …"),
    }
}
