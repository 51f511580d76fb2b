//! Display without a terminal: prints one line for each step that ends, and one at times if nothing ends.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use engine::events::{DownloadStage, Event, Operation, Phase, Severity, StepInfo, StepOp, Summary};
use pulumi_proto::urn::Urn;

use super::activities::Activities;
use super::earlier_phases::EarlierPhases;
use super::ends::is_unchanged;
use super::groups::{Cause, group, grouped_lines, recap};
use super::palette::{Palette, gone_style, info_style, step_style};
use super::progress::{Progress, is_finished_change};
use super::queue::MessageFilter;
use super::report::LocatedMessage;
use super::rows::Rows;
use super::text::{Line, duration};
use super::{DisplayOptions, EventSubject, Renderer, Secrets, Stamp, StopNotice, print_lines, report};

/// Time without a line after which one says what the run waits for.
const FIRST_SILENCE: Duration = Duration::from_secs(5);
/// Time between further lines, as some pipelines end a job without output.
const SILENCE: Duration = Duration::from_secs(30);

/// Renderer that prints progress to one stream and results to another.
pub(crate) struct PlainDisplay<W: Write, R: Write> {
    progress: W,
    results: R,
    /// Columns of the terminal of the results; `None` if they do not go to a terminal.
    results_width: Option<usize>,
    options: DisplayOptions,
    phase: Option<RunningPhase>,
    /// Phases that have ended.
    earlier: EarlierPhases,
    /// Work that the run waits for beside the steps of a phase.
    activities: Activities,
    /// Time of the event that is being rendered.
    now: Duration,
    /// Time of the last line.
    last_line: Duration,
    /// Time of silence after which the next line says what the run waits for.
    patience: Duration,
}

struct RunningPhase {
    phase: Phase,
    stack: String,
    began: Duration,
    /// True once the title is printed.
    has_title: bool,
    rows: Rows,
    messages: Vec<LocatedMessage>,
    /// Causes of the errors that are printed.
    causes: HashSet<Cause>,
    /// True if an error waits for the end of the phase, because one of the same cause is printed.
    has_held_errors: bool,
    progress: Progress,
    /// Resources whose changes have ended.
    finished: HashSet<Urn>,
    /// Resources whose new version exists.
    replaced: HashSet<Urn>,
}

impl<W: Write, R: Write> PlainDisplay<W, R> {
    pub(crate) fn new(progress: W, results: R, results_width: Option<usize>, options: DisplayOptions) -> Self {
        Self {
            progress,
            results,
            results_width,
            options,
            phase: None,
            earlier: EarlierPhases::default(),
            activities: Activities::default(),
            now: Duration::ZERO,
            last_line: Duration::ZERO,
            patience: FIRST_SILENCE,
        }
    }

    /// Prints lines about the progress of the phase, below its title.
    fn print_progress(&mut self, lines: &[Line]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        (self.last_line, self.patience) = (self.now, FIRST_SILENCE);
        if let Some(running) = self.phase.as_mut().filter(|running| !running.has_title) {
            running.has_title = true;
            let title = report::title(running.phase, &running.stack);
            print_lines(&mut self.progress, &[title], self.options.color)?;
        }
        print_lines(&mut self.progress, lines, self.options.color)
    }

    /// Prints the last lines of the last phase, unless they are printed already. `whole` is the time of the whole command.
    fn print_end(&mut self, whole: Option<Duration>) -> io::Result<()> {
        let lines = self.earlier.take_last_lines(whole).unwrap_or_default();
        print_lines(&mut self.results, &lines, self.options.results_color)
    }

    fn take_message(&mut self, located: LocatedMessage) -> io::Result<()> {
        let message = &located.message;
        let lines = report::message(&located);
        if let Some(running) = &mut self.phase {
            running.rows.apply(Duration::ZERO, &Event::Message(message.clone()));
            let cause = Cause::of(message);
            let is_held = running.phase.preview && (message.source.is_some() || cause.is_some());
            let is_known =
                cause.is_some_and(|cause| message.severity == Severity::Error && !running.causes.insert(cause));
            running.has_held_errors |= is_known && !is_held;
            running.messages.push(located);
            if is_held || is_known {
                return Ok(());
            }
        }
        self.print_progress(&lines)
    }

