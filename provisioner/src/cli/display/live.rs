//! Display for a terminal: a tree of resources that is repainted in place, below lines that stay.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use engine::events::{Download, DownloadStage, Event, Phase, Summary};
use pulumi_proto::urn::Urn;

use super::painter::Painter;
use super::palette::Palette;
use super::report::Told;
use super::rows::{Row, RowState, Rows};
use super::text::{Line, bytes, duration};
use super::tree::{Columns, Names, counts, row_line, tree};
use super::{DisplayOptions, Origin, Renderer, Stamp, print_lines, report};

/// Columns and rows of a terminal.
pub(crate) type Size = (usize, usize);
/// Size that is assumed if the terminal does not report one.
const USUAL_SIZE: Size = (80, 24);
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
    passing: Option<Line>,
    /// Downloads in progress.
    downloads: Vec<Download>,
    /// Stack whose last preview has shown its changes, if there is one.
    previewed: Option<String>,
}

struct RunningPhase {
    phase: Phase,
    stack: String,
    began: Duration,
    rows: Rows,
    told: Vec<Told>,
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
        Self { painter, results, size, options, phase: None, passing: None, downloads: Vec::new(), previewed: None }
    }

    fn size(&self) -> Size {
        (self.size)().unwrap_or(USUAL_SIZE)
    }

    fn end_phase(&mut self, running: &RunningPhase, summary: &Summary) -> io::Result<()> {
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        let RunningPhase { phase, stack, rows, told, .. } = running;
        let diff = self.options.diff.filter(|_| phase.preview || self.previewed.as_deref() != Some(stack));
        let changes = report::changes(rows, *phase, diff, Some(columns));
        let mut lines = Vec::new();
        if !changes.is_empty() {
            lines.push(report::title(*phase, stack));
            lines.extend(changes);
            lines.push(Line::new());
        }
        if phase.preview {
            print_lines(&mut self.results, &lines, self.options.results_color)?;
            self.previewed = Some(stack.clone());
        } else {
            self.painter.print(&lines)?;
        }
        let mut told: Vec<Line> = told.iter().flat_map(report::message).collect();
        if !told.is_empty() {
            told.push(Line::new());
        }
        self.painter.print(&told)?;
        let mut lines = report::outputs(rows, *phase, self.options.diff_options());
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.push(report::summary(summary, stack, rows));
        print_lines(&mut self.results, &lines, self.options.results_color)
    }

    fn take_message(&mut self, told: Told) -> io::Result<()> {
        let message = &told.message;
        if !report::is_shown(message, self.options.verbose) {
            return Ok(());
        }
        if let Some(running) = &mut self.phase {
            running.rows.apply(running.began, &Event::Message(message.clone()));
        }
        match &mut self.phase {
            // The row of the message's resource shows it; a message without a resource is shown in the footer for a
            // while.
            _ if message.ephemeral => {
                if message.urn.is_none() {
                    self.passing = Some(Line::new().styled(Palette::DIM, &message.text));
                }
                Ok(())
            }
            Some(running) => {
                running.told.push(told);
                Ok(())
            }
            None => {
                let (columns, _) = self.size();
                self.painter.clear(columns)?;
                self.painter.print(&report::message(&told))
            }
        }
    }

    fn take_download(&mut self, download: &Download) -> io::Result<()> {
        let known = self.downloads.iter().position(|known| known.plugin == download.plugin);
        match download.stage {
            DownloadStage::Started | DownloadStage::Running => match known {
                Some(known) => self.downloads[known] = download.clone(),
                None => self.downloads.push(download.clone()),
            },
            DownloadStage::Done | DownloadStage::Failed => {
                if let Some(known) = known {
                    self.downloads.remove(known);
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
        let (columns, height) = self.size();
        let passing = self.passing.as_ref();
        let lines = match (&self.phase, passing) {
            (Some(running), passing) => frame(running, passing, columns, height, at),
            (None, passing) => {
                let passing =
                    passing.map(|passing| spinner(at).join(passing.clone()).truncate(columns.saturating_sub(1)));
                let bars = downloads(&self.downloads, columns, at);
                let lines: Vec<Line> = bars.into_iter().chain(passing).collect();
                if lines.is_empty() {
                    return Ok(());
                }
                lines
            }
        };
        self.painter.draw(&lines, columns)
    }
}

impl<W: Write + Send, R: Write + Send> Renderer for LiveDisplay<W, R> {
    fn event(&mut self, stamp: Stamp, origin: Origin<'_>, event: &Event) -> io::Result<()> {
        match event {
            Event::PhaseStarted(phase) => {
                self.passing = None;
                self.phase = Some(RunningPhase {
                    phase: *phase,
                    stack: origin.stack.to_owned(),
                    began: stamp.at,
                    rows: Rows::new(*phase),
                    told: Vec::new(),
                });
            }
            Event::PhaseEnded(summary) => {
                self.passing = None;
                if let Some(mut running) = self.phase.take() {
                    running.rows.apply(stamp.at, event);
                    self.end_phase(&running, summary)?;
                }
            }
            Event::Message(message) => self.take_message(Told::new(message, origin))?,
            Event::Download(download) => self.take_download(download)?,
            Event::SecretsTold(_) => {}
            Event::StepStarted(_) | Event::StepSucceeded(..) | Event::StepFailed(..) | Event::OutputsRegistered(_) => {
                if let Some(running) = &mut self.phase {
                    running.rows.apply(stamp.at, event);
                    if let Event::StepFailed(info, failure) = event {
                        let untold = report::failure_message(&info.urn, &failure.message, &running.told);
                        running.told.extend(untold);
                    }
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.paint(at)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.passing = None;
        let (columns, _) = self.size();
        self.painter.clear(columns)?;
        self.results.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.pause()?;
        let told = self.phase.take().map(|running| running.told).unwrap_or_default();
        self.painter.print(&told.iter().flat_map(report::message).collect::<Vec<_>>())
    }
}

/// Returns the block at the bottom of the terminal: a heading, as many rows as fit, the counts.
fn frame(running: &RunningPhase, passing: Option<&Line>, columns: usize, height: usize, at: Duration) -> Vec<Line> {
    // The last column stays free, as some terminals wrap there.
    let width = columns.saturating_sub(1);
    let elapsed = duration_for_footer(at.saturating_sub(running.began));
    let heading =
        spinner(at).join(report::title(running.phase, &running.stack)).text("  ").styled(Palette::DIM, elapsed);
    // Four lines are not rows: heading, hidden rows, counts, and the line with the cursor.
    let room = height.saturating_sub(4).max(1);
    let shown = rows_that_fit(&running.rows, room);
    let tense = report::tense(running.phase);

    let mut lines = vec![heading];
    let rows = tree(&running.rows, |row| shown.contains(&row.urn));
    let fitted = Columns::fit(&rows, Some(width), STATUS_WIDTH);
    for tree_row in rows.iter().take(room) {
        let row = tree_row.row;
        let note = if row.state == RowState::Failed { row.note.as_str() } else { "" };
        let names = if note.is_empty() { Names::Shown } else { Names::Hidden };
        lines.push(row_line(tree_row, fitted, tense, names, at));
        if !note.is_empty() {
            let bars = Line::plain("  ").styled(Palette::DIM, &tree_row.below).text("  ");
            lines.push(bars.styled(Palette::ERROR, note));
        }
    }
    let hidden_running =
        running.rows.iter().filter(|row| row.state == RowState::Running && !shown.contains(&row.urn)).count();
    if hidden_running > 0 {
        lines.push(Line::new().styled(Palette::DIM, format!("  … {hidden_running} more running")));
    }
    let counts = counts(&running.rows, tense);
    match passing {
        Some(passing) if counts == Line::new() => lines.push(Line::plain("  ").join(passing.clone())),
        _ => lines.push(Line::plain("  ").join(counts)),
    }
    lines.into_iter().map(|line| line.truncate(width)).collect()
}

/// Returns the rows to show if not all fit: failed ones, then running ones (the oldest first), then the last done ones.
fn rows_that_fit(rows: &Rows, room: usize) -> HashSet<Urn> {
    let mut candidates: Vec<&Row> =
        rows.iter().filter(|row| row.state == RowState::Running || row.is_worth_showing()).collect();
    candidates.sort_by_key(|row| match row.state {
        RowState::Failed => (0, usize::MAX - row.touched),
        RowState::Running => (1, row.touched),
        RowState::Done => (2, usize::MAX - row.touched),
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
        let notes = usize::from(row.state == RowState::Failed && !row.note.is_empty());
        if used + added.len() + notes > room {
            // A smaller candidate might fit, but skipping one would break the order of the hidden rows.
            break;
        }
        used += added.len() + notes;
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
            return name.text(format!("fetching {}", download.what));
        };
        let received = download.received.min(total);
        let filled = usize::try_from(u128::from(received) * BAR as u128 / u128::from(total)).unwrap_or(BAR);
        let percent = u128::from(received) * 100 / u128::from(total);
        name.styled(Palette::CREATE, "━".repeat(filled))
            .styled(Palette::DIM, "━".repeat(BAR - filled))
            .text(format!(" {percent:>3}% "))
            .styled(Palette::DIM, format!("{} of {}  {}", bytes(received), bytes(total), download.what))
    };
    downloads.iter().map(|download| line(download).truncate(columns.saturating_sub(1))).collect()
}

fn spinner(at: Duration) -> Line {
    #[allow(clippy::cast_possible_truncation, reason = "taken modulo ten")]
    let step = (at.as_millis() / SPINNER_STEP.as_millis()) as usize % SPINNER.len();
    Line::new().styled(Palette::READ, SPINNER[step]).text(" ")
}

fn duration_for_footer(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(10) { format!("{}s", elapsed.as_secs()) } else { duration(elapsed) }
}
