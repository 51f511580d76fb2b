//! Providers whose processes remember the inputs of CheckConfig and DiffConfig: a published library for Go, and two programs in
//! Python.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use tests::sdk_providers::Repository;
use tests::sdks::{go_program, python_venv};

/// Provider that remembers.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// Built with pulumi-go-provider.
    Inferred,
    /// `configured/provider.py` with this argument.
    Configured(&'static str),
}

const PEERS: [Peer; 3] = [Peer::Inferred, Peer::Configured("decodes"), Peer::Configured("compares")];

/// Flags of `sc provision`, and `keep` of the plugin.
const RUNS: [(&[&str], &str); 5] =
    [(&[], "run"), (&["-S"], "run"), (&["-R"], "run"), (&["-S", "-R"], "run"), (&[], "never")];

/// Repository with a pond of a provider that remembers.
struct PondRepository {
    repository: Repository,
    package: &'static str,
}

impl PondRepository {
    fn new(peer: Peer) -> Self {
        let repository = Repository::new(&[]);
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_providers");
        let package = match peer {
            Peer::Inferred => {
                let program = go_program("pulumi-resource-inferred", &sources.join("inferred")).unwrap();
                fs::create_dir(repository.folder().join("plugin")).unwrap();
                fs::copy(program, repository.folder().join("plugin/pulumi-resource-inferred")).unwrap();
                "inferred"
            }
            Peer::Configured(behaviour) => {
                let packages = ["pulumi>=3.272.0", "googleapis-common-protos", "grpcio-tools"];
                let python = python_venv("python-pulumi", &packages).unwrap().python();
                let program = sources.join("configured/provider.py");
                let script = format!("#!/bin/sh\nexec '{}' '{}' {behaviour}\n", python.display(), program.display());
                repository.write_file("plugin/pulumi-resource-configured", &script);
                let program = repository.folder().join("plugin/pulumi-resource-configured");
                fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
                "configured"
            }
        };
        Self { repository, package }
    }

    fn declare(&self, account: &str, keep: &str) {
        let plugin = json!({
            "name": self.package,
            "source": {"type": "local", "path": "plugin"},
            "keep": keep,
            "config": {"account": account},
        });
        let pond = json!({"type": format!("{}:index:Pond", self.package), "config": {"depth": 3}});
        self.repository.declare_sections(&json!([plugin]), &json!({"pond": pond}), &json!({}));
    }

    /// Provisions the stack, which must succeed, and returns what the provider has done.
    fn provision(&self, arguments: &[&str]) -> String {
        let log = self.repository.folder().join("operations.log");
        fs::remove_file(&log).ok();
        self.repository.run_successfully(&[&["provision", "-s", "reef", "--yes"], arguments].concat());
        fs::read_to_string(log).unwrap_or_default()
    }
}

/// Shows: hosting.md#what-is-kept-when "CheckConfig and DiffConfig reach only an instance that has had no Configure"
#[test]
fn unchanged_stack_of_a_provider_that_remembers_stays_unchanged() {
    for peer in PEERS {
        let pond = PondRepository::new(peer);
        pond.declare("old", "run");
        assert_eq!(pond.provision(&[]), "create in old\n", "{peer:?}");
        for (flags, keep) in RUNS {
            pond.declare("old", keep);
            let flags = [flags, &["--expect-no-changes"]].concat();
            assert_eq!(pond.provision(&flags), "", "{peer:?} {flags:?} keep: {keep}");
        }
    }
}

/// Shows: hosting.md#what-is-kept-when "three: those with the old and with the new configuration, and one that checks
///   it"
/// Shows: engine.md#providers "are deleted by an instance with the recorded configuration"
#[test]
fn old_resource_is_deleted_with_the_old_configuration() {
    for peer in PEERS {
        for (flags, keep) in RUNS {
            let pond = PondRepository::new(peer);
            pond.declare("old", keep);
            pond.provision(&["-S", "-R"]);
            pond.declare("new", keep);
            pond.repository.run_successfully(&["preview", "-s", "reef"]);
            let expected = "create in new\ndelete the pond of old in old\n";
            assert_eq!(pond.provision(flags), expected, "{peer:?} {flags:?} keep: {keep}");
        }
    }
}
