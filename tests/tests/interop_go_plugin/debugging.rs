//! A provider behind the unmodified library that `sc plugin debug` starts, and that another command attaches to.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::repository::{Repository, SETTINGS};

const VARIABLE: &str = "SC_REATTACH_PLUGINS";

/// Running `sc plugin debug`. Dropping it kills it.
struct Debug(Child);

impl Debug {
    /// Starts the command, and returns it with the value of the variable that it prints, as a shell reads it.
    fn start(repository: &Repository) -> (Self, String) {
        let mut command = repository.command("plugin debug rec");
        let mut debug = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(debug.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let value = line.trim().strip_prefix(&format!("{VARIABLE}='")).and_then(|value| value.strip_suffix('\''));
        (debug, value.unwrap().to_owned())
    }

    fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Debug {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn provider_that_plugin_debug_starts_is_attached_to() {
    // With TLS in a run: it is started without.
    let repository = Repository::new("", SETTINGS);
    let (debug, value) = Debug::start(&repository);
    assert!(value.contains(r#""Network":"unix""#) && value.contains(r#""ProtocolVersion":1"#), "{value}");
    for (arguments, expected) in [
        ("provision -S", "3 created"),
        ("provision -S --expect-no-changes", "all 3 resources of dev are unchanged"),
        ("destroy --parent --yes -S", "3 deleted"),
    ] {
        let output = repository.command(arguments).env(VARIABLE, &value).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(output.status.success() && text.contains(expected), "{arguments}: {text}");
        assert!(text.contains(&format!("({VARIABLE}), and neither starts nor ends it")), "{arguments}: {text}");
    }
    assert_eq!(debug.interrupt(), Some(0));
    assert_eq!((repository.processes(), repository.socket_folders()), (0, vec![]));
}
