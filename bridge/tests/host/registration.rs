//! Plugins that register themselves: start, registration, refusals, end.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use bridge::host::{HostEvent, PluginHost, ProviderHost as _, ProviderRequest};
use bridge::plugin::{Dialect, Register};
use bridge::process::OutputStream;
use bridge::provider::{ConfigureRequest, CreateRequest, Provider, Views};
use rustix::process::{Pid, test_kill_process};

use crate::leases::check;
use crate::{TestRepository, wait_until};

const LOAD: &str = "failed to load plugin x: failed to connect to plugin: ";

/// Declares the test plugin `x`, which registers itself. It appends its process id to the file `starts`.
fn declare(repository: &mut TestRepository, faults: &[&str]) {
    let prepare = format!("echo $$ >> '{}'", repository.path("starts").display());
    let config = repository.plugin("x", &prepare, faults);
    config.dialect = Dialect::Register(Register::default());
}

/// Returns the process ids of the starts.
fn starts(repository: &TestRepository) -> Vec<i32> {
    let starts = std::fs::read_to_string(repository.path("starts")).unwrap_or_default();
    starts.lines().map(|line| line.parse().unwrap()).collect()
}

async fn configured(host: &PluginHost) -> Arc<dyn Provider> {
    let request = ProviderRequest { package: "x".into(), name: "x".into(), ..ProviderRequest::default() };
    let provider = host.start_provider(&request).await.unwrap();
    let urn = "urn:pulumi:dev::t::pulumi:providers:x::x".parse().unwrap();
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Arc::default() }).await.unwrap();
    provider
}

/// Returns the warnings of the host.
fn warnings(repository: &TestRepository) -> Vec<String> {
    let text = |event| match event {
        HostEvent::Warning { message, .. } => Some(message),
        HostEvent::Log { message, .. } if message.text != "hello" => Some(message.text),
        _ => None,
    };
    repository.events.all().into_iter().filter_map(text).collect()
}

async fn assert_ended(repository: &TestRepository) {
    for process in starts(repository) {
        let process = Pid::from_raw(process).unwrap();
        wait_until(|| test_kill_process(process).is_err()).await;
    }
}

/// Shows: hosting.md#start-protocols "TCP of the loopback interface, or a Unix socket | Cancel, SIGTERM, SIGKILL"
#[tokio::test]
async fn registered_plugin_is_used_and_ended_in_order() {
    let socket_folder = tempfile::tempdir().unwrap();
    let socket = format!("socket={}/s", socket_folder.path().display());
    for faults in [vec![], vec![socket.as_str()]] {
        let mut repository = TestRepository::supervised();
        declare(&mut repository, &faults);
        let host = repository.load().await.unwrap();
        configured(&host).await;
        host.close().await;
        assert_ended(&repository).await;
        let initialize = r#"Initialize ["token"]"#;
        assert_eq!(repository.calls("x"), ["Configure", initialize, "Cleanup", "Cancel", "SIGTERM"], "{faults:?}");
        assert_eq!(warnings(&repository), [""; 0]);
        let stream = OutputStream::Stdout;
        let first_line = HostEvent::Output { plugin: "x".into(), stream, line: "registering".into() };
        assert!(repository.events.all().contains(&first_line));
    }
}

/// Shows: hosting.md#plugins-that-register-themselves "Then it is killed, and another one is started"
/// Shows: hosting.md#plugins-that-register-themselves "A process that exits is not started again"
#[tokio::test]
async fn process_that_does_not_register_in_time_is_killed_and_started_again() {
    for (attempts, starts_expected) in [(1, 1), (3, 3), (5, 4)] {
        let mut repository = TestRepository::new();
        let script = format!("echo $$ >> '{}'; echo waiting >&2; exec sleep 100", repository.path("starts").display());
        let config = repository.script("x", &script);
        config.dialect = Dialect::Register(Register { start_attempts: attempts });
        config.start_timeout = Duration::from_millis(1200);
        let (message, hint) = repository.load_error().await;
        let after = match starts_expected {
            1 => "within 0.3 s".to_owned(),
            starts => format!("in {starts} starts of 0.3 s each"),
        };
        assert_eq!(message, format!("{LOAD}it has not registered, {after}. Its last output:\n  waiting"));
        assert!(hint.contains("calls Register at the socket SC_PLUGIN_HOST"), "{hint}");
        assert_eq!(starts(&repository).len(), starts_expected);
        let warnings = warnings(&repository);
        assert_eq!(warnings.len(), starts_expected - 1);
        if let Some(first) = warnings.first() {
            let expected = "it has not registered within 0.3 s; it is started again (attempt 2 of ";
            assert!(first.starts_with(expected), "{first}");
        }
        assert_ended(&repository).await;
    }
}

/// Shows: hosting.md#plugins-that-register-themselves "Then it is killed, and another one is started"
/// Shows: hosting.md#plugins-that-register-themselves "A process that exits is not started again"
#[tokio::test]
async fn process_that_exits_before_it_registers_is_not_started_again() {
    let mut repository = TestRepository::new();
    let script = format!("echo $$ >> '{}'; echo 'no licence' >&2; exit 3", repository.path("starts").display());
    repository.script("x", &script).dialect = Dialect::Register(Register::default());
    let (message, _) = repository.load_error().await;
    let expected = "it exited before it registered (exit status 3). Its last output:\n  no licence";
    assert_eq!(message, format!("{LOAD}{expected}"));
    assert_eq!(starts(&repository).len(), 1);
}