    /// Prints the messages of a phase that wait for its end: in a preview those about resources, in the order of the files;
    /// else the errors whose cause was printed before.
    fn print_held(&mut self, running: &mut RunningPhase) -> io::Result<()> {
        if !running.phase.preview {
            let is_long = running.has_held_errors || running.causes.len() > 1;
            let lines = if is_long { recap(&group(&running.messages)) } else { Vec::new() };
            return self.print_progress(&lines);
        }
        report::sort_as_file(&mut running.messages);
        running.messages.retain(|located| located.message.source.is_some() || Cause::of(&located.message).is_some());
        let lines = grouped_lines(&running.messages);
        self.print_progress(&lines)
    }

    fn end_phase(&mut self, mut running: RunningPhase, summary: &Summary) -> io::Result<()> {
        let is_unchanged = is_unchanged(summary, &running.rows);
        if !is_unchanged && !running.has_title {
            self.print_progress(&[report::title(running.phase, &running.stack)])?;
        }
        self.print_held(&mut running)?;
        let RunningPhase { phase, stack, rows, .. } = running;
        let is_first_diff = self.options.diff.is_some() && !self.earlier.have_shown_changes(&stack);
        let mut lines = Vec::new();
        if (phase.preview && !is_unchanged) || is_first_diff {
            lines = report::changes(&rows, phase, self.options.diff, self.results_width);
        }
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        let outputs =
            if is_unchanged { Vec::new() } else { report::outputs(&rows, summary, self.options.diff_options()) };
        if !outputs.is_empty() {
            lines.extend(outputs);
            lines.push(Line::new());
        }
        self.earlier.end(phase, stack, rows, summary);
        print_lines(&mut self.results, &lines, self.options.results_color)
    }

    fn start_phase(&mut self, phase: Phase, stack: &str) -> io::Result<()> {
        let (rows, progress) = self.earlier.begin(phase, stack);
        self.print_end(None)?;
        self.phase = Some(RunningPhase {
            phase,
            stack: stack.to_owned(),
            began: self.now,
            has_title: false,
            rows,
            messages: Vec::new(),
            causes: HashSet::new(),
            has_held_errors: false,
            progress,
            finished: HashSet::new(),
            replaced: HashSet::new(),
        });
        Ok(())
    }

