//! Lease and return of an instance that is ready, compared with a list behind a lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bridge::host::{
    DeclaredPlugin, HostEvent, HostEvents, HostSettings, PluginHost, PluginPool, ProviderHost as _, ProviderRequest,
    Sources,
};
use bridge::install::{LocalPackages, Verification};
use bridge::plugin::{LocalSource, PluginConfig, PluginSource, Sandbox};
use bridge::process::{HostEnvironment, Spawner};
use bridge::provider::ConfigureRequest;
use bridge::provider::grpc::{Limits, PluginInit};
use tokio_util::sync::CancellationToken;

use crate::median;

struct NoEvents;

impl HostEvents for NoEvents {
    fn emit(&self, _: HostEvent) {}
}

/// Prints the time of one lease.
pub(crate) async fn compare(leases: u32, rounds: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let host = host(folder.path()).await?;
    let request = ProviderRequest { package: "rec".into(), name: "rec".into(), ..ProviderRequest::default() };
    let provider = host.start_provider(&request).await?;
    let urn = "urn:pulumi:dev::bench::pulumi:providers:rec::rec".parse()?;
    provider.configure(ConfigureRequest { urn, id: "1".into(), inputs: Arc::default() }).await?;
    provider.close().await;

    let list = Mutex::new(vec![Arc::new(0_u64)]);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let started = Instant::now();
        for _ in 0..leases {
            host.start_provider(&request).await?.close().await;
        }
        ours.push(started.elapsed() / leases);
        let started = Instant::now();
        for _ in 0..leases {
            let leased = std::hint::black_box(list.lock().unwrap_or_else(PoisonError::into_inner).pop());
            list.lock().unwrap_or_else(PoisonError::into_inner).extend(leased);
        }
        bare.push(started.elapsed() / leases);
    }
    host.close().await;
    let (ours, bare) = (median(ours), median(bare));
    let ratio = ours.as_secs_f64() / bare.as_secs_f64().max(1e-9);
    let nanos = |time: Duration| time.as_nanos();
    println!("| lease and return | {} ns | {} ns | {ratio:.1} | 1000 ns |", nanos(ours), nanos(bare));
    Ok(())
}

async fn host(folder: &std::path::Path) -> anyhow::Result<PluginHost> {
    let environment = HostEnvironment::default();
    let local = LocalPackages {
        root: folder.to_owned(),
        cache: folder.join("cache"),
        environment: environment.clone(),
        spawner: Spawner::unsupervised(),
        verification: Verification::default(),
        is_offline: false,
    };
    let settings = HostSettings {
        project: "bench".to_owned(),
        directory: folder.to_owned(),
        secret_files: Vec::new(),
        environment,
        spawner: Spawner::unsupervised(),
        sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
        limits: Limits::default(),
        abort: CancellationToken::new(),
        type_cache: None,
        first_instances: 1,
        events: Arc::new(NoEvents),
        pool: PluginPool::new(),
        attached: Default::default(),
        undeclared: None,
    };
    let source = PluginSource::Local(LocalSource::new(env!("CARGO_BIN_EXE_pulumi-resource-rec")));
    let mut config = PluginConfig::new("rec".parse()?, source);
    config.sandbox = Sandbox::None;
    let loaded = PluginHost::load(
        settings,
        vec![DeclaredPlugin { config, init: PluginInit::default(), shares_equal_configurations: false }],
    )
    .await;
    loaded.map_err(|mut failed| failed.swap_remove(0).1.into())
}
