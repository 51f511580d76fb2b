//! Orchestration of a load: reads files, applies inheritance, resolves placeholders, checks the whole stack.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bridge::message_text::MessageText;
use secrets_store::STORE_PATH;

use super::inherit::{Inheritance, RawStack, RawStacks};
use crate::diagnostics::{Code, Diagnostic, FileId, Sensitivity, SourceFiles, has_errors};
use crate::placeholder::{self, MissingValues, Namespaces, Resolver};
use crate::process_context::{ProcessContext, Repository};
use crate::profile::{DEFAULT_STACKS_FOLDER, Profile};
use crate::reader::Reader;
use crate::routing::RoutingContext;
use crate::secret_text::SecretText;
use crate::secrets::SecretsFile;
use crate::stack::Stack;
use crate::stack_outputs::{KnownValues, ReadableStacks};
use crate::stored_secrets::{StoredFile, StoredSecrets};
use crate::types::TypeTable;
use crate::yaml::{self, Document};
use crate::{
    collections, deciding_functions, files, function_references, functions, graph, inherit, moved, outputs, plugins,
    provisioner, referenced_stacks, registrar, resources, sections, templates,
};

/// Keys that are allowed at the top of server.yaml.
const KEYS: [&str; 10] = [
    "schemaVersion",
    "provisioner",
    "secrets",
    "cicd",
    "templates",
    "resources",
    "variables",
    "plugins",
    "outputs",
    "references",
];
/// Texts of the files that need the names of all stacks.
const NEEDING_NAMES: [&str; 2] = ["${output:", "references:"];
/// Section that says where the state is.
const PROVISIONER: &str = "provisioner";
pub(crate) const FILE: Code = Code("file");

/// Sources that stacks are read from.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// The profile.
    pub profile: &'a Profile,
    /// The folder of the stacks from `--dir`; `None` if the flag is not set.
    pub stacks_dir: Option<&'a Path>,
    /// Environment, time and account of the process.
    pub process_context: &'a ProcessContext,
    /// Core types and types of templates.
    pub types: &'a TypeTable,
}

/// Reading of the files of stacks: what is read of them, and what a value counts for that this process does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// All of server.yaml. A variable that is not set is an empty text, with a warning; a missing secret is an error.
    #[default]
    Whole,
    /// All of server.yaml, to check it. Variables that are not set, and secrets of a file that cannot be read, are unknown.
    WithoutValues,
    /// All of server.yaml, to check it where all values are: a variable that is not set is an error, as is a missing secret.
    WithValues,
    /// The part of server.yaml that says where the state is: `provisioner`. Errors elsewhere are not reported.
    StateOnly,
}

impl Reading {
    fn missing_values(self) -> MissingValues {
        match self {
            Self::Whole | Self::StateOnly => MissingValues::Reported,
            Self::WithoutValues => MissingValues::Unknown,
            Self::WithValues => MissingValues::Rejected,
        }
    }
}

/// Result of [`Workspace::load`].
#[derive(Debug)]
pub struct LoadedStacks {
    /// The stacks, each after the stacks that it inherits from. Empty if any stack has an error, so that no stack is
    /// deployed.
    pub stacks: Vec<Stack>,
    /// The stacks as far as they can be read, if any has an error. They may lack what is invalid, so they cannot be deployed.
    pub incomplete: Vec<Stack>,
    /// Errors and warnings in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// Secrets in the files that were read, even if a stack has an error.
    pub secrets: Vec<SecretText>,
    /// Paths of the files that were read from the store of the repository, because they are not on the disk.
    pub from_store: Vec<String>,
    /// Placeholders whose values are unknown, sorted.
    pub unknown: Vec<String>,
    /// Each `inherit` of the stacks that were read, those between others included.
    pub inheritance: Vec<Inheritance>,
    /// Documents that were read, if a stack reads outputs of others or functions decide about it: it is read again once they are known.
    pub documents: Option<StackDocuments>,
}

/// Documents of stacks, from which [`Workspace::read_with_values`] reads a stack again.
#[derive(Debug)]
pub struct StackDocuments {
    raw: RawStacks,
    reading: Reading,
    project: String,
}

