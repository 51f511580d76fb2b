//! Where output goes and how it looks: results to standard output, all else to standard error.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use config::diagnostics::{Diagnostic, SourceFiles, Style, render};

use super::args::{ColorArg, GlobalArgs};
use super::display::{
    DiffOptions, Display, DisplayOptions, JsonDisplay, Line, LiveDisplay, PlainDisplay, Renderer, Secrets, print_lines,
};
use super::exit::{Exit, error_lines, warning_lines};

/// What the process finds around it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// The terminal cannot move its cursor.
    pub(crate) terminal_is_dumb: bool,
    /// What `--color auto` means (NO_COLOR, CLICOLOR_FORCE, the terminal).
    pub(crate) stdout_has_color: bool,
    pub(crate) stderr_has_color: bool,
}

impl Facts {
    pub(crate) fn of_process() -> Self {
        Self {
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            terminal_is_dumb: std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
            stdout_has_color: AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            stderr_has_color: AutoStream::choice(&io::stderr()) != ColorChoice::Never,
        }
    }
}

/// The two output streams and what they can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    facts: Facts,
    json: bool,
    verbose: bool,
    stdout_color: bool,
    stderr_color: bool,
}

impl Ui {
    pub(crate) fn new(global: &GlobalArgs, facts: &Facts) -> Self {
        let color = |auto| match global.color {
            ColorArg::Auto => auto,
            ColorArg::Always => true,
            ColorArg::Never => false,
        };
        Self {
            facts: *facts,
            json: global.json,
            verbose: global.verbose,
            stdout_color: color(facts.stdout_has_color),
            stderr_color: color(facts.stderr_has_color),
        }
    }

    /// Whether a question can be asked and answered.
    pub(crate) fn can_ask(&self) -> bool {
        self.facts.stdin_is_terminal && self.facts.stderr_is_terminal && !self.json
    }

    /// Whether `--json` was given.
    pub(crate) fn results_are_json(&self) -> bool {
        self.json
    }

    /// Whether results are meant for a program: `--json`, or a pipe where a terminal could be.
    pub(crate) fn results_are_for_programs(&self) -> bool {
        self.json || !self.facts.stdout_is_terminal
    }

    /// How values are shown outside a run.
    pub(crate) fn diff_options(&self, secrets: Secrets) -> DiffOptions {
        DiffOptions { secrets, full: self.verbose }
    }

    /// Starts showing a run.
    pub(crate) fn start_display(&self, diff: bool, secrets: Secrets) -> io::Result<Display> {
        let options = DisplayOptions {
            diff: diff.then_some(self.diff_options(secrets)),
            secrets,
            verbose: self.verbose,
            color: self.stderr_color,
            results_color: self.stdout_color,
        };
        // Styles are written where they are wanted; `always` only makes old Windows consoles understand them.
        let stdout = || AutoStream::always(io::stdout());
        let stderr = || AutoStream::always(io::stderr());
        let renderer: Box<dyn Renderer> = if self.json {
            Box::new(JsonDisplay::new(io::stdout(), secrets))
        } else if self.facts.stderr_is_terminal && !self.facts.terminal_is_dumb {
            Box::new(LiveDisplay::new(stderr(), stdout(), stderr_size, options))
        } else {
            Box::new(PlainDisplay::new(stderr(), stdout(), self.results_width(), options))
        };
        Display::start(renderer, secrets)
    }

    /// Prints lines on standard output.
    pub(crate) fn print(&self, lines: &[Line]) -> io::Result<()> {
        print_lines(&mut AutoStream::always(io::stdout()), lines, self.stdout_color)
    }

    /// Prints what is to be said of the user's files.
    pub(crate) fn print_diagnostics(&self, found: &[Diagnostic], sources: &SourceFiles) {
        let style = if self.stderr_color { Style::Coloured } else { Style::Plain };
        let text: String = found.iter().map(|diagnostic| render(diagnostic, sources, style) + "\n\n").collect();
        // Nobody is left to be told that standard error is gone.
        drop(AutoStream::always(io::stderr()).write_all(text.as_bytes()));
    }

    /// Prints an error and says how the program ends because of it.
    pub(crate) fn fail(&self, error: &anyhow::Error) -> Exit {
        let exit = Exit::of_error(error);
        if exit != Exit::BrokenPipe {
            self.say(&error_lines(error));
        }
        exit
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        self.say(&warning_lines(text));
    }

    /// Prints lines on standard error.
    pub(crate) fn say(&self, lines: &[Line]) {
        // Nobody is left to be told that standard error is gone.
        drop(print_lines(&mut AutoStream::always(io::stderr()), lines, self.stderr_color));
    }

    fn results_width(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.filter(|_| self.facts.stdout_is_terminal).map(|(width, _)| width.0.into())
    }
}

fn stderr_size() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(io::stderr())?;
    Some((width.0.into(), height.0.into()))
}

/// Prints text that is a result as it stands.
pub(crate) fn print_result(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints what is said of a fault of our own, in whatever state the rest of the program is.
pub(crate) fn print_bug(text: &str) {
    // `eprintln!` would panic where standard error is closed, within a panic.
    drop(writeln!(io::stderr(), "\n{text}"));
}
