//! Program that starts supervised processes, for tests that kill it.
//!
//! `supervised run SCRIPT` runs a shell script under supervision. `supervised gate SCRIPT` starts the gate of a script
//! and never releases it, so that the script is not executed. Both print the output of the script and wait until they
//! are killed.

#![expect(clippy::disallowed_methods, reason = "a program that only tests start; it panics at the first failure")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that only tests start; it panics at the first failure"
)]

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use bridge::process::{OutputSink, OutputStream, ProcessSpec, Spawner, Supervisor, run_helper};

struct PrintLines;

impl OutputSink for PrintLines {
    fn line(&self, _: OutputStream, line: &str) {
        println!("{line}");
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if let Some(code) = run_helper(arguments.by_ref()) {
        return code;
    }
    let mut arguments = std::env::args().skip(1);
    let (mode, script) = (arguments.next().unwrap(), arguments.next().unwrap());
    let own = std::env::current_exe().unwrap();
    if mode == "gate" {
        let gate = Command::new(own).args(["__exec", "/bin/sh", "-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        println!("closed");
        wait_to_be_killed(gate)
    } else {
        let spawner = Spawner::supervised(Arc::new(Supervisor::start(&own).unwrap()));
        let spec = ProcessSpec {
            program: "/bin/sh".into(),
            arguments: ["-c".into(), script.into()].into(),
            directory: "/".into(),
            environment: std::env::vars_os().collect(),
        };
        wait_to_be_killed(spawner.spawn(&spec, Arc::new(PrintLines)).unwrap())
    }
}

fn wait_to_be_killed<T>(_held: T) -> ! {
    loop {
        std::thread::park();
    }
}
