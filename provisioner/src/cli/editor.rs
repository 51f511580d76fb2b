//! The editor of the user, for one file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context as _;
use bridge::message_text::MessageText;
use engine::StopSignals;
use rustix::process::{Pid, Signal, kill_process};

use super::exit::CliError;
use super::ui::Ui;

/// Variables that name the editor, the first that is set.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];
/// Editor if none is named.
const DEFAULT: &str = "vi";
/// Editors that keep text in other places, whatever the settings of the user are, unless these arguments forbid it.
const WITHOUT_COPIES: [(&str, &str); 3] = [
    ("vim", VIM_ARGUMENTS),
    ("nvim", "-n -i NONE -c 'set noundofile nobackup nowritebackup'"),
    ("gvim", VIM_ARGUMENTS),
];
const VIM_ARGUMENTS: &str = "-f -n -i NONE -c 'set noundofile nobackup nowritebackup'";

/// Opens a file in the editor, and waits until it ends. Its temporary files lie in the folder of the file. A signal ends the editor, and
/// then the command: the result is `None`.
///
/// # Errors
/// The editor cannot be started, or fails.
pub(crate) async fn edit(ui: &Ui, environment: &BTreeMap<String, String>, file: &Path) -> anyhow::Result<Option<()>> {
    let editor = VARIABLES.iter().find_map(|name| environment.get(*name).filter(|editor| !editor.trim().is_empty()));
    let editor = editor.map_or(DEFAULT, String::as_str);
    if editor == DEFAULT && !ui.output.can_ask() {
        return Err(CliError::usage("there is no terminal for an editor", "name a program in EDITOR").into());
    }
    let signals = StopSignals::default();
    let _session = ui.signals.begin_session(&signals, None, Box::new(|_| ()), ui.end_by_signal());
    let mut child = command(editor, file).spawn().with_context(|| format!("the editor {editor} cannot be started"))?;
    let id = Pid::from_child(&child);
    let mut waiting = tokio::task::spawn_blocking(move || child.wait());
    let waited = tokio::select! {
        waited = &mut waiting => waited,
        () = signals.stop.cancelled() => {
            // The process is not reaped yet, so its id is its own.
            kill_process(id, Signal::TERM).ok();
            waiting.await
        }
    };
    let status: ExitStatus =
        waited.context("the wait for the editor ended")?.context("the editor cannot be awaited")?;
    if signals.stop.is_cancelled() {
        return Ok(None);
    }
    if !status.success() {
        let message = MessageText::new(format_args!("the editor {editor} failed: {status}"));
        return Err(CliError::failed(message, "nothing was changed; VISUAL or EDITOR names the editor").into());
    }
    Ok(Some(()))
}

/// Returns the command of an editor. The variable may have arguments, which the shell takes apart, as for git.
#[expect(
    clippy::disallowed_methods,
    reason = "an editor needs the terminal, which `bridge::process` takes from a process"
)]
fn command(editor: &str, file: &Path) -> Command {
    let name = editor.split_whitespace().next().map(Path::new).and_then(Path::file_name).and_then(|name| name.to_str());
    let found = WITHOUT_COPIES.iter().find(|(known, _)| Some(*known) == name);
    let arguments = found.map_or("", |(_, arguments)| arguments);
    let folder = file.parent().unwrap_or(file);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {editor} {arguments} \"$1\"")).arg("sh").arg(file);
    command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, folder)));
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command
}