    /// Prints the end of a step.
    fn step_succeeded(&mut self, info: &StepInfo, took: Duration) -> io::Result<()> {
        let Some(running) = self.phase.as_mut().filter(|running| !running.phase.preview && !info.internal) else {
            return Ok(());
        };
        let operation = running.phase.operation;
        let op = match info.result {
            Some(found) if operation == Operation::Refresh || found == StepOp::Same => found,
            _ => info.op,
        };
        let is_printed = match op {
            StepOp::Same | StepOp::Replace | StepOp::RemovePendingReplace => false,
            // The new version has a line of its own. One that an earlier run has replaced has none.
            StepOp::DeleteReplaced => {
                info.old.as_ref().is_some_and(|old| old.delete) && !running.replaced.contains(&info.urn)
            }
            // The changes of a refresh are shown at its end.
            _ => info.op != StepOp::Refresh || operation != Operation::Refresh || self.options.diff.is_none(),
        };
        if op == StepOp::CreateReplacement {
            running.replaced.insert(info.urn.clone());
        }
        if running.rows.get(&info.urn).is_some_and(is_finished_change) {
            running.finished.insert(info.urn.clone());
        }
        if !is_printed {
            return Ok(());
        }
        let count = running.progress.fraction(running.finished.len()).map(|count| format!(" {count}"));
        let is_missing = info.result == Some(StepOp::Delete);
        let op_style = match (op == info.op || is_missing, operation) {
            (true, Operation::Destroy) if is_missing => gone_style(),
            (true, _) => info_style(info),
            (false, _) => step_style(op),
        };
        let verb = match info.op {
            StepOp::DeleteReplaced if info.is_retained() => "retained old",
            StepOp::DeleteReplaced => "deleted old",
            _ => op_style.past,
        };
        let line = step_line(op_style.symbol, op_style.style, verb, &info.urn);
        let line = line.styled(Palette::DIM, format!(" ({})", duration(took)));
        self.print_progress(&[line.styled(Palette::DIM, count.unwrap_or_default())])
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
        print_lines(&mut self.progress, &[Line::plain(line)], self.options.color)
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.now = stamp.at;
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
            Event::Activity(activity) => {
                self.activities.apply(stamp.at, activity);
                Ok(())
            }
            Event::PhaseStarted(phase) => self.start_phase(*phase, subject.stack),
            Event::PhaseTotal(total) => {
                self.phase.iter_mut().for_each(|running| running.progress.expect(*total));
                Ok(())
            }
            Event::PhaseEnded(summary) => match self.phase.take() {
                Some(running) => self.end_phase(running, summary),
                None => Ok(()),
            },
            Event::Message(message) => self.take_message(LocatedMessage::new(message, subject)),
            Event::RetryScheduled(retry) => self.print_progress(&[report::retry(retry)]),
            // The command prints unrecorded changes last, on any display.
            Event::Unrecorded(_) => Ok(()),
            Event::StepSucceeded(info, took) => self.step_succeeded(info, *took),
            Event::StepFailed(info, failure) => {
                let Some(running) = &mut self.phase else { return Ok(()) };
                running.finished.insert(info.urn.clone());
                match report::failure_message(&info.urn, &failure.message, &running.messages) {
                    Some(unreported) => self.take_message(unreported),
                    None => Ok(()),
                }
            }
            Event::StepStarted(_)
            | Event::OutputsRegistered(_)
            | Event::RegistrationStarted(_)
            | Event::RegistrationDecided(_) => Ok(()),
        }
    }

    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()> {
        self.now = stamp.at;
        let message = notice.message(self.phase.as_ref().map(|running| &running.rows));
        self.take_message(LocatedMessage { message, place: None })
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        if at.saturating_sub(self.last_line) < self.patience {
            return Ok(());
        }
        let waiting = match &self.phase {
            Some(running) => {
                let waiting = self.activities.text(at).or_else(|| running.rows.running_text(at));
                let count = running.progress.fraction(running.finished_count()).map(|count| format!(" {count}"));
                let took = duration(at.saturating_sub(running.began));
                let waiting = waiting.unwrap_or_else(|| format!("{took} so far"));
                Some(format!("{waiting}{}", count.unwrap_or_default()))
            }
            None => self.activities.text(at),
        };
        let Some(waiting) = waiting else { return Ok(()) };
        self.now = at;
        self.print_progress(&[Line::plain("  ").styled(Palette::DIM, format!("… {waiting}"))])?;
        self.patience = SILENCE;
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        self.print_end(None)?;
        self.progress.flush()?;
        self.results.flush()
    }

    fn finish(&mut self, at: Duration) -> io::Result<()> {
        if let Some(mut running) = self.phase.take() {
            self.print_held(&mut running)?;
        }
        self.print_end(Some(self.options.before + at))?;
        self.pause()
    }
}

impl RunningPhase {
    /// Returns the number of resources that are done, for the progress of the phase.
    fn finished_count(&self) -> usize {
        if self.progress.counts_changes() { self.finished.len() } else { self.rows.ended_count() }
    }
}

fn step_line(symbol: &str, style: anstyle::Style, verb: &str, urn: &Urn) -> Line {
    Line::plain("  ").styled(style, symbol).text(" ").styled(style, verb).text(" ").join(report::subject(urn))
}
