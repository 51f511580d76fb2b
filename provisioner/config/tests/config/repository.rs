//! Repository in a temporary folder, which is read with a fixed process context.

use std::fs;
use std::path::{Path, PathBuf};

use config::diagnostics::{Diagnostic, Severity, SourceFiles, Style, render};
use config::types::TypeTable;
use config::{
    Account, KnownValues, LoadedStacks, ProcessContext, Profile, Reading, Repository, Stack, StackNames, StackOutputs,
    Workspace,
};
use serde::de::DeserializeOwned;

use crate::schema_agreement::{CODES_OF_THE_SCHEMA, Reported, disagreement};

/// Valid `provisioner` section of server.yaml, for tests of other sections.
pub(crate) const PROVISIONER: &str = "\
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: file:///state } }
    secrets-provider: { type: passphrase, config: { passPhrase: p } }
";

/// Files of a repository, with types and environment variables.
pub(crate) struct Files {
    /// Name of the folder of the repository; empty for the temporary folder itself.
    folder: &'static str,
    files: Vec<(String, String)>,
    types: TypeTable,
    environment: Vec<(&'static str, &'static str)>,
    reading: Reading,
}

impl Files {
    /// Returns a repository with one stack `s` that has this server.yaml.
    pub(crate) fn server(text: &str) -> Self {
        Self::empty().with(".sc/stacks/s/server.yaml", text)
    }

    /// Returns a repository with one stack `s` that has a provisioner and these sections.
    pub(crate) fn sections(text: &str) -> Self {
        Self::server(&format!("{PROVISIONER}{text}"))
    }

    pub(crate) fn empty() -> Self {
        let (types, reading) = (TypeTable::default(), Reading::default());
        Self { folder: "", files: Vec::new(), types, environment: vec![], reading }
            .with(".sc/cfg.default.yaml", "projectName: reef\n")
            .with(".git/HEAD", "ref: refs/heads/f/x")
            .with(".git/refs/heads/f/x", "39d4ed90bb9c4e9b9eab986b92dbed25733b7cbf")
    }

    pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        self.files.retain(|(known, _)| known != path);
        self
    }

    /// Places the repository in a folder with this name.
    pub(crate) fn in_folder(self, folder: &'static str) -> Self {
        Self { folder, ..self }
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

    /// Reads server.yaml by another rule.
    pub(crate) fn reading(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// Writes the files. Returns the root of the repository, and the temporary folder that contains it.
    pub(crate) fn write(&self) -> (PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join(self.folder);
        for (path, text) in &self.files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (root, folder)
    }

    /// Reads a profile, which must fail, and renders the errors.
    pub(crate) fn profile_error(&self, name: &str) -> String {
        let (root, _folder) = self.write();
        let mut sources = SourceFiles::default();
        let repository = Repository::discover(&root);
        let found = Profile::read(name, &repository, &process_context(&self.environment), &mut sources).unwrap_err();
        let messages: Vec<_> = found.iter().map(|diagnostic| render(diagnostic, &sources, Style::Plain)).collect();
        messages.join("\n\n").replace(root.display().to_string().trim_end_matches('/'), "<ROOT>")
    }

    /// Returns the names in the folder of the stacks, or the rendered error.
    pub(crate) fn stack_names(&self) -> Result<StackNames, String> {
        let (root, _folder) = self.write();
        let (process_context, repository) = (process_context(&[]), Repository::discover(&root));
        let (types, mut sources) = (TypeTable::default(), SourceFiles::default());
        let profile = Profile::read("default", &repository, &process_context, &mut sources).unwrap_or_default();
        let workspace = Workspace {
            repository: &repository,
            profile: &profile,
            stacks_dir: None,
            process_context: &process_context,
            types: &types,
        };
        workspace.stack_names().map_err(|found| render(&found, &sources, Style::Plain))
    }

    pub(crate) fn read(&self, names: &[&str]) -> Read {
        let (root, folder) = self.write();
        let (loaded, sources) = self.read_at(&root, names);
        let servers = names.iter().map(|name| format!(".sc/stacks/{name}/server.yaml"));
        let found = compare_with_schema(&root, servers, &self.types, &loaded.diagnostics, &sources);
        assert_eq!(found, [""; 0]);
        Read { root, sources, loaded, _folder: folder }
    }

    /// Reads stacks of a folder that has the files, without a comparison of the diagnostics with those of the schema.
    pub(crate) fn read_at(&self, root: &Path, names: &[&str]) -> (LoadedStacks, SourceFiles) {
        let process_context = process_context(&self.environment);
        let repository = Repository::discover(root);
        let mut sources = SourceFiles::default();
        let loaded = match Profile::read("default", &repository, &process_context, &mut sources) {
            Ok(profile) => {
                let workspace = Workspace {
                    repository: &repository,
                    profile: &profile,
                    stacks_dir: None,
                    process_context: &process_context,
                    types: &self.types,
                };
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                workspace.load_as(self.reading, &names, &mut sources)
            }
            Err(diagnostics) => LoadedStacks {
                diagnostics,
                stacks: Vec::new(),
                secrets: Vec::new(),
                from_store: Vec::new(),
                incomplete: Vec::new(),
                unknown: Vec::new(),
                inheritance: Vec::new(),
                documents: None,
            },
        };
        (loaded, sources)
    }

    /// Reads stack `s`, and reads it again with outputs of other stacks. The error is the rendered diagnostics.
    pub(crate) fn stack_with_outputs(&self, outputs: &StackOutputs) -> Result<Stack, String> {
        self.stack_with(&KnownValues { outputs: outputs.clone(), functions: None })
    }

    /// Reads stack `s`, and reads it again with values that are known later.
    pub(crate) fn stack_with(&self, values: &KnownValues) -> Result<Stack, String> {
        let read = self.read(&["s"]);
        assert_eq!(read.messages(), "");
        let mut documents = read.loaded.documents.expect("the stack is read again");
        let process_context = process_context(&self.environment);
        let repository = Repository::discover(&read.root);
        let profile = Profile::read("default", &repository, &process_context, &mut SourceFiles::default()).unwrap();
        let workspace = Workspace {
            repository: &repository,
            profile: &profile,
            stacks_dir: None,
            process_context: &process_context,
            types: &self.types,
        };
        let found = workspace.read_with_values(&mut documents, "s", values, &read.sources);
        found.map_err(|found| {
            let rendered = found.iter().map(|diagnostic| render(diagnostic, &read.sources, Style::Plain));
            rendered.collect::<Vec<_>>().join("\n\n")
        })
    }

    /// Reads stack `s`, which must have no diagnostics.
    pub(crate) fn stack(&self) -> Stack {
        let mut read = self.read(&["s"]);
        assert_eq!(read.messages(), "");
        read.loaded.stacks.remove(0)
    }

    /// Reads stack `s` and renders its diagnostics.
    pub(crate) fn messages(&self) -> String {
        let read = self.read(&["s"]);
        let errors = read.loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        assert_eq!(errors, read.loaded.stacks.is_empty(), "a stack is returned only without errors");
        read.messages()
    }
}

/// Result of reading the stacks.
pub(crate) struct Read {
    pub(crate) root: PathBuf,
    pub(crate) sources: SourceFiles,
    pub(crate) loaded: LoadedStacks,
    _folder: tempfile::TempDir,
}

impl Read {
    pub(crate) fn messages(&self) -> String {
        let messages: Vec<_> =
            self.loaded.diagnostics.iter().map(|diagnostic| render(diagnostic, &self.sources, Style::Plain)).collect();
        messages.join("\n\n").replace(&self.root.display().to_string(), "<ROOT>")
    }
}

/// Returns the differences between the diagnostics of these files and those of the schema.
pub(crate) fn compare_with_schema(
    root: &Path,
    files: impl IntoIterator<Item = String>,
    types: &TypeTable,
    diagnostics: &[Diagnostic],
    sources: &SourceFiles,
) -> Vec<String> {
    let compare = |path: String| {
        let text = fs::read_to_string(root.join(&path)).ok()?;
        let is_here = |diagnostic: &&Diagnostic| match diagnostic.span {
            Some(span) => sources.position(span).path.ends_with(&path),
            None => true,
        };
        let found: Vec<&Diagnostic> = diagnostics.iter().filter(is_here).collect();
        // The errors may be in the `config` of core types and templates, whose schemas are left out.
        let mut names =
            types.iter().map(|core| core.name()).chain(types.templates().iter().map(|template| template.name()));
        let has_core_types = names.any(|name| text.contains(name));
        let of_schema = !has_core_types
            && found.iter().any(|diagnostic| {
                diagnostic.severity == Severity::Error && CODES_OF_THE_SCHEMA.contains(&diagnostic.code.0)
            });
        disagreement(&text, Reported { any: !found.is_empty(), of_schema })
    };
    files.into_iter().filter_map(compare).collect()
}

pub(crate) fn process_context(environment: &[(&str, &str)]) -> ProcessContext {
    ProcessContext {
        environment: environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        now: "2024-01-02T03:04:05Z".parse().unwrap(),
        time_zone: Some(jiff::tz::TimeZone::UTC),
        account: Some(Account {
            home: "/home/pearl".into(),
            username: "pearl".into(),
            id: "1000".into(),
            name: "Pearl Diver".into(),
        }),
    }
}

/// Returns the cases of one kind that were recorded with the Go program.
pub(crate) fn recorded_cases<T: DeserializeOwned>(kind: &str) -> T {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let file = folders.find_map(|folder| {
        let file = folder.join("tests/goldens/simple-container").join(kind).join("cases.json");
        file.exists().then_some(file)
    });
    serde_json::from_str(&fs::read_to_string(file.unwrap()).unwrap()).unwrap()
}
