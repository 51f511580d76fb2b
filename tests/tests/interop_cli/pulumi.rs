//! Pulumi's command line, which works on the state of a repository.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tests::sdk_providers::{PASSPHRASE, Repository, Sdk};
use tests::sdks::PulumiCli;

/// Name of the stack in Pulumi.
pub(crate) const STACK: &str = "organization/tide/reef";

/// Pulumi's command line with its own home and project, and the state of one of our repositories.
pub(crate) struct Pulumi<'r> {
    /// The installed programs.
    pub(crate) cli: PulumiCli,
    repository: &'r Repository,
    project: PathBuf,
}

impl<'r> Pulumi<'r> {
    /// Creates an empty project with the same name as the repository's.
    pub(crate) fn new(repository: &'r Repository) -> Self {
        let project = repository.folder().join("pulumi-project");
        fs::create_dir_all(&project).unwrap();
        fs::create_dir_all(repository.folder().join(".sc/state")).unwrap();
        let pulumi = Self { cli: PulumiCli::install().unwrap(), repository, project };
        pulumi.program(&json!({}), &json!({}));
        pulumi
    }

    /// Writes the program, in Pulumi's YAML.
    pub(crate) fn program(&self, resources: &Value, outputs: &Value) {
        let program = json!({"name": "tide", "runtime": "yaml", "resources": resources, "outputs": outputs});
        fs::write(self.project.join("Pulumi.yaml"), format!("{program:#}")).unwrap();
    }

    /// Copies the secrets provider of the state into the project. Without it, the next run would encrypt all secrets with
    /// a new key.
    pub(crate) fn copy_secrets_provider(&self) {
        let export: Value = serde_json::from_str(&self.run_successfully(&["stack", "export"])).unwrap();
        let secrets_provider = &export["deployment"]["secrets_providers"];
        let state = &secrets_provider["state"];
        let settings = match secrets_provider["type"].as_str().unwrap() {
            "cloud" => json!({"secretsprovider": state["url"], "encryptedkey": state["encryptedkey"]}),
            _ => json!({"encryptionsalt": state["salt"]}),
        };
        fs::write(self.project.join("Pulumi.reef.yaml"), settings.to_string()).unwrap();
    }

    /// Runs a command on the stack and returns its exit code, standard output and standard error.
    pub(crate) fn run(&self, arguments: &[&str], passphrase: &str) -> (i32, String, String) {
        let output = self.command(arguments, passphrase).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Returns a command on the stack, unless its arguments name another one.
    pub(crate) fn command(&self, arguments: &[&str], passphrase: &str) -> Command {
        let of_stack = ["--stack", STACK];
        let arguments: Vec<&str> = match arguments {
            // `stack ls` lists all stacks, of the project or (with `--all`) of the backend, and accepts no stack.
            ["stack", "ls", ..] => arguments.to_vec(),
            // These take the name as an argument.
            ["stack", "init" | "rm", ..] => [arguments, &[STACK]].concat(),
            _ if arguments.contains(&"--stack") => arguments.to_vec(),
            _ => [arguments, &of_stack].concat(),
        };
        let repository = self.repository;
        // Our own provider is found on PATH.
        let plugins = repository.folder().join("plugins").join(Sdk::Go.package());
        let mut command = self.cli.command(&plugins).unwrap();
        command
            .args(arguments)
            .arg("--non-interactive")
            .current_dir(&self.project)
            .env("HOME", repository.folder().join("home"))
            .env("PULUMI_HOME", repository.folder().join("pulumi-home"))
            .env("PULUMI_BACKEND_URL", repository.backend())
            .env("PULUMI_CONFIG_PASSPHRASE", passphrase)
            .env("PEER_HOME", repository.home.folder())
            .envs(repository.variables().iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn run_successfully(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(arguments, PASSPHRASE);
        assert_eq!(code, 0, "pulumi {}:\n{stdout}\n{stderr}", arguments.join(" "));
        stdout
    }

    /// Runs a command that changes resources, without preview.
    pub(crate) fn changes(&self, command: &str) {
        self.run_successfully(&[command, "--yes", "--skip-preview"]);
    }

    /// Returns the resources of the state, with secrets in plain text.
    pub(crate) fn resources(&self) -> Vec<Value> {
        let export = self.run_successfully(&["stack", "export", "--show-secrets"]);
        let mut export: Value = serde_json::from_str(&export).unwrap();
        match export["deployment"]["resources"].take() {
            Value::Array(resources) => resources,
            _ => Vec::new(),
        }
    }

    /// Returns the resource with this name.
    pub(crate) fn resource(&self, name: &str) -> Value {
        let end = format!("::{name}");
        let resources = self.resources();
        let found = resources.iter().find(|resource| resource["urn"].as_str().unwrap().ends_with(&end));
        found.unwrap_or_else(|| panic!("no {name} in {resources:#?}")).clone()
    }

    /// Returns the text of the stack's settings.
    pub(crate) fn settings(&self) -> String {
        fs::read_to_string(self.project.join("Pulumi.reef.yaml")).unwrap()
    }
}
