//! Tests of the endpoints that plugins call: accounts of their callers, and limits; and the account that a
//! plugin's port belongs to.

use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bridge::error::chain;
use bridge::host::{ConnectionGuard, EndpointLimits, HostEvent, HostEvents, MonitorEndpoint};
use futures_util::future::join_all;
use pulumi_proto::rpc::resource_monitor_client::ResourceMonitorClient;
use pulumi_proto::rpc::{RegisterResourceRequest, SupportsFeatureRequest};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::monitor::Recorder;
use crate::{Events, TestRepository};

/// Endpoint of a monitor with these limits, and the events of its guard.
struct LimitedEndpoint {
    endpoint: MonitorEndpoint,
    events: Arc<Events>,
}

impl LimitedEndpoint {
    async fn serve(monitor: Recorder, limits: EndpointLimits) -> Self {
        let events = Arc::<Events>::default();
        let guard = ConnectionGuard::new(limits);
        guard.report_to(&(events.clone() as Arc<dyn HostEvents>));
        let endpoint = MonitorEndpoint::serve(Arc::new(monitor), PathBuf::new(), Arc::new(guard)).await.unwrap();
        Self { endpoint, events }
    }

    async fn connect(&self) -> ResourceMonitorClient<Channel> {
        self.try_connect().await.unwrap()
    }

    async fn try_connect(&self) -> Result<ResourceMonitorClient<Channel>, tonic::transport::Error> {
        ResourceMonitorClient::connect(format!("http://{}", self.endpoint.address())).await
    }
}

async fn supports_secrets(client: &mut ResourceMonitorClient<Channel>) -> Result<bool, Status> {
    let reply = client.supports_feature(SupportsFeatureRequest { id: "secrets".into() }).await;
    reply.map(|reply| reply.into_inner().has_support)
}

fn registration(name: &str) -> RegisterResourceRequest {
    RegisterResourceRequest { r#type: "t:i:T".into(), name: name.into(), ..RegisterResourceRequest::default() }
}

/// Copies a program into a folder that every account can read.
fn copy_for_all(program: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("program");
    std::fs::copy(program, &copy).unwrap();
    (folder, copy)
}

/// Starts a program under an account. Tries again while the file is busy: a process that another test has just forked may
/// hold the copy open for writing.
fn start_as(uid: u32, command: &mut Command) -> Child {
    loop {
        match command.uid(uid).spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            started => return started.unwrap(),
        }
    }
}

/// Runs the client program under an account.
async fn call_as(uid: u32, address: &str) -> Output {
    let (_folder, program) = copy_for_all(env!("CARGO_BIN_EXE_bridge-caller"));
    let address = address.to_owned();
    let run = move || {
        let mut command = Command::new(program);
        start_as(uid, command.arg(address).stdout(Stdio::piped())).wait_with_output().unwrap()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Account that is not that of the tests.
const OTHER_ACCOUNT: u32 = 65534;

/// Message of a test that only root can run.
const SKIPPED: &str = "SKIPPED: only root can run a program under another account";

/// Shows: security.md#endpoints-that-plugins-call "On Linux, `sc` accepts connections of its own account only."
/// Shows: security.md#endpoints-that-plugins-call "`sc` warns once in a run that another account tried to connect"
#[tokio::test]
#[cfg(target_os = "linux")]
async fn another_account_is_refused_and_reported_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("{SKIPPED}");
        return;
    }
    let endpoint = LimitedEndpoint::serve(Recorder::default(), EndpointLimits::default()).await;
    let address = endpoint.endpoint.address();
    for (uid, expected) in [(0, "answered\n"), (OTHER_ACCOUNT, "closed\n"), (OTHER_ACCOUNT, "closed\n")] {
        let output = call_as(uid, &address).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "user {uid}: {output:?}");
    }
    assert_eq!(endpoint.events.all(), [HostEvent::ForeignConnection { uid: OTHER_ACCOUNT }]);
}