#[tokio::test]
async fn program_of_another_protocol_is_recognized_by_its_port() {
    let mut repository = TestRepository::new();
    let config = repository.script("x", "echo 41233; exec sleep 100");
    config.dialect = Dialect::Register(Register { start_attempts: 1 });
    config.start_timeout = Duration::from_millis(1200);
    let (_, hint) = repository.load_error().await;
    assert!(hint.contains("remove `protocol: register`"), "{hint}");
}

#[tokio::test]
async fn call_with_the_path_as_authority_is_recognized_by_its_error() {
    let mut repository = TestRepository::new();
    let script = "echo 'RST_STREAM with error code 1: PROTOCOL_ERROR' >&2; exit 1";
    repository.script("x", script).dialect = Dialect::Register(Register::default());
    let (_, hint) = repository.load_error().await;
    assert!(hint.starts_with("set the authority of the call to `localhost`"), "{hint}");
}

/// Shows: hosting.md#plugins-that-register-themselves "The plugin and the user get the reason."
/// Shows: hosting.md#plugins-that-register-themselves "it has a second to report the error, and is killed"
#[tokio::test]
async fn refused_registration_is_reported_to_the_plugin_and_to_the_user() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _other = UnixListener::bind(&socket).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let table = [
        ("register token=x".to_owned(), "Unauthenticated", "the token is not one that this run of sc has issued"),
        ("register name=y".to_owned(), "FailedPrecondition", "registers the package \"y\", but \"x\" is declared"),
        ("register version=?".to_owned(), "InvalidArgument", "which is no version"),
        ("register protocol=2.0".to_owned(), "FailedPrecondition", "it supports version 2.0, but sc supports"),
        ("register no address".to_owned(), "InvalidArgument", "neither a port nor a Unix socket"),
        ("register port=0".to_owned(), "InvalidArgument", "not a number from 1 to 65535"),
        (format!("register port={closed}"), "PermissionDenied", "no process listens at port"),
        (format!("register port={other}"), "PermissionDenied", "does not belong to the plugin"),
        ("register socket=relative".to_owned(), "InvalidArgument", "not an absolute path of less than 108 bytes"),
        ("register socket=/none".to_owned(), "PermissionDenied", "/none is not a socket"),
        (format!("register socket={}", socket.display()), "PermissionDenied", "does not belong to the plugin"),
    ];
    for (fault, code, reason) in table {
        let mut repository = TestRepository::new();
        declare(&mut repository, &[&fault]);
        let (message, _) = repository.load_error().await;
        assert!(message.starts_with(&format!("{LOAD}its registration is refused: ")), "{message}");
        let (to_user, to_plugin) = message.split_once(". Its last output:\n  ").unwrap();
        assert!(to_user.contains(reason), "{message}");
        assert!(to_plugin.starts_with(&format!("{code}: ")) && to_plugin.contains(reason), "{message}");
        assert_eq!(starts(&repository).len(), 1, "{fault}");
        assert_ended(&repository).await;
    }
}

#[tokio::test]
async fn second_registration_is_refused_and_the_first_one_stays() {
    let mut repository = TestRepository::new();
    declare(&mut repository, &["register twice"]);
    let host = repository.load().await.unwrap();
    configured(&host).await;
    let refusal = "the plugin x is registered already: a process registers once";
    assert_eq!(warnings(&repository), [format!("a registration is refused: {refusal}")]);
    let line = format!("AlreadyExists: {refusal}");
    let to_plugin = HostEvent::Output { plugin: "x".into(), stream: OutputStream::Stdout, line };
    assert!(repository.events.all().contains(&to_plugin));
    host.close().await;
}

#[tokio::test]
async fn plugin_that_has_deregistered_and_still_runs_is_not_kept() {
    let mut repository = TestRepository::new();
    declare(&mut repository, &["deregister in Check"]);
    let host = repository.load().await.unwrap();
    let provider = configured(&host).await;
    check(&*provider).await;
    wait_until(|| !warnings(&repository).is_empty()).await;
    provider.close().await;
    configured(&host).await;
    assert_eq!(starts(&repository).len(), 2);
    host.close().await;
    assert_ended(&repository).await;
}

/// Shows: hosting.md#plugins-that-register-themselves "A plugin that deregisters while it is used counts as gone"
#[tokio::test]
async fn plugin_that_deregisters_during_a_lease_is_gone() {
    let mut repository = TestRepository::new();
    declare(&mut repository, &["deregister in Create"]);
    let host = repository.load().await.unwrap();
    let provider = configured(&host).await;
    let urn = "urn:pulumi:dev::t::x:index:Thing::a".parse().unwrap();
    let request = CreateRequest { urn, inputs: Arc::default(), timeout: None, preview: false, views: Views::default() };
    let error = provider.create(request).await.unwrap_err().to_string();
    assert!(error.starts_with("the plugin x exited during Create (exit status 0)"), "{error}");
    let expected = "it has deregistered: sc does not use it any more, and calls in flight fail";
    assert_eq!(warnings(&repository), [expected]);
    // The next lease gets another process.
    configured(&host).await;
    assert_eq!(starts(&repository).len(), 2);
    host.close().await;
    assert_ended(&repository).await;
}
