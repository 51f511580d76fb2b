//! Messages about plugins that do not start.

use std::error::Error;
use std::io;
use std::time::Duration;

use bridge::plugin::{Checksum, LocalSource, PluginSource, Sandbox, Sha256Digest};

use crate::TestRepository;

const LOAD: &str = "failed to load plugin x: failed to connect to plugin: ";

/// Returns the message about a plugin that is a script. Asserts that it is the same with and without a supervisor.
async fn message_for(script: &str) -> String {
    let mut direct = TestRepository::new();
    direct.script("x", script);
    let mut supervised = TestRepository::supervised();
    supervised.script("x", script);
    let (message, supervised) = (direct.load_error().await.0, supervised.load_error().await.0);
    assert_eq!(message, supervised);
    message
}

#[tokio::test]
async fn output_of_a_plugin_that_exits_is_quoted() {
    let message = message_for("echo 'cannot find libx' >&2; exit 3").await;
    assert_eq!(
        message,
        format!("{LOAD}it exited before it printed its port (exit status 3). Its last output:\n  cannot find libx")
    );
}

#[tokio::test]
async fn first_line_that_is_not_a_port_is_quoted() {
    let quoted = message_for("echo 'Welcome!'; echo 1234; exec sleep 100").await;
    let expected = "expected a port on the first line of its output, got \"Welcome!\". Its last output:\n  1234";
    assert_eq!(quoted, format!("{LOAD}{expected}"));
    let unended = message_for("printf Welcome").await;
    assert_eq!(unended, format!("{LOAD}expected a port on the first line of its output, got \"Welcome\""));
}

/// Shows: plugin-authoring.md#what-a-process-has-to-do "with a line end"
#[tokio::test]
async fn port_without_a_line_end_is_quoted() {
    let printed = "it has printed \"1234\" as its first line of output, without a line end";
    assert_eq!(message_for("printf 1234").await, format!("{LOAD}{printed} before it exited (exit status 0)"));
    let closed = message_for("printf 1234; exec >/dev/null; exec sleep 100").await;
    assert_eq!(closed, format!("{LOAD}{printed} before it closed its output"));
    let mut repository = TestRepository::new();
    repository.script("x", "printf 1234; exec sleep 100").start_timeout = Duration::from_millis(300);
    let (message, hint) = repository.load_error().await;
    assert_eq!(message, format!("{LOAD}{printed} within 0.3 s (startTimeout)"));
    assert!(hint.starts_with("the plugin has to print its port and then a line end"), "{hint}");
}

#[tokio::test]
async fn hashicorp_go_plugin_line_gets_a_hint() {
    let mut repository = TestRepository::new();
    repository.script("x", "echo '1|5|unix|/tmp/plugin1|grpc'; exec sleep 100");
    let hint = repository.load_error().await.1;
    let expected =
        "this looks like HashiCorp's go-plugin protocol: write `protocol: go-plugin` below the name of the plugin";
    assert_eq!(hint, expected);
    let mut repository = TestRepository::new();
    repository.script("x", "echo hello; exec sleep 100");
    assert_eq!(
        repository.load_error().await.1,
        "the first line of output of a Pulumi provider must be its port and nothing else"
    );
}

#[tokio::test]
async fn plugin_that_closes_its_output_is_stopped() {
    assert_eq!(
        message_for("exec >/dev/null; exec sleep 100").await,
        format!("{LOAD}it closed its output before it printed its port")
    );
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the end of the time for a start leaves its process.
#[tokio::test]
async fn plugin_without_port_fails_after_the_start_timeout() {
    let mut repository = TestRepository::new();
    let pid = repository.path("pid");
    let script = format!("echo $$ > '{}'; echo compiling >&2; echo >&2; exec sleep 100", pid.display());
    repository.script("x", &script).start_timeout = Duration::from_millis(300);
    let (message, hint) = repository.load_error().await;
    repository.pool.close().await;
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_err(), "it is left");
    assert_eq!(
        message,
        format!("{LOAD}it has not printed its port within 0.3 s (startTimeout). Its last output:\n  compiling\n  ")
    );
    assert_eq!(hint, "a larger startTimeout gives it more time");
}

#[tokio::test]
async fn program_that_cannot_be_executed_is_diagnosed() {
    let elf = |machine: u8| [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9], &[2, 0, machine, 0], &[0; 44]].concat();
    let foreign = if cfg!(target_arch = "x86_64") { (0xb7, "Linux on arm64") } else { (0x3e, "Linux on amd64") };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let denied = "Permission denied (os error 13)";
    let no_exec = "Exec format error (os error 8)";
    let missing = "No such file or directory (os error 2)";
    let table: [(Vec<u8>, u32, String); 5] = [
        (b"#!/bin/sh\n".to_vec(), 0o644, format!(" (it is not executable; run chmod +x [file]): {denied}")),
        (b"hello".to_vec(), 0o755, format!(" (it is neither a program nor a script that starts with #!): {no_exec}")),
        (elf(foreign.0), 0o755, format!(" (it is built for {}, and this is {os} on {arch}): {no_exec}", foreign.1)),
        (
            b"#!/opt/nowhere/ruby -w\n".to_vec(),
            0o755,
            format!(" (its interpreter /opt/nowhere/ruby is missing): {missing}"),
        ),
        (
            b"#!/bin/sh\r\necho 1\r\n".to_vec(),
            0o755,
            format!(" (its first line ends with a Windows line break; save it with Unix line breaks): {missing}"),
        ),
    ];
    for (content, mode, expected) in table {
        for mut repository in [TestRepository::new(), TestRepository::supervised()] {
            repository.file("x", &content, mode);
            let path = std::fs::canonicalize(repository.path("x")).unwrap();
            let expected = expected.replace("[file]", &path.display().to_string());
            assert_eq!(repository.load_error().await.0, format!("{LOAD}cannot run {}{expected}", path.display()));
        }
    }
}

