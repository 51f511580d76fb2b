//! Display for a standard error that is no terminal: prints one line for the start and one for the end of each step.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use engine::events::{DownloadStage, Event, Operation, Phase, StepOp, Summary};
use pulumi_proto::urn::Urn;

use super::palette::{Palette, look};
use super::report::Told;
use super::rows::{RowState, Rows};
use super::text::{Line, duration};
use super::{DisplayOptions, Origin, Renderer, Stamp, print_lines, report};

/// Interval between lines about a resource that is still being worked on, as some pipelines end a silent job.
const STILL: Duration = Duration::from_secs(30);

/// Renderer that prints progress to one stream and results to another.
pub(crate) struct PlainDisplay<W: Write, R: Write> {
    progress: W,
    results: R,
    /// Columns of the terminal that results go to, if it is one.
    results_width: Option<usize>,
    options: DisplayOptions,
    phase: Option<RunningPhase>,
    previewed: Option<String>,
}

struct RunningPhase {
    phase: Phase,
    stack: String,
    rows: Rows,
    told: Vec<Told>,
    /// Time of the last line about a running resource.
    said: HashMap<Urn, Duration>,
}

impl<W: Write, R: Write> PlainDisplay<W, R> {
    pub(crate) fn new(progress: W, results: R, results_width: Option<usize>, options: DisplayOptions) -> Self {
        Self { progress, results, results_width, options, phase: None, previewed: None }
    }

    fn say(&mut self, lines: &[Line]) -> io::Result<()> {
        print_lines(&mut self.progress, lines, self.options.color)
    }

    fn take_message(&mut self, told: Told) -> io::Result<()> {
        let message = &told.message;
        if message.ephemeral || !report::is_shown(message, self.options.verbose) {
            return Ok(());
        }
        let lines = report::message(&told);
        if let Some(running) = &mut self.phase {
            running.rows.apply(Duration::ZERO, &Event::Message(message.clone()));
            running.told.push(told);
        }
        self.say(&lines)
    }

    fn end_phase(&mut self, running: &RunningPhase, summary: &Summary) -> io::Result<()> {
        let RunningPhase { phase, stack, rows, .. } = running;
        let mut lines = Vec::new();
        if phase.preview {
            lines = report::changes(rows, *phase, self.options.diff, self.results_width);
            self.previewed = Some(stack.clone());
        } else if self.options.diff.is_some() && self.previewed.as_deref() != Some(stack) {
            lines = report::changes(rows, *phase, self.options.diff, self.results_width);
        }
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        let outputs = report::outputs(rows, *phase, self.options.diff_options());
        if !outputs.is_empty() {
            lines.extend(outputs);
            lines.push(Line::new());
        }
        lines.push(report::summary(summary, stack, rows));
        print_lines(&mut self.results, &lines, self.options.results_color)
    }
}

impl<W: Write + Send, R: Write + Send> Renderer for PlainDisplay<W, R> {
    fn event(&mut self, stamp: Stamp, origin: Origin<'_>, event: &Event) -> io::Result<()> {
        if let Some(running) = &mut self.phase
            && !matches!(event, Event::Message(_))
        {
            running.rows.apply(stamp.at, event);
        }
        match event {
            Event::Download(download) => match download.stage {
                DownloadStage::Started => self.say(&[Line::plain("Downloading ").join(report::download(download))]),
                DownloadStage::Done => self.say(&[Line::plain("Downloaded ").join(report::download(download))]),
                DownloadStage::Running | DownloadStage::Failed => Ok(()),
            },
            Event::PhaseStarted(phase) => {
                self.phase = Some(RunningPhase {
                    phase: *phase,
                    stack: origin.stack.to_owned(),
                    rows: Rows::new(*phase),
                    told: Vec::new(),
                    said: HashMap::new(),
                });
                self.say(&[report::title(*phase, origin.stack)])
            }
            Event::PhaseEnded(summary) => match self.phase.take() {
                Some(running) => self.end_phase(&running, summary),
                None => Ok(()),
            },
            Event::Message(message) => self.take_message(Told::new(message, origin)),
            Event::SecretsTold(_) => Ok(()),
            Event::StepStarted(info) => {
                let look = look(info.op);
                if self.is_deed() && is_told(info.op) && !info.internal {
                    let line = step_line(look.symbol, look.style, look.present, &info.urn);
                    self.say(&[line])?;
                }
                Ok(())
            }
            Event::StepSucceeded(info, took) => {
                let op = match info.result {
                    Some(found) if self.phase_is(Operation::Refresh) || found == StepOp::Same => found,
                    _ => info.op,
                };
                if self.is_deed() && (is_told(op) || op == StepOp::Refresh) && !info.internal {
                    let look = look(op);
                    let word = if info.op == StepOp::DeleteReplaced { "deleted old" } else { look.past };
                    let line = step_line(look.symbol, look.style, word, &info.urn);
                    self.say(&[line.styled(Palette::DIM, format!(" ({})", duration(*took)))])?;
                }
                Ok(())
            }
            Event::StepFailed(info, failure) => {
                let told = self.phase.as_ref().map_or(&[][..], |running| &running.told);
                if let Some(untold) = report::failure_message(&info.urn, &failure.message, told) {
                    self.take_message(untold)?;
                }
                let verb = match info.op {
                    StepOp::Refresh => "read",
                    StepOp::Same => "confirm",
                    op => look(op).plan,
                };
                let line = step_line("✗", Palette::ERROR, &format!("failed to {verb}"), &info.urn);
                self.say(&[line])
            }
            Event::OutputsRegistered(_) => Ok(()),
        }
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        let Some(RunningPhase { rows, said, .. }) = &mut self.phase else { return Ok(()) };
        let mut lines = Vec::new();
        for row in rows.iter().filter(|row| row.state == RowState::Running && !row.is_root()) {
            let last = said.get(&row.urn).copied().unwrap_or_default().max(row.began);
            if at.saturating_sub(last) < STILL {
                continue;
            }
            said.insert(row.urn.clone(), at);
            let look = look(row.step.op);
            let line = step_line(look.symbol, look.style, &format!("still {}", look.present), &row.urn);
            lines.push(line.styled(Palette::DIM, format!(" ({})", duration(at.saturating_sub(row.began)))));
        }
        self.say(&lines)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.progress.flush()?;
        self.results.flush()
    }
}

impl<W: Write, R: Write> PlainDisplay<W, R> {
    fn phase_is(&self, operation: Operation) -> bool {
        self.phase.as_ref().is_some_and(|running| running.phase.operation == operation)
    }

    fn is_deed(&self) -> bool {
        self.phase.as_ref().is_some_and(|running| !running.phase.preview)
    }
}

/// Returns whether a step has lines of its own. Steps without an effect of their own have none.
fn is_told(op: StepOp) -> bool {
    !matches!(op, StepOp::Same | StepOp::Refresh | StepOp::Replace | StepOp::RemovePendingReplace)
}

fn step_line(symbol: &str, style: anstyle::Style, word: &str, urn: &Urn) -> Line {
    Line::plain("  ").styled(style, symbol).text(" ").styled(style, word).text(" ").join(report::subject(urn))
}
