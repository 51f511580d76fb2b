//! Instances of a working plugin: start, configure, call, cancel, close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bridge::error::chain;
use bridge::host::{HostEvent, LogMessage, PluginHost, ProviderHost, ProviderRequest, Severity};
use bridge::plugin::{Checksum, PluginSource, Sha256Digest};
use bridge::process::OutputStream;
use bridge::provider::{ConfigureRequest, CreateRequest, Provider, ProviderError, SchemaRequest, Views};
use pulumi_proto::resource_id::ResourceId;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{TestRepository, wait_until};

fn request(package: &str) -> ProviderRequest {
    ProviderRequest { package: package.into(), name: package.into(), ..ProviderRequest::default() }
}

async fn configured(host: &PluginHost, package: &str) -> Arc<dyn Provider> {
    let provider = host.start_provider(&request(package)).await.unwrap();
    let urn = format!("urn:pulumi:dev::t::pulumi:providers:{package}::{package}").parse().unwrap();
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Arc::default() }).await.unwrap();
    provider
}

async fn create(provider: &dyn Provider) -> Result<Option<ResourceId>, ProviderError> {
    let urn = "urn:pulumi:dev::t::x:index:Thing::a".parse().unwrap();
    let request = CreateRequest { urn, inputs: Arc::default(), timeout: None, preview: false, views: Views::default() };
    provider.create(request).await.map(|reply| reply.id)
}

#[tokio::test]
async fn first_instance_is_used_first_and_further_instances_are_started() {
    let mut repository = TestRepository::supervised();
    let starts = repository.path("starts");
    repository.plugin("x", &format!("echo start >> '{}'", starts.display()), &[]);
    let count = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let host = repository.load().await.unwrap();
    assert_eq!(count(), 1);
    let first = configured(&host, "x").await;
    assert_eq!(count(), 1);
    let second = configured(&host, "x").await;
    assert_eq!((count(), first.version(), second.version()), (2, Some("v1.2.3"), Some("v1.2.3")));
    assert!(first.capabilities().accept_secrets && first.capabilities().supports_preview);

    host.close().await;
    let loaded = HostEvent::Loaded { plugin: "x".into(), version: Some("1.2.3".into()), sandbox: "basic".into() };
    assert_eq!(repository.events.all().iter().filter(|event| **event == loaded).count(), 1);
    let mut calls = repository.calls("x");
    calls.sort();
    let initialize = r#"Initialize ["token"]"#;
    let expected = ["Cancel", "Cancel", "Cleanup", "Cleanup", "Configure", "Configure", initialize, initialize];
    assert_eq!(calls, expected);
    assert_eq!(create(&*first).await.unwrap_err().to_string(), "the plugin x is closed");
    assert!(host.start_provider(&request("x")).await.unwrap_err().to_string().contains("the run is stopping"));
}

#[tokio::test]
async fn output_and_log_messages_of_a_plugin_are_emitted() {
    let mut repository = TestRepository::new();
    repository.plugin("x", "echo preparing >&2", &[]).pass_env = vec!["NOT_SET".into()];
    let host = repository.load().await.unwrap();
    configured(&host, "x").await;
    let output = |stream, line: &str| HostEvent::Output { plugin: "x".into(), stream, line: line.into() };
    let message = LogMessage {
        severity: Severity::Warning,
        text: "hello".into(),
        urn: Some("u".into()),
        stream_id: 7,
        ephemeral: true,
    };
    let expected = [
        HostEvent::Warning {
            plugin: "x".into(),
            message: "the environment variable NOT_SET in passEnv is not set".into(),
        },
        output(OutputStream::Stderr, "preparing"),
        output(OutputStream::Stdout, "ready"),
        HostEvent::Log { plugin: "x".into(), message },
    ];
    wait_until(|| repository.events.all().len() == 5).await;
    for event in expected {
        assert!(repository.events.all().contains(&event), "{event:?} in {:?}", repository.events.all());
    }
    host.close().await;
}