#[tokio::test]
async fn program_that_cannot_be_executed_is_named_by_its_path_in_the_declared_folder() {
    let content = b"#!/bin/sh\n";
    for checksum in [None, Some(Checksum::One(Sha256Digest::of(content)))] {
        let mut repository = TestRepository::new();
        let folder = repository.path("folder");
        std::fs::create_dir(&folder).unwrap();
        let config = repository.file("x", content, 0o644);
        config.source = PluginSource::Local(LocalSource { checksum, ..LocalSource::new(folder.clone()) });
        std::fs::rename(repository.path("x"), folder.join("pulumi-resource-x")).unwrap();
        let program = std::fs::canonicalize(folder).unwrap().join("pulumi-resource-x");
        let program = program.display();
        assert_eq!(
            repository.load_error().await.0,
            format!(
                "{LOAD}cannot run {program} (it is not executable; run chmod +x {program}): Permission denied (os error 13)"
            )
        );
    }
}

/// The words are those of sudo.
///
/// Shows: hosting.md#sandbox "`sc` names the key that allows it; for calls once, as a warning"
#[tokio::test]
async fn plugin_that_is_refused_new_privileges_gets_a_hint() {
    let script =
        "echo 'sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.' >&2; exit 1";
    let mut repository = TestRepository::supervised();
    repository.script("x", script);
    let expected =
        "the sandbox forbids new privileges; `sandbox: none` below the name of the plugin allows them".to_owned();
    assert_eq!(repository.load_error().await.1, expected);
    let mut repository = TestRepository::supervised();
    repository.script("x", script).sandbox = Sandbox::None;
    assert_eq!(repository.load_error().await.1, "");
}

#[tokio::test]
async fn load_error_keeps_its_first_cause() {
    let mut repository = TestRepository::new();
    repository.file("x", b"#!/bin/sh\n", 0o644);
    let failed = repository.load().await.unwrap_err();
    assert_eq!(failed.to_string(), "failed to load plugin x");
    let causes = std::iter::successors(Some(&failed as &(dyn Error + 'static)), |&error| error.source());
    let first = causes.last().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(first.kind(), io::ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn plugin_that_does_not_listen_on_its_port_fails_after_the_handshake_limit() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut repository = TestRepository::new();
    repository.limits.handshake = Duration::from_millis(200);
    repository.script("x", &format!("echo {port}; exec sleep 100"));
    let message = repository.load_error().await.0;
    assert!(message.starts_with(&format!("{LOAD}the plugin has not replied to Handshake within 0.2 s: ")), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
}

/// Shows: plugin-authoring.md#what-a-process-has-to-do "at 127.0.0.1, not only at `::1`"
#[tokio::test]
async fn plugin_that_listens_with_ipv6_only_is_reported_with_both_addresses() {
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
        eprintln!("SKIPPED: there is no IPv6");
        return;
    };
    let port = listener.local_addr().unwrap().port();
    let mut repository = TestRepository::new();
    repository.limits.handshake = Duration::from_millis(200);
    repository.script("x", &format!("echo {port}; exec sleep 100"));
    let message = repository.load_error().await.0;
    assert!(message.starts_with(&format!("{LOAD}the plugin has not replied to Handshake within 0.2 s: ")), "{message}");
    assert!(message.contains(&format!("nothing listens at 127.0.0.1:{port}")), "{message}");
    assert!(
        message.ends_with(&format!("[::1]:{port} accepts connections; the plugin has to listen at 127.0.0.1")),
        "{message}"
    );
}

#[tokio::test]
async fn plugin_that_hangs_or_exits_in_its_handshake_is_reported() {
    let mut repository = TestRepository::new();
    repository.limits.handshake = Duration::from_millis(500);
    repository.plugin("x", "", &["hang in Handshake"]);
    assert_eq!(repository.load_error().await.0, format!("{LOAD}the plugin has not replied to Handshake within 0.5 s"));
    let mut repository = TestRepository::new();
    repository.plugin("x", "", &["exit in Handshake"]);
    assert_eq!(
        repository.load_error().await.0,
        format!("{LOAD}the plugin x exited during Handshake (exit status 4). Its last output:\n  no licence")
    );
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the digest is checked when a file is fetched, not when
/// it is started.
#[tokio::test]
async fn checksum_mismatch_of_one_plugin_prevents_the_start_of_all() {
    let mut repository = TestRepository::new();
    let mark = repository.path("mark");
    repository.script("good", &format!("touch '{}'", mark.display()));
    let config = repository.script("x", &format!("touch '{}'", mark.display()));
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    source.checksum = Some(Checksum::One("0".repeat(64).parse().unwrap()));
    let (message, hint) = repository.load_error().await;
    assert!(
        message.starts_with(
            "failed to load plugin x: failed to resolve plugin binary: checksum mismatch: expected sha256:000"
        ),
        "{message}"
    );
    assert_eq!(hint, "if the plugin was changed on purpose, declare the new checksum");
    assert!(!mark.exists());
}

#[tokio::test]
async fn endless_first_line_is_cut() {
    let message = message_for("while :; do printf '%01000d' 0; done").await;
    let expected = format!("{LOAD}expected a port on the first line of its output, got \"{}", "0".repeat(200));
    assert!(message.starts_with(&format!("{expected} … (cut)\"")), "{message}");
}
