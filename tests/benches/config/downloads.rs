//! Measurement of downloads: many at the same time against the slowest alone, and the memory that a large archive needs against a small one.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bridge::plugin::{GithubReleaseSource, PluginName, PluginNames, WantedVersion};
use futures_util::future::try_join_all;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use crate::compare_in_turns;
use crate::plugins::{MIB, PROGRAM, installer, noise, releases};

/// First argument of a process that fetches one archive and prints its peak of memory.
pub(crate) const FETCH: &str = "fetch-once";
/// Number of the small downloads beside the large one.
const SMALL: usize = 19;
/// Interval at which a connection gets its share of the bandwidth.
const TICK: Duration = Duration::from_millis(10);
const TICKS_PER_SECOND: usize = 100;

fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

/// Forwards connections to a server, each of which gets at most a number of bytes per second.
async fn limit_bandwidth(server: SocketAddr, bytes_per_second: usize) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // A connection that breaks fails its download.
            tokio::spawn(async move { forward(client, server, bytes_per_second).await.ok() });
        }
    });
    Ok(address)
}

async fn forward(client: TcpStream, server: SocketAddr, bytes_per_second: usize) -> io::Result<()> {
    let (mut requests, mut responses) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    tokio::spawn(async move { copy(&mut requests, &mut to_server).await.ok() });
    let (mut part, mut ticks) = (vec![0; bytes_per_second / TICKS_PER_SECOND], tokio::time::interval(TICK));
    loop {
        ticks.tick().await;
        let mut length = 0;
        while length < part.len() {
            match from_server.read(&mut part[length..]).await? {
                0 if length == 0 => return responses.shutdown().await,
                0 => break,
                read => length += read,
            }
        }
        responses.write_all(&part[..length]).await?;
    }
}

fn source(api_url: String, repository: String) -> anyhow::Result<GithubReleaseSource> {
    Ok(GithubReleaseSource {
        platform: Some("linux-amd64".parse()?),
        asset: Some("plugin".into()),
        api_url: Some(api_url),
        ..GithubReleaseSource::new(repository, WantedVersion::Named("v1.0.0".into()))
    })
}

/// Fetches packages at the same time, with an empty cache.
fn fetch(runtime: &Runtime, root: &Path, sources: &[GithubReleaseSource]) -> anyhow::Result<()> {
    let (installer, releases, name): (_, _, PluginName) = (installer(root), releases(root), "p".parse()?);
    let names = PluginNames { plugin: &name, package: &name, accepts_only_program: false };
    let fetched = sources.iter().map(|source| installer.install(&releases, names, source));
    ensure!(runtime.block_on(try_join_all(fetched))?.len() == sources.len());
    Ok(())
}

/// Compares twenty downloads at the same time with the slowest of them alone, from a server that limits the bandwidth of each connection.
/// The large one is declared first, and then last.
pub(crate) fn compare_with_slowest(kibibytes: usize, bytes_per_second: usize, rounds: usize) -> anyhow::Result<()> {
    let (runtime, large) = (runtime()?, kibibytes * 1024);
    let server = runtime.block_on(ReleaseServer::start())?;
    let url = server.api_url();
    let (host, path) = url.trim_start_matches("http://").split_once('/').context("the path of the API")?;
    let limited = runtime.block_on(limit_bandwidth(host.parse()?, bytes_per_second))?;
    let url = format!("http://{limited}/{path}");
    let publish = |name: String, size: usize| {
        let mut content = PROGRAM.to_vec();
        content.extend(noise(size));
        server.publish(&name, "v1.0.0", &[("plugin", &content)]);
        source(url.clone(), name)
    };
    let large_one = publish("acme/large".to_owned(), large)?;
    let small_ones = (0..SMALL).map(|number| publish(format!("acme/small{number}"), large / (SMALL + 1)));
    let mut all: Vec<_> = [Ok(large_one.clone())].into_iter().chain(small_ones).collect::<Result<_, _>>()?;
    for place in ["first", "last"] {
        let figure = format!(
            "{} downloads, the largest of {kibibytes} KiB declared {place}, with {} KiB/s for each connection, against the largest alone",
            all.len(),
            bytes_per_second / 1024
        );
        let ours = || fetch(&runtime, tempfile::tempdir()?.path(), &all);
        let bare = || fetch(&runtime, tempfile::tempdir()?.path(), std::slice::from_ref(&large_one));
        compare_in_turns(&figure, 1.2, rounds, ours, bare)?;
        all.rotate_left(1);
    }
    Ok(())
}

/// Compares the peak of memory of a process that fetches and unpacks a large archive with that of one that fetches a small one.
pub(crate) fn compare_memory((large, small): (usize, usize), rounds: usize) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let server = runtime.block_on(ReleaseServer::start())?;
    let peak = |mebibytes: usize| -> anyhow::Result<usize> {
        let program = [PROGRAM, &noise(mebibytes * MIB)].concat();
        let archive = tar_gz(&[("pulumi-resource-p", Entry::File(0o755, &program))])?;
        let repository = format!("acme/p{mebibytes}");
        server.publish(&repository, "v1.0.0", &[("plugin", &archive)]);
        let mut peaks = (0..rounds)
            .map(|_| {
                let root = tempfile::tempdir()?;
                let mut child = Command::new(std::env::current_exe()?);
                let output = child.args([FETCH, &server.api_url(), &repository]).arg(root.path()).output()?;
                ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Ok(String::from_utf8(output.stdout)?.trim().parse()?)
            })
            .collect::<anyhow::Result<Vec<usize>>>()?;
        peaks.sort_unstable();
        Ok(peaks[rounds / 2])
    };
    let (ours, bare) = (peak(large)?, peak(small)?);
    let mebibytes = |kibibytes: f64| kibibytes / 1024.0;
    let (ours, bare) = (mebibytes(ours as f64), mebibytes(bare as f64));
    println!(
        "| peak of memory of the fetch of an archive of {large} MiB, against one of {small} MiB | {ours:.1} MiB | {bare:.1} MiB | {:+.1} MiB | 16 MiB more |",
        ours - bare
    );
    Ok(())
}

/// Fetches an archive, and prints the peak of memory of this process in KiB. `arguments` are the address, the repository and the root.
pub(crate) fn fetch_once(arguments: &[String]) -> anyhow::Result<()> {
    let [url, repository, root] = arguments else { anyhow::bail!("{FETCH} URL REPOSITORY ROOT") };
    fetch(&runtime()?, Path::new(root), &[source(url.clone(), repository.clone())?])?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    println!("{}", peak.context("the system tells no peak of memory")?);
    Ok(())
}
