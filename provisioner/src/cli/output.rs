//! Output of the program: results go to standard output, everything else to standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};

use bridge::message_text::MessageText;
use config::diagnostics::{
    Diagnostic, MAX_SHOWN, Masks, Severity, SourceFiles, Style, escape_controls, render_masked, shown,
};
use engine::masking::SecretMasker;
use jiff::Timestamp;
use serde_json::{Map, Value};
use state::store::OutageReport;

use super::args::{ColorArg, GlobalArgs};
use super::display::{
    DiffOptions, Display, DisplayOptions, EventNumbers, JsonDisplay, Line, LiveDisplay, NewRenderer, PlainDisplay,
    Renderer, Secrets, StackTurns, Stamp, describe_diagnostic, describe_error, print_lines, write_event,
};
use super::error_texts::{error_lines, error_texts, info_lines, warning_lines};
use super::exit::Exit;
use super::session_events::SessionEvents;
use super::streams::StandardOutput;

/// Returns to the start of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Properties of the process's streams and terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamProperties {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// True in a pipeline: `CI` is set.
    pub(crate) is_pipeline: bool,
    /// True if the terminal cannot move its cursor.
    pub(crate) terminal_is_dumb: bool,
    /// True if `--color auto` enables colour (NO_COLOR, CLICOLOR_FORCE, the terminal).
    pub(crate) stdout_has_color: bool,
    pub(crate) stderr_has_color: bool,
}

impl StreamProperties {
    pub(crate) fn of_process() -> Self {
        Self {
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            is_pipeline: std::env::var_os("CI").is_some_and(|value| !value.is_empty()),
            terminal_is_dumb: std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
            stdout_has_color: AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            stderr_has_color: AutoStream::choice(&io::stderr()) != ColorChoice::Never,
        }
    }
}

/// Output streams with their properties, and the secrets that must not be written to them. Clones share both.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    masker: Arc<SecretMasker>,
    streams: StreamProperties,
    json: bool,
    /// Numbers of the events that `--json` writes.
    event_numbers: EventNumbers,
    verbose: bool,
    stdout_color: bool,
    stderr_color: bool,
    /// Events of the session that runs, if one does.
    session: SessionEvents,
    wait_line: WaitLine,
}

impl Output {
    pub(crate) fn new(global: &GlobalArgs, streams: &StreamProperties) -> Self {
        let color = |auto| match global.color {
            ColorArg::Auto => auto,
            ColorArg::Always => true,
            ColorArg::Never => false,
        };
        Self {
            masker: Arc::default(),
            streams: *streams,
            json: global.json,
            event_numbers: EventNumbers::default(),
            verbose: global.verbose,
            stdout_color: color(streams.stdout_has_color),
            stderr_color: color(streams.stderr_has_color),
            session: SessionEvents::default(),
            wait_line: WaitLine::default(),
        }
    }

    /// Returns the secrets to mask in texts.
    pub(crate) fn masker(&self) -> &Arc<SecretMasker> {
        &self.masker
    }

    /// Returns whether the user can be asked a question.
    pub(crate) fn can_ask(&self) -> bool {
        self.streams.stdin_is_terminal && self.streams.stderr_is_terminal && !self.json
    }

    /// Returns whether the user is asked even where a reply is not necessary: on a terminal, and not in a pipeline.
    pub(crate) fn is_interactive(&self) -> bool {
        self.can_ask() && !self.streams.is_pipeline
    }

    /// Returns whether the replies to questions come from a pipe or a file, one line each.
    pub(crate) fn reads_replies(&self) -> bool {
        !self.streams.stdin_is_terminal
    }

    /// Returns whether lines on standard error can be replaced: on a terminal that can move its cursor.
    pub(super) fn replaces_lines(&self) -> bool {
        self.streams.stderr_is_terminal && !self.streams.terminal_is_dumb && !self.json
    }

    /// Returns the line about what a command waits for.
    pub(super) fn wait_line(&self) -> &WaitLine {
        &self.wait_line
    }

    /// Returns whether `--verbose` was given.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Returns whether `--json` was given.
    pub(crate) fn results_are_json(&self) -> bool {
        self.json
    }

