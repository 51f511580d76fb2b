//! A repository in a temporary folder, read with surroundings that never change.

use std::fs;
use std::path::{Path, PathBuf};

use config::diagnostics::{Severity, SourceFiles, Style, render};
use config::types::TypeTable;
use config::{Account, Loaded, Profile, Repository, Stack, Surroundings, Workspace};
use serde::de::DeserializeOwned;

/// The head of every server.yaml whose provisioner is not the subject.
pub(crate) const PROVISIONER: &str = "\
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: file:///state } }
    secrets-provider: { type: passphrase, config: { passPhrase: p } }
";

/// What a repository holds.
pub(crate) struct Files {
    files: Vec<(String, String)>,
    types: TypeTable,
    environment: Vec<(&'static str, &'static str)>,
}

impl Files {
    /// One stack `s` with this server.yaml.
    pub(crate) fn server(text: &str) -> Self {
        Self::empty().with(".sc/stacks/s/server.yaml", text)
    }

    /// One stack `s` with a provisioner and these sections.
    pub(crate) fn sections(text: &str) -> Self {
        Self::server(&format!("{PROVISIONER}{text}"))
    }

    pub(crate) fn empty() -> Self {
        Self { files: Vec::new(), types: TypeTable::default(), environment: vec![] }
            .with(".sc/cfg.default.yaml", "projectName: reef\n")
            .with(".git/HEAD", "ref: refs/heads/f/x")
            .with(".git/refs/heads/f/x", "39d4ed90bb9c4e9b9eab986b92dbed25733b7cbf")
    }

    pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub(crate) fn secrets(self, text: &str) -> Self {
        self.with(".sc/stacks/s/secrets.yaml", text)
    }

    pub(crate) fn types(self, types: TypeTable) -> Self {
        Self { types, ..self }
    }

    pub(crate) fn environment(self, environment: Vec<(&'static str, &'static str)>) -> Self {
        Self { environment, ..self }
    }

    pub(crate) fn read(&self, names: &[&str]) -> Read {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in &self.files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let surroundings = surroundings(&self.environment);
        let repository = Repository::discover(&root);
        let mut sources = SourceFiles::default();
        let loaded = match Profile::read("default", &repository, &surroundings, &mut sources) {
            Ok(profile) => {
                let workspace = Workspace {
                    repository: &repository,
                    profile: &profile,
                    stacks_dir: None,
                    surroundings: &surroundings,
                    types: &self.types,
                };
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                workspace.load(&names, &mut sources)
            }
            Err(diagnostics) => Loaded { stacks: Vec::new(), diagnostics },
        };
        Read { root, sources, loaded, _folder: folder }
    }

    /// The only stack, read without a word.
    pub(crate) fn stack(&self) -> Stack {
        let mut read = self.read(&["s"]);
        assert_eq!(read.words(), "");
        read.loaded.stacks.remove(0)
    }

    /// Everything that is said about stack `s`.
    pub(crate) fn words(&self) -> String {
        let read = self.read(&["s"]);
        let errors = read.loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        assert_eq!(errors, read.loaded.stacks.is_empty(), "a stack is there exactly if there is no error");
        read.words()
    }
}

/// What became of it.
pub(crate) struct Read {
    pub(crate) root: PathBuf,
    pub(crate) sources: SourceFiles,
    pub(crate) loaded: Loaded,
    _folder: tempfile::TempDir,
}

impl Read {
    pub(crate) fn words(&self) -> String {
        let words: Vec<_> =
            self.loaded.diagnostics.iter().map(|diagnostic| render(diagnostic, &self.sources, Style::Plain)).collect();
        words.join("\n\n").replace(&self.root.display().to_string(), "<ROOT>")
    }
}

pub(crate) fn surroundings(environment: &[(&str, &str)]) -> Surroundings {
    Surroundings {
        environment: environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        now: "2024-01-02T03:04:05[UTC]".parse().unwrap(),
        account: Some(Account {
            home: "/home/pearl".into(),
            username: "pearl".into(),
            id: "1000".into(),
            name: "Pearl Diver".into(),
        }),
    }
}

/// What was recorded of one kind with the Go program.
pub(crate) fn recorded_cases<T: DeserializeOwned>(kind: &str) -> T {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let file = folders.find_map(|folder| {
        let file = folder.join("tests/goldens/simple-container").join(kind).join("cases.json");
        file.exists().then_some(file)
    });
    serde_json::from_str(&fs::read_to_string(file.unwrap()).unwrap()).unwrap()
}
