//! Launch of go-plugin servers to their first reply, compared with their processes alone: one after the other, and fifty
//! at once.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bridge::install::{FetchEvent, FetchEvents, Installer, LocalPackages, Verification, VerifiedPackage};
use bridge::launch::{
    Connection, HostIdentity, LaunchSpec, Launched, PluginAddress, Procedure, attached_connection, launch,
};
use bridge::plugin::{Dialect, GoPlugin, GoPluginTls, LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, ProcessSandbox, Spawner, Supervision};
use futures_util::future::{join_all, try_join_all};
use tests::binaries;
use tests::sdks::go_program;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

use crate::median;

const COOKIE: (&str, &str) = ("GOPLUGIN_GOLDEN", "provider");

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

struct HealthCheck;

impl Procedure for HealthCheck {
    const PATH: &'static str = "/grpc.health.v1.Health/Check";
    type Request = HealthCheckRequest;
    type Reply = HealthCheckResponse;
}

struct NoEvents;

impl FetchEvents for NoEvents {
    fn emit(&self, _: FetchEvent) {}
}

struct Plugin {
    folder: tempfile::TempDir,
    program: PathBuf,
    config: PluginConfig,
    package: VerifiedPackage,
    spawner: Spawner,
}

/// Prints the time above that of the process alone, and the ratio of `at_once` launches. Needs `go`, which builds the plugin.
pub(crate) fn compare(runtime: &Runtime, rounds: usize, at_once: usize) -> anyhow::Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_go_plugin/provider");
    let program = match go_program("goplugin-provider", &sources) {
        Ok(program) => program,
        Err(error) => {
            println!("| launch | not measured: {error} | | | |");
            return Ok(());
        }
    };
    runtime.block_on(async {
        let plugin = Plugin::new(program).await?;
        plugin.compare_one(rounds).await?;
        plugin.compare_many(rounds, at_once).await
    })
}

/// Kills a plugin. Returns once no process of it is left.
async fn end(launched: &Launched) {
    launched.ending.abort(&launched.process, Duration::ZERO).await;
}

impl Plugin {
    async fn new(program: PathBuf) -> anyhow::Result<Self> {
        // In memory, as XDG_RUNTIME_DIR: ext4 searches ever longer for a free inode where folders were removed just now.
        let parent = Some("/dev/shm").filter(|parent| Path::new(parent).is_dir()).unwrap_or("/tmp");
        let folder = tempfile::Builder::new().prefix("sc").tempdir_in(parent)?;
        let spawner = Spawner::supervised(Arc::new(Supervision::new(&binaries::sc()?)?));
        let packages = LocalPackages {
            root: folder.path().to_owned(),
            cache: folder.path().join("cache"),
            environment: HostEnvironment::default(),
            spawner: spawner.clone(),
            verification: Verification::default(),
            is_offline: false,
        };
        let source = LocalSource::new(program.clone());
        let config = PluginConfig::new("rec".parse()?, PluginSource::Local(source.clone()));
        let package = Installer::new(&NoEvents).install(&packages, config.names(), &source).await?;
        Ok(Self { folder, program, config, package, spawner })
    }