/// Shows: hosting.md#sandbox "`sc` names the key that allows it; for calls once, as a warning"
#[tokio::test]
async fn call_that_the_sandbox_may_have_failed_is_explained_once() {
    let mut repository = TestRepository::supervised();
    repository.plugin("x", "", &["run sudo in Create"]);
    let host = repository.load().await.unwrap();
    let provider = configured(&host, "x").await;
    for _ in 0..2 {
        assert!(create(&*provider).await.unwrap_err().to_string().contains("no new privileges"));
    }
    host.close().await;
    let is_hint =
        |event: &&HostEvent| matches!(event, HostEvent::Warning { message, .. } if message.contains("sandbox"));
    assert_eq!(repository.events.all().iter().filter(is_hint).count(), 1);
}

#[tokio::test]
async fn plugin_receives_only_declared_environment_variables() {
    let mut repository = TestRepository::new();
    let seen = repository.path("seen");
    let prepare = format!("env > '{}'; pwd >> '{}'", seen.display(), seen.display());
    repository.plugin("x", &prepare, &[]).pass_env = vec!["PASSED".into()];
    let host = repository.load().await.unwrap();
    host.close().await;
    let seen = std::fs::read_to_string(seen).unwrap();
    for line in ["PASSED=yes", "PULUMI_PROJECT=t", "PULUMI_CONFIG={}", "PYTHONUNBUFFERED=1"] {
        assert!(seen.lines().any(|seen| seen == line), "{line} in {seen}");
    }
    assert!(!seen.contains("s3cr3t"));
    assert_eq!(seen.lines().last().unwrap(), repository.path("").to_str().unwrap().trim_end_matches('/'));
}

#[tokio::test]
async fn calls_in_flight_return_after_cancel() {
    let mut repository = TestRepository::new();
    repository.plugin("x", "", &[]);
    let host = repository.load().await.unwrap();
    let provider = configured(&host, "x").await;
    let (created, ()) = tokio::join!(create(&*provider), async {
        wait_until(|| repository.calls("x").contains(&"Create".to_owned())).await;
        provider.cancel().await.unwrap();
    });
    assert_eq!(created.unwrap(), ResourceId::new("cancelled"));
    host.close().await;
    assert!(host.start_provider(&request("x")).await.is_err());
}

#[tokio::test]
async fn exited_plugin_fails_its_call_and_other_plugins_continue() {
    let mut repository = TestRepository::new();
    repository.plugin("x", "", &["exit in Create"]);
    repository.plugin("y", "", &[]);
    let host = repository.load().await.unwrap();
    let (x, y) = (configured(&host, "x").await, configured(&host, "y").await);
    let error = create(&*x).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plugin x exited during Create (exit status 3). Its last output:\n  panic: index out of range"
    );
    y.cancel().await.unwrap();
    y.close().await;
    host.close().await;
    // The failed call has reported the exit.
    assert_eq!(warnings(&repository), Vec::<String>::new());
}

