//! Leases: which instances are used again, and which end.

use std::sync::Arc;
use std::time::Duration;

use bridge::host::{HostEvent, PluginHost, ProviderHost as _, ProviderRequest};
use bridge::plugin::{Checksum, Keep, PluginSource, Sandbox, Sha256Digest, StrictSandbox};
use bridge::provider::{
    CheckConfigRequest, CheckRequest, ConfigureRequest, DiffConfigRequest, ParameterizeRequest, Provider,
};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::Urn;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{TestRepository, wait_until};

/// Repository with the plugin `x`, which counts its starts.
pub(crate) fn repository(has_checksum: bool, faults: &[&str]) -> TestRepository {
    let mut repository = TestRepository::supervised();
    let starts = repository.path("starts");
    let config = repository.plugin("x", &format!("echo $$ >> '{}'", starts.display()), faults);
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    if has_checksum {
        source.checksum = Some(Checksum::One(Sha256Digest::of(std::fs::read(&source.path).unwrap())));
    }
    repository
}

/// Returns whether a process is gone, also as a zombie.
pub(crate) fn has_ended(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}

/// Returns the process ids of all started instances.
pub(crate) fn starts(repository: &TestRepository) -> Vec<i32> {
    let text = std::fs::read_to_string(repository.path("starts")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

pub(crate) fn count(repository: &TestRepository, call: &str) -> usize {
    repository.calls("x").iter().filter(|known| *known == call).count()
}

pub(crate) async fn lease(host: &PluginHost, name: &str) -> Arc<dyn Provider> {
    let request = ProviderRequest { package: "x".into(), name: name.into(), ..ProviderRequest::default() };
    host.start_provider(&request).await.unwrap()
}

pub(crate) fn configuration(name: &str, id: &str, inputs: PropertyMap) -> ConfigureRequest {
    let urn = format!("urn:pulumi:dev::t::pulumi:providers:x::{name}").parse().unwrap();
    ConfigureRequest { urn, id: ReferenceId::from(id), inputs: Arc::new(inputs) }
}

/// Leases an instance, configures it, and returns it.
pub(crate) async fn configured(host: &PluginHost, request: ConfigureRequest) -> Arc<dyn Provider> {
    let provider = lease(host, request.urn.name()).await;
    provider.configure(request).await.unwrap();
    provider
}

fn check_request() -> CheckRequest {
    CheckRequest {
        urn: "urn:pulumi:dev::t::x:index:Thing::a".parse().unwrap(),
        olds: Arc::default(),
        news: Arc::default(),
        random_seed: [0; 32],
        autonaming: None,
        preview: false,
    }
}

pub(crate) async fn check(provider: &dyn Provider) {
    provider.check(check_request()).await.unwrap();
}

/// Kills the process of a leased instance, and waits until the host knows: a call reports it.
pub(crate) async fn kill_leased(process: Pid, lease: &dyn Provider) {
    kill_process(process, Signal::KILL).unwrap();
    let error = lease.check(check_request()).await.unwrap_err();
    assert!(error.to_string().contains("killed by signal 9"), "{error}");
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): plugins are killed without a chance to end, and are not
/// reaped.
///
/// Shows: hosting.md#what-is-kept-when "Refresh, preview and update of a run use the same instance if they configure it
///   alike"
/// Shows: hosting.md#what-is-kept-when "Configure is then not sent again."
#[tokio::test]
async fn phases_of_a_run_share_one_process_that_is_configured_once() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    for _ in 0..3 {
        let provider = configured(&host, configuration("p", "1", PropertyMap::new())).await;
        check(&*provider).await;
        provider.close().await;
    }
    assert_eq!((starts(&repository).len(), count(&repository, "Configure"), count(&repository, "Check")), (1, 1, 3));
    assert_eq!(count(&repository, "Cancel"), 0, "the process is told nothing of the phases");
    host.close().await;
    assert_eq!((count(&repository, "Cleanup"), count(&repository, "Cancel")), (1, 1));
}

/// Shows: hosting.md#what-is-kept-when "if they configure it alike: the same provider resource (URN and id), inputs,
///   parameters"
#[tokio::test]
async fn another_configuration_gets_another_process_and_the_first_one_is_kept() {
    let inputs = |zone: &str| PropertyMap::from([("zone".to_owned(), zone.into())]);
    let first = || configuration("p", "1", inputs("n"));
    for other in [
        configuration("q", "1", inputs("n")),
        configuration("p", "2", inputs("n")),
        configuration("p", "1", inputs("s")),
        configuration("p", "1", PropertyMap::new()),
    ] {
        let repository = repository(false, &[]);
        let host = repository.load().await.unwrap();
        for (request, expected) in [(first(), 1), (other.clone(), 2), (first(), 2), (other.clone(), 2)] {
            let provider = configured(&host, request).await;
            check(&*provider).await;
            provider.close().await;
            let counts = (starts(&repository).len(), count(&repository, "Configure"));
            assert_eq!(counts, (expected, expected), "{other:?}");
        }
        host.close().await;
    }
}

#[tokio::test]
async fn two_leases_never_share_a_process() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    let request = || configuration("p", "1", PropertyMap::new());
    let (first, second) = tokio::join!(configured(&host, request()), configured(&host, request()));
    assert_eq!(starts(&repository).len(), 2);
    tokio::join!(first.close(), second.close());
    host.close().await;
}

