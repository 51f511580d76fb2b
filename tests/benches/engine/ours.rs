//! The engine with everything it has: provider host, deployment, journal and checkpoint on disk.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bridge::host::{DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PluginHost, Sources};
use bridge::install::LocalPackages;
use bridge::plugin::{LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, Spawner, Supervisor};
use bridge::provider::grpc::{Limits, PluginInit};
use engine::events::{Event, EventSink, Operation, Outcome};
use engine::{
    Deployment, DeploymentEnd, DeploymentOptions, Goal, Halted, ProgramEnd, Registered, Registrar, StopSignals,
};
use futures_util::future::join_all;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};
use state::secrets::{Keyring, Passphrase};
use state::store::{FileStore, FileUrl, LockHolder, StackReference};
use state::{StackAccess, StackState};
use tokio::sync::SetOnce;

use crate::figures::{EngineFigures, Figures, MORE, peak_memory, seconds};
use crate::slow::SlowStore;
use crate::workload::{PARALLEL, PROJECT, STACK, TYPE, Thing, Workload};

/// Measures the operations on a stack of its own in a new folder.
pub(crate) async fn measure(workload: Workload, scratch: &Path) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir_in(scratch)?;
    let mut bench = Bench::new(folder.path()).await?;
    let grown = Workload { resources: workload.resources + MORE, ..workload };

    let create = bench.run(Operation::Update, workload).await?;
    let checkpoint = fs::metadata(folder.path().join(CHECKPOINT))?.len();
    let no_op = bench.run(Operation::Update, workload).await?;
    ensure!(no_op.written == 0, "a run that changes nothing writes no journal");
    let grow = bench.run(Operation::Update, grown).await?;
    let shrink = bench.run(Operation::Update, workload).await?;
    let destroy = bench.run(Operation::Destroy, workload).await?;
    // The root and the default provider are steps, too.
    ensure!(create.steps == workload.resources + 2 && no_op.steps == create.steps, "every resource has its step");
    ensure!(shrink.steps == grow.steps && destroy.steps == create.steps, "every resource has its step");
    let slow_create = if workload.resources <= SLOWED {
        bench.access.store = Arc::new(SlowStore(bench.store.clone()));
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

/// Where the state of the stack is in its store.
const CHECKPOINT: &str = ".pulumi/stacks/bench/dev.json";

/// Up to how many resources are made with a slow store, too.
const SLOWED: usize = 1_000;

/// Between two runs.
const SETTLE: Duration = Duration::from_millis(100);

struct Bench<'f> {
    folder: &'f Path,
    store: FileStore,
    access: StackAccess,
    spawner: Spawner,
    key: f64,
    provider_start: f64,
}

