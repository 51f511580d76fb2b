//! Display for a terminal: a tree of resources that is repainted in place, below lines that stay.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use engine::events::{ActivityKind, Download, DownloadStage, Event, Phase, Severity, Summary};
use pulumi_proto::urn::Urn;

use super::activities::Activities;
use super::earlier_phases::EarlierPhases;
use super::ends::is_unchanged;
use super::groups::grouped_lines;
use super::painter::Painter;
use super::palette::{Palette, severity};
use super::progress::{Progress, is_finished_change};
use super::queue::MessageFilter;
use super::report::LocatedMessage;
use super::rows::{Row, RowState, Rows};
use super::text::{Line, bytes, duration};
use super::tree::{Columns, Names, counts, row_line, tree};
use super::{DisplayOptions, EventSubject, Renderer, Secrets, Stamp, StopNotice, print_lines, report};

/// Columns and rows of a terminal.
pub(crate) type Size = (usize, usize);
/// Size that is assumed if the terminal does not report one.
const DEFAULT_SIZE: Size = (80, 24);
/// Width of the status column: that of `deleting old 1m05s`.
const STATUS_WIDTH: usize = 17;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Time between two frames of the spinner.
const SPINNER_STEP: Duration = Duration::from_millis(100);

/// Renderer that paints on the terminal of standard error, and writes results to `results`.
pub(crate) struct LiveDisplay<W: Write, R: Write> {
    painter: Painter<W>,
    results: R,
    size: Box<dyn Fn() -> Option<Size> + Send>,
    options: DisplayOptions,
    phase: Option<RunningPhase>,
    /// Last ephemeral message without a resource.
    ephemeral: Option<Line>,
    /// Last notice that the run is being stopped.
    stop: Option<StopNotice>,
    /// Downloads in progress.
    downloads: Vec<Download>,
    /// Phases that have ended.
    earlier: EarlierPhases,
    /// Work that the run waits for beside the steps of a phase.
    activities: Activities,
    /// True from a pause to the next event: other output may be on the terminal.
    is_paused: bool,
}

struct RunningPhase {
    phase: Phase,
    stack: String,
    began: Duration,
    progress: Progress,
    rows: Rows,
    messages: Vec<LocatedMessage>,
}

impl<W: Write, R: Write> LiveDisplay<W, R> {
    pub(crate) fn new(
        screen: W,
        results: R,
        size: impl Fn() -> Option<Size> + Send + 'static,
        options: DisplayOptions,
    ) -> Self {
        let painter = Painter::new(screen, options.color);
        let size = Box::new(size);
        Self {
            painter,
            results,
            size,
            options,
            phase: None,
            ephemeral: None,
            stop: None,
            downloads: Vec::new(),
            earlier: EarlierPhases::default(),
            activities: Activities::default(),
            is_paused: false,
        }
    }

    fn size(&self) -> Size {
        (self.size)().unwrap_or(DEFAULT_SIZE)
    }

    fn start_phase(&mut self, at: Duration, phase: Phase, stack: &str) -> io::Result<()> {
        self.ephemeral = None;
        let (rows, progress) = self.earlier.begin(phase, stack);
        self.print_end(None)?;
        self.phase =
            Some(RunningPhase { phase, stack: stack.to_owned(), began: at, progress, rows, messages: Vec::new() });
        Ok(())
    }

    fn end_phase(&mut self, running: RunningPhase, summary: &Summary) -> io::Result<()> {
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        let RunningPhase { phase, stack, rows, messages, .. } = running;
        let is_unchanged = is_unchanged(summary, &rows);
        let diff = self.options.diff.filter(|_| phase.preview || !self.earlier.have_shown_changes(&stack));
        let changes = if is_unchanged { Vec::new() } else { report::changes(&rows, phase, diff, Some(columns)) };
        let mut lines = Vec::new();
        if !changes.is_empty() {
            lines.push(report::title(phase, &stack));
            lines.extend(changes);
            lines.push(Line::new());
        }
        if phase.preview {
            print_lines(&mut self.results, &lines, self.options.results_color)?;
        } else {
            self.painter.print(&lines)?;
        }
        let mut message_lines = grouped_lines(&messages);
        if !message_lines.is_empty() {
            message_lines.push(Line::new());
        }
        self.painter.print(&message_lines)?;
        let mut lines =
            if is_unchanged { Vec::new() } else { report::outputs(&rows, summary, self.options.diff_options()) };
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        self.earlier.end(phase, stack, rows, summary);
        print_lines(&mut self.results, &lines, self.options.results_color)
    }

