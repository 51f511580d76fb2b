//! `sc provision` without changes, with a plugin that is slow to start and to configure, compared with one start, one
//! Configure and the calls of the resources.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bridge::launch::Connection;
use bridge::provider::grpc::GrpcProvider;
use bridge::provider::{CheckRequest, ConfigureRequest, DiffRequest, Provider as _, ReadRequest, Views};
use tests::binaries;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::median;

const RESOURCES: usize = 10;

/// Prints the time of an unchanged provision.
pub(crate) fn compare(runtime: &Runtime, start: Duration, configure: Duration, rounds: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let plugin = write_repository(folder.path(), start, configure)?;
    let sc = binaries::sc()?;
    provision(&sc, folder.path())?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let started = Instant::now();
        provision(&sc, folder.path())?;
        ours.push(started.elapsed());
        let started = Instant::now();
        runtime.block_on(call_once(&plugin, folder.path()))?;
        bare.push(started.elapsed());
    }
    let (ours, bare) = (median(ours), median(bare));
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "| unchanged provision, slow plugin | {:.0} ms | {:.0} ms | {ratio:.3} | 1.1 |",
        millis(ours),
        millis(bare)
    );
    Ok(())
}

/// Writes a repository with a stack, and returns the path of its plugin: a script that waits before it starts.
fn write_repository(folder: &Path, start: Duration, configure: Duration) -> anyhow::Result<std::path::PathBuf> {
    let plugin = folder.join("pulumi-resource-rec");
    let program = env!("CARGO_BIN_EXE_pulumi-resource-rec");
    fs::write(&plugin, format!("#!/bin/sh\nsleep {}\nexec '{program}' \"$@\"\n", start.as_secs_f64()))?;
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
    for path in [".git", ".sc/stacks/dev", "rec", "home"] {
        fs::create_dir_all(folder.join(path))?;
    }
    let script = serde_json::json!({ "provider": { "configureDelay": u64::try_from(configure.as_millis())? } });
    fs::write(folder.join("rec/script.json"), script.to_string())?;
    fs::write(folder.join(".sc/cfg.default.yaml"), "projectName: bench\n")?;
    let resources: String =
        (0..RESOURCES).map(|i| format!("        t{i}: {{ type: rec:index:Thing, config: {{ v: {i} }} }}\n")).collect();
    let server = format!(
        "schemaVersion: 1.0\nprovisioner:\n  type: pulumi\n  config:\n    state-storage: {{ type: fs, config: {{ path: file://backend }} }}\n    \
         secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}\nplugins:\n  - {{ name: rec, source: {{ type: local, \
         path: pulumi-resource-rec }}, passEnv: [REC_DIR] }}\nresources:\n  resources:\n    prod:\n      resources:\n{resources}"
    );
    fs::write(folder.join(".sc/stacks/dev/server.yaml"), server)?;
    fs::create_dir_all(folder.join("backend"))?;
    Ok(plugin)
}

fn provision(sc: &Path, folder: &Path) -> anyhow::Result<()> {
    let output = Command::new(sc)
        .arg("provision")
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder.join("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("REC_DIR", folder.join("rec"))
        .output()?;
    ensure!(output.status.success(), "sc provision failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Starts the plugin once, configures it once, and makes the calls that a refresh, a preview and an update make.
async fn call_once(plugin: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut child = tokio::process::Command::new(plugin)
        .arg("127.0.0.1:1")
        .env("REC_DIR", folder.join("rec"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("standard output is piped")?).lines();
    let port: u16 = lines.next_line().await?.context("the plugin prints its port")?.trim().parse()?;
    let connection = Connection::new(move || TcpStream::connect(("127.0.0.1", port)));
    let provider = GrpcProvider::new(connection, "rec", None, None, None);
    let urn = "urn:pulumi:dev::bench::pulumi:providers:rec::rec".parse()?;
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Default::default() }).await?;
    for index in 0..RESOURCES {
        let urn: pulumi_proto::urn::Urn = format!("urn:pulumi:dev::bench::rec:index:Thing::t{index}").parse()?;
        let id = pulumi_proto::resource_id::ResourceId::new(format!("t{index}-1"));
        let read = ReadRequest {
            urn: urn.clone(),
            id: id.clone(),
            outputs: None,
            inputs: None,
            timeout: None,
            views: Views::default(),
        };
        provider.read(read).await?;
        for _ in ["preview", "update"] {
            let check = CheckRequest {
                urn: urn.clone(),
                olds: Default::default(),
                news: Default::default(),
                random_seed: [0; 32],
                autonaming: None,
                preview: false,
            };
            provider.check(check).await?;
            let diff = DiffRequest {
                urn: urn.clone(),
                id: id.clone(),
                olds: Default::default(),
                old_inputs: Default::default(),
                news: Default::default(),
                ignore_changes: Vec::new(),
                allow_unknowns: false,
            };
            provider.diff(diff).await?;
        }
    }
    child.kill().await?;
    Ok(())
}