    /// Compares a launch with the start of the process in plain text, up to its handshake line.
    async fn compare_one(&self, rounds: usize) -> anyhow::Result<()> {
        let (mut bare, mut plain, mut encrypted) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let started = Instant::now();
            let (mut child, _) = self.start_alone(None).await?;
            bare.push(started.elapsed());
            child.kill().await?;
            for (tls, times) in [(GoPluginTls::None, &mut plain), (GoPluginTls::Auto, &mut encrypted)] {
                let started = Instant::now();
                let launched = self.launch(tls).await?;
                times.push(started.elapsed());
                drop(launched);
            }
        }
        let bare = median(bare);
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        for (name, ours, limit) in [("plain text", median(plain), 3), ("AutoMTLS", median(encrypted), 15)] {
            let (ours, bare) = (millis(ours), millis(bare));
            println!("| launch, {name} | {ours:.1} ms | {bare:.1} ms | +{:.1} ms | +{limit} ms |", ours - bare);
        }
        Ok(())
    }

    /// Compares launches at once with bare processes that make the same certificates and reply to the same first call.
    async fn compare_many(&self, rounds: usize, count: usize) -> anyhow::Result<()> {
        for (name, tls) in [("plain text", GoPluginTls::None), ("AutoMTLS", GoPluginTls::Auto)] {
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let started = Instant::now();
                let mut children = try_join_all((0..count).map(|_| self.start_and_call(tls))).await?;
                bare.push(started.elapsed());
                // Ended before the next measurement, which would share the processors with their ends.
                try_join_all(children.iter_mut().map(Child::kill)).await?;
                let started = Instant::now();
                let launched = try_join_all((0..count).map(|_| self.launch(tls))).await?;
                ours.push(started.elapsed());
                join_all(launched.iter().map(end)).await;
            }
            let (ours, bare) = (median(ours).as_secs_f64(), median(bare).as_secs_f64());
            let ratio = ours / bare;
            println!(
                "| {count} launches at once, {name} | {:.0} ms | {:.0} ms | {ratio:.2} | 1.3 |",
                ours * 1000.0,
                bare * 1000.0
            );
        }
        Ok(())
    }

    /// Starts the process, and checks its health as a launch does, without a gate, supervisor, sandbox or broker.
    async fn start_and_call(&self, tls: GoPluginTls) -> anyhow::Result<Child> {
        let identity = (tls == GoPluginTls::Auto).then(HostIdentity::generate).transpose()?;
        let (child, line) = self.start_alone(identity.as_ref().map(HostIdentity::certificate_pem)).await?;
        let fields: Vec<&str> = line.trim_end().split('|').collect();
        let (path, certificate) = (fields.get(3).context("no address")?, fields.get(5).copied().unwrap_or_default());
        let address = PluginAddress::Unix(path.into());
        let connection = match identity {
            None => attached_connection(address),
            Some(identity) => {
                let (tls, path) = (identity.with_plugin_certificate(certificate)?, PathBuf::from(path));
                Connection::new(move || {
                    let (tls, path) = (tls.clone(), path.clone());
                    async move { tls.connect(UnixStream::connect(path).await?).await }
                })
            }
        };
        connection.call::<HealthCheck>(&HealthCheckRequest { service: "plugin".to_owned() }).await?;
        Ok(child)
    }

    /// Starts the process, and returns it with its handshake line.
    async fn start_alone(&self, certificate: Option<&str>) -> anyhow::Result<(Child, String)> {
        let mut command = Command::new(&self.program);
        command.env_clear().env(COOKIE.0, COOKIE.1).env("PLUGIN_PROTOCOL_VERSIONS", "1");
        command.env("PLUGIN_UNIX_SOCKET_DIR", self.folder.path());
        command.envs(certificate.map(|certificate| ("PLUGIN_CLIENT_CERT", certificate)));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("standard output is piped")?).lines();
        let line = lines.next_line().await?.filter(|line| line.starts_with("1|1|unix|"));
        Ok((child, line.context("no handshake line")?))
    }

    /// Launches the plugin. The health check is the first call with a reply.
    async fn launch(&self, tls: GoPluginTls) -> anyhow::Result<Launched> {
        let spec = LaunchSpec {
            plugin: &self.config,
            package: &self.package,
            directory: self.folder.path().to_owned(),
            environment: vec![("TMPDIR".into(), self.folder.path().into())],
            sandbox: ProcessSandbox::Basic,
            start_timeout: Duration::from_secs(60),
            socket_folders: vec![self.folder.path().to_owned()],
            registrations: None,
            sink: Arc::new(()),
            spawner: &self.spawner,
        };
        let (cookie_key, cookie_value) = (COOKIE.0.to_owned(), COOKIE.1.to_owned());
        let dialect = Dialect::GoPlugin(GoPlugin { cookie_key, cookie_value, tls, ..GoPlugin::default() });
        Ok(launch(spec, &dialect, "127.0.0.1:1").await?)
    }
}