    /// Prints the last lines of the last phase, unless they are printed already. `whole` is the time of the whole command.
    fn print_end(&mut self, whole: Option<Duration>) -> io::Result<()> {
        let Some(lines) = self.earlier.take_last_lines(whole) else { return Ok(()) };
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        print_lines(&mut self.results, &lines, self.options.results_color)
    }

    fn take_message(&mut self, located: LocatedMessage) -> io::Result<()> {
        let message = &located.message;
        if let Some(running) = &mut self.phase {
            running.rows.apply(running.began, &Event::Message(message.clone()));
        }
        match &mut self.phase {
            // An ephemeral message is shown in the row of its resource, or in the footer if it has no resource.
            _ if message.ephemeral => {
                if message.urn.is_none() {
                    self.ephemeral = Some(Line::new().styled(Palette::DIM, &*message.text));
                }
                Ok(())
            }
            Some(running) => {
                running.messages.push(located);
                Ok(())
            }
            None => {
                let (columns, _) = self.size();
                self.painter.clear(columns)?;
                self.painter.print(&report::message(&located))
            }
        }
    }

    fn take_download(&mut self, download: &Download) -> io::Result<()> {
        let index = self.downloads.iter().position(|running| running.plugin == download.plugin);
        match download.stage {
            DownloadStage::Started | DownloadStage::Running => match index {
                Some(index) => self.downloads[index] = download.clone(),
                None => self.downloads.push(download.clone()),
            },
            DownloadStage::Done | DownloadStage::Failed => {
                if let Some(index) = index {
                    self.downloads.remove(index);
                }
                let (columns, _) = self.size();
                self.painter.clear(columns)?;
                if download.stage == DownloadStage::Done {
                    let line = Line::plain("Downloaded ").join(report::download(download));
                    self.painter.print(&[line.truncate(columns.saturating_sub(1))])?;
                }
            }
        }
        Ok(())
    }

    fn paint(&mut self, at: Duration) -> io::Result<()> {
        if self.is_paused {
            return Ok(());
        }
        let (columns, height) = self.size();
        let ephemeral = self.ephemeral.as_ref();
        let activities = self.activity_lines(columns, at);
        let lines = match (&self.phase, ephemeral) {
            (Some(running), ephemeral) => frame(running, ephemeral, &activities, self.stop, (columns, height), at),
            (None, ephemeral) => {
                let ephemeral =
                    ephemeral.map(|ephemeral| spinner(at).join(ephemeral.clone()).truncate(columns.saturating_sub(1)));
                let bars = downloads(&self.downloads, columns, at);
                let lines: Vec<Line> = bars.into_iter().chain(activities).chain(ephemeral).collect();
                if lines.is_empty() {
                    // The block of an activity that has ended is removed.
                    return self.painter.clear(columns);
                }
                lines
            }
        };
        self.painter.draw(&lines, columns)
    }

    /// Returns a line for each activity that is old enough. A download has a line of its own.
    fn activity_lines(&self, columns: usize, at: Duration) -> Vec<Line> {
        let is_download = |subject: &str| self.downloads.iter().any(|download| download.plugin == subject);
        let shown = self.activities.shown(at);
        let shown = shown.filter(|running| running.kind != ActivityKind::Prepare || !is_download(&running.subject));
        let line = |text: String| spinner(at).text(text).truncate(columns.saturating_sub(1));
        shown.map(|running| line(running.text(at))).collect()
    }
}

impl<W: Write + Send, R: Write + Send> Renderer for LiveDisplay<W, R> {
    fn message_filter(&self) -> MessageFilter {
        MessageFilter { verbose: self.options.verbose, ephemeral: true }
    }

    fn secrets(&self) -> Secrets {
        self.options.secrets
    }

