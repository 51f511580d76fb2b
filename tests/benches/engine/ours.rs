//! Measurement of the whole engine: provider host, deployment, journal and checkpoint on disk.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bridge::host::{DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PluginHost, PluginPool, Sources};
use bridge::install::{LocalPackages, Verification};
use bridge::plugin::{LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, Spawner, Supervision};
use bridge::provider::grpc::{Limits, PluginInit};
use engine::events::{Event, EventSink, Operation, Outcome};
use engine::{
    Deployment, DeploymentEnd, DeploymentOptions, DeploymentRequest, Goal, Halted, ProgramEnd, Registered, Registrar,
    StopSignals,
};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};
use state::format::UpdateKind;
use state::secrets::{Keyring, Passphrase};
use state::store::{FileUrl, LockHolder, MemoryObjects, StackReference, StateStore, StoreOptions};
use state::{StackAccess, StackState};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use crate::figures::{ADDED_RESOURCES, EngineFigures, Figures, peak_memory, seconds};
use crate::workload::{BenchResource, PARALLEL, PROJECT, STACK, TYPE, Workload};

/// Measures the operations on a new stack in a new folder.
pub(crate) async fn measure(workload: Workload, scratch: &Path) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir_in(scratch)?;
    let mut bench = Bench::new(folder.path()).await?;
    let larger = Workload { resources: workload.resources + ADDED_RESOURCES, ..workload };

    let create = bench.run(Operation::Update, workload).await?;
    let checkpoint = fs::metadata(folder.path().join(CHECKPOINT))?.len();
    let no_op = bench.run(Operation::Update, workload).await?;
    ensure!(no_op.written == 0, "a run without changes writes no journal");
    let grow = bench.run(Operation::Update, larger).await?;
    let shrink = bench.run(Operation::Update, workload).await?;
    let destroy = bench.run(Operation::Destroy, workload).await?;
    // The root and the default provider have steps as well.
    ensure!(create.steps == workload.resources + 2 && no_op.steps == create.steps, "every resource has its step");
    ensure!(shrink.steps == grow.steps && destroy.steps == create.steps, "every resource has its step");
    let slow_create = if workload.resources <= SLOW_STORE_LIMIT {
        let objects = Arc::new(MemoryObjects::default().with_latency(SLOW_STORE_DELAY));
        bench.access.store = StateStore::open(objects, StoreOptions::default()).await?;
        Some(bench.run(Operation::Update, workload).await?.time)
    } else {
        None
    };
    Ok(Figures {
        create: create.time,
        no_op: no_op.time,
        destroy: destroy.time,
        engine: Some(EngineFigures {
            provider_start: bench.provider_start,
            key: bench.key,
            grow: grow.time,
            grow_steps: grow.steps,
            grow_written: grow.written,
            create_written: create.written,
            checkpoint,
            slow_create,
            peak_memory: peak_memory(),
        }),
        command: None,
    })
}

/// Path of the stack's checkpoint in the store.
const CHECKPOINT: &str = ".pulumi/stacks/bench/dev.json";

/// Largest number of resources that is measured with a slow store as well.
const SLOW_STORE_LIMIT: usize = 1_000;

/// Time of each request to a slow store.
const SLOW_STORE_DELAY: Duration = Duration::from_millis(50);

/// Pause between two runs, in which memory of the previous run is freed.
const SETTLE_TIME: Duration = Duration::from_millis(100);

struct Bench<'f> {
    folder: &'f Path,
    access: StackAccess,
    spawner: Spawner,
    key: f64,
    provider_start: f64,
}

/// Results of an operation, from the acquisition to the release of the lock.
struct Run {
    time: f64,
    steps: usize,
    /// Bytes on disk that the run added before it wrote its checkpoint.
    written: u64,
}

impl<'f> Bench<'f> {
    async fn new(folder: &'f Path) -> anyhow::Result<Self> {
        let url = FileUrl { folder: folder.to_owned(), create: false, folder_mode: 0o777, sidecars: true };
        let keyring = Keyring::new(Some(Passphrase::new("tide-pool 42")));
        let started = Instant::now();
        let manager = keyring.new_manager(None).await?;
        let key = seconds(started.elapsed());
        let store = StateStore::open_folder(&url, StoreOptions::default()).await?;
        let access = StackAccess {
            store,
            stack: StackReference::new(PROJECT, STACK)?,
            keyring: Arc::new(keyring),
            configured_secrets: Some(manager.describe()),
            config: Default::default(),
            journals: state::JournalFolders::of_backend(folder),
            journal_mode: Default::default(),
            unrecorded: Default::default(),
            locks: state::LockSettings::default(),
            begins_anew: false,
            engine_version: "v0.1.0".to_owned(),
        };
        let supervisor = Supervision::new(&std::env::current_exe()?)?;
        let spawner = Spawner::supervised(Arc::new(supervisor));
        Ok(Self { folder, access, spawner, key, provider_start: 0.0 })
    }