/// Shows: security.md#endpoints-that-plugins-call "`sc` calls a plugin only if the port that it names belongs to the
///   account of `sc` or to root"
#[tokio::test]
#[cfg(target_os = "linux")]
async fn plugin_that_names_the_port_of_another_account_is_not_called() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("{SKIPPED}");
        return;
    }
    let (folder, program) = copy_for_all(env!("CARGO_BIN_EXE_bridge-plugin"));
    let mut command = Command::new(program);
    command.arg("127.0.0.1:1").current_dir(&folder).stdout(Stdio::piped());
    let mut other = start_as(OTHER_ACCOUNT, &mut command);
    let mut port = String::new();
    let mut output = BufReader::new(other.stdout.take().unwrap());
    output.read_line(&mut port).unwrap();

    let mut repository = TestRepository::new();
    repository.script("x", &format!("echo {port}exec sleep 100"));
    let loaded = repository.load().await;
    other.kill().unwrap();
    other.wait().unwrap();
    let message = chain(&loaded.unwrap_err());
    let reason = format!("port {} belongs to the user with the id {OTHER_ACCOUNT}, not to the user of sc", port.trim());
    assert!(message.ends_with(&reason), "{message}");
}

#[tokio::test]
async fn connection_above_the_limit_is_closed_and_a_free_place_is_used_again() {
    let limits = EndpointLimits { connections: 2, ..EndpointLimits::default() };
    let endpoint = LimitedEndpoint::serve(Recorder::default(), limits).await;
    let (mut first, mut second) = (endpoint.connect().await, endpoint.connect().await);
    assert!(supports_secrets(&mut first).await.unwrap() && supports_secrets(&mut second).await.unwrap());

    // The client connects before the server decides, so its first call is the one that fails.
    for _ in 0..2 {
        if let Ok(mut third) = endpoint.try_connect().await {
            supports_secrets(&mut third).await.unwrap_err();
        }
    }
    assert_eq!(endpoint.events.all(), [HostEvent::TooManyConnections { limit: 2 }]);
    assert!(supports_secrets(&mut first).await.unwrap());

    drop(second);
    // The server notices the end of a connection after the client.
    let retry = async { while supports_secrets(&mut endpoint.connect().await).await.is_err() {} };
    tokio::time::timeout(std::time::Duration::from_secs(20), retry).await.unwrap();
}

/// Shows: security.md#endpoints-that-plugins-call "A further call fails with RESOURCE_EXHAUSTED and never waits"
#[tokio::test]
async fn call_above_the_limit_is_exhausted_at_once_while_others_run() {
    const CALLS: usize = 8;
    let hold = Arc::new(Semaphore::new(0));
    let monitor = Recorder { hold: Some(hold.clone()), ..Recorder::default() };
    let limits = EndpointLimits { calls: 3, ..EndpointLimits::default() };
    let endpoint = LimitedEndpoint::serve(monitor, limits).await;
    // The limit holds for all connections together.
    let clients = [endpoint.connect().await, endpoint.connect().await];
    let refused = AtomicUsize::new(0);
    let calls = (0..CALLS).map(async |at| {
        let reply = clients[at % 2].clone().register_resource(registration(&at.to_string())).await;
        // The running calls return only once all others are refused.
        if reply.is_err() && refused.fetch_add(1, Ordering::Relaxed) + 1 == CALLS - limits.calls {
            hold.add_permits(limits.calls);
        }
        reply.map(|_| ()).map_err(|status| status.code())
    });
    let replies = join_all(calls).await;
    let count = |expected| replies.iter().filter(|reply| **reply == expected).count();
    assert_eq!((count(Ok(())), count(Err(Code::ResourceExhausted))), (3, 5), "{replies:?}");
}

/// Shows: security.md#endpoints-that-plugins-call "A request above 400 MiB, or above 16 MiB for the engine service,
///   also fails with RESOURCE_EXHAUSTED."
#[tokio::test]
async fn request_above_the_limit_is_exhausted() {
    let limits = EndpointLimits { request: 1000, ..EndpointLimits::default() };
    let endpoint = LimitedEndpoint::serve(Recorder::default(), limits).await;
    let mut client = endpoint.connect().await;
    let status = client.register_resource(registration(&"x".repeat(1000))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    client.register_resource(registration("small")).await.unwrap();
}
