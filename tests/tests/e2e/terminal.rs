//! Command on a pseudo-terminal, and the screen as a user sees it.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use crate::repository::{REC, Repository, Sections, in_place_of};

/// Columns and rows of the terminal.
const SIZE: (u16, u16) = (120, 40);

/// Limit on each wait. An idle machine needs milliseconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Byte that the terminal turns into an interrupt signal.
const CTRL_C: u8 = 3;

/// Script of the shell that owns the terminal and runs the command on it. The shell prints the exit code of the command to
/// its own standard output, and stays until it is killed: the end of the owner would discard output that is not read yet.
/// An interrupt from the keyboard reaches the shell, too, which ignores it until then.
const OWNER: &str = r#"trap : INT; "$@" >&2; echo $?; trap '' INT; exec sleep infinity"#;

/// Running command whose standard input, output and error are a pseudo-terminal.
pub(crate) struct Terminal {
    /// Side of the terminal that a user sees.
    user: File,
    /// Side of the command. It stays open, so that the mode of the terminal can be read after the end.
    line: File,
    owner: Child,
    exit_code: ChildStdout,
    parser: vt100::Parser,
    /// Mode of the terminal before the start.
    initial_mode: String,
}

impl Repository {
    /// Starts `sc` on a terminal, in the environment of [`Repository::command`].
    pub(crate) fn start_on_terminal(&self, arguments: &str) -> Terminal {
        Terminal::start(&self.command(arguments))
    }
}

impl Terminal {
    /// Starts a command on a new terminal, which supports colours and movements of the cursor.
    pub(crate) fn start(command: &Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let user = openpt(flags).unwrap();
        unlockpt(&user).unwrap();
        let line = File::from(ioctl_tiocgptpeer(&user, flags).unwrap());
        let (columns, rows) = SIZE;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).unwrap();
        let initial_mode = mode(&line);

        // `setsid` becomes the shell, so the process id of the shell is that of its process group, too. A shell cannot trap an
        // interrupt that it inherits as ignored, as the processes of a background job do.
        let mut owner = Command::new("setsid");
        owner
            .args(["--ctty", "env", "--default-signal=INT", "sh", "-c", OWNER, "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        let mut owner = in_place_of(command, owner);
        owner.env("TERM", "xterm-256color").stdin(line.try_clone().unwrap()).stderr(line.try_clone().unwrap());
        let mut owner = owner.stdout(Stdio::piped()).spawn().unwrap();
        let exit_code = owner.stdout.take().unwrap();
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 1000);
        Self { user: File::from(user), line, owner, exit_code, parser, initial_mode }
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Returns the text left of the cursor in its line.
    pub(crate) fn line_before_cursor(&self) -> String {
        let (row, column) = self.parser.screen().cursor_position();
        self.parser.screen().rows(0, column).nth(row.into()).unwrap_or_default()
    }

    /// Returns whether the cursor is shown, and the mode of the terminal (echo, line editing) is that of the start.
    pub(crate) fn is_restored(&self) -> bool {
        !self.parser.screen().hide_cursor() && mode(&self.line) == self.initial_mode
    }

    /// Waits until the screen contains a text. Fails if the command ends before.
    pub(crate) fn wait_until_shown(&mut self, text: &str) {
        let deadline = Instant::now() + LIMIT;
        while !self.screen().contains(text) {
            let has_ended = self.read(deadline, text);
            assert!(!has_ended || self.screen().contains(text), "{text:?} is not shown:\n{}", self.screen());
        }
    }

    /// Types a line of text.
    pub(crate) fn type_line(&mut self, text: &str) {
        self.user.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Presses Ctrl-C.
    pub(crate) fn press_ctrl_c(&mut self) {
        self.user.write_all(&[CTRL_C]).unwrap();
    }

    /// Waits for the end of the command, and returns its exit code. The screen shows all its output then.
    pub(crate) fn wait(&mut self) -> i32 {
        let deadline = Instant::now() + LIMIT;
        while !self.read(deadline, "the end of the command") {}
        let mut text = Vec::new();
        let mut byte = [0];
        while self.exit_code.read(&mut byte).unwrap() > 0 && byte != *b"\n" {
            text.extend(byte);
        }
        String::from_utf8(text).unwrap().parse().unwrap()
    }

    /// Waits for output or for the end of the command, and reads what there is. Returns true if the command has ended and
    /// all its output is read.
    fn read(&mut self, deadline: Instant, awaited: &str) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "timeout while waiting for {awaited:?}:\n{}", self.screen());
        let (has_output, has_ended) = self.poll(left);
        if has_output {
            self.read_output();
        }
        has_ended && {
            // The output of the command precedes its end, so all of it is there now.
            while self.poll(Duration::ZERO).0 {
                self.read_output();
            }
            true
        }
    }