fn warnings(repository: &TestRepository) -> Vec<String> {
    let message = |event| match event {
        HostEvent::Warning { message, .. } => Some(message),
        _ => None,
    };
    repository.events.all().into_iter().filter_map(message).collect()
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): plugins are killed without a chance to end, and are not
/// reaped.
///
/// Shows: plugin-authoring.md#what-a-process-has-to-do "End on an interrupt signal. After 5 s it is killed"
#[tokio::test]
async fn plugin_that_ignores_sigint_is_killed_with_its_children() {
    let mut repository = TestRepository::supervised();
    let pipe = repository.path("alive");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Each process of the plugin holds the pipe open: end of file means that all have exited.
    let reader = tokio::task::spawn_blocking({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let prepare = format!("exec 3>'{}'; trap '' INT; (while :; do sleep 1; done) &", pipe.display());
    repository.plugin("x", &prepare, &[]);
    let host = repository.load().await.unwrap();
    host.close().await;
    tokio::time::timeout(Duration::from_secs(20), reader).await.expect("a process is left").unwrap();
}

/// A stopped plugin replies to no call and handles no SIGINT: without an abort, Cleanup, Cancel and the exit are waited
/// for.
///
/// Shows: engine.md#stop-and-abort "an abort takes less than two seconds even if a plugin is stopped"
#[tokio::test]
async fn abort_ends_the_wait_for_a_stopped_plugin() {
    let mut repository = TestRepository::supervised();
    let pid = repository.path("pid");
    repository.plugin("x", &format!("echo $$ > '{}'", pid.display()), &[]);
    let host = repository.load().await.unwrap();
    configured(&host, "x").await;
    let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let started = Instant::now();
    let abort = async {
        // The plugin is being closed already.
        tokio::task::yield_now().await;
        repository.abort.cancel();
    };
    tokio::join!(host.close(), abort);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(test_kill_process(pid).is_err(), "the plugin is left");
}

/// Shows: server-yaml.md#plugins "a disabled plugin is neither fetched nor started"
#[tokio::test]
async fn disabled_plugin_is_not_started_and_serves_no_package() {
    let mut repository = TestRepository::new();
    let mark = repository.path("mark");
    repository.script("x", &format!("touch '{}'", mark.display())).enabled = false;
    let host = repository.load().await.unwrap();
    let error = host.start_provider(&request("x")).await.unwrap_err();
    assert_eq!(error.to_string(), r#"no enabled plugin serves the package "x""#);
    assert!(!mark.exists());
}

#[tokio::test]
async fn provider_name_selects_among_plugins_of_one_package() {
    let mut repository = TestRepository::new();
    for name in ["one", "two"] {
        repository.plugin(name, "", &[]).package = "x".parse().unwrap();
    }
    let host = repository.load().await.unwrap();
    let error = host.start_provider(&request("x")).await.unwrap_err();
    assert_eq!(error.to_string(), r#"several plugins serve the package "x": one, two"#);
    let two = ProviderRequest { package: "x".into(), name: "two".into(), ..ProviderRequest::default() };
    let provider = host.start_provider(&two).await.unwrap();
    provider.schema(SchemaRequest::default()).await.unwrap();
    assert_eq!((repository.calls("one").len(), repository.calls("two")), (0, vec!["GetSchema".to_owned()]));
    host.close().await;
}

/// Loads three hosts, requests the package types of two, and returns the number of GetSchema calls. Without faults the
/// plugin is a binary; with faults it is started by a script.
async fn count_schema_calls(has_checksum: bool, faults: &[&str]) -> usize {
    let mut repository = TestRepository::new();
    let config = if faults.is_empty() {
        let program = std::fs::read(env!("CARGO_BIN_EXE_bridge-plugin")).unwrap();
        repository.file("x", &program, 0o755)
    } else {
        repository.plugin("x", "", faults)
    };
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    if has_checksum {
        let digest = Sha256Digest::of(std::fs::read(&source.path).unwrap());
        source.checksum = Some(Checksum::One(digest));
    }
    for requests_types in [true, true, false] {
        let host = repository.load().await.unwrap();
        if requests_types {
            match host.package_types("x").await {
                Ok(types) => {
                    let components = types.tokens().filter(|token| types.get(token).unwrap().is_component);
                    assert_eq!(components.collect::<Vec<_>>(), ["x:index:Pair"]);
                    assert!(host.package_types("x").await.unwrap().tokens().eq(types.tokens()));
                }
                Err(error) => {
                    assert_eq!(faults, ["fail GetSchema"]);
                    assert!(chain(&error).starts_with("cannot get the schema of plugin x: "), "{}", chain(&error));
                }
            }
        }
        host.close().await;
    }
    repository.calls("x").iter().filter(|call| *call == "GetSchema").count()
}

/// Shows: server-yaml.md#plugins "of a local plugin with a `checksum`, is requested once and remembered"
#[tokio::test]
async fn types_of_a_plugin_with_checksum_are_cached() {
    assert_eq!(count_schema_calls(true, &[]).await, 1);
}

#[tokio::test]
async fn types_of_a_plugin_without_checksum_are_not_cached() {
    assert_eq!(count_schema_calls(false, &[]).await, 2);
}

/// Shows: server-yaml.md#plugins "The schema of a local executable that begins with `#!` is requested at each run"
#[tokio::test]
async fn types_of_a_script_plugin_are_not_cached() {
    assert_eq!(count_schema_calls(true, &["none"]).await, 2);
}

#[tokio::test]
async fn failed_get_schema_is_reported_and_not_cached() {
    assert_eq!(count_schema_calls(true, &["fail GetSchema"]).await, 2);
}

#[tokio::test]
async fn plugin_without_get_schema_has_no_types() {
    let mut repository = TestRepository::new();
    repository.plugin("x", "", &["do not implement GetSchema"]);
    let host = repository.load().await.unwrap();
    assert!(!host.package_types("x").await.unwrap().has_resources());
    host.close().await;
}

#[tokio::test]
async fn types_of_plugins_from_one_download_are_cached_separately() {
    let mut repository = TestRepository::new();
    let program = std::fs::read(env!("CARGO_BIN_EXE_bridge-plugin")).unwrap();
    let digest = Sha256Digest::of(&program);
    for name in ["x", "y"] {
        let PluginSource::Local(source) = &mut repository.file(name, &program, 0o755).source else { unreachable!() };
        source.checksum = Some(Checksum::One(digest));
    }
    for _ in 0..2 {
        let host = repository.load().await.unwrap();
        for name in ["x", "y"] {
            host.package_types(name).await.unwrap();
        }
        host.close().await;
    }
    // Both plugins record their calls in the same file.
    assert_eq!(repository.calls("x").iter().filter(|call| *call == "GetSchema").count(), 2);
}

/// Shows: server-yaml.md#checks-without-a-cloud "not at all if the cache has their types"
#[tokio::test]
async fn checked_plugin_is_started_unless_its_types_are_cached_and_never_configured() {
    let mut repository = TestRepository::new();
    let program = std::fs::read(env!("CARGO_BIN_EXE_bridge-plugin")).unwrap();
    let PluginSource::Local(source) = &mut repository.file("x", &program, 0o755).source else { unreachable!() };
    source.checksum = Some(Checksum::One(Sha256Digest::of(&program)));
    let starts = |repository: &TestRepository| {
        let calls = repository.calls("x");
        assert!(!calls.iter().any(|call| call.contains("Configure") || call.contains("Check")), "{calls:?}");
        // Each instance is asked to stop.
        calls.iter().filter(|call| *call == "Cancel").count()
    };
    for _ in 0..2 {
        assert!(repository.check(true).await[0].as_ref().unwrap().has_resources());
        assert_eq!(starts(&repository), 1);
    }
    // Without types, only a start shows that the plugin works.
    assert!(!repository.check(false).await[0].as_ref().unwrap().has_resources());
    assert_eq!(starts(&repository), 2);
}

/// Shows: server-yaml.md#checks-without-a-cloud "A plugin that cannot be fetched or started is a mistake at its
///   declaration; the others are checked."
#[tokio::test]
async fn each_plugin_is_checked_even_if_others_fail() {
    let mut repository = TestRepository::new();
    repository.script("broken", "exit 3");
    repository.plugin("x", "", &["none"]);
    let PluginSource::Local(source) = &mut repository.plugin("missing", "", &["none"]).source else { unreachable!() };
    source.path = "nowhere".into();
    let checked = repository.check(true).await;
    let errors: Vec<bool> = checked.iter().map(Result::is_err).collect();
    assert_eq!(errors, [true, false, true], "{checked:?}");
    for (checked, name) in [(&checked[0], "broken"), (&checked[2], "missing")] {
        assert!(checked.as_ref().unwrap_err().starts_with(&format!("failed to load plugin {name}: ")), "{checked:?}");
    }
}