fn provider_urn(name: &str) -> Urn {
    format!("urn:pulumi:dev::t::pulumi:providers:x::{name}").parse().unwrap()
}

pub(crate) async fn check_config(provider: &dyn Provider, name: &str) {
    let request = CheckConfigRequest { urn: provider_urn(name), olds: Arc::default(), news: Arc::default() };
    provider.check_config(request).await.unwrap();
}

async fn diff_config(provider: &dyn Provider, name: &str) {
    let request = DiffConfigRequest {
        urn: provider_urn(name),
        olds: Arc::default(),
        old_inputs: Arc::default(),
        news: Arc::default(),
        ignore_changes: Vec::new(),
    };
    provider.diff_config(request).await.unwrap();
}

/// Leases an instance as the registration of a provider resource does: with the calls up to Configure.
async fn registered(host: &PluginHost, request: ConfigureRequest) -> Arc<dyn Provider> {
    let name = request.urn.name().to_owned();
    let provider = lease(host, &name).await;
    check_config(&*provider, &name).await;
    diff_config(&*provider, &name).await;
    provider.configure(request).await.unwrap();
    provider
}

fn of_zone(zone: &str) -> ConfigureRequest {
    configuration("p", "1", PropertyMap::from([("zone".to_owned(), zone.into())]))
}

const CHECKS: [&str; 2] = ["CheckConfig", "DiffConfig"];

/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[tokio::test]
async fn run_without_a_changed_configuration_has_one_configured_and_one_unconfigured_process() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    let refresh = configured(&host, of_zone("n")).await;
    check(&*refresh).await;
    refresh.close().await;
    for _ in ["preview", "update"] {
        let provider = registered(&host, of_zone("n")).await;
        check(&*provider).await;
        provider.close().await;
    }
    let expected = [vec!["Configure", "Check", "Check", "Check"], [CHECKS, CHECKS].concat()];
    assert_eq!(repository.calls_of_processes("x"), expected);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "three: those with the old and with the new configuration, and one that checks
///   it"
/// Shows: engine.md#providers "are deleted by an instance with the recorded configuration"
#[tokio::test]
async fn run_with_a_changed_configuration_has_a_process_for_each_and_an_unconfigured_one() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    configured(&host, of_zone("n")).await.close().await;
    for _ in ["preview", "update"] {
        let provider = registered(&host, of_zone("s")).await;
        check(&*provider).await;
        // The old resources are deleted with the old configuration.
        let old = configured(&host, of_zone("n")).await;
        check(&*old).await;
        join_all([provider.close(), old.close()]).await;
    }
    let expected = [
        vec!["Configure", "Check", "Check"],
        vec!["CheckConfig", "DiffConfig", "Configure", "Check", "Check"],
        CHECKS.to_vec(),
    ];
    assert_eq!(repository.calls_of_processes("x"), expected);
    host.close().await;
}

#[tokio::test]
async fn run_without_refresh_and_preview_has_one_process() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    check(&*registered(&host, of_zone("n")).await).await;
    assert_eq!(repository.calls_of_processes("x"), [["CheckConfig", "DiffConfig", "Configure", "Check"]]);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[tokio::test]
async fn configured_lease_checks_a_configuration_on_another_process() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    let provider = registered(&host, of_zone("n")).await;
    join_all((0..16).map(|_| diff_config(&*provider, "p"))).await;
    check_config(&*provider, "p").await;
    let of_configured = vec!["CheckConfig", "DiffConfig", "Configure"];
    let of_unconfigured = [vec!["DiffConfig"; 16], vec!["CheckConfig"]].concat();
    assert_eq!(repository.calls_of_processes("x"), [of_configured, of_unconfigured]);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "After it, it gets CheckConfig and DiffConfig of the same provider resource,