    fn log(&mut self, line: &str) -> io::Result<()> {
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        self.painter.print(&[Line::plain(line)])
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.is_paused = false;
        match event {
            Event::PhaseStarted(phase) => self.start_phase(stamp.at, *phase, subject.stack)?,
            Event::PhaseTotal(total) => {
                self.phase.iter_mut().for_each(|running| running.progress.expect(*total));
            }
            Event::Activity(activity) => {
                self.activities.apply(stamp.at, activity);
            }
            Event::PhaseEnded(summary) => {
                self.ephemeral = None;
                if let Some(mut running) = self.phase.take() {
                    running.rows.apply(stamp.at, event);
                    if running.phase.preview {
                        report::sort_as_file(&mut running.messages);
                    }
                    self.end_phase(running, summary)?;
                }
            }
            Event::Message(message) => self.take_message(LocatedMessage::new(message, subject))?,
            Event::Download(download) => self.take_download(download)?,
            Event::RetryScheduled(retry) => {
                let (columns, _) = self.size();
                self.painter.clear(columns)?;
                self.painter.print(&[report::retry(retry).truncate(columns.saturating_sub(1))])?;
            }
            // The command prints unrecorded changes last, on any display.
            Event::Unrecorded(_) => {}
            Event::RegistrationStarted(_)
            | Event::RegistrationDecided(_)
            | Event::StepStarted(_)
            | Event::StepSucceeded(..)
            | Event::StepFailed(..)
            | Event::OutputsRegistered(_) => {
                if let Some(running) = &mut self.phase {
                    running.rows.apply(stamp.at, event);
                    if let Event::StepFailed(info, failure) = event {
                        let unreported = report::failure_message(&info.urn, &failure.message, &running.messages);
                        running.messages.extend(unreported);
                    }
                }
            }
        }
        Ok(())
    }

    /// Messages of a phase are printed at its end, so the block shows the notice until then.
    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()> {
        let message = notice.message(self.phase.as_ref().map(|running| &running.rows));
        self.take_message(LocatedMessage { message, place: None })?;
        self.stop = Some(notice);
        self.is_paused = false;
        self.paint(stamp.at)
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.paint(at)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.ephemeral = None;
        self.is_paused = true;
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        self.print_end(None)?;
        self.results.flush()
    }

    fn finish(&mut self, at: Duration) -> io::Result<()> {
        self.print_end(Some(self.options.before + at))?;
        self.pause()?;
        let messages = self.phase.take().map(|running| running.messages).unwrap_or_default();
        self.painter.print(&grouped_lines(&messages))
    }
}

/// Returns the block at the bottom of the terminal: heading, the rows that fit, counts, and the notice of a stop.
fn frame(
    running: &RunningPhase,
    ephemeral: Option<&Line>,
    activities: &[Line],
    stop: Option<StopNotice>,
    (columns, height): Size,
    at: Duration,
) -> Vec<Line> {
    // The last column is not used, as some terminals wrap there.
    let width = columns.saturating_sub(1);
    let elapsed = duration_for_footer(at.saturating_sub(running.began));
    let done = if running.progress.counts_changes() {
        running.rows.iter().filter(|row| is_finished_change(row)).count()
    } else {
        running.rows.ended_count()
    };
    let progress = running.progress.fraction(done).map(|count| format!("  {count}")).unwrap_or_default();
    let heading = spinner(at)
        .join(report::title(running.phase, &running.stack))
        .text(progress)
        .text("  ")
        .styled(Palette::DIM, elapsed);
    // Four lines are not rows: heading, hidden rows, counts, and the line with the cursor.
    let stop = stop.map(|notice| stop_lines(notice, &running.rows)).unwrap_or_default();
    let available = height.saturating_sub(4 + stop.len() + activities.len()).max(1);
    let shown = select_rows(&running.rows, available);
    let tense = report::tense(running.phase);

    let mut lines = vec![heading];
    let rows = tree(&running.rows, |row| shown.contains(&row.urn));
    let fitted = Columns::fit(&rows, Some(width), STATUS_WIDTH, tense);
    for tree_row in rows.iter().take(available) {
        let row = tree_row.row;
        let status = if row.state == RowState::Failed { row.status_text.as_str() } else { "" };
        let names = if status.is_empty() { Names::Shown } else { Names::Hidden };
        lines.push(row_line(tree_row, fitted, tense, names, at));
        if !status.is_empty() {
            let bars = Line::plain("  ").styled(Palette::DIM, &tree_row.below).text("  ");
            lines.push(bars.styled(Palette::ERROR, status));
        }
    }
    let hidden_running =
        running.rows.iter().filter(|row| row.state == RowState::Running && !shown.contains(&row.urn)).count();
    if hidden_running > 0 {
        lines.push(Line::new().styled(Palette::DIM, format!("  … {hidden_running} more running")));
    }
    let counts = counts(&running.rows, tense);
    match ephemeral {
        Some(ephemeral) if counts == Line::new() => lines.push(Line::plain("  ").join(ephemeral.clone())),
        _ => lines.push(Line::plain("  ").join(counts)),
    }
    lines.extend(activities.iter().cloned());
    lines.extend(stop);
    lines.into_iter().map(|line| line.truncate(width)).collect()
}

