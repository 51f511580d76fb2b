//! Plugins that run already: the host attaches to them, and leaves them as they are.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bridge::host::{AttachedPlugin, HostEvent, PluginHost, ProviderHost as _, ProviderRequest};
use bridge::launch::PluginAddress;
use bridge::plugin::{Dialect, GoPlugin};
use bridge::provider::grpc::Limits;
use bridge::provider::{ConfigureRequest, Provider};

use crate::TestRepository;

/// Running test plugin, which another program has started. Dropping it kills it.
struct RunningPlugin {
    child: Child,
    port: u16,
    /// Open: the plugin prints to it.
    _stdout: BufReader<ChildStdout>,
}

impl RunningPlugin {
    fn start(repository: &TestRepository, faults: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bridge-plugin"));
        command.args(faults.iter().flat_map(|fault| ["--fault", fault]));
        let command = command.arg(repository.path("x.calls")).arg("127.0.0.1:1").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), _stdout: stdout }
    }

    fn attached(&self) -> AttachedPlugin {
        attached(self.port)
    }
}

impl Drop for RunningPlugin {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn attached(port: u16) -> AttachedPlugin {
    AttachedPlugin {
        address: PluginAddress::Tcp(([127, 0, 0, 1], port).into()),
        setting: "PULUMI_DEBUG_PROVIDERS",
        protocol_version: None,
        requires_attach: true,
    }
}

/// Returns a repository whose plugin `x` fails if the host starts it.
fn repository(package: &str) -> TestRepository {
    let mut repository = TestRepository::new();
    repository.script("x", "exit 1").package = package.parse().unwrap();
    repository
}

async fn configured(host: &PluginHost, package: &str) -> Arc<dyn Provider> {
    let request = ProviderRequest { package: package.into(), name: "x".into(), ..ProviderRequest::default() };
    let provider = host.start_provider(&request).await.unwrap();
    let urn = "urn:pulumi:dev::t::pulumi:providers:x::x".parse().unwrap();
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Arc::default() }).await.unwrap();
    provider
}

/// Shows: hosting.md#attaching-to-a-running-plugin "Each run names the process in a warning."
/// Shows: hosting.md#attaching-to-a-running-plugin "`sc` neither starts nor ends the process"
#[tokio::test]
async fn attached_plugin_is_used_with_a_message_and_not_ended() {
    // By the name of the plugin, and by that of its package.
    for (package, name) in [("x", "x"), ("acme", "acme"), ("acme", "x")] {
        let mut repository = repository(package);
        let mut plugin = RunningPlugin::start(&repository, &["implement Attach"]);
        repository.attached.insert(name.to_owned(), plugin.attached());
        // A missing program does not matter.
        std::fs::remove_file(repository.path("x")).unwrap();
        for _ in 0..2 {
            let host = repository.load().await.unwrap();
            configured(&host, package).await.close().await;
            configured(&host, package).await;
            host.close().await;
        }
        assert!(plugin.child.try_wait().unwrap().is_none(), "the plugin runs");
        let mut calls = repository.calls("x");
        calls.retain(|call| !call.starts_with("Initialize"));
        let of_run = ["Attach", "Configure", "Attach", "Configure"];
        assert_eq!(calls, [of_run, of_run].concat());
        let port = plugin.port;
        let expected =
            format!("sc uses the process at port {port} (PULUMI_DEBUG_PROVIDERS), and neither starts nor ends it");
        let warning = HostEvent::Warning { plugin: "x".into(), message: expected };
        assert_eq!(repository.events.all().iter().filter(|event| **event == warning).count(), 2, "once in each run");
    }
}

/// Shows: hosting.md#attaching-to-a-running-plugin "A plugin without Attach is refused"
/// Shows: hosting.md#attaching-to-a-running-plugin "`ProtocolVersion` one of `goPlugin.versions`"
#[tokio::test]
async fn plugin_that_cannot_be_attached_to_is_reported() {
    let mut repository = repository("x");
    repository.limits = Limits { handshake: Duration::from_millis(300), ..Limits::default() };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    repository.attached.insert("x".to_owned(), attached(closed));
    let (message, hint) = repository.load_error().await;
    let expected = "failed to load plugin x: failed to attach to the process that PULUMI_DEBUG_PROVIDERS names";
    assert!(message.starts_with(expected) && message.contains("cannot connect: Connection refused"), "{message}");
    let expected = "start the plugin at that address, or unset PULUMI_DEBUG_PROVIDERS, so that sc starts the plugin";
    assert_eq!(hint, expected);

    let plugin = RunningPlugin::start(&repository, &[]);
    repository.attached.insert("x".to_owned(), plugin.attached());
    let (message, hint) = repository.load_error().await;
    assert!(message.ends_with("PULUMI_DEBUG_PROVIDERS names: it does not implement Attach"), "{message}");
    assert_eq!(hint, "name the process in SC_REATTACH_PLUGINS, which does not need Attach");
    // A go-plugin server has the address of the engine from Handshake.
    let tolerant = AttachedPlugin { requires_attach: false, ..plugin.attached() };
    repository.attached.insert("x".to_owned(), tolerant);
    repository.load().await.unwrap().close().await;
}

/// Shows: hosting.md#attaching-to-a-running-plugin "A plugin without Attach is refused"
/// Shows: hosting.md#attaching-to-a-running-plugin "`ProtocolVersion` one of `goPlugin.versions`"
#[tokio::test]
async fn attached_go_plugin_server_has_a_declared_version() {
    let mut repository = repository("x");
    let settings = GoPlugin { versions: vec![5, 6], ..GoPlugin::default() };
    repository.last_plugin().dialect = Dialect::GoPlugin(settings);
    let plugin = RunningPlugin::start(&repository, &["implement Attach"]);
    let of_version = |version| AttachedPlugin {
        protocol_version: Some(version),
        setting: "SC_REATTACH_PLUGINS",
        ..plugin.attached()
    };
    repository.attached.insert("x".to_owned(), of_version(4));
    let (message, hint) = repository.load_error().await;
    let expected = "SC_REATTACH_PLUGINS names protocol version 4, but goPlugin.versions declares [5, 6]";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(hint, "set goPlugin.versions to the versions of the plugin");
    repository.attached.insert("x".to_owned(), of_version(5));
    repository.load().await.unwrap().close().await;
}
