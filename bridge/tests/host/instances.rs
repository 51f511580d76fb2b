//! Instances of a plugin that does come up: boot, configure, call, abort, close.

use std::sync::Arc;
use std::time::Duration;

use bridge::error::chain;
use bridge::host::{BootRequest, HostEvent, LogMessage, PluginHost, ProviderHost, Severity};
use bridge::plugin::{Checksum, PluginSource, Sha256Digest};
use bridge::process::OutputStream;
use bridge::provider::{ConfigureRequest, CreateRequest, Provider, ProviderError, Views};
use pulumi_proto::resource_id::ResourceId;

use crate::Bench;

fn request(package: &str) -> BootRequest {
    BootRequest { package: package.into(), name: package.into(), ..BootRequest::default() }
}

async fn configured(host: &PluginHost, package: &str) -> Arc<dyn Provider> {
    let provider = host.boot(&request(package)).await.unwrap();
    let urn = format!("urn:pulumi:dev::t::pulumi:providers:{package}::{package}").parse().unwrap();
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Arc::default() }).await.unwrap();
    provider
}

async fn create(provider: &dyn Provider) -> Result<Option<ResourceId>, ProviderError> {
    let urn = "urn:pulumi:dev::t::x:index:Thing::a".parse().unwrap();
    let request = CreateRequest { urn, inputs: Arc::default(), timeout: None, preview: false, views: Views::default() };
    provider.create(request).await.map(|reply| reply.id)
}

/// Waits for something that another process does.
async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it happens");
}

#[tokio::test]
async fn the_instance_that_was_started_first_serves_first_and_others_are_booted() {
    let mut bench = Bench::supervised();
    let starts = bench.path("starts");
    bench.plugin("x", &format!("echo start >> '{}'", starts.display()), &[]);
    let count = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let host = bench.load().await.unwrap();
    assert_eq!(count(), 1);
    let first = configured(&host, "x").await;
    assert_eq!(count(), 1);
    let second = configured(&host, "x").await;
    assert_eq!((count(), first.version(), second.version()), (2, Some("v1.2.3"), Some("v1.2.3")));
    assert!(first.capabilities().accept_secrets && first.capabilities().supports_preview);

    host.close().await;
    let loaded = HostEvent::Loaded { plugin: "x".into(), version: Some("1.2.3".into()) };
    assert_eq!(bench.events.all().iter().filter(|event| **event == loaded).count(), 1);
    let mut calls = bench.calls("x");
    calls.sort();
    let initialize = r#"Initialize ["token"]"#;
    let expected = ["Cancel", "Cancel", "Cleanup", "Cleanup", "Configure", "Configure", initialize, initialize];
    assert_eq!(calls, expected);
    assert!(matches!(create(&*first).await, Err(ProviderError::Died { .. })));
    assert!(host.boot(&request("x")).await.unwrap_err().to_string().contains("the run is ending"));
}

#[tokio::test]
async fn what_a_plugin_says_is_relayed() {
    let mut bench = Bench::new();
    bench.plugin("x", "echo preparing >&2", &[]).pass_env = vec!["NOT_SET".into()];
    let host = bench.load().await.unwrap();
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
        HostEvent::Warning { plugin: "x".into(), message: "passEnv names NOT_SET, which is not set".into() },
        output(OutputStream::Stderr, "preparing"),
        output(OutputStream::Stdout, "ready"),
        HostEvent::Log { plugin: "x".into(), message },
    ];
    until(|| bench.events.all().len() == 5).await;
    for event in expected {
        assert!(bench.events.all().contains(&event), "{event:?} in {:?}", bench.events.all());
    }
    host.close().await;
}

#[tokio::test]
async fn a_plugin_sees_only_what_it_was_given() {
    let mut bench = Bench::new();
    let seen = bench.path("seen");
    let prepare = format!("env > '{}'; pwd >> '{}'", seen.display(), seen.display());
    bench.plugin("x", &prepare, &[]).pass_env = vec!["PASSED".into()];
    let host = bench.load().await.unwrap();
    host.close().await;
    let seen = std::fs::read_to_string(seen).unwrap();
    for line in ["PASSED=yes", "PULUMI_PROJECT=t", "PULUMI_CONFIG={}", "PYTHONUNBUFFERED=1"] {
        assert!(seen.lines().any(|seen| seen == line), "{line} in {seen}");
    }
    assert!(!seen.contains("s3cr3t"));
    assert_eq!(seen.lines().last().unwrap(), bench.path("").to_str().unwrap().trim_end_matches('/'));
}

#[tokio::test]
async fn an_abort_lets_calls_in_flight_answer() {
    let mut bench = Bench::new();
    bench.plugin("x", "", &[]);
    let host = bench.load().await.unwrap();
    let provider = configured(&host, "x").await;
    let (created, ()) = tokio::join!(create(&*provider), async {
        until(|| bench.calls("x").contains(&"Create".to_owned())).await;
        host.abort().await;
    });
    assert_eq!(created.unwrap(), ResourceId::new("cancelled"));
    assert!(host.boot(&request("x")).await.is_err());
    host.close().await;
}

#[tokio::test]
async fn a_plugin_that_dies_fails_its_call_and_leaves_the_others_alone() {
    let mut bench = Bench::new();
    bench.plugin("x", "", &["die in create"]);
    bench.plugin("y", "", &[]);
    let host = bench.load().await.unwrap();
    let (x, y) = (configured(&host, "x").await, configured(&host, "y").await);
    let error = create(&*x).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plugin x ended during Create (exit status 3). Its last words:\n  panic: out of ideas"
    );
    y.cancel().await.unwrap();
    y.close().await;
    host.close().await;
    let warning = "it ended by itself (exit status 3). Its last words:\n  panic: out of ideas".to_owned();
    let warnings = bench.events.all().into_iter().filter(|event| matches!(event, HostEvent::Warning { .. }));
    assert_eq!(warnings.collect::<Vec<_>>(), [HostEvent::Warning { plugin: "x".into(), message: warning }]);
}

