//! Tests of packages that no stack declares: those that components name, and those of plugins that have left server.yaml.

use std::fs;

use bridge::plugin::Platform;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tokio::runtime::Runtime;

use crate::repository::{Repository, Sections};

const COMP: &str = "- { name: comp, source: { type: local, path: $COMP }, passEnv: [COMP_PACKAGE_URL] }";
const POND: &str = "pond: { type: comp:index:Reef, config: { value: 1 } }";
const LOCK_FILE: &str = ".sc/sc.lock";

/// Server with a release of the plugin `rec`, which serves the package `reef` with parameters.
struct Server {
    releases: ReleaseServer,
    _runtime: Runtime,
}

impl Server {
    fn new(repository: &Repository) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let releases = runtime.block_on(ReleaseServer::start_tls()).unwrap();
        releases.add_digests();
        let folder = repository.path("rec");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("script.json"), r#"{"provider": {"parameters": true}}"#).unwrap();
        let program = env!("CARGO_BIN_EXE_pulumi-resource-rec");
        let script = format!("#!/bin/sh\nREC_DIR='{}' exec '{program}' \"$@\"\n", folder.display());
        let archive = tar_gz(&[("pulumi-resource-rec", Entry::File(0o755, script.as_bytes()))]).unwrap();
        let asset = format!("pulumi-resource-rec-v1.0.0-{}.tar.gz", Platform::current().unwrap());
        releases.publish("acme/pulumi-rec", "v1.0.0", &[(&asset, &archive)]);
        Self { releases, _runtime: runtime }
    }

    /// Runs a command, with the address of the server as the one that the component names.
    fn run(&self, repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
        let mut command = repository.command(arguments);
        command.env("SSL_CERT_FILE", self.releases.authority().unwrap()).envs(variables.iter().copied());
        command.env("COMP_PACKAGE_URL", format!("github://{}/acme", self.host()));
        repository.start_command(command).output().replace(&self.host(), "HOST")
    }

    fn host(&self) -> String {
        self.releases.url().trim_start_matches("https://").to_owned()
    }

    fn downloads(&self) -> usize {
        self.releases.requests().iter().filter(|request| request.path.ends_with(".tar.gz")).count()
    }
}

fn machine(repository: &Repository) -> Repository {
    let other = repository.copy();
    fs::remove_dir_all(other.path("home/.cache")).unwrap();
    other
}

const TAKEN: &str =
    "the plugin rec 1.0.0, a release of https://HOST/acme/pulumi-rec, which no stack declares: it is taken from there";
const REFUSED: &str = "which no stack declares: a pipeline takes it only if the lock file records it";

/// Shows: plugins.md#plugins-that-no-stack-declares "A component may need a plugin as well"
/// Shows: plugins.md#plugins-that-no-stack-declares "is started with the parameters in the state"
#[test]
fn package_of_a_component_is_fetched_from_where_the_component_says() {
    let repository = Repository::new(Sections { plugins: COMP, resources: POND, outputs: "" });
    let server = Server::new(&repository);
    // A pipeline decides about nothing new.
    let pipeline = server.run(&repository, "provision --yes", &[("CI", "true")]);
    assert!(pipeline.starts_with("exit 1\n") && pipeline.contains(REFUSED), "{pipeline}");
    assert_eq!(server.downloads(), 0);

    let output = server.run(&repository, "provision --yes", &[]);
    assert!(output.starts_with("exit 0\n") && output.contains(&format!("a component needs {TAKEN}")), "{output}");
    assert_eq!(output.matches("which no stack declares").count(), 1, "it is told once: {output}");
    assert!(repository.read(LOCK_FILE).contains("acme/pulumi-rec"), "{}", repository.read(LOCK_FILE));
    assert!(repository.resources().iter().any(|resource| resource.starts_with("pond--prod-child reef:index:Thing")));
    assert!(repository.read(LOCK_FILE).contains("  undeclared: true\n"), "{}", repository.read(LOCK_FILE));
    // Which plugins the state and components need, the files do not tell: their entries stay.
    assert!(server.run(&repository, "plugin lock --check", &[]).starts_with("exit 0\n"));
    let lock = repository.read(LOCK_FILE);
    assert!(server.run(&repository, "plugin lock", &[]).starts_with("exit 0\n"));
    assert_eq!(repository.read(LOCK_FILE), lock);
    let mirrored = server.run(&repository, "plugin mirror copies --json", &[]);
    let asset = format!("acme/pulumi-rec/v1.0.0/pulumi-resource-rec-v1.0.0-{}.tar.gz", Platform::current().unwrap());
    assert!(mirrored.starts_with("exit 0\n") && mirrored.contains(&asset), "{mirrored}");
    let other = machine(&repository);
    let unchanged = server.run(&other, "provision --expect-no-changes --locked", &[("CI", "true")]);
    assert!(unchanged.starts_with("exit 0\n"), "{unchanged}");

    // Both plugins have left the file.
    repository.write_sections(Sections { plugins: "", resources: "{}", outputs: "" });
    let output = server.run(&repository, "provision --yes", &[]);
    assert!(output.starts_with("exit 0\n") && output.contains(&format!("recorded resources need {TAKEN}")), "{output}");
    assert!(output.contains("deleted pond--prod-child"), "{output}");
    assert_eq!(repository.processes(), []);
}
