//! Tests of Terraform providers that the parameters of Pulumi's bridge name: locked, installed for other machines, and held to their signer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use tests::terraform_registry::{AuthorKey, TerraformRegistry, provider_archive};
use tokio::runtime::Runtime;

use crate::repository::{Repository, Sections};
use crate::terminal::Terminal;

const LOCK_FILE: &str = ".sc/sc.lock";

/// Registry with its own runtime, for synchronous tests.
struct Registry {
    registry: TerraformRegistry,
    _runtime: Runtime,
}

impl Registry {
    /// Starts a registry with a signed version.
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let registry = runtime.block_on(TerraformRegistry::start_tls()).unwrap();
        let key = AuthorKey::generate().unwrap();
        registry.sign_with(Some(&key)).unwrap();
        let registry = Self { registry, _runtime: runtime };
        registry.publish("1.0.0");
        registry
    }

    fn publish(&self, version: &str) {
        let archive = |words: &str| {
            let program = format!("terraform-provider-reef_v{version}");
            provider_archive(&[(&program, 0o755, format!("#!/bin/sh\necho {words}\n").as_bytes())]).unwrap()
        };
        let (amd64, arm64) = (archive(version), archive(&format!("{version} on arm64")));
        self.registry.publish("acme/reef", version, &[("linux_amd64", &amd64), ("linux_arm64", &arm64)]);
    }

    /// Returns a repository whose plugin is called like the program of the bridge, which these tests do not start.
    fn repository(&self) -> Repository {
        let plugins = format!(
            "- name: reef
  source: {{ type: local, path: bin/pulumi-resource-terraform-provider }}
  parameters: [{}/acme/reef, ^1]
",
            self.registry.host()
        );
        let repository = Repository::new(Sections { plugins: &plugins, resources: "{}", outputs: "" });
        let program = repository.path("bin/pulumi-resource-terraform-provider");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        repository
    }

    fn command(&self, repository: &Repository, arguments: &str) -> Command {
        let mut command = repository.command(arguments);
        command.env("SSL_CERT_FILE", self.registry.authority().unwrap());
        command
    }

    fn run(&self, repository: &Repository, arguments: &str) -> String {
        self.run_with(repository, arguments, &[])
    }

    fn run_with(&self, repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
        let mut command = self.command(repository, arguments);
        command.envs(variables.iter().copied());
        repository.start_command(command).output().replace(&self.registry.host(), "HOST")
    }
}

/// Shows: plugins.md#terraform-providers "An update that another key has signed, or none, is asked about on a terminal"
#[test]
fn another_signer_is_asked_about_on_a_terminal_and_refused_elsewhere() {
    let server = Registry::new();
    let repository = server.repository();
    assert!(server.run(&repository, "plugin lock").starts_with("exit 0\n"));
    let other = AuthorKey::generate().unwrap();
    server.registry.sign_with(Some(&other)).unwrap();
    server.publish("1.1.0");
    let before = repository.read(LOCK_FILE);
    for variables in [&[][..], &[("CI", "true")]] {
        let refused = server.run_with(&repository, "plugin update", variables);
        assert!(refused.starts_with("exit 1\n"), "{refused}");
        assert!(refused.contains("1.1.0 of terraform HOST/acme/reef is signed by "), "{refused}");
        assert!(refused.contains(", but the lock file records the signer "), "{refused}");
        assert_eq!(repository.read(LOCK_FILE), before);
    }
    for (reply, code, version) in [("n", 1, "1.0.0"), ("y", 0, "1.1.0")] {
        let mut terminal = Terminal::start(&server.command(&repository, "plugin update"));
        terminal.wait_until_shown("[y/N]");
        let screen = terminal.screen().replace(['\r', '\n'], " ");
        assert!(screen.contains("Record it with this signer?") && screen.contains(&other.fingerprint()), "{screen}");
        terminal.type_line(reply);
        assert_eq!(terminal.wait(), code, "{}", terminal.screen());
        assert!(repository.read(LOCK_FILE).contains(&format!("tag: {version}\n")), "{}", repository.read(LOCK_FILE));
    }
    assert!(repository.read(LOCK_FILE).contains(&other.fingerprint()));
}

/// Shows: plugins.md#folders-of-plugins-and-mirrors "`sc plugin mirror DIR` copies what the lock file records"
/// Shows: plugins.md#plugins-their-sources-and-their-processes "the Terraform providers that their parameters name"
#[test]
fn provider_is_copied_and_installed_for_other_machines() {
    let server = Registry::new();
    let repository = server.repository();
    assert!(server.run(&repository, "plugin lock").starts_with("exit 0\n"));
    let described = server.run(&repository, "plugin ls reef");
    assert!(described.contains("provider         terraform HOST/acme/reef ^1\n"), "{described}");
    assert!(described.contains("provider is      1.0.0; verified by signed; signer "), "{described}");
    assert!(described.contains("; platforms linux-amd64, linux-arm64\n"), "{described}");
    let copied = server.run(&repository, "plugin mirror copies --json");
    assert!(copied.starts_with("exit 0\n"), "{copied}");
    for platform in ["linux_amd64", "linux_arm64"] {
        let file = format!("copies/HOST/acme/reef/1.0.0/terraform-provider-reef_1.0.0_{platform}.zip\"");
        assert!(copied.contains(&file), "{copied}");
    }
    assert!(copied.contains(r#"{"plugin":"reef","copied":false}"#), "the bridge is local: {copied}");
    assert_eq!(
        server.run(&repository, "plugin mirror copies").matches("was there").count(),
        2,
        "what is there is kept"
    );
    // Another machine has the copies, and no network.
    let other = repository.copy();
    fs::remove_dir_all(other.path("home/.cache")).unwrap_or_default();
    let asked = server.registry.requests().len();
    let copies = other.path("copies");
    let variables = [("SC_PLUGIN_PATH", copies.to_str().unwrap())];
    let output = server.run_with(&other, "plugin install --locked --offline", &variables);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert_eq!(server.registry.requests().len(), asked);
    let placed = other.path(&format!("home/.cache/sc/terraform/{}/acme/reef/1.0.0", server.registry.host()));
    assert_eq!(fs::read_dir(placed).unwrap().count(), 1);
}