///   also in the next phase, and then the Configure that follows from them."
#[tokio::test]
async fn process_that_has_checked_a_configuration_serves_no_other_lease() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    let checked = lease(&host, "p").await;
    check_config(&*checked, "p").await;
    checked.close().await;
    // One that is loaded from the state, one of another provider resource, and one that replies to GetSchema.
    let loaded = configured(&host, of_zone("n")).await;
    let other = lease(&host, "q").await;
    check_config(&*other, "q").await;
    host.schemas().await.unwrap();
    let of_loaded = vec!["Configure", "GetSchema"];
    assert_eq!(repository.calls_of_processes("x"), [vec!["CheckConfig"], of_loaded, vec!["CheckConfig"]]);
    drop(loaded);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[tokio::test]
async fn parameterized_package_has_an_unconfigured_process_of_its_own() {
    for keep in [Keep::Run, Keep::Never] {
        let mut repository = repository(false, &["serve many packages"]);
        repository.last_plugin().keep = keep;
        let host = repository.load().await.unwrap();
        let parameterized = async || {
            let provider = lease(&host, "p").await;
            let parameters = ParameterizeRequest::Arguments(vec!["y".into()]);
            assert_eq!(provider.parameterize(parameters).await.unwrap().name, "y");
            provider
        };
        let refresh = parameterized().await;
        refresh.configure(of_zone("n")).await.unwrap();
        let registration = parameterized().await;
        check_config(&*registration, "p").await;
        diff_config(&*registration, "p").await;
        check(&*refresh).await;
        let of_refresh = vec!["Parameterize", "Configure", "Check"];
        let of_registration = vec!["Parameterize", "CheckConfig", "DiffConfig"];
        assert_eq!(repository.calls_of_processes("x"), [of_refresh, of_registration], "{keep:?}");
        join_all([refresh.close(), registration.close()]).await;
        host.close().await;
    }
}

