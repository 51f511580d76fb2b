//! Program that starts supervised processes, for tests that kill it.
//!
//! `supervised run SCRIPT` runs a shell script under supervision, and runs it once more for each line on standard input.
//! Each process is started on a thread of its own, which ends; `started` is printed then. `supervised gate SCRIPT` starts
//! the gate of a script and never releases it, so that the script is not executed. Both print the output of the script
//! and wait until they are killed, or until a script exits. `supervised keep SCRIPT` is `run`, but prints `ended` when a script
//! exits, and goes on; before, it starts a command of its own, prints `command PID`, and prints `command ended` when it exits.

#![expect(clippy::disallowed_methods, reason = "a program that only tests start; it panics at the first failure")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that only tests start; it panics at the first failure"
)]

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;

use bridge::process::{OutputSink, OutputStream, ProcessSandbox, ProcessSpec, Spawner, Supervision, run_helper};

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
    if mode == "keep" {
        run_command();
    }
    let spawner = Spawner::supervised(Arc::new(Supervision::new(&own).unwrap()));
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
        let goes_on = mode == "keep";
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(process.wait_for_exit());
            if !goes_on {
                std::process::exit(1);
            }
            println!("ended");
        });
        if std::io::stdin().read_line(&mut String::new()).unwrap() == 0 {
            wait_to_be_killed(())
        }
    }
}

/// Runs a command that ends with this process.
fn run_command() {
    let mut command = Command::new("cat");
    let command = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut command = command.spawn().unwrap();
    println!("command {}", command.id());
    thread::spawn(move || {
        let _stdin = command.stdin.take();
        command.wait().unwrap();
        println!("command ended");
    });
}

fn wait_to_be_killed<T>(_held: T) -> ! {
    loop {
        thread::park();
    }
}
