//! Plugins that do not come up: each sin has its message.

use std::error::Error;
use std::io;
use std::time::Duration;

use bridge::plugin::{Checksum, PluginSource};

use crate::Bench;

const LOAD: &str = "failed to load plugin x: failed to connect to plugin: ";

/// The message of a plugin that is a script, direct and under a supervisor: it must be the same.
async fn message(script: &str) -> String {
    let mut direct = Bench::new();
    direct.script("x", script);
    let mut supervised = Bench::supervised();
    supervised.script("x", script);
    let (message, supervised) = (direct.failure().await.0, supervised.failure().await.0);
    assert_eq!(message, supervised);
    message
}

#[tokio::test]
async fn one_that_exits_at_once_is_quoted() {
    let message = message("echo 'cannot find libx' >&2; exit 3").await;
    assert_eq!(
        message,
        format!("{LOAD}it ended before it said its port (exit status 3). Its last words:\n  cannot find libx")
    );
}

#[tokio::test]
async fn one_that_says_something_else_is_quoted() {
    let quoted = message("echo 'Welcome!'; echo 1234; exec sleep 100").await;
    let expected = "expected a port on the first line of its output, got \"Welcome!\". Its last words:\n  1234";
    assert_eq!(quoted, format!("{LOAD}{expected}"));
    let unended = message("printf 1234").await;
    assert_eq!(unended, format!("{LOAD}expected a port on the first line of its output, got \"1234\""));
}

#[tokio::test]
async fn one_that_speaks_another_protocol_is_recognized() {
    let mut bench = Bench::new();
    bench.script("x", "echo '1|5|unix|/tmp/plugin1|grpc'; exec sleep 100");
    let hint = bench.failure().await.1;
    assert_eq!(hint, "this looks like HashiCorp's go-plugin protocol; only Pulumi's own is spoken here");
    let mut bench = Bench::new();
    bench.script("x", "echo hello; exec sleep 100");
    assert_eq!(bench.failure().await.1, "a Pulumi provider says its port, and nothing else, on the first line");
}

#[tokio::test]
async fn one_that_closes_its_output_and_goes_on_is_ended() {
    assert_eq!(
        message("exec >/dev/null; exec sleep 100").await,
        format!("{LOAD}it closed its output before it said its port")
    );
}

#[tokio::test]
async fn one_that_never_says_its_port_is_given_up() {
    let mut bench = Bench::new();
    bench.script("x", "echo compiling >&2; echo >&2; exec sleep 100").start_timeout = Duration::from_millis(300);
    let (message, hint) = bench.failure().await;
    assert_eq!(
        message,
        format!("{LOAD}it has not said its port within 0.3 s (startTimeout). Its last words:\n  compiling\n  ")
    );
    assert_eq!(hint, "a larger startTimeout gives it more time");
}

#[tokio::test]
async fn one_that_cannot_be_run_is_explained() {
    let elf = |machine: u8| [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9], &[2, 0, machine, 0], &[0; 44]].concat();
    let foreign = if cfg!(target_arch = "x86_64") { (0xb7, "Linux on arm64") } else { (0x3e, "Linux on amd64") };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let denied = "Permission denied (os error 13)";
    let no_exec = "Exec format error (os error 8)";
    let table: [(Vec<u8>, u32, String); 4] = [
        (b"#!/bin/sh\n".to_vec(), 0o644, format!(" (it is not executable: chmod +x): {denied}")),
        (b"hello".to_vec(), 0o755, format!(" (it is neither a program nor a script that starts with #!): {no_exec}")),
        (elf(foreign.0), 0o755, format!(" (it is built for {}, and this is {os} on {arch}): {no_exec}", foreign.1)),
        (
            b"#!/opt/nowhere/ruby -w\n".to_vec(),
            0o755,
            " (its interpreter /opt/nowhere/ruby is missing): No such file or directory (os error 2)".to_owned(),
        ),
    ];
    for (content, mode, expected) in table {
        for mut bench in [Bench::new(), Bench::supervised()] {
            bench.file("x", &content, mode);
            let path = std::fs::canonicalize(bench.path("x")).unwrap();
            assert_eq!(bench.failure().await.0, format!("{LOAD}cannot run {}{expected}", path.display()));
        }
    }
}

#[tokio::test]
async fn a_failed_load_keeps_its_first_cause() {
    let mut bench = Bench::new();
    bench.file("x", b"#!/bin/sh\n", 0o644);
    let failed = bench.load().await.unwrap_err();
    assert_eq!(failed.to_string(), "failed to load plugin x");
    let causes = std::iter::successors(Some(&failed as &(dyn Error + 'static)), |&error| error.source());
    let first = causes.last().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(first.kind(), io::ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn one_whose_port_nobody_listens_on_is_given_up() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut bench = Bench::new();
    bench.limits.handshake = Duration::from_millis(200);
    bench.script("x", &format!("echo {port}; exec sleep 100"));
    let message = bench.failure().await.0;
    assert!(message.starts_with(&format!("{LOAD}the plugin has not answered Handshake within 0.2 s: ")), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
}

#[tokio::test]
async fn one_that_hangs_or_dies_in_its_handshake_is_named() {
    let mut bench = Bench::new();
    bench.limits.handshake = Duration::from_millis(500);
    bench.plugin("x", "", &["hang in handshake"]);
    assert_eq!(bench.failure().await.0, format!("{LOAD}the plugin has not answered Handshake within 0.5 s"));
    let mut bench = Bench::new();
    bench.plugin("x", "", &["die in handshake"]);
    assert_eq!(
        bench.failure().await.0,
        format!("{LOAD}the plugin x ended during Handshake (exit status 4). Its last words:\n  no licence")
    );
}

#[tokio::test]
async fn a_package_that_is_not_what_was_declared_lets_no_plugin_start() {
    let mut bench = Bench::new();
    let mark = bench.path("mark");
    bench.script("good", &format!("touch '{}'", mark.display()));
    let config = bench.script("x", &format!("touch '{}'", mark.display()));
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    source.checksum = Some(Checksum::One("0".repeat(64).parse().unwrap()));
    let (message, hint) = bench.failure().await;
    assert!(
        message.starts_with(
            "failed to load plugin x: failed to resolve plugin binary: checksum mismatch: expected sha256:000"
        ),
        "{message}"
    );
    assert_eq!(hint, "if the plugin was changed on purpose, declare the new checksum");
    assert!(!mark.exists());
}