#[tokio::test]
async fn a_stubborn_plugin_is_killed_with_all_it_started() {
    let mut bench = Bench::supervised();
    let pipe = bench.path("alive");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Each process of the plugin holds the pipe: its end is the end of the last of them.
    let reader = tokio::task::spawn_blocking({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let prepare = format!("exec 3>'{}'; trap '' INT; (while :; do sleep 1; done) &", pipe.display());
    bench.plugin("x", &prepare, &[]);
    let host = bench.load().await.unwrap();
    host.close().await;
    tokio::time::timeout(Duration::from_secs(20), reader).await.expect("a process is left").unwrap();
}

#[tokio::test]
async fn a_disabled_plugin_is_not_started_and_serves_nothing() {
    let mut bench = Bench::new();
    let mark = bench.path("mark");
    bench.script("x", &format!("touch '{}'", mark.display())).enabled = false;
    let host = bench.load().await.unwrap();
    let error = host.boot(&request("x")).await.unwrap_err();
    assert_eq!(error.to_string(), r#"no enabled plugin serves the package "x""#);
    assert!(!mark.exists());
}

#[tokio::test]
async fn two_plugins_of_one_package_are_told_apart_by_name() {
    let mut bench = Bench::new();
    for name in ["one", "two"] {
        bench.plugin(name, "", &[]).package = "x".parse().unwrap();
    }
    let host = bench.load().await.unwrap();
    let error = host.boot(&request("x")).await.unwrap_err();
    assert_eq!(error.to_string(), r#"several plugins serve the package "x": one, two"#);
    let two = BootRequest { package: "x".into(), name: "two".into(), ..BootRequest::default() };
    host.boot(&two).await.unwrap().cancel().await.unwrap();
    assert_eq!((bench.calls("one").len(), bench.calls("two")), (0, vec!["Cancel".to_owned()]));
    host.close().await;
}

/// How often the schema of a plugin is asked for by three hosts, two of which ask what it says of types. Without sins it is
/// a program of its own, else run by a script.
async fn schemas_asked(pinned: bool, sins: &[&str]) -> usize {
    let mut bench = Bench::new();
    let config = if sins.is_empty() {
        let program = std::fs::read(env!("CARGO_BIN_EXE_bridge-plugin")).unwrap();
        bench.file("x", &program, 0o755)
    } else {
        bench.plugin("x", "", sins)
    };
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    if pinned {
        let digest = Sha256Digest::of(std::fs::read(&source.path).unwrap());
        source.checksum = Some(Checksum::One(digest));
    }
    for asks in [true, true, false] {
        let host = bench.load().await.unwrap();
        if asks {
            match host.type_facts("x").await {
                Ok(types) => {
                    let components = types.iter().filter(|(_, facts)| facts.is_component);
                    let known: Vec<&str> = components.map(|(token, _)| token.as_str()).collect();
                    assert_eq!(known, ["x:index:Pair"]);
                    assert_eq!(host.type_facts("x").await.unwrap(), types);
                }
                Err(error) => {
                    assert_eq!(sins, ["keep the schema"]);
                    assert!(chain(&error).starts_with("plugin x does not say its schema: "), "{}", chain(&error));
                }
            }
        }
        host.close().await;
    }
    bench.calls("x").iter().filter(|call| *call == "GetSchema").count()
}

#[tokio::test]
async fn what_a_schema_says_of_types_is_remembered_by_what_pins_it() {
    assert_eq!(schemas_asked(true, &[]).await, 1);
}

#[tokio::test]
async fn those_of_a_package_that_nothing_pins_are_asked_for_by_every_host() {
    assert_eq!(schemas_asked(false, &[]).await, 2);
}

#[tokio::test]
async fn so_are_those_of_a_script_for_what_it_runs_is_not_pinned() {
    assert_eq!(schemas_asked(true, &["none"]).await, 2);
}

#[tokio::test]
async fn a_failure_to_say_the_schema_is_told_and_not_remembered() {
    assert_eq!(schemas_asked(true, &["keep the schema"]).await, 2);
}

#[tokio::test]
async fn a_plugin_that_leaves_out_its_schema_has_none() {
    let mut bench = Bench::new();
    bench.plugin("x", "", &["leave out the schema"]);
    let host = bench.load().await.unwrap();
    assert!(host.type_facts("x").await.unwrap().is_empty());
    host.close().await;
}

#[tokio::test]
async fn what_several_plugins_of_one_download_say_is_remembered_apart() {
    let mut bench = Bench::new();
    let program = std::fs::read(env!("CARGO_BIN_EXE_bridge-plugin")).unwrap();
    let digest = Sha256Digest::of(&program);
    for name in ["x", "y"] {
        let PluginSource::Local(source) = &mut bench.file(name, &program, 0o755).source else { unreachable!() };
        source.checksum = Some(Checksum::One(digest));
    }
    for _ in 0..2 {
        let host = bench.load().await.unwrap();
        for name in ["x", "y"] {
            host.type_facts(name).await.unwrap();
        }
        host.close().await;
    }
    // Both write down their calls in the same place.
    assert_eq!(bench.calls("x").iter().filter(|call| *call == "GetSchema").count(), 2);
}
