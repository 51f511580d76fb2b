//! Tests of the plugin host with real processes, of working and faulty plugins.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod attaching;
mod endpoints;
mod faulty_plugins;
mod go_plugin;
mod instances;
mod leases;
mod monitor;
#[path = "../recordings/mod.rs"]
mod recordings;
mod registration;
mod sharing;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bridge::error::{Hint as _, chain};
use bridge::host::{
    AttachedPlugin, CheckedPlugin, DeclaredPlugin, HostError, HostEvent, HostEvents, HostSettings, PackageTypes,
    PluginHost, PluginPool, Sources,
};
use bridge::install::{LocalPackages, Verification};
use bridge::plugin::{LocalSource, PluginConfig, PluginSource, Sandbox};
use bridge::process::{HostEnvironment, Spawner, Supervision};
use bridge::provider::grpc::{Limits, PluginInit};
use tokio_util::sync::CancellationToken;

/// Repository with plugins, and the events of its host.
pub(crate) struct TestRepository {
    folder: Arc<tempfile::TempDir>,
    plugins: Vec<DeclaredPlugin>,
    pub(crate) events: Arc<Events>,
    pub(crate) limits: Limits,
    pub(crate) abort: CancellationToken,
    spawner: Spawner,
    /// Sandbox of each plugin that is declared.
    sandbox: Sandbox,
    pub(crate) pool: PluginPool,
    pub(crate) attached: BTreeMap<String, AttachedPlugin>,
    pub(crate) first_instances: usize,
}

#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<HostEvent>>);

impl HostEvents for Events {
    fn emit(&self, event: HostEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Events {
    /// Returns all events, except those about work in progress.
    pub(crate) fn all(&self) -> Vec<HostEvent> {
        let events = self.0.lock().unwrap().clone();
        events.into_iter().filter(|event| !matches!(event, HostEvent::Working { .. })).collect()
    }
}

/// Waits until a condition holds that another process brings about.
pub(crate) async fn wait_until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            // Polls: the conditions are about other processes and their files, which report nothing to this one.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the condition holds in time");
}

impl TestRepository {
    /// Creates an empty repository. Its processes are unsupervised, and so have no sandbox.
    pub(crate) fn new() -> Self {
        Self {
            folder: Arc::new(tempfile::tempdir().unwrap()),
            plugins: Vec::new(),
            events: Arc::default(),
            limits: Limits::default(),
            abort: CancellationToken::new(),
            spawner: Spawner::unsupervised(),
            sandbox: Sandbox::None,
            pool: PluginPool::new(),
            attached: BTreeMap::new(),
            first_instances: 1,
        }
    }