    /// Returns whether a program reads the results: with `--json`, or if standard output is not a terminal.
    pub(crate) fn results_are_for_programs(&self) -> bool {
        self.json || !self.streams.stdout_is_terminal
    }

    /// Returns the extent of values that are shown outside a run.
    pub(crate) fn diff_options(&self, secrets: Secrets) -> DiffOptions {
        DiffOptions { secrets, full: self.verbose }
    }

    /// Starts the display of a run, of several stacks at the same time if `has_turns`. `before` is the time since the start of the command.
    pub(crate) fn start_display(
        &self,
        diff: bool,
        secrets: Secrets,
        has_turns: bool,
        before: Duration,
    ) -> io::Result<Display> {
        let options = DisplayOptions {
            diff: diff.then_some(self.diff_options(secrets)),
            secrets,
            verbose: self.verbose,
            color: self.stderr_color,
            results_color: self.stdout_color,
            before,
        };
        // Styles are written only if colour is enabled; `always` only makes old Windows consoles render them.
        let stdout = || StandardOutput(AutoStream::always(io::stdout()));
        let stderr = || AutoStream::always(io::stderr());
        let (is_live, width) = (self.has_live_display(), self.results_width());
        let for_people: NewRenderer = Box::new(move || match is_live {
            true => Box::new(LiveDisplay::new(stderr(), stdout(), stderr_size, options)),
            false => Box::new(PlainDisplay::new(stderr(), stdout(), width, options)),
        });
        let renderer: Box<dyn Renderer> = if self.json {
            Box::new(JsonDisplay::new(StandardOutput(io::stdout()), secrets, self.verbose, self.event_numbers.clone()))
        } else if has_turns {
            let began = Stamp { at: Duration::ZERO, time: Timestamp::now() };
            Box::new(StackTurns::new(for_people, began))
        } else {
            for_people()
        };
        Display::start(renderer, Arc::clone(&self.masker))
    }

    pub(super) fn has_live_display(&self) -> bool {
        !self.json && self.streams.stderr_is_terminal && !self.streams.terminal_is_dumb
    }

    /// Prints lines on standard output.
    pub(crate) fn print(&self, lines: &[Line]) -> io::Result<()> {
        print_lines(&mut StandardOutput(AutoStream::always(io::stdout())), lines, self.stdout_color)
    }

    /// Prints a text on standard output: as it is for programs, with escaped control characters on a terminal.
    pub(crate) fn print_text(&self, text: &str) -> io::Result<()> {
        print_result(&self.shown_text(text))
    }

