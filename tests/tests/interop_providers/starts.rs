//! Other ways in which a provider starts than that of Pulumi: it registers itself, or it runs already.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::process::{Child, Stdio};

use serde_json::json;
use tests::sdk_providers::{Call, Repository, SECRET, Sdk, resource_inputs};

use crate::operations::{assert_own_processes, changes};

/// Goes through the life of a stack. Returns the calls of each command.
fn run_life(sdk: Sdk, repository: &Repository) -> Vec<Vec<Call>> {
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    let created = repository.provision();
    let id = repository.id("a");
    assert_eq!(changes(&created), [format!("Create {id}")]);
    assert_eq!(repository.home.resources(), [(id.clone(), json!({"v": "1", "k": "x", "secret": SECRET}))]);
    assert_eq!(repository.entry("a")["outputs"]["out"], "made of 1");

    let (_, unchanged) = repository.run_successfully(&["provision", "-s", "reef", "--yes", "--expect-no-changes"]);
    assert_eq!(changes(&unchanged), [""; 0]);
    assert!(unchanged.iter().any(|call| call.call == "Diff"), "{unchanged:?}");

    repository.declare(&[("a", sdk, resource_inputs("2", "x", "first"))]);
    let updated = repository.provision();
    assert_eq!(changes(&updated), [format!("Update {id}")]);
    assert_eq!(repository.entry("a")["outputs"]["out"], "made of 2");

    let (_, deleted) = repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(changes(&deleted), [format!("Delete {id}")]);
    assert_eq!(repository.home.resources(), []);
    assert_eq!(repository.resources(), [""; 0]);
    vec![created, unchanged, updated, deleted]
}

/// Goes through the life of a stack in each sandbox, with a provider that registers itself.
///
/// Shows: plugin-authoring.md#registering "These files register a provider on Pulumi's SDK."
pub(crate) fn registration(sdk: Sdk) {
    let outside = tempfile::tempdir().unwrap();
    let readable = sdk.install(&outside.path().join("plugin")).outside;
    let registered = || Repository::new(&[sdk]).with_settings(&json!({"protocol": "register"}));
    for (sandbox, repository) in [("basic", registered()), ("strict", registered().in_strict_sandbox(&readable))] {
        // One process checks configurations, and one has a configuration. The first records calls with the SDK of Go only, whose
        // provider receives the Handshake; those of the others have no such call, and no configuration to check.
        let expected = if sdk == Sdk::Go { [2, 2, 2, 1] } else { [2, 1, 1, 1] };
        let processes =
            run_life(sdk, &repository).iter().map(|calls| assert_own_processes(calls).len()).collect::<Vec<_>>();
        assert_eq!(processes, expected, "{sandbox}");
        assert_eq!(repository.processes(), 0, "{sandbox}");
        let (text, _) = repository.run_successfully(&["plugin", "ls", "-s", "reef"]);
        assert!(text.contains(sandbox), "{sandbox}: {text}");
    }
}

/// Declares a provider under another name than the one that it registers with.
///
/// Shows: plugin-authoring.md#registering "An error ends the start: print its message to standard error and exit."
pub(crate) fn refused_registration(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let mut path = format!("plugins/{}", sdk.package());
    if sdk == Sdk::Go {
        path += "/pulumi-resource-peergo";
    }
    let source = json!({"type": "local", "path": path});
    let plugin = json!({"name": "other", "source": source, "passEnv": ["PEER_HOME"], "protocol": "register"});
    let resource = json!({"a": {"type": "other:index:Thing", "config": {}}});
    repository.declare_sections(&json!([plugin]), &resource, &json!({}));
    let (code, text) = repository.run(&["provision", "-s", "reef", "--yes"]);
    let reason = format!("it registers the package \"{}\", but \"other\" is declared", sdk.package());
    // The plugin prints the reason, too.
    let last_output = text.split_once("Its last output:\n").map_or("", |(_, output)| output);
    assert!(code == 1 && text.contains(&reason) && last_output.contains(&reason), "{text}");
    assert_eq!(repository.processes(), 0);
}

/// Provider that the test has started, as a debugger does. Dropping it kills it.
struct RunningProvider {
    child: Child,
    port: u16,
}

impl RunningProvider {
    fn start(sdk: Sdk, repository: &Repository) -> Self {
        let plugin = sdk.install(&repository.folder().join("started-elsewhere"));
        // No process listens at the address of the engine: Attach names the one of the run.
        let mut command = plugin.command();
        command.arg("127.0.0.1:1").env("PEER_HOME", repository.home.folder()).stdout(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                // A process that another test forks has the program open for writing until it executes another one.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                spawned => break spawned.unwrap(),
            }
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    fn assert_runs(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "the provider runs");
    }
}

impl Drop for RunningProvider {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Goes through the life of a stack with a provider that runs already, and whose package is missing.
///
/// Shows: hosting.md#attaching-to-a-running-plugin "receives Configure once in each phase, as from Pulumi"
/// Shows: hosting.md#attaching-to-a-running-plugin "A plugin without Attach is refused, such as one on Pulumi's SDK for
///   Python."
pub(crate) fn attaching(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let mut provider = RunningProvider::start(sdk, &repository);
    fs::remove_dir_all(repository.folder().join("plugins")).unwrap();
    let address = format!("{}:{}", sdk.package(), provider.port);
    let repository = repository.with_variable("PULUMI_DEBUG_PROVIDERS", &address);
    if sdk == Sdk::Python {
        repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
        let (code, text) = repository.run(&["provision", "-s", "reef", "--yes"]);
        let expected =
            "failed to attach to the process that PULUMI_DEBUG_PROVIDERS names: it does not implement Attach";
        assert!(code == 1 && text.contains(expected), "{text}");
        provider.assert_runs();
        return;
    }
    // The preview and the update of each command, and a refresh, if the stack has resources.
    let phases = [2, 3, 3, 2];
    for (calls, phases) in run_life(sdk, &repository).into_iter().zip(phases) {
        assert!(calls.iter().all(|call| call.pid == i32::try_from(provider.child.id()).unwrap()), "{calls:?}");
        let configurations = calls.iter().filter(|call| call.call == "Configure").count();
        // Node's server replies to Configure itself, and does not call the provider.
        assert_eq!(configurations, if sdk == Sdk::Node { 0 } else { phases }, "{calls:?}");
    }
    provider.assert_runs();
}