    /// Creates an empty repository whose processes are supervised, as in a real run.
    pub(crate) fn supervised() -> Self {
        let supervisor = Supervision::new(env!("CARGO_BIN_EXE_bridge-supervised").as_ref()).unwrap();
        Self { spawner: Spawner::supervised(Arc::new(supervisor)), sandbox: Sandbox::default(), ..Self::new() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Declares a plugin that is a file with this content.
    pub(crate) fn file(&mut self, name: &str, content: &[u8], mode: u32) -> &mut PluginConfig {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let source = PluginSource::Local(LocalSource::new(path));
        let mut config = PluginConfig::new(name.parse().unwrap(), source);
        config.sandbox = self.sandbox.clone();
        let init = PluginInit { secrets: BTreeMap::from([("token".into(), "s3cr3t".into())]), ..PluginInit::default() };
        self.plugins.push(DeclaredPlugin { config, init, shares_equal_configurations: false });
        &mut self.plugins.last_mut().unwrap().config
    }

    /// Declares a plugin that is a shell script.
    pub(crate) fn script(&mut self, name: &str, script: &str) -> &mut PluginConfig {
        self.file(name, format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755)
    }

    /// Declares the test plugin, started by a script that runs `prepare` first. The plugin records its calls in
    /// `NAME.calls`.
    pub(crate) fn plugin(&mut self, name: &str, prepare: &str, faults: &[&str]) -> &mut PluginConfig {
        let program = env!("CARGO_BIN_EXE_bridge-plugin");
        let faults: String = faults.iter().map(|fault| format!("--fault '{fault}' ")).collect();
        let record = self.path(&format!("{name}.calls"));
        self.script(name, &format!("{prepare}\nexec '{program}' {faults} '{}' \"$@\"", record.display()))
    }

    /// Returns the declaration of the plugin that was declared last.
    pub(crate) fn last_plugin(&mut self) -> &mut PluginConfig {
        &mut self.plugins.last_mut().unwrap().config
    }

    /// Lets the provider resources of the plugin that was declared last share instances.
    pub(crate) fn share_instances(&mut self) {
        self.plugins.last_mut().unwrap().shares_equal_configurations = true;
    }

    /// Returns the repository for another run with events of its own and the same pool.
    pub(crate) fn with_other_events(&self) -> Self {
        Self {
            folder: Arc::clone(&self.folder),
            plugins: self.plugins.clone(),
            events: Arc::default(),
            limits: self.limits,
            abort: CancellationToken::new(),
            spawner: self.spawner.clone(),
            sandbox: self.sandbox.clone(),
            pool: self.pool.clone(),
            attached: self.attached.clone(),
            first_instances: self.first_instances,
        }
    }

    pub(crate) fn calls(&self, name: &str) -> Vec<String> {
        let calls = fs::read_to_string(self.path(&format!("{name}.calls"))).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// Returns the calls of each process of a plugin, in the order of their first calls. Initialize is left out.
    pub(crate) fn calls_of_processes(&self, name: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.path(&format!("{name}.calls.processes"))).unwrap_or_default();
        let mut processes: Vec<(&str, Vec<String>)> = Vec::new();
        for (process, call) in text.lines().filter_map(|line| line.split_once(' ')) {
            if call.starts_with("Initialize") {
                continue;
            }
            match processes.iter_mut().find(|(known, _)| *known == process) {
                Some((_, calls)) => calls.push(call.to_owned()),
                None => processes.push((process, vec![call.to_owned()])),
            }
        }
        processes.into_iter().map(|(_, calls)| calls).collect()
    }

    pub(crate) async fn load(&self) -> Result<PluginHost, HostError> {
        let loaded = PluginHost::load(self.settings(), self.plugins.clone()).await;
        loaded.map_err(|mut failed| failed.swap_remove(0).1)
    }

    /// Checks all declared plugins, closes the pool, and returns their types or the message of the error.
    pub(crate) async fn check(&mut self, needs_types: bool) -> Vec<Result<PackageTypes, String>> {
        let checked = |plugin: &DeclaredPlugin| CheckedPlugin { config: plugin.config.clone(), needs_types };
        let checked = PluginHost::check(self.settings(), self.plugins.iter().map(checked).collect()).await;
        std::mem::take(&mut self.pool).close().await;
        checked.into_iter().map(|result| result.map_err(|error| chain(&error))).collect()
    }

    fn settings(&self) -> HostSettings {
        let environment = [("PATH", "/usr/bin:/bin"), ("SHELL_SECRET", "s3cr3t"), ("PASSED", "yes")];
        let environment = HostEnvironment::new(environment.map(|(name, value)| (name.into(), value.into())));
        let local = LocalPackages {
            root: self.folder.path().to_owned(),
            cache: self.path("cache"),
            environment: environment.clone(),
            spawner: self.spawner.clone(),
            verification: Verification::default(),
            is_offline: false,
        };
        HostSettings {
            project: "t".into(),
            directory: self.folder.path().to_owned(),
            secret_files: vec![".sc/secrets.yaml".into()],
            environment,
            spawner: self.spawner.clone(),
            sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
            limits: Limits { exit: Duration::from_millis(200), ..self.limits },
            abort: self.abort.clone(),
            type_cache: Some(self.path("types")),
            first_instances: self.first_instances,
            events: self.events.clone(),
            pool: self.pool.clone(),
            attached: self.attached.clone(),
            undeclared: None,
        }
    }

    /// Loads the host, which must fail, and returns the message and the hint of the error.
    pub(crate) async fn load_error(&self) -> (String, String) {
        let error = self.load().await.unwrap_err();
        (chain(&error), error.hint().unwrap_or_default().into_string())
    }
}