    /// Waits until there is output, or the command has ended. Returns which of the two holds.
    fn poll(&self, limit: Duration) -> (bool, bool) {
        let mut files = [
            PollFd::from_borrowed_fd(self.user.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.exit_code.as_fd(), PollFlags::IN),
        ];
        poll(&mut files, Some(&Timespec::try_from(limit).unwrap())).unwrap();
        let is_ready = |file: &PollFd<'_>| file.revents().intersects(PollFlags::IN);
        (is_ready(&files[0]), is_ready(&files[1]))
    }

    fn read_output(&mut self) {
        let mut buffer = [0; 8192];
        match self.user.read(&mut buffer) {
            Ok(count) => self.parser.process(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
        }
    }
}

impl Drop for Terminal {
    /// Kills the shell, and the command if it still runs.
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.owner), Signal::KILL).ok();
        self.owner.wait().ok();
    }
}

/// Returns the mode of a terminal as a text to compare.
fn mode(line: &File) -> String {
    let mode = tcgetattr(line).unwrap();
    format!("{:?}", (mode.input_modes, mode.output_modes, mode.control_modes, mode.local_modes))
}

#[test]
fn terminal_shows_the_output_and_passes_keys_and_exit_code_on() {
    let repository = Repository::new(Sections::default());
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Terminal::start(&in_place_of(&repository.command(""), shell))
    };
    let mut echo = shell("test -t 0 && test -t 1 && test -t 2 && stty size && read line && printf \"<$line>\"; exit 7");
    echo.wait_until_shown("40 120");
    echo.type_line("heard");
    assert_eq!(echo.wait(), 7);
    assert_eq!(echo.screen(), "40 120\nheard\n<heard>");
    assert_eq!(echo.line_before_cursor(), "<heard>");
    assert!(echo.is_restored());

    // The loop does not wait: an interrupt just before a `read` would be noticed after a line only.
    let mut interrupted = shell("trap 'stty -echo; exit 3' INT; printf '\\033[?25lready'; while :; do :; done");
    interrupted.wait_until_shown("ready");
    interrupted.press_ctrl_c();
    assert_eq!(interrupted.wait(), 3);
    assert!(!interrupted.is_restored());
}

#[test]
fn program_asks_and_paints_on_the_terminal() {
    let resources = "thing: { type: rec:index:Thing, config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins: REC, resources, outputs: "" });
    repository.script(json!({"resources": {"thing--prod": {"hang": "create"}}}));
    let mut terminal = repository.start_on_terminal("provision -S");
    terminal.wait_until_shown("creating");
    assert!(!terminal.is_restored(), "the cursor is hidden while the display paints");
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130);
    assert!(terminal.is_restored(), "{}", terminal.screen());

    let mut terminal = repository.start_on_terminal("destroy --parent");
    terminal.wait_until_shown("Destroy all resources of stack reef? [y/N]");
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0);
    assert!(terminal.screen().contains("Destroy of reef done"), "{}", terminal.screen());
}
