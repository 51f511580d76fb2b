//! Test of Pulumi's command line that attaches to a plugin which `sc plugin debug` has started.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tests::sdk_providers::{PASSPHRASE, Repository, Sdk, resource_inputs};

use crate::pulumi::Pulumi;
use crate::states::write_program;

/// Running command. Dropping it kills it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) fn pulumi_attaches_to_a_plugin_that_plugin_debug_starts() {
    let repository = Repository::new(&[Sdk::Go]);
    repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
    let mut debug = repository.command(&["plugin", "debug", Sdk::Go.package(), "-s", "reef"]);
    let mut debug = Running(debug.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(debug.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (variable, address) = line.trim().split_once('=').unwrap();
    assert_eq!(variable, "PULUMI_DEBUG_PROVIDERS");

    let pulumi = Pulumi::new(&repository);
    pulumi.run_successfully(&["stack", "init"]);
    write_program(&pulumi);
    for (arguments, resources) in [(["up", "--yes", "--skip-preview"], 1), (["destroy", "--yes", "--skip-preview"], 0)]
    {
        let mut command = pulumi.command(&arguments, PASSPHRASE);
        // The provider is not on this PATH.
        command.env("PATH", pulumi.cli.path()).env(variable, address);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(repository.home.resources().len(), resources, "{arguments:?}: {text}");
    }
    assert!(debug.0.try_wait().unwrap().is_none(), "the plugin runs on");
    kill_process(Pid::from_child(&debug.0), Signal::INT).unwrap();
    assert_eq!(debug.0.wait().unwrap().code(), Some(0));
}