    async fn run(&mut self, operation: Operation, workload: Workload) -> anyhow::Result<Run> {
        let started = Instant::now();
        let host = self.host().await?;
        self.provider_start = seconds(started.elapsed());

        // Memory of the previous run is freed in the background.
        tokio::time::sleep(SETTLE_TIME).await;
        let started = Instant::now();
        let holder = LockHolder {
            pid: std::process::id(),
            username: "bench".into(),
            hostname: "bench".into(),
            process: None,
            lease: None,
        };
        let state = StackState::open(self.access.clone(), &holder).await?;
        let (before, before_duration) = timed_size_of(self.folder)?;
        let end = self.deploy(operation, workload, &state, Arc::new(host)).await?;
        let (after, after_duration) = timed_size_of(self.folder)?;
        let written = after - before;
        state.close(end.snapshot, None).await?;
        let time = seconds(started.elapsed() - before_duration - after_duration);

        ensure!(end.outcome == Outcome::Succeeded, "the run failed");
        Ok(Run { time, steps: end.summary.changes.values().sum::<usize>() + 1, written })
    }

    async fn deploy(
        &self,
        operation: Operation,
        workload: Workload,
        state: &StackState,
        host: Arc<PluginHost>,
    ) -> anyhow::Result<DeploymentEnd> {
        let options = DeploymentOptions { parallel: PARALLEL, ..DeploymentOptions::default() };
        let request = DeploymentRequest { options, ..DeploymentRequest::new(STACK, PROJECT, operation) };
        let recorder = Box::new(state.recorder(UpdateKind::Update));
        let (deployment, run) = Deployment::new(
            request,
            state.snapshot().clone(),
            host,
            Some(recorder),
            Arc::new(ErrorOutput),
            StopSignals::default(),
        );
        let program = async {
            if operation != Operation::Update {
                return Ok(());
            }
            let registered = register_all(&deployment, workload).await;
            let end = if registered.is_ok() { ProgramEnd::Completed } else { ProgramEnd::Failed };
            deployment.finish(end).await;
            registered
        };
        let (end, registered) = tokio::join!(run, program);
        registered.context("the engine rejected a registration")?;
        Ok(end)
    }

    async fn host(&self) -> Result<PluginHost, HostError> {
        let environment = HostEnvironment::default();
        let local = LocalPackages {
            root: self.folder.to_owned(),
            cache: self.folder.join("cache"),
            environment: environment.clone(),
            spawner: self.spawner.clone(),
            verification: Verification::default(),
            is_offline: false,
        };
        let settings = HostSettings {
            project: PROJECT.to_owned(),
            directory: self.folder.to_owned(),
            secret_files: Vec::new(),
            environment,
            spawner: self.spawner.clone(),
            sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
            limits: Limits::default(),
            abort: CancellationToken::new(),
            type_cache: None,
            first_instances: 1,
            events: Arc::new(ErrorOutput),
            pool: PluginPool::new(),
            attached: Default::default(),
            undeclared: None,
        };
        let source = PluginSource::Local(LocalSource::new(crate::PROVIDER));
        let name = "rec".parse().map_err(|_| HostError::new("no name"))?;
        let config = PluginConfig::new(name, source);
        let loaded = PluginHost::load(
            settings,
            vec![DeclaredPlugin { config, init: PluginInit::default(), shares_equal_configurations: false }],
        )
        .await;
        loaded.map_err(|mut failed| failed.swap_remove(0).1)
    }
}

/// Registers each resource as soon as its dependencies are registered.
async fn register_all(deployment: &Deployment, workload: Workload) -> Result<(), Halted> {
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    let root = deployment.register(root).await?.urn;
    let resources = workload.resources();
    let done: Vec<SetOnce<Registered>> = resources.iter().map(|_| SetOnce::new()).collect();
    let registrations = resources.iter().map(|resource| register(deployment, &root, resource, &done));
    join_all(registrations).await.into_iter().collect()
}

async fn register(
    deployment: &Deployment,
    root: &Urn,
    resource: &BenchResource,
    done: &[SetOnce<Registered>],
) -> Result<(), Halted> {
    let mut dependencies = Vec::new();
    for index in &resource.dependencies {
        dependencies.push(done[*index].wait().await);
    }
    let link = |dependency: &&Registered| dependency.outputs.get("cid").and_then(|cid| cid.as_str()).map(str::to_owned);
    let inputs = resource.inputs(dependencies.iter().filter_map(link).collect());
    let mut goal = Goal::custom(TypeToken::new(TYPE), &resource.name, inputs);
    goal.parent = Some(root.clone());
    goal.dependencies = dependencies.iter().map(|dependency| dependency.urn.clone()).collect();
    goal.property_dependencies = goal.inputs.keys().map(|key| (key.clone(), Vec::new())).collect();
    goal.property_dependencies.insert("links".to_owned(), goal.dependencies.clone());
    let registered = deployment.register(goal).await?;
    // Each resource is registered once, so the cell is empty.
    done[resource.index].set(registered).ok();
    Ok(())
}

/// Event sink that prints messages and output to standard error.
#[derive(Debug)]
struct ErrorOutput;

impl EventSink for ErrorOutput {
    fn emit(&self, event: Event) {
        if let Event::Message(message) = event {
            eprintln!("{}", message.text);
        }
    }
}

impl HostEvents for ErrorOutput {
    fn emit(&self, event: HostEvent) {
        if let HostEvent::Output { line, .. } | HostEvent::Warning { message: line, .. } = event {
            eprintln!("{line}");
        }
    }
}

/// Returns the size of all files in a folder in bytes, and the duration of this call, which is no part of a run.
fn timed_size_of(folder: &Path) -> std::io::Result<(u64, Duration)> {
    let started = Instant::now();
    Ok((size_of(folder)?, started.elapsed()))
}

/// Returns the size of all files in a folder in bytes.
fn size_of(folder: &Path) -> std::io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}
