//! Program that starts supervised processes, for tests that kill it.
//!
//! `supervised run SCRIPT` runs a shell script under supervision, and runs it once more for each line on standard input.
//! Each process is started on a thread of its own, which ends; `started` is printed then. `supervised gate SCRIPT` starts
//! the gate of a script and never releases it, so that the script is not executed. Both print the output of the script
//! and wait until they are killed, or until a script exits.

#![expect(clippy::disallowed_methods, reason = "a program that only tests start; it panics at the first failure")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that only tests start; it panics at the first failure"
)]

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;

use bridge::process::{OutputSink, OutputStream, ProcessSandbox, ProcessSpec, Spawner, Supervisor, run_helper};

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
        let own_id = std::process::id().to_string();
        let arguments = ["__exec", &own_id, "1000", "none", "/bin/sh", "-c", &script];
        let gate = Command::new(own).args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        println!("closed");
        wait_to_be_killed(gate)
    }
    let spawner = Spawner::supervised(Arc::new(Supervisor::start(&own).unwrap()));
    let spec = ProcessSpec {
        program: "/bin/sh".into(),
        arguments: ["-c".into(), script.into()].into(),
        directory: "/".into(),
        environment: std::env::vars_os().collect(),
        sandbox: ProcessSandbox::None,
    };
    loop {
        let (spawner, spec) = (spawner.clone(), spec.clone());
        let started = thread::spawn(move || spawner.spawn(&spec, Arc::new(PrintLines)).unwrap());
        let process = started.join().unwrap();
        println!("started");
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(process.wait_for_exit());
            std::process::exit(1);
        });
        if std::io::stdin().read_line(&mut String::new()).unwrap() == 0 {
            wait_to_be_killed(())
        }
    }
}

fn wait_to_be_killed<T>(_held: T) -> ! {
    loop {
        thread::park();
    }
}
