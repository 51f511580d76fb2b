//! Components made by providers on Pulumi's own SDKs, each a process of its own: the recordings played with each of them,
//! and a server.yaml provisioned.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bridge::host::{DeclaredPlugin, HostEvent, HostEvents, HostSettings, PluginHost, ProviderHost, Sources};
use bridge::install::LocalPackages;
use bridge::plugin::{LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, Spawner};
use bridge::provider::grpc::{Limits, PluginInit};
use tempfile::TempDir;
use tests::compare::{Situation, compare};
use tests::drive;
use tests::peers;
use tests::player::Pace;
use tests::scenario::Scenario;

/// A component provider.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// The one that the recordings were made with.
    Python,
    Node,
    Go,
}

/// A component provider, installed.
struct Installed {
    folder: TempDir,
    path: OsString,
}

impl Peer {
    fn install(self) -> Installed {
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_components");
        let plugin = folder.path().join("comp");
        fs::create_dir(&plugin).unwrap();
        let mut path = std::env::var_os("PATH").unwrap();
        match self {
            Self::Python => {
                let venv = peers::python_venv("python-pulumi", &["pulumi>=3.272.0"]).unwrap();
                copy(&sources.join("python"), &plugin);
                symlink(venv.folder(), plugin.join("venv")).unwrap();
            }
            Self::Node => {
                let node = peers::node_modules("node-pulumi", 22, &["@pulumi/pulumi@^3.270.0"]).unwrap();
                copy(&sources.join("node"), &plugin);
                symlink(node.folder(), plugin.join("node_modules")).unwrap();
                path = peers::first_on_path(&node.bin()).unwrap();
            }
            Self::Go => {
                let program = peers::go_program("pulumi-resource-comp", &sources.join("go")).unwrap();
                fs::copy(program, plugin.join("pulumi-resource-comp")).unwrap();
            }
        }
        Installed { folder, path }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

impl Installed {
    fn plugin(&self) -> PathBuf {
        self.folder.path().join("comp")
    }

    /// A host that runs it.
    async fn host(&self) -> PluginHost {
        let environment = HostEnvironment::new([("PATH".into(), self.path.clone())]);
        let local = LocalPackages {
            root: self.folder.path().to_owned(),
            work: self.folder.path().join("work"),
            environment: environment.clone(),
            spawner: Spawner::unsupervised(),
        };
        let settings = HostSettings {
            project: "t".into(),
            directory: self.folder.path().to_owned(),
            environment,
            spawner: Spawner::unsupervised(),
            sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
            limits: Limits::default(),
            type_facts: None,
            events: Arc::new(Deaf),
        };
        let source = PluginSource::Local(LocalSource { path: self.plugin(), checksum: None });
        let config = PluginConfig::new("comp".parse().unwrap(), source);
        PluginHost::load(settings, vec![DeclaredPlugin { config, init: PluginInit::default() }]).await.unwrap()
    }
}

struct Deaf;

impl HostEvents for Deaf {
    fn emit(&self, _: HostEvent) {}
}

/// Plays every recording of components with this provider.
async fn plays_the_recordings(peer: Peer) {
    let installed = peer.install();
    let host: Arc<dyn ProviderHost> = Arc::new(installed.host().await);
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine/components.jsonl");
    let mut wrong = Vec::new();
    for scenario in Scenario::read(&recordings).unwrap() {
        for (index, step) in scenario.steps.iter().enumerate() {
            let observed = drive::run_beside(&scenario, index, Pace::OneByOne, Some(Arc::clone(&host))).await.unwrap();
            let base = scenario.base(index);
            let differences = compare(&Situation { step, base: &base }, &observed.outcome);
            let differences = observed.faults.into_iter().chain(differences.iter().map(ToString::to_string));
            wrong.extend(differences.map(|text| format!("{}/{index}: {text}", scenario.name)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn recordings_hold_with_python() {
    plays_the_recordings(Peer::Python).await;
}

#[tokio::test]
async fn recordings_hold_with_node() {
    plays_the_recordings(Peer::Node).await;
}

#[tokio::test]
async fn recordings_hold_with_go() {
    plays_the_recordings(Peer::Go).await;
}

/// A repository whose stack uses the component provider and the scripted one.
struct Repository(Installed);

impl Repository {
    fn new(peer: Peer) -> Self {
        let repository = Self(peer.install());
        for folder in [".git", "backend", "home", "rec"] {
            fs::create_dir(repository.path(folder)).unwrap();
        }
        fs::create_dir_all(repository.path(".sc/stacks/reef")).unwrap();
        fs::write(repository.path(".sc/cfg.default.yaml"), "projectName: tank\n").unwrap();
        repository
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.folder.path().join(path)
    }

    fn describe(&self, resources: &str, outputs: &str) {
        let rec = env!("CARGO_BIN_EXE_pulumi-resource-rec");
        let text = format!(
            "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: file://backend }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
plugins:
  - {{ name: comp, source: {{ type: local, path: comp }} }}
  - {{ name: rec, source: {{ type: local, path: {rec} }}, passEnv: [REC_DIR] }}
resources:
  resources:
    prod:
      resources: {{ {resources} }}
outputs: {{ {outputs} }}
"
        );
        fs::write(self.path(".sc/stacks/reef/server.yaml"), text).unwrap();
    }

    /// Runs `sc`; returns its exit code and all it wrote.
    fn run(&self, arguments: &str) -> (i32, String) {
        let output = Command::new(tests::program::sc().unwrap())
            .args(arguments.split_whitespace())
            .current_dir(self.0.folder.path())
            .env_clear()
            .env("PATH", &self.0.path)
            .env("HOME", self.path("home"))
            .env("REC_DIR", self.path("rec"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code().unwrap_or(-1), text)
    }

    fn succeeds(&self, arguments: &str) -> String {
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "sc {arguments}:\n{text}");
        text
    }

    /// What the state holds: type of each resource and its name, with its provider's where it has one.
    fn resources(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("backend/.pulumi/stacks/tank/reef.json")).unwrap();
        let state: serde_json::Value = serde_json::from_str(&text).unwrap();
        let line = |resource: &serde_json::Value| {
            let name = resource["urn"].as_str().unwrap().rsplit("::").next().unwrap();
            let by = resource["provider"].as_str().map(|reference| reference.rsplit("::").nth(1).unwrap());
            format!("{name} {}", by.map(|by| format!("by {by}")).unwrap_or_default()).trim_end().to_owned()
        };
        state["checkpoint"]["latest"]["resources"].as_array().into_iter().flatten().map(line).collect()
    }
}

const NEST: &str = "nest: { type: comp:index:Nest, config: { value: 1 } },
        after: { type: rec:index:Thing, config: { v: '${resource:nest.inner}' }, options: { dependsOn: [nest] } }";

/// Makes a component of a server.yaml, leaves it alone, changes it, and destroys it.
fn provisions(peer: Peer) {
    let repository = Repository::new(peer);
    repository.describe(NEST, "inner: '${resource:prod/nest.inner}'");
    let text = repository.succeeds("provision --preview -s reef");
    assert!(text.contains("nest--prod-pair-one"), "{text}");
    repository.succeeds("provision -s reef");
    let all = [
        "tank-reef",
        "comp",
        "rec",
        "nest--prod",
        "nest--prod-pair",
        "nest--prod-pair-one by rec",
        "nest--prod-pair-two by rec",
        "nest--prod-tail by rec",
        "after--prod by rec",
    ];
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(repository.resources()), sorted(all.map(str::to_owned).to_vec()));
    repository.succeeds("provision -s reef --expect-no-changes");
    repository.describe(&NEST.replace("value: 1", "value: 2"), "inner: '${resource:prod/nest.inner}'");
    repository.succeeds("provision -s reef");
    let outputs = repository.succeeds("stack outputs -s reef");
    assert!(outputs.contains(r#"o:\"o:2\""#), "{outputs}");
    repository.succeeds("destroy --parent -s reef --yes");
    assert_eq!(repository.resources(), [""; 0]);
}

#[test]
fn a_python_component_lives_and_dies() {
    provisions(Peer::Python);
}

#[test]
fn a_node_component_lives_and_dies() {
    provisions(Peer::Node);
}

#[test]
fn a_go_component_lives_and_dies() {
    provisions(Peer::Go);
}

/// All that a component may ask besides registering: a component of its own kind from outside, a method of it, a
/// function, a resource that exists.
#[test]
fn a_component_asks_for_whatever_there_is() {
    let repository = Repository::new(Peer::Go);
    let outputs = ["told", "asked", "seen"].map(|name| format!("{name}: '${{resource:prod/t.{name}}}'")).join(", ");
    repository.describe("t: { type: comp:index:Teller, config: { value: 7 } }", &outputs);
    repository.succeeds("provision -s reef");
    let text = repository.succeeds("stack outputs -s reef");
    assert!(text.contains(r#""told":"hello, o:\"o:7\"""#), "{text}");
    assert!(text.contains(r#""asked":{"v":5}"#), "{text}");
    assert!(text.contains(r#""seen":"c:elsewhere""#), "{text}");
    repository.succeeds("provision -s reef --expect-no-changes");

    repository.describe("t: { type: comp:index:Teller, config: { value: 7, hook: true } }", &outputs);
    let (code, text) = repository.run("provision -s reef -S");
    assert_eq!(code, 1, "{text}");
    // The SDK has been told that there are no hooks; how it says so to its component is its own affair.
    assert!(text.contains("error: t--prod (comp:Teller)"), "{text}");
}