/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[tokio::test]
async fn plugin_that_is_never_kept_is_not_configured_before_its_checks_either() {
    let mut repository = repository(false, &[]);
    repository.last_plugin().keep = Keep::Never;
    let host = repository.load().await.unwrap();
    configured(&host, of_zone("n")).await.close().await;
    for _ in ["preview", "update"] {
        registered(&host, of_zone("n")).await.close().await;
    }
    let of_phase = vec!["CheckConfig", "DiffConfig", "Configure", "Cleanup", "Cancel"];
    let of_refresh = vec!["Configure", "Cleanup", "Cancel"];
    assert_eq!(repository.calls_of_processes("x"), [of_refresh, of_phase.clone(), of_phase]);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "After it, it gets CheckConfig and DiffConfig of the same provider resource,
///   also in the next phase, and then the Configure that follows from them."
#[tokio::test]
async fn unconfigured_process_is_given_back_after_the_last_call_of_its_leases() {
    let repository = repository(false, &["wait for the file release in CheckConfig"]);
    let host = repository.load().await.unwrap();
    let (first, second) = (lease(&host, "p").await, lease(&host, "p").await);
    let mut call = Box::pin(check_config(&*first, "p"));
    let has_begun = wait_until(|| count(&repository, "CheckConfig") == 1);
    tokio::select! {
        () = &mut call => panic!("the call hangs"),
        () = has_begun => {}
    }
    let mut other_call = Box::pin(check_config(&*second, "p"));
    let has_begun = wait_until(|| count(&repository, "CheckConfig") == 2);
    tokio::select! {
        () = &mut other_call => panic!("the call hangs"),
        () = has_begun => {}
    }
    first.close().await;
    std::fs::write(repository.path("release"), "").unwrap();
    tokio::join!(call, other_call);
    // The second lease still has the process, and configures it.
    second.configure(of_zone("n")).await.unwrap();
    assert_eq!(repository.calls_of_processes("x"), [["CheckConfig", "CheckConfig", "Configure"]]);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "both start at the same time, and the run waits for one of them"
/// Shows: hosting.md#what-is-kept-when "A second one that fails does not fail the run."
#[tokio::test]
async fn second_process_starts_beside_the_first_one() {
    let mut repository = TestRepository::supervised();
    let starts_file = repository.path("starts");
    // Neither process is ready before both have begun.
    let prepare = "echo $$ >> 'FILE'; while [ $(wc -l < 'FILE') -lt 2 ]; do sleep 0.01; done";
    repository.plugin("x", &prepare.replace("FILE", starts_file.to_str().unwrap()), &[]);
    repository.first_instances = 2;
    let host = repository.load().await.unwrap();
    configured(&host, of_zone("n")).await.close().await;
    registered(&host, of_zone("n")).await.close().await;
    assert_eq!(starts(&repository).len(), 2);
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "both start at the same time, and the run waits for one of them"
/// Shows: hosting.md#what-is-kept-when "A second one that fails does not fail the run."
#[tokio::test]
async fn second_process_that_does_not_start_fails_no_run() {
    let mut repository = TestRepository::supervised();
    let starts_file = repository.path("starts");
    // `mkdir` succeeds for one process only.
    let prepare = "mkdir 'FILE-1' 2> /dev/null || ! mkdir 'FILE-2' 2> /dev/null || exit 3";
    repository.plugin("x", &prepare.replace("FILE", starts_file.to_str().unwrap()), &[]);
    repository.first_instances = 2;
    let host = repository.load().await.unwrap();
    check(&*configured(&host, of_zone("n")).await).await;
    registered(&host, of_zone("n")).await;
    host.close().await;
}

/// Shows: hosting.md#what-is-kept-when "An instance ends when it is given back if the run cancelled it, if it has
///   logged an error, if a Configure has failed, if one of its calls failed without a known effect or was given up"
#[tokio::test]
async fn instance_that_was_used_otherwise_is_not_kept() {
    for (use_of, faults, keep) in [
        ("nothing", &[][..], Keep::Run),
        ("keep: never", &[], Keep::Never),
        ("cancel", &[], Keep::Run),
        ("logged error", &["log an error in Check"], Keep::Run),
        ("abandoned call", &["hang in Check"], Keep::Run),
    ] {
        let mut repository = repository(false, faults);
        repository.last_plugin().keep = keep;
        let host = repository.load().await.unwrap();
        let provider = configured(&host, configuration("p", "1", PropertyMap::new())).await;
        match use_of {
            "cancel" => provider.cancel().await.unwrap(),
            "logged error" => check(&*provider).await,
            "abandoned call" => {
                let call = tokio::time::timeout(Duration::from_millis(50), check(&*provider));
                assert!(call.await.is_err(), "the plugin replies");
            }
            _ => {}
        }
        provider.close().await;
        configured(&host, configuration("p", "1", PropertyMap::new())).await.close().await;
        let expected = if use_of == "nothing" { 1 } else { 2 };
        assert_eq!((starts(&repository).len(), count(&repository, "Configure")), (expected, expected), "{use_of}");
        host.close().await;
    }
}

/// Shows: hosting.md#what-is-kept-when "An idle instance that exits is reported, and replaced by the next lease."
#[tokio::test]
async fn idle_instance_that_dies_is_reported_and_replaced() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    configured(&host, configuration("p", "1", PropertyMap::new())).await.close().await;
    kill_process(Pid::from_raw(starts(&repository)[0]).unwrap(), Signal::KILL).unwrap();
    let warning = HostEvent::Warning {
        plugin: "x".into(),
        message: "it exited unexpectedly (killed by signal 9). Its last output:\n  ready".into(),
    };
    wait_until(|| repository.events.all().contains(&warning)).await;
    let provider = configured(&host, configuration("p", "1", PropertyMap::new())).await;
    check(&*provider).await;
    assert_eq!(starts(&repository).len(), 2);
    host.close().await;
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): the first request after a death fails; a dead instance
/// in use hinders the next start.
#[tokio::test]
async fn dead_instance_that_is_leased_does_not_hinder_the_next_lease() {
    let repository = repository(false, &[]);
    let host = repository.load().await.unwrap();
    let dead = configured(&host, configuration("p", "1", PropertyMap::new())).await;
    let first = Pid::from_raw(starts(&repository)[0]).unwrap();
    kill_leased(first, &*dead).await;
    check(&*configured(&host, configuration("p", "1", PropertyMap::new())).await).await;
    assert_eq!(starts(&repository).len(), 2, "the first request after the death gets a process");
    dead.close().await;
    host.close().await;
}

/// Gap of other hosts (docs/spec/plugin-hosts.md#B.6 and #C.7): a plugin that fails to load leaves the processes of the
/// others.
#[tokio::test]
async fn plugin_that_does_not_start_leaves_no_process_of_the_others() {
    for has_checksum in [true, false] {
        let mut repository = repository(has_checksum, &[]);
        repository.script("y", "while [ ! -s starts ]; do sleep 0.01; done; exit 3");
        let (message, _) = repository.load_error().await;
        assert!(message.starts_with("failed to load plugin y"), "{message}");
        repository.pool.close().await;
        let started = starts(&repository);
        assert_eq!(started.len(), 1, "the other plugin was started");
        assert!(has_ended(Pid::from_raw(started[0]).unwrap()), "with a checksum: {has_checksum}");
    }
}

/// Shows: hosting.md#what-is-kept-when "One that was asked for its schema only serves the next stack of the command, if
///   its package has a checksum or was fetched"
/// Shows: hosting.md#what-is-kept-when "A local plugin without a checksum is never kept for another run"
#[tokio::test]
async fn only_a_verified_plugin_that_was_not_configured_is_kept_for_other_runs() {
    for (has_checksum, expected) in [(true, 1), (false, 3)] {
        let repository = repository(has_checksum, &[]);
        for _ in 0..3 {
            let host = repository.load().await.unwrap();
            host.schemas().await.unwrap();
            host.close().await;
        }
        assert_eq!(starts(&repository).len(), expected, "with a checksum: {has_checksum}");
        repository.pool.close().await;
        assert_eq!(count(&repository, "Cancel"), expected);
    }
    for (has_checksum, expected) in [(true, 1), (false, 2)] {
        let repository = repository(has_checksum, &[]);
        let (first, second) = (repository.load().await.unwrap(), repository.load().await.unwrap());
        assert_eq!(starts(&repository).len(), expected, "two runs at once, with a checksum: {has_checksum}");
        tokio::join!(first.close(), second.close());
        repository.pool.close().await;
    }
    let repository = repository(true, &[]);
    for _ in 0..2 {
        let host = repository.load().await.unwrap();
        configured(&host, configuration("p", "1", PropertyMap::new())).await;
        host.close().await;
    }
    assert_eq!((starts(&repository).len(), count(&repository, "Configure")), (2, 2));
}

/// Shows: hosting.md#what-is-kept-when "One that was asked for its schema only serves the next stack of the command, if
///   its package has a checksum or was fetched"
/// Shows: hosting.md#what-is-kept-when "A local plugin without a checksum is never kept for another run"
#[tokio::test]
async fn another_file_variable_or_sandbox_gets_another_process() {
    let mut repository = repository(true, &[]);
    repository.load().await.unwrap().close().await;
    assert_eq!(starts(&repository).len(), 1);
    repository.last_plugin().pass_env = vec!["PASSED".into()];
    repository.load().await.unwrap().close().await;
    assert_eq!(starts(&repository).len(), 2, "another environment");
    let PluginSource::Local(source) = &mut repository.last_plugin().source else { unreachable!() };
    let text = std::fs::read_to_string(&source.path).unwrap() + "# another file\n";
    std::fs::write(&source.path, &text).unwrap();
    source.checksum = Some(Checksum::One(Sha256Digest::of(text)));
    repository.load().await.unwrap().close().await;
    assert_eq!(starts(&repository).len(), 3, "another file");
    repository.last_plugin().sandbox = Sandbox::None;
    repository.load().await.unwrap().close().await;
    assert_eq!(starts(&repository).len(), 4, "another sandbox");
    let folders = [repository.path(""), env!("CARGO_BIN_EXE_bridge-plugin").into()].to_vec();
    let strict = StrictSandbox { writable: folders, ..StrictSandbox::default() };
    let other_port = StrictSandbox { ports: vec![444], ..strict.clone() };
    for (sandbox, expected) in [(strict.clone(), 5), (other_port, 6), (strict, 6)] {
        repository.last_plugin().sandbox = Sandbox::Strict(sandbox);
        repository.load().await.unwrap().close().await;
        assert_eq!(starts(&repository).len(), expected, "each list is a part of the sandbox");
    }
    repository.pool.close().await;
}

/// Shows: hosting.md#what-is-kept-when "the Engine service of its plugin belongs to that run: log messages, output and
///   the root resource"
#[tokio::test]
async fn log_messages_go_to_the_run_that_has_leased_the_plugin() {
    let repository = repository(true, &[]);
    let logged = |repository: &TestRepository| {
        repository.events.all().iter().filter(|event| matches!(event, HostEvent::Log { .. })).count()
    };
    let first = repository.load().await.unwrap();
    first.close().await;
    let before = repository.events.all().len();
    let other = repository.with_other_events();
    let host = other.load().await.unwrap();
    configured(&host, configuration("p", "1", PropertyMap::new())).await;
    host.close().await;
    assert_eq!((starts(&other).len(), logged(&other), logged(&repository)), (1, 1, 0));
    assert_eq!(repository.events.all().len(), before);
}