/// One operation, from the lock to its return.
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
        let manager = keyring.new_manager().await?;
        let key = seconds(started.elapsed());
        let store = FileStore::open(&url).await?;
        let access = StackAccess {
            store: Arc::new(store.clone()),
            stack: StackReference::new(PROJECT, STACK)?,
            keyring: Arc::new(keyring),
            configured_secrets: Some(manager.describe()),
            config: Default::default(),
            journals: folder.to_owned(),
            engine_version: "v0.1.0".to_owned(),
        };
        let supervisor = Supervisor::start(&std::env::current_exe()?)?;
        let spawner = Spawner::supervised(Arc::new(supervisor));
        Ok(Self { folder, store, access, spawner, key, provider_start: 0.0 })
    }

    async fn run(&mut self, operation: Operation, workload: Workload) -> anyhow::Result<Run> {
        let started = Instant::now();
        let host = self.host().await?;
        self.provider_start = seconds(started.elapsed());

        // What the run before left to be freed aside is freed meanwhile.
        tokio::time::sleep(SETTLE).await;
        let started = Instant::now();
        let holder = LockHolder { pid: std::process::id(), username: "bench".into(), hostname: "bench".into() };
        let state = StackState::open(self.access.clone(), &holder).await?;
        let (before, looked) = sized(self.folder)?;
        let end = self.deploy(operation, workload, &state, Arc::new(host)).await?;
        let (after, looked_again) = sized(self.folder)?;
        let written = after - before;
        state.close(end.snapshot, None).await?;
        let time = seconds(started.elapsed() - looked - looked_again);

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
        let options = DeploymentOptions { parallel: PARALLEL, ..DeploymentOptions::new(STACK, PROJECT, operation) };
        let recorder = Box::new(state.recorder());
        let (deployment, run) = Deployment::new(
            options,
            state.snapshot().clone(),
            host,
            Some(recorder),
            Arc::new(Silence),
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
        registered.context("the engine refused a registration")?;
        Ok(end)
    }

    async fn host(&self) -> Result<PluginHost, HostError> {
        let environment = HostEnvironment::default();
        let local = LocalPackages {
            root: self.folder.to_owned(),
            work: self.folder.join("work"),
            environment: environment.clone(),
            spawner: self.spawner.clone(),
        };
        let settings = HostSettings {
            project: PROJECT.to_owned(),
            directory: self.folder.to_owned(),
            environment,
            spawner: self.spawner.clone(),
            sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
            limits: Limits::default(),
            type_facts: None,
            events: Arc::new(Silence),
        };
        let source = PluginSource::Local(LocalSource { path: crate::PROVIDER.into(), checksum: None });
        let name = "rec".parse().map_err(|_| HostError::new("no name"))?;
        let config = PluginConfig::new(name, source);
        PluginHost::load(settings, vec![DeclaredPlugin { config, init: PluginInit::default() }]).await
    }
}

/// The program: each resource as soon as what it needs is known.
async fn register_all(deployment: &Deployment, workload: Workload) -> Result<(), Halted> {
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    let root = deployment.register(root).await?.urn;
    let things = workload.things();
    let done: Vec<SetOnce<Registered>> = things.iter().map(|_| SetOnce::new()).collect();
    let registrations = things.iter().map(|thing| register(deployment, &root, thing, &done));
    join_all(registrations).await.into_iter().collect()
}

async fn register(
    deployment: &Deployment,
    root: &Urn,
    thing: &Thing,
    done: &[SetOnce<Registered>],
) -> Result<(), Halted> {
    let mut needed = Vec::new();
    for index in &thing.needs {
        needed.push(done[*index].wait().await);
    }
    let link = |needed: &&Registered| needed.outputs.get("cid").and_then(|cid| cid.as_str()).map(str::to_owned);
    let inputs = thing.inputs(needed.iter().filter_map(link).collect());
    let mut goal = Goal::custom(TypeToken::new(TYPE), &thing.name, inputs);
    goal.parent = Some(root.clone());
    goal.dependencies = needed.iter().map(|needed| needed.urn.clone()).collect();
    goal.property_dependencies = goal.inputs.keys().map(|key| (key.clone(), Vec::new())).collect();
    goal.property_dependencies.insert("links".to_owned(), goal.dependencies.clone());
    let registered = deployment.register(goal).await?;
    // Nobody else registers it.
    done[thing.index].set(registered).ok();
    Ok(())
}

/// Nobody listens.
#[derive(Debug)]
struct Silence;

impl EventSink for Silence {
    fn emit(&self, event: Event) {
        if let Event::Message(message) = event {
            eprintln!("{}", message.text);
        }
    }
}

impl HostEvents for Silence {
    fn emit(&self, event: HostEvent) {
        if let HostEvent::Output { line, .. } | HostEvent::Warning { message: line, .. } = event {
            eprintln!("{line}");
        }
    }
}

/// Bytes of all files in a folder, and how long it took to look, which is no part of a run.
fn sized(folder: &Path) -> std::io::Result<(u64, Duration)> {
    let started = Instant::now();
    Ok((size_of(folder)?, started.elapsed()))
}

/// Bytes of all files in a folder.
fn size_of(folder: &Path) -> std::io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}