/// Returns the lines about a run that is being stopped, with the steps that still run.
fn stop_lines(notice: StopNotice, rows: &Rows) -> Vec<Line> {
    let (word, style) = severity(Severity::Warning);
    let mut texts = notice.lines(Some(rows)).into_iter();
    let head = Line::new().styled(style, word).styled(Palette::BOLD, ":").text(" ");
    let first = head.text(texts.next().unwrap_or_default());
    std::iter::once(first).chain(texts.map(|text| Line::plain("  ").text(text))).collect()
}

/// Returns the rows to show in the available lines: failed rows, then running rows (oldest first), then the rows that
/// ended last.
fn select_rows(rows: &Rows, available: usize) -> HashSet<Urn> {
    let mut candidates: Vec<&Row> =
        rows.iter().filter(|row| row.state == RowState::Running || row.should_show()).collect();
    candidates.sort_by_key(|row| match row.state {
        RowState::Failed => (0, usize::MAX - row.last_event),
        RowState::Running => (1, row.last_event),
        RowState::Done => (2, usize::MAX - row.last_event),
    });
    let mut shown: HashSet<Urn> = HashSet::new();
    let mut used = 0;
    for row in candidates {
        let mut added: Vec<&Urn> = Vec::new();
        let mut next = Some(row);
        while let Some(row) = next
            && !shown.contains(&row.urn)
            && !added.contains(&&row.urn)
        {
            added.push(&row.urn);
            next = row.parent.as_ref().and_then(|parent| rows.get(parent));
        }
        let status_lines = usize::from(row.state == RowState::Failed && !row.status_text.is_empty());
        if used + added.len() + status_lines > available {
            // A smaller candidate might fit, but skipping one would break the order of the hidden rows.
            break;
        }
        used += added.len() + status_lines;
        shown.extend(added.into_iter().cloned());
    }
    shown
}

/// Returns one line per download, with a bar if its size is known.
fn downloads(downloads: &[Download], columns: usize, at: Duration) -> Vec<Line> {
    const BAR: usize = 24;
    let line = |download: &Download| {
        let name = Line::new().styled(Palette::BOLD, &download.plugin).text(" ");
        let name = spinner(at).join(name);
        let Some(total) = download.total.filter(|total| *total > 0) else {
            return name.text(format!("fetching {}", download.name));
        };
        let received = download.received.min(total);
        let filled = usize::try_from(u128::from(received) * BAR as u128 / u128::from(total)).unwrap_or(BAR);
        let percent = u128::from(received) * 100 / u128::from(total);
        name.styled(Palette::CREATE, "━".repeat(filled))
            .styled(Palette::DIM, "━".repeat(BAR - filled))
            .text(format!(" {percent:>3}% "))
            .styled(Palette::DIM, format!("{} of {}  {}", bytes(received), bytes(total), download.name))
    };
    downloads.iter().map(|download| line(download).truncate(columns.saturating_sub(1))).collect()
}

fn spinner(at: Duration) -> Line {
    let step = (at.as_millis() / SPINNER_STEP.as_millis()) as usize % SPINNER.len();
    Line::new().styled(Palette::READ, SPINNER[step]).text(" ")
}

fn duration_for_footer(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(10) { format!("{}s", elapsed.as_secs()) } else { duration(elapsed) }
}