    fn shown_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.streams.stdout_is_terminal { escape_controls(text) } else { Cow::Borrowed(text) }
    }

    /// Writes an event as a line of `--json`, if it was given.
    fn write_event(&self, describe: impl FnOnce(&mut Map<String, Value>)) {
        if !self.json {
            return;
        }
        let mut line = self.event_numbers.next_event(Timestamp::now(), "");
        describe(&mut line);
        // The reader of the events has closed the output. Standard error has the text, too.
        drop(write_event(&mut StandardOutput(io::stdout()), line));
    }

    /// Prints errors and warnings about the user's files: the first ones in full, and the number of the others. With
    /// `--json`, writes each of them as an event, too.
    pub(crate) fn print_diagnostics(&self, diagnostics: &[Diagnostic], sources: &SourceFiles) {
        for diagnostic in diagnostics {
            self.write_event(|line| describe_diagnostic(diagnostic, sources, &self.masker, line));
        }
        let style = if self.stderr_color { Style::Coloured } else { Style::Plain };
        let masks = Masks {
            message: &|text| self.masker.mask_message(text),
            outside: &|text| self.masker.mask(text).into_owned(),
        };
        let rendered = shown(diagnostics).map(|diagnostic| render_masked(diagnostic, sources, style, &masks) + "\n\n");
        // An error means that standard error is closed, so it cannot be reported there.
        drop(AutoStream::always(io::stderr()).write_all(rendered.collect::<String>().as_bytes()));
        for (severity, one, several) in
            [(Severity::Error, "error", "errors"), (Severity::Warning, "warning", "warnings")]
        {
            let found = diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
            match found.saturating_sub(MAX_SHOWN) {
                0 => {}
                1 => self.print_messages(&[Line::plain(format!("and 1 more {one}"))]),
                hidden => self.print_messages(&[Line::plain(format!("and {hidden} more {several}"))]),
            }
        }
    }

    /// Prints an error, and returns its outcome. With `--json`, writes the error as an event, too.
    pub(crate) fn fail(&self, error: &anyhow::Error) -> Exit {
        let exit = Exit::of_error(error);
        if exit != Exit::BrokenPipe {
            let texts = error_texts(error, &self.masker);
            self.print_messages(&error_lines(&texts));
            self.write_event(|line| describe_error(texts, exit.code(), line));
        }
        exit
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: impl Into<MessageText>) {
        self.print_messages(&warning_lines(&self.masker.mask_message(&text.into())));
    }

    /// Returns the receiver of the outages of stores: a warning, which the display of a session shows if one runs.
    pub(crate) fn outage_report(&self) -> OutageReport {
        let output = self.clone();
        OutageReport::new(move |outage| {
            let text = MessageText::of(outage);
            if !output.session.warn(&text) {
                output.warn(text);
            }
        })
    }

    /// Returns the events of the session that runs.
    pub(crate) fn session(&self) -> &SessionEvents {
        &self.session
    }

    /// Prints a message on standard error.
    pub(crate) fn inform(&self, text: impl Into<MessageText>) {
        self.print_messages(&info_lines(&self.masker.mask_message(&text.into())));
    }

    /// Prints a line of the log on standard error, above what the display of a session paints there.
    pub(crate) fn log(&self, line: String) {
        if let Some(line) = self.session.log(line) {
            self.wait_line.clear();
            // An error means that standard error is closed.
            drop(writeln!(io::stderr(), "{line}"));
        }
    }

    /// Prints lines on standard error.
    pub(crate) fn print_messages(&self, lines: &[Line]) {
        self.wait_line.clear();
        // An error means that standard error is closed, so it cannot be reported there.
        drop(print_lines(&mut AutoStream::always(io::stderr()), lines, self.stderr_color));
    }

    fn results_width(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.filter(|_| self.streams.stdout_is_terminal).map(|(width, _)| width.0.into())
    }
}

/// Knowledge of whether a line about a wait stands on the terminal. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitLine(Arc<AtomicBool>);

impl WaitLine {
    /// Clears the line, if one stands there, so that other lines can be printed.
    pub(super) fn clear(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            // An error means that standard error is closed.
            drop(io::stderr().write_all(CLEAR.as_bytes()));
        }
    }

    /// Replaces the line.
    pub(super) fn show(&self, text: &str) {
        self.0.store(true, Ordering::Relaxed);
        drop(write!(io::stderr(), "{CLEAR}{text}"));
    }
}

fn stderr_size() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stderr())?;
    Some((width.0.into(), height.0.into()))
}

/// Prints a text unchanged, as a result.
pub(crate) fn print_result(text: &str) -> io::Result<()> {
    let mut stdout = StandardOutput(io::stdout().lock());
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints the report of a bug. Works in any state of the program.
pub(crate) fn print_bug(text: &str) {
    // `eprintln!` panics if standard error is closed, and this may run within a panic.
    drop(writeln!(io::stderr(), "\n{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_text_is_escaped_on_a_terminal_only() {
        let cli = <crate::cli::commands::Cli as clap::Parser>::parse_from(["sc", "--color=never", "stack", "ls"]);
        let global = cli.global;
        let shown = |stdout_is_terminal| {
            let streams = StreamProperties { stdout_is_terminal, ..StreamProperties::default() };
            Output::new(&global, &streams).shown_text("a\u{202e}\u{9b}\tb\n").into_owned()
        };
        assert_eq!(shown(true), "a\\u202e\\u009b\tb\n");
        assert_eq!(shown(false), "a\u{202e}\u{9b}\tb\n");
    }
}
