//! Tests of states of plugins with parameters that move between `sc` and Pulumi's command line.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tests::sdk_providers::{PASSPHRASE, Repository};
use tests::sdks::PulumiCli;

use crate::terraform::{MODULE, PROVIDER, bridge_repository, declare, program, provider, registry, write_program};

/// Pulumi's command line with the bridge among its plugins, and a Terraform provider where the bridge looks for it. It works on the state of
/// a repository.
struct Pulumi<'r> {
    cli: PulumiCli,
    repository: &'r Repository,
    project: PathBuf,
}

impl<'r> Pulumi<'r> {
    /// Creates a project without resources. `bridge` is the version of the bridge that the state names.
    fn new(repository: &'r Repository, bridge: &str) -> Self {
        let project = repository.folder().join("pulumi-project");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("Pulumi.yaml"), "name: tide\nruntime: yaml\n").unwrap();
        let installed = format!("../pulumi-home/plugins/resource-terraform-provider-v{bridge}");
        write_program(repository, &format!("{installed}/pulumi-resource-terraform-provider"), &program(MODULE, ""));
        let pulumi = Self { cli: PulumiCli::install().unwrap(), repository, project };
        // Without the salt of the state, Pulumi would encrypt all secrets with a new key.
        let salt = pulumi.export()["deployment"]["secrets_providers"]["state"]["salt"].clone();
        fs::write(pulumi.project.join("Pulumi.reef.yaml"), json!({ "encryptionsalt": salt }).to_string()).unwrap();
        pulumi
    }

    /// Runs a command on the stack that must succeed, and returns its standard output.
    fn run(&self, arguments: &[&str]) -> String {
        let (repository, folder) = (self.repository, |name: &str| self.repository.folder().join(name));
        // No plugin is on PATH.
        let mut pulumi: Command = self.cli.command(&folder("no-plugins")).unwrap();
        pulumi
            .args(arguments)
            .args(["--stack", "organization/tide/reef", "--non-interactive"])
            .current_dir(&self.project)
            .env("HOME", folder("home"))
            .env("PULUMI_HOME", folder("pulumi-home"))
            .env("PULUMI_BACKEND_URL", repository.backend())
            .env("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
            .env("PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR", folder("providers"))
            .envs(repository.variables().iter().map(|(name, value)| (name, value)));
        let output = pulumi.output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "pulumi {}:\n{stdout}\n{stderr}", arguments.join(" "));
        stdout
    }

    fn export(&self) -> Value {
        serde_json::from_str(&self.run(&["stack", "export"])).unwrap()
    }
}

/// Shows: plugins.md#parameters "so `pulumi` goes on from the state, and"
#[tokio::test(flavor = "multi_thread")]
async fn pulumi_goes_on_from_our_state_with_parameters_and_back() {
    let pfprovider = program(&format!("{MODULE}/test/pfprovider"), "");
    let (registry, _) = registry(PROVIDER, &pfprovider, &["1.0.0"]).await;
    tokio::task::spawn_blocking(move || {
        let repository = bridge_repository(Some(&registry));
        declare(&repository, &registry, "~> 1.0.0", "north");
        repository.provision();
        let recorded = provider(&repository);
        let internal = &recorded["inputs"]["__internal"];
        let platform = bridge::plugin::Platform::current().unwrap().to_string().replace('-', "_");
        let place = format!("../providers/{}/{PROVIDER}/1.0.0/{platform}", registry.host());
        write_program(&repository, &format!("{place}/terraform-provider-pfprovider_v1.0.0"), &pfprovider);

        let pulumi = Pulumi::new(&repository, internal["version"].as_str().unwrap());
        let export = pulumi.export();
        let resources = export["deployment"]["resources"].as_array().unwrap();
        let exported = resources.iter().find(|resource| resource["type"] == "pulumi:providers:pfprovider").unwrap();
        assert_eq!(exported["inputs"]["__internal"], *internal);
        assert!(internal["parameterization"].is_string(), "{internal}");

        let requests = registry.requests().len();
        pulumi.run(&["refresh", "--preview-only", "--expect-no-changes"]);
        pulumi.run(&["refresh", "--yes", "--skip-preview", "--expect-no-changes"]);
        assert_eq!(provider(&repository)["inputs"], recorded["inputs"]);
        repository.run_successfully(&["provision", "--preview", "--expect-no-changes", "--offline"]);
        repository.run_successfully(&["provision", "--expect-no-changes", "--offline"]);

        pulumi.run(&["destroy", "--yes", "--skip-preview"]);
        assert_eq!(repository.entries("a"), [json!(null); 0]);
        repository.run_successfully(&["provision", "--yes", "--offline"]);
        assert_eq!(repository.outputs(&[])["computed"], 128);
        assert_eq!(provider(&repository)["inputs"], recorded["inputs"]);
        pulumi.run(&["refresh", "--preview-only", "--expect-no-changes"]);
        assert_eq!(registry.requests().len(), requests, "neither program has asked the registry");
    })
    .await
    .unwrap();
}
