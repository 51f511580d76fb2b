//! Report that a run is being stopped: what it waits for, and what the next signal does.

use std::time::Duration;

use engine::events::{Message, Severity};

use super::palette::step_style;
use super::rows::{Row, Rows};
use super::text::duration;

/// Number of running steps that are named.
const MAX_NAMES: usize = 3;

/// Way in which a run is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopNotice {
    /// Waits for running steps.
    Stopping,
    /// The execution timeout has expired: it waits for running steps, but no longer than the grace.
    TimedOut { grace: Duration },
    /// Returns without the running steps.
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

/// Returns the running steps by name: `site--prod (creating)`, or `3 steps: site--prod (creating), …`. Empty if there are
/// none.
fn running_steps(rows: &Rows) -> String {
    let running = rows.running();
    let step = |row: &&Row| format!("{} ({})", row.urn.name(), step_style(row.step.op).present);
    let names = running.iter().take(MAX_NAMES).map(step).collect::<Vec<_>>().join(", ");
    match running.len() {
        0 | 1 => names,
        // A narrow terminal cuts the names, so the number is first.
        count if count <= MAX_NAMES => format!("{count} steps: {names}"),
        count => format!("{count} steps: {names}, …"),
    }
}
