//! Display without a terminal: prints one line for the start and one for the end of each step.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::time::Duration;

use engine::events::{DownloadStage, Event, Operation, Phase, StepOp, Summary};
use pulumi_proto::urn::Urn;

use super::palette::{Palette, info_style, step_style};
use super::progress::{ShownPreview, fraction, is_finished_change};
use super::queue::MessageFilter;
use super::report::LocatedMessage;
use super::rows::{RowState, Rows};
use super::text::{Line, duration};
use super::{DisplayOptions, EventSubject, Renderer, Secrets, Stamp, StopNotice, print_lines, report};

/// Interval between lines about a running step, as some pipelines end a job without output.
const STILL_RUNNING_INTERVAL: Duration = Duration::from_secs(30);

/// Renderer that prints progress to one stream and results to another.
pub(crate) struct PlainDisplay<W: Write, R: Write> {
    progress: W,
    results: R,
    /// Columns of the terminal of the results; `None` if they do not go to a terminal.
    results_width: Option<usize>,
    options: DisplayOptions,
    phase: Option<RunningPhase>,
    /// Last preview, whose changes have been shown.
    previewed: Option<ShownPreview>,
}

struct RunningPhase {
    phase: Phase,
    stack: String,
    rows: Rows,
    messages: Vec<LocatedMessage>,
    /// Number of changes that a preview of the same operation has announced.
    expected: Option<usize>,
    /// Resources whose changes have ended.
    finished: HashSet<Urn>,
    /// Time of the last line about each running resource.
    reported_at: HashMap<Urn, Duration>,
}

impl<W: Write, R: Write> PlainDisplay<W, R> {
    pub(crate) fn new(progress: W, results: R, results_width: Option<usize>, options: DisplayOptions) -> Self {
        Self { progress, results, results_width, options, phase: None, previewed: None }
    }

    fn print_progress(&mut self, lines: &[Line]) -> io::Result<()> {
        print_lines(&mut self.progress, lines, self.options.color)
    }

    fn take_message(&mut self, located: LocatedMessage) -> io::Result<()> {
        let message = &located.message;
        let lines = report::message(&located);
        if let Some(running) = &mut self.phase {
            running.rows.apply(Duration::ZERO, &Event::Message(message.clone()));
            let is_held = running.phase.preview && message.source.is_some();
            running.messages.push(located);
            if is_held {
                return Ok(());
            }
        }
        self.print_progress(&lines)
    }

    /// Prints the messages of a preview that have a place in the user's files, in the order of the files.
    fn print_held(&mut self, running: &mut RunningPhase) -> io::Result<()> {
        if !running.phase.preview {
            return Ok(());
        }
        report::sort_as_file(&mut running.messages);
        let held = running.messages.iter().filter(|located| located.message.source.is_some());
        let lines: Vec<Line> = held.flat_map(report::message).collect();
        self.print_progress(&lines)
    }

    fn end_phase(&mut self, running: &RunningPhase, summary: &Summary) -> io::Result<()> {
        let RunningPhase { phase, stack, rows, .. } = running;
        let mut lines = Vec::new();
        if phase.preview {
            lines = report::changes(rows, *phase, self.options.diff, self.results_width);
            self.previewed = Some(ShownPreview::new(*phase, stack, rows));
        } else if self.options.diff.is_some() && !self.previewed.as_ref().is_some_and(|shown| shown.is_of(stack)) {
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
        lines.extend(report::journal(summary));
        print_lines(&mut self.results, &lines, self.options.results_color)
    }
}

impl<W: Write + Send, R: Write + Send> Renderer for PlainDisplay<W, R> {
    fn message_filter(&self) -> MessageFilter {
        MessageFilter { verbose: self.options.verbose, ephemeral: false }
    }

    fn secrets(&self) -> Secrets {
        self.options.secrets
    }