impl Workspace<'_> {
    /// Returns the folder of the stacks: `--dir`, else `stacksDir` of the profile, else `.sc/stacks`. Relative paths
    /// start at the root of the repository.
    pub fn stacks_folder(&self) -> PathBuf {
        let configured = self.stacks_dir.or(self.profile.stacks_dir.as_deref().map(Path::new));
        self.repository.root.join(configured.unwrap_or(Path::new(DEFAULT_STACKS_FOLDER)))
    }

    /// Reads stacks and the stacks that they inherit from. Collects every error instead of stopping at the first.
    pub fn load(&self, names: &[String], sources: &mut SourceFiles) -> LoadedStacks {
        self.load_as(Reading::Whole, names, sources)
    }

    /// Reads stacks as [`Workspace::load`], by a rule for what is read.
    pub fn load_as(&self, reading: Reading, names: &[String], sources: &mut SourceFiles) -> LoadedStacks {
        let stored = StoredSecrets::new(self.repository, self.profile, self.process_context);
        let mut loader = Loader {
            workspace: *self,
            reading,
            stored,
            raw: BTreeMap::new(),
            names: OnceCell::new(),
            values: None,
            diagnostics: Vec::new(),
            from_store: Vec::new(),
            unknown: BTreeSet::new(),
        };
        let project = match self.profile.project() {
            Ok(project) => project.to_owned(),
            Err(diagnostic) => {
                loader.diagnostics.push(*diagnostic);
                String::new()
            }
        };
        for name in names {
            loader.read_with_inherited_stacks(name, sources);
        }
        let order = inherit::sort_by_inheritance(names, &loader.raw);
        let mut stacks = Vec::new();
        for name in &order {
            stacks.extend(loader.build_stack(name, &project, sources));
        }
        let mut diagnostics = loader.diagnostics;
        let incomplete = if has_errors(&diagnostics) { std::mem::take(&mut stacks) } else { Vec::new() };
        crate::diagnostics::finish(&mut diagnostics);
        let secrets = loader.raw.values().flat_map(|raw| raw.secrets.texts()).collect();
        let unknown = loader.unknown.into_iter().collect();
        let inheritance = inherit::inheritance(&loader.raw);
        let is_read_again = |stack: &Stack| !stack.outputs_read.is_empty() || !stack.deciding.is_empty();
        let reads_outputs = stacks.iter().any(is_read_again);
        let documents = reads_outputs.then_some(StackDocuments { raw: loader.raw, reading, project });
        LoadedStacks {
            stacks,
            incomplete,
            diagnostics,
            secrets,
            from_store: loader.from_store,
            unknown,
            inheritance,
            documents,
        }
    }

    /// Reads a stack again, with the outputs of all stacks that it reads, and with the results of functions, if they are known.
    ///
    /// # Errors
    /// The diagnostics of the stack, if there is an error among them, such as an output that does not exist.
    pub fn read_with_values(
        &self,
        documents: &mut StackDocuments,
        name: &str,
        values: &KnownValues,
        sources: &SourceFiles,
    ) -> Result<Stack, Vec<Diagnostic>> {
        let mut loader = Loader {
            workspace: *self,
            reading: documents.reading,
            stored: StoredSecrets::new(self.repository, self.profile, self.process_context),
            raw: std::mem::take(&mut documents.raw),
            names: OnceCell::new(),
            values: Some(values),
            diagnostics: Vec::new(),
            from_store: Vec::new(),
            unknown: BTreeSet::new(),
        };
        let stack = loader.build_stack(name, &documents.project, sources);
        documents.raw = loader.raw;
        let mut diagnostics = loader.diagnostics;
        crate::diagnostics::finish(&mut diagnostics);
        stack.filter(|_| !has_errors(&diagnostics)).ok_or(diagnostics)
    }
}

struct Loader<'a> {
    workspace: Workspace<'a>,
    reading: Reading,
    stored: StoredSecrets,
    raw: RawStacks,
    /// Names of the stacks of the workspace, once they are needed.
    names: OnceCell<Vec<String>>,
    /// Values that are known only after the first reading.
    values: Option<&'a KnownValues>,
    diagnostics: Vec<Diagnostic>,
    from_store: Vec<String>,
    unknown: BTreeSet<String>,
}

