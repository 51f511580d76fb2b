//! Tests of the process: arguments, port, shutdown.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use pulumi_proto::rpc::resource_provider_client::ResourceProviderClient;
use rustix::process::{Pid, Signal, kill_process};

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pulumi-resource-files"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[tokio::test]
async fn process_prints_its_port_and_exits_successfully_on_interrupt() {
    // No engine listens at this address, which must have no effect.
    let mut child = start(&["127.0.0.1:1"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.trim_end_matches('\n').parse().unwrap();
    let mut client = ResourceProviderClient::connect(format!("http://127.0.0.1:{port}")).await.unwrap();
    assert_eq!(client.get_plugin_info(()).await.unwrap().into_inner().version, env!("CARGO_PKG_VERSION"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap();
    assert!(status.unwrap().success());
}

#[test]
fn invalid_arguments_and_help_print_the_usage() {
    for arguments in [&["127.0.0.1:1", "127.0.0.1:2"][..], &["--help"]] {
        let output = start(arguments).wait_with_output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("usage: pulumi-resource-files"));
    }
    let output = start(&["no address"]).wait_with_output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("no address"));
}