    fn log(&mut self, line: &str) -> io::Result<()> {
        self.print_progress(&[Line::plain(line)])
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        if let Some(running) = &mut self.phase
            && !matches!(event, Event::Message(_))
        {
            running.rows.apply(stamp.at, event);
        }
        match event {
            Event::Download(download) => match download.stage {
                DownloadStage::Started => {
                    self.print_progress(&[Line::plain("Downloading ").join(report::download(download))])
                }
                DownloadStage::Done => {
                    self.print_progress(&[Line::plain("Downloaded ").join(report::download(download))])
                }
                DownloadStage::Running | DownloadStage::Failed => Ok(()),
            },
            Event::PhaseStarted(phase) => {
                self.phase = Some(RunningPhase {
                    phase: *phase,
                    stack: subject.stack.to_owned(),
                    rows: Rows::new(*phase),
                    messages: Vec::new(),
                    expected: self.previewed.as_ref().and_then(|shown| shown.expected_changes(*phase, subject.stack)),
                    finished: HashSet::new(),
                    reported_at: HashMap::new(),
                });
                self.print_progress(&[report::title(*phase, subject.stack)])
            }
            Event::PhaseEnded(summary) => match self.phase.take() {
                Some(mut running) => {
                    self.print_held(&mut running)?;
                    self.end_phase(&running, summary)
                }
                None => Ok(()),
            },
            Event::Message(message) => self.take_message(LocatedMessage::new(message, subject)),
            Event::RetryScheduled(retry) => self.print_progress(&[report::retry(retry)]),
            // The command prints unrecorded changes last, on any display.
            Event::Unrecorded(_) => Ok(()),
            Event::StepStarted(info) => {
                let op_style = info_style(info);
                if self.is_applying() && has_own_lines(info.op) && !info.internal {
                    let line = step_line(op_style.symbol, op_style.style, op_style.present, &info.urn);
                    self.print_progress(&[line])?;
                }
                Ok(())
            }
            Event::StepSucceeded(info, took) => {
                let op = match info.result {
                    Some(found) if self.is_operation(Operation::Refresh) || found == StepOp::Same => found,
                    _ => info.op,
                };
                if self.is_applying() && (has_own_lines(op) || op == StepOp::Refresh) && !info.internal {
                    let is_missing = info.result == Some(StepOp::Delete);
                    let op_style = if op == info.op || is_missing { info_style(info) } else { step_style(op) };
                    let verb = match info.op {
                        StepOp::DeleteReplaced if info.is_retained() => "retained old",
                        StepOp::DeleteReplaced => "deleted old",
                        _ => op_style.past,
                    };
                    let line = step_line(op_style.symbol, op_style.style, verb, &info.urn);
                    let line = line.styled(Palette::DIM, format!(" ({})", duration(*took)));
                    let line = line.styled(Palette::DIM, self.progress_after(&info.urn));
                    self.print_progress(&[line])?;
                }
                Ok(())
            }
            Event::StepFailed(info, failure) => {
                let messages = self.phase.as_ref().map_or(&[][..], |running| &running.messages);
                if let Some(unreported) = report::failure_message(&info.urn, &failure.message, messages) {
                    self.take_message(unreported)?;
                }
                let verb = match info.op {
                    StepOp::Refresh => "read",
                    StepOp::Same => "confirm",
                    op => step_style(op).plan,
                };
                let line = step_line("✗", Palette::ERROR, &format!("failed to {verb}"), &info.urn);
                let line = line.styled(Palette::DIM, self.progress_after(&info.urn));
                self.print_progress(&[line])
            }
            Event::OutputsRegistered(_) | Event::RegistrationStarted(_) | Event::RegistrationDecided(_) => Ok(()),
        }
    }

    fn stop(&mut self, _: Stamp, notice: StopNotice) -> io::Result<()> {
        let message = notice.message(self.phase.as_ref().map(|running| &running.rows));
        self.take_message(LocatedMessage { message, place: None })
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        let Some(RunningPhase { rows, reported_at, .. }) = &mut self.phase else { return Ok(()) };
        let mut lines = Vec::new();
        for row in rows.iter().filter(|row| row.state == RowState::Running && !row.is_root()) {
            let last = reported_at.get(&row.urn).copied().unwrap_or_default().max(row.began);
            if at.saturating_sub(last) < STILL_RUNNING_INTERVAL {
                continue;
            }
            reported_at.insert(row.urn.clone(), at);
            let op_style = info_style(&row.step);
            let line = step_line(op_style.symbol, op_style.style, &format!("still {}", op_style.present), &row.urn);
            lines.push(line.styled(Palette::DIM, format!(" ({})", duration(at.saturating_sub(row.began)))));
        }
        self.print_progress(&lines)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.progress.flush()?;
        self.results.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(mut running) = self.phase.take() {
            self.print_held(&mut running)?;
        }
        self.pause()
    }
}

impl<W: Write, R: Write> PlainDisplay<W, R> {
    fn is_operation(&self, operation: Operation) -> bool {
        self.phase.as_ref().is_some_and(|running| running.phase.operation == operation)
    }

    /// Returns the progress after a step of a resource has ended: ` [3/12]`. Empty if no preview has announced changes.
    fn progress_after(&mut self, urn: &Urn) -> String {
        let Some(running) = &mut self.phase else { return String::new() };
        if running.rows.get(urn).is_some_and(is_finished_change) {
            running.finished.insert(urn.clone());
        }
        let done = running.finished.len();
        running.expected.map(|expected| format!(" {}", fraction(done, expected))).unwrap_or_default()
    }

    fn is_applying(&self) -> bool {
        self.phase.as_ref().is_some_and(|running| !running.phase.preview)
    }
}

/// Returns whether a step is printed. Steps without an effect of their own are not.
fn has_own_lines(op: StepOp) -> bool {
    !matches!(op, StepOp::Same | StepOp::Refresh | StepOp::Replace | StepOp::RemovePendingReplace)
}

fn step_line(symbol: &str, style: anstyle::Style, verb: &str, urn: &Urn) -> Line {
    Line::plain("  ").styled(style, symbol).text(" ").styled(style, verb).text(" ").join(report::subject(urn))
}