impl Loader<'_> {
    /// Reads a stack that must exist, then all stacks that it inherits from, directly or indirectly. An inherited stack
    /// may be missing.
    fn read_with_inherited_stacks(&mut self, name: &str, sources: &mut SourceFiles) {
        let mut waiting = vec![(name.to_owned(), Presence::Required)];
        while let Some((name, presence)) = waiting.pop() {
            if self.raw.contains_key(&name) {
                continue;
            }
            let Some(raw) = self.read_stack_files(&name, presence, sources) else { continue };
            waiting.extend(inherit::inherited_stacks(&raw).into_iter().map(|(target, _)| (target, Presence::Optional)));
            self.raw.insert(name, raw);
        }
    }

    fn read_stack_files(&mut self, name: &str, presence: Presence, sources: &mut SourceFiles) -> Option<RawStack> {
        if let Err(text) = check_stack_name(name) {
            if presence == Presence::Required {
                self.diagnostics.push(Diagnostic::error(
                    Code("stack-name"),
                    None,
                    format_args!("the stack name {name:?} {text}"),
                ));
            }
            return None;
        }
        let folder = self.workspace.stacks_folder().join(name);
        let server = self.read_file(&folder.join("server.yaml"), presence, Sensitivity::Public, sources);
        let is_absent = server.is_none() && presence == Presence::Optional && !files::is_folder(&folder);
        // The folder of a stack without a server.yaml may hold nothing but a file that is in the store.
        let secrets =
            self.read_secrets(&folder.join("secrets.yaml"), sources).filter(|found| !is_absent || found.is_stored);
        let withheld = || SecretsFile { is_withheld: true, ..SecretsFile::default() };
        let secrets = if is_absent { secrets? } else { secrets.unwrap_or_else(withheld) };
        let (server_file, server) = server.map_or((None, None), |(file, document)| (Some(file), document));
        if let Some(document) = &server {
            self.check_sections(document, sources);
        }
        Some(RawStack { server, server_file, secrets })
    }

    /// Reports errors of the sections of server.yaml that any of its readers would find: keys that are unknown, that occur twice, or
    /// that have placeholders.
    fn check_sections(&mut self, document: &Document, sources: &SourceFiles) {
        let mut reader = Reader::new(&mut self.diagnostics);
        if self.reading == Reading::StateOnly {
            let of_state = |section: Option<&str>, key: &str| section.unwrap_or(key) == PROVISIONER;
            let duplicates = document.duplicates.iter();
            let duplicates = duplicates.filter(|found| of_state(found.section.as_deref(), &found.key));
            duplicates.for_each(|duplicate| reader.push(duplicate.diagnostic()));
            let block = document.root.as_ref().and_then(|root| root.as_mapping()?.get(PROVISIONER));
            return block.into_iter().for_each(|block| placeholder::check_keys(block, sources, &mut self.diagnostics));
        }
        // Called only for its diagnostics. `RawStack::root` returns the mapping.
        if let Some(root) = reader.root(document, &KEYS) {
            sections::reject_unknown_keys(root, document, &KEYS, &mut reader);
            for entry in root.mapping.into_iter().filter(|entry| KEYS.contains(&entry.key.as_str())) {
                placeholder::check_keys(&entry.value, sources, &mut self.diagnostics);
            }
        }
    }

    /// Reads secrets.yaml from the disk, or else from the store. `None` if it is neither there nor there.
    fn read_secrets(&mut self, path: &Path, sources: &mut SourceFiles) -> Option<SecretsFile> {
        let first = self.diagnostics.len();
        let mut is_stored = false;
        let mut document = self.read_file(path, Presence::Optional, Sensitivity::Secret, sources);
        if document.is_none() && files::is_missing(path) {
            match self.stored.read(path) {
                StoredFile::Absent => return None,
                StoredFile::Closed { is_listed, reason } => {
                    let closed = Some(reason);
                    let (is_stored, is_withheld) = (is_listed, is_listed);
                    return Some(SecretsFile { is_stored, is_withheld, closed, ..SecretsFile::default() });
                }
                StoredFile::Text(text) => {
                    is_stored = true;
                    let path = self.workspace.repository.display_path(path);
                    let file = sources.add(&format!("{path} (in {STORE_PATH})"), &text, Sensitivity::Secret);
                    self.from_store.push(path);
                    document = Some((file, self.parse(file, sources)));
                }
            }
        }
        let mut secrets = match document {
            Some((_, Some(document))) => SecretsFile::read(&document, &mut Reader::new(&mut self.diagnostics)),
            _ => SecretsFile::default(),
        };
        secrets.is_stored = is_stored;
        secrets.has_errors = has_errors(&self.diagnostics[first..]);
        Some(secrets)
    }

    /// Reads and parses a file. The outer `None`: the file is missing or unreadable. The inner `None`: the file is
    /// not valid YAML; the syntax error is reported.
    fn read_file(
        &mut self,
        path: &Path,
        presence: Presence,
        sensitivity: Sensitivity,
        sources: &mut SourceFiles,
    ) -> Option<(FileId, Option<Document>)> {
        let display_path = self.workspace.repository.display_path(path);
        let text = match files::read(path) {
            Ok(text) => text,
            Err(error) if error.is_missing() && presence == Presence::Optional => return None,
            Err(error) => {
                let diagnostic = error.not_utf8(FILE, &display_path, sensitivity, sources).unwrap_or_else(|| {
                    let text = format_args!("failed to read {display_path}: open: {error}");
                    let hint = if error.is_missing() { files::other_spelling(path) } else { None };
                    let hint = hint.map(|name| format!("a file {name} is there: rename it to server.yaml"));
                    hint.into_iter().fold(Diagnostic::error(FILE, None, text), Diagnostic::help)
                });
                self.diagnostics.push(diagnostic);
                return None;
            }
        };
        let file = sources.add(&display_path, &text, sensitivity);
        Some((file, self.parse(file, sources)))
    }

    /// Parses a file. `None` if it is not valid YAML; the syntax error is reported.
    fn parse(&mut self, file: FileId, sources: &SourceFiles) -> Option<Document> {
        yaml::parse(file, sources).map_err(|diagnostic| self.diagnostics.push(*diagnostic)).ok()
    }

    /// Returns the names of the stacks of the repository; none as long as no file reads outputs of other stacks.
    fn stack_names(&self, sources: &SourceFiles) -> &[String] {
        self.names.get_or_init(|| {
            let mut files = self.raw.values().filter_map(|raw| raw.server_file);
            let is_needed = files.any(|file| NEEDING_NAMES.iter().any(|text| sources.get(file).text().contains(text)));
            // An error in the folder of the stacks is reported where the stacks are selected.
            is_needed.then(|| self.workspace.stack_names().ok()).flatten().unwrap_or_default().stacks
        })
    }

    fn build_stack(&mut self, name: &str, project: &str, sources: &SourceFiles) -> Option<Stack> {
        let raw = self.raw.get(name)?;
        raw.server.as_ref()?;
        let mut diagnostics = Vec::new();
        let root = raw.root();
        let missing = self.reading.missing_values();
        let (mut unneeded, is_whole) = (Vec::new(), self.reading != Reading::StateOnly);
        let reported = if is_whole { &mut diagnostics } else { &mut unneeded };
        let secrets = inherit::secrets(name, &self.raw, missing, reported);
        let variables = root.map(|root| sections::variables(root, reported)).unwrap_or_default();
        let references = root.map(referenced_stacks::names).unwrap_or_default();
        let namespaces = Namespaces {
            stack: name,
            project,
            variables: &variables,
            secrets: &secrets,
            process_context: self.workspace.process_context,
            repository: self.workspace.repository,
            stacks: ReadableStacks { names: self.stack_names(sources), references: &references, values: self.values },
            missing,
        };
        let mut resolver = Resolver::new(namespaces, sources);
        let provisioner = inherit::block(name, PROVISIONER, &self.raw, &mut diagnostics)
            .ok()
            .and_then(|node| provisioner::read(node, raw.file_start(), &mut resolver));
        let key = provisioner.as_ref().and_then(|provisioner| provisioner.secrets_provider.provisioned_key());
        if let Some(key) = key
            && let Some(key_type) = self.workspace.types.key_type(key.type_name)
        {
            key_type.check(&key.config, &mut diagnostics);
        }
        if !is_whole {
            diagnostics.append(&mut resolver.diagnostics);
            self.diagnostics.extend(diagnostics);
            let closed_secrets = secrets.closed.clone();
            let stack = Stack::without_sections(name.to_owned(), project.to_owned(), provisioner?);
            return Some(Stack { variables, secrets: secrets.values.clone(), closed_secrets, ..stack });
        }
        if let Some(root) = root {
            sections::check(root, self.workspace.types, &mut diagnostics);
        }
        // The result is unused: only a missing or cyclic `inherit` of `cicd` is reported.
        inherit::block(name, "cicd", &self.raw, &mut diagnostics).ok();
        let plugins_node = root.and_then(|root| root.get("plugins"));
        let plugins = plugins::read(plugins_node, &mut resolver);
        let invalid = plugins::invalid_plugins(plugins_node, &plugins);
        let (reported, types) = (diagnostics.len(), self.workspace.types);
        let registrar = registrar::read(name, &self.raw, types, &mut resolver, &mut diagnostics);
        // An invalid registrar is reported: domains that need it are not reported again.
        let has_registrar = registrar.is_some() || diagnostics.len() > reported;
        let routing = RoutingContext { plugins: &plugins, invalid_plugins: &invalid, types, has_registrar };
        let mut environments = root.map(|root| resources::read(root, routing, &mut resolver)).unwrap_or_default();
        let mut functions = root.map(|root| functions::read(root, routing, &mut resolver)).unwrap_or_default();
        let mut outputs = root.map(|root| outputs::read(root, &mut resolver)).unwrap_or_default();
        let organization =
            provisioner.as_ref().and_then(|provisioner| provisioner.organization.as_deref()).unwrap_or_default();
        let prefix = format!("{organization}/{project}/{name}");
        for template in templates::read(name, &prefix, &self.raw, self.workspace.types, &mut resolver) {
            if outputs.iter().any(|output| output.name == template.name) {
                let summary =
                    MessageText::new(format_args!("the output {:?} has the name of a template", template.name));
                diagnostics.push(
                    Diagnostic::error(Code("duplicate-output"), template.span, summary)
                        .help("rename the output: client stacks find the template by this name"),
                );
            }
            outputs.push(template);
        }
        let references = match (root, &provisioner) {
            (Some(root), Some(own)) => referenced_stacks::read(root, own, &mut resolver),
            _ => Vec::new(),
        };
        let outputs_read = std::mem::take(&mut resolver.outputs_read);
        let mut deciding = std::mem::take(&mut resolver.deciding);
        let (resolver_diagnostics, unknown) = (resolver.diagnostics, resolver.unknown);
        diagnostics.extend(resolver_diagnostics);
        self.unknown.extend(unknown);
        // An invalid resource is already reported: references to it are not reported again.
        let declared = root.map(resources::declared).unwrap_or_default();
        function_references::link(&mut functions, &mut environments, &mut outputs, &mut deciding, &mut diagnostics);
        let mut functions = functions.functions;
        let deciding = deciding_functions::check(&deciding, &functions, &plugins, &mut diagnostics);
        collections::link(&mut environments, &mut functions, &mut outputs, &mut diagnostics);
        let moved = root.map(|root| moved::read(root, &mut environments, &declared, &mut diagnostics));
        let moved = moved.unwrap_or_default();
        graph::check(&environments, &functions, &outputs, self.workspace.types, &declared, &mut diagnostics);
        self.diagnostics.extend(diagnostics);
        Some(Stack {
            name: name.to_owned(),
            project: project.to_owned(),
            key_of: None,
            provisioner: provisioner?,
            plugins,
            environments,
            functions,
            moved,
            references,
            outputs_read,
            deciding,
            registrar,
            outputs,
            variables,
            secrets: secrets.values.clone(),
            closed_secrets: secrets.closed.clone(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// Checks that the name of a stack is valid in a Pulumi state.
fn check_stack_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > 100 {
        return Err("must have 1 to 100 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) || [".", ".."].contains(&name) {
        return Err("may only contain letters, digits, hyphens, underscores and periods");
    }
    Ok(())
}
