//! Line about what a command without a run waits for, such as the state of a stack in a bucket. A run has its display.

use std::time::Duration;

use tokio::time::Instant;

use super::display::duration;
use super::output::{Output, WaitLine};

/// Ages at which the line is shown: first, and then again after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ages {
    first: Duration,
    step: Duration,
}

/// On a terminal, where one line is replaced in place.
const ON_TERMINAL: Ages = Ages { first: Duration::from_millis(300), step: Duration::from_millis(100) };
/// In a pipe, which gets a line each time.
const IN_PIPE: Ages = Ages { first: Duration::from_secs(5), step: Duration::from_secs(30) };

/// Guard that clears the line at the end of a wait, also of one that is cancelled.
struct Clearing<'l>(&'l WaitLine);

impl Drop for Clearing<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Awaits work, and shows on standard error what it is and how long it has lasted: `reading the state of reef (2.1s)`. Shows nothing
/// beside the display of a session.
pub(crate) async fn show_while<T>(output: &Output, what: &str, work: impl Future<Output = T>) -> T {
    if output.session().is_running() {
        return work.await;
    }
    let line = output.wait_line();
    let is_replaced = output.replaces_lines();
    let Ages { first, step } = if is_replaced { ON_TERMINAL } else { IN_PIPE };
    let began = Instant::now();
    let mut due = began + first;
    let _clearing = Clearing(line);
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep_until(due) => {
                let text = format!("{what} ({})", duration(began.elapsed()));
                if is_replaced { line.show(&text) } else { output.inform(text) }
                due += step;
            }
        }
    }
}
