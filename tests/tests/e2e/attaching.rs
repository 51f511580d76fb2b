//! Plugins that run already, in PULUMI_DEBUG_PROVIDERS and SC_REATTACH_PLUGINS.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use tests::binaries;

use crate::repository::{Repository, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a.txt, content: hello } }";

/// Running plugin `files`, which the test has started. Dropping it kills it.
struct RunningPlugin {
    child: Child,
    port: u16,
}

impl RunningPlugin {
    fn start(repository: &Repository) -> Self {
        let mut command = Command::new(binaries::files_plugin().unwrap());
        let mut child = command.current_dir(repository.path("")).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Returns a repository with a plugin `files` whose program is missing.
fn repository(keys: &str) -> Repository {
    let plugins =
        format!("- {{ name: files, source: {{ type: local, path: not-built }}, config: {{ root: site }}{keys} }}");
    Repository::new(Sections { plugins: &plugins, resources: PAGE, ..Sections::default() })
}

fn sc(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.envs(variables.iter().copied());
    repository.start_command(command).output()
}

/// Shows: hosting.md#attaching-to-a-running-plugin "Each run names the process in a warning."
/// Shows: hosting.md#attaching-to-a-running-plugin "`sc` neither starts nor ends the process"
#[test]
fn running_plugin_is_attached_to_with_a_warning_and_runs_on() {
    for (keys, variable) in [("", "PULUMI_DEBUG_PROVIDERS"), (", protocol: go-plugin", "SC_REATTACH_PLUGINS")] {
        let repository = repository(keys);
        // Without a preview: the plugin refuses a second Configure.
        for arguments in ["provision -S", "provision -S", "destroy --parent --yes -S"] {
            let mut plugin = RunningPlugin::start(&repository);
            let port = plugin.port;
            let value = match variable {
                "PULUMI_DEBUG_PROVIDERS" => format!("other:1,files:{port}"),
                _ => record(&plugin),
            };
            let output = sc(&repository, arguments, &[(variable, &value)]);
            assert!(output.starts_with("exit 0\n"), "{output}");
            let warning = format!(
                "warning: plugin files: sc uses the process at port {port} ({variable}), and neither starts nor ends it"
            );
            assert_eq!(output.matches(&warning).count(), 1, "{output}");
            assert_eq!(repository.path("site/a.txt").exists(), arguments.starts_with("provision"));
            assert!(plugin.child.try_wait().unwrap().is_none(), "the plugin runs");
        }
        assert_eq!(repository.processes(), []);
    }
}

/// Returns the value of SC_REATTACH_PLUGINS for a plugin.
fn record(plugin: &RunningPlugin) -> String {
    let address = serde_json::json!({ "Network": "tcp", "String": format!("127.0.0.1:{}", plugin.port) });
    let record = serde_json::json!({
        "Protocol": "grpc", "ProtocolVersion": 1, "Pid": plugin.child.id(), "Test": true, "Addr": address,
    });
    serde_json::json!({ "files": record }).to_string()
}

/// Shows: hosting.md#attaching-to-a-running-plugin "An invalid value ends the command with exit code 2."
#[test]
fn invalid_variable_is_wrong_usage() {
    let repository = repository("");
    insta::assert_snapshot!(sc(&repository, "provision", &[("PULUMI_DEBUG_PROVIDERS", "files:1,aws")]), @r#"
    exit 2
    --- out
    --- err
    error: the variable PULUMI_DEBUG_PROVIDERS is invalid: entry 2 is "aws", without a port
      hint: its form is NAME:PORT, with commas between several
    "#);
    let record = r#"{"files":{"Protocol":"netrpc"}}"#;
    insta::assert_snapshot!(sc(&repository, "provision", &[("SC_REATTACH_PLUGINS", record)]), @r#"
    exit 2
    --- out
    --- err
    error: the variable SC_REATTACH_PLUGINS is invalid: files.Protocol is not "grpc": sc does not support net/rpc
      hint: its form is {"NAME":{"Protocol":"grpc","ProtocolVersion":1,"Pid":7,"Addr":{"Network":"unix","String":"/PATH"}}}
    "#);
}
