//! The staircase: files, inheritance, placeholders, the checks of the whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::diagnostics::{Code, Diagnostic, FileId, Sensitivity, SourceFiles, has_errors};
use crate::files;
use crate::graph;
use crate::inherit;
use crate::placeholder::{Namespaces, References, Resolver};
use crate::plugins;
use crate::profile::Profile;
use crate::provisioner;
use crate::raw::RawStack;
use crate::reader::{Reader, Section};
use crate::resources;
use crate::routing::Against;
use crate::secrets::SecretsFile;
use crate::sections;
use crate::stack::{Output, Stack};
use crate::surroundings::{Repository, Surroundings};
use crate::templates;
use crate::tree::{Entry, Node};
use crate::types::TypeTable;
use crate::values;
use crate::yaml::{self, Document};

/// Keys of server.yaml that mean something.
const KEYS: [&str; 9] =
    ["schemaVersion", "provisioner", "secrets", "cicd", "templates", "resources", "variables", "plugins", "outputs"];
const FILE: Code = Code("file");

/// What stacks are read from.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// The profile.
    pub profile: &'a Profile,
    /// The folder of the stacks, if the command line names one.
    pub stacks_dir: Option<&'a Path>,
    /// The process around us.
    pub surroundings: &'a Surroundings,
    /// The core types.
    pub types: &'a TypeTable,
}

/// What was read.
#[derive(Debug)]
pub struct Loaded {
    /// The stacks, those that others inherit from first; none at all after a mistake in any of them, so that nothing is
    /// touched.
    pub stacks: Vec<Stack>,
    /// What is wrong, and what the user should know, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
}

impl Workspace<'_> {
    /// `--dir`, else `stacksDir` of the profile, else `.sc/stacks`; relative to the root.
    pub fn stacks_folder(&self) -> PathBuf {
        let configured = self.stacks_dir.or(self.profile.stacks_dir.as_deref().map(Path::new));
        self.repository.root.join(configured.unwrap_or(Path::new(".sc/stacks")))
    }

    /// The names of all stacks: folders, and links to anything, hidden ones too.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn stack_names(&self) -> Result<Vec<String>, Box<Diagnostic>> {
        let folder = self.stacks_folder();
        let entries = files::entries(&folder).map_err(|error| -> Box<Diagnostic> {
            let shown = self.repository.shorten(&folder);
            Diagnostic::error(FILE, None, format!("failed to read stacks dir: open {shown}: {error}"))
                .help("a stack is a folder with a server.yaml below `.sc/stacks`")
                .into()
        })?;
        let names = entries.into_iter().filter(|entry| entry.folder_or_link);
        Ok(names.filter_map(|entry| Some(entry.path.file_name()?.to_str()?.to_owned())).collect())
    }

    /// Reads stacks, and what they inherit from. Every mistake is collected.
    pub fn load(&self, names: &[String], sources: &mut SourceFiles) -> Loaded {
        let mut loader = Loader { workspace: *self, raw: BTreeMap::new(), diagnostics: Vec::new() };
        let project = match self.profile.project() {
            Ok(project) => project.to_owned(),
            Err(diagnostic) => {
                loader.diagnostics.push(*diagnostic);
                String::new()
            }
        };
        for name in names {
            loader.read_with_targets(name, sources);
        }
        let order = inherit::order(names, &loader.raw);
        let mut stacks = Vec::new();
        for name in &order {
            stacks.extend(loader.stack(name, &project, sources));
        }
        let mut diagnostics = loader.diagnostics;
        if has_errors(&diagnostics) {
            stacks.clear();
        }
        crate::diagnostics::sort(&mut diagnostics);
        // What several stacks inherit is read for each of them.
        diagnostics.dedup();
        Loaded { stacks, diagnostics }
    }
}

struct Loader<'a> {
    workspace: Workspace<'a>,
    raw: BTreeMap<String, RawStack>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_> {
    /// Reads a stack that must exist, then whatever it and its targets inherit from, as far as that exists.
    fn read_with_targets(&mut self, name: &str, sources: &mut SourceFiles) {
        let mut waiting = vec![(name.to_owned(), Presence::Required)];
        while let Some((name, presence)) = waiting.pop() {
            if self.raw.contains_key(&name) {
                continue;
            }
            let Some(raw) = self.read(&name, presence, sources) else { continue };
            waiting.extend(inherit::targets(&raw).into_iter().map(|target| (target, Presence::Optional)));
            self.raw.insert(name, raw);
        }
    }

    fn read(&mut self, name: &str, presence: Presence, sources: &mut SourceFiles) -> Option<RawStack> {
        if let Err(text) = check_stack_name(name) {
            if presence == Presence::Required {
                self.diagnostics.push(Diagnostic::error(
                    Code("stack-name"),
                    None,
                    format!("the stack name {name:?} {text}"),
                ));
            }
            return None;
        }
        let folder = self.workspace.stacks_folder().join(name);
        let server = self.read_file(&folder.join("server.yaml"), presence, Sensitivity::Public, sources);
        if server.is_none() && presence == Presence::Optional && !files::is_folder(&folder) {
            return None;
        }
        let secrets = self.read_file(&folder.join("secrets.yaml"), Presence::Optional, Sensitivity::Secret, sources);
        let secrets = match secrets {
            Some((_, Some(document))) => SecretsFile::read(&document, &mut Reader::new(&mut self.diagnostics)),
            _ => SecretsFile::default(),
        };
        let (server_file, server) = server.map_or((None, None), |(file, document)| (Some(file), document));
        if let Some(document) = &server {
            Reader::new(&mut self.diagnostics).root(document, &KEYS, &KEYS);
        }
        Some(RawStack { server, server_file, secrets })
    }

    /// The outer `None`: no such file; the inner one: it is no YAML, which has been told.
    fn read_file(
        &mut self,
        path: &Path,
        presence: Presence,
        sensitivity: Sensitivity,
        sources: &mut SourceFiles,
    ) -> Option<(FileId, Option<Document>)> {
        let shown = self.workspace.repository.shorten(path);
        let text = match files::read(path) {
            Ok(text) => text,
            Err(error) if error.is_missing() && presence == Presence::Optional => return None,
            Err(error) => {
                self.diagnostics.push(Diagnostic::error(FILE, None, format!("failed to read {shown}: open: {error}")));
                return None;
            }
        };
        let file = sources.add(&shown, &text, sensitivity);
        match yaml::parse(file, sources) {
            Ok(document) => Some((file, Some(document))),
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                Some((file, None))
            }
        }
    }

    fn stack(&mut self, name: &str, project: &str, sources: &SourceFiles) -> Option<Stack> {
        let raw = self.raw.get(name)?;
        raw.server.as_ref()?;
        let mut found = Vec::new();
        let root = raw.root();
        let secrets = inherit::secrets(name, &self.raw, &mut found);
        let variables = root.map(|root| sections::variables(root, &mut found)).unwrap_or_default();
        let namespaces = Namespaces {
            stack: name,
            variables: &variables,
            secrets: &secrets,
            surroundings: self.workspace.surroundings,
            repository: self.workspace.repository,
        };
        let mut resolver = Resolver::new(namespaces, sources);
        let provisioner = inherit::block(name, "provisioner", &self.raw, &mut found)
            .ok()
            .and_then(|node| provisioner::read(node, raw.top(), &mut resolver));
        if let Some(root) = root {
            sections::check(root, self.workspace.types, &mut found);
        }
        // Nothing is done with it, but a target that is missing is a mistake there, too.
        inherit::block(name, "cicd", &self.raw, &mut found).ok();
        let plugins_node = root.and_then(|root| root.get("plugins"));
        let plugins = plugins::read(plugins_node, &mut resolver);
        let broken = broken_plugins(plugins_node, &plugins);
        let against = Against { plugins: &plugins, broken_plugins: &broken, types: self.workspace.types };
        let environments = root.map(|root| resources::read(root, against, &mut resolver)).unwrap_or_default();
        let mut outputs = root.map(|root| outputs(root, &mut resolver)).unwrap_or_default();
        let organization =
            provisioner.as_ref().and_then(|provisioner| provisioner.organization.as_deref()).unwrap_or_default();
        let prefix = format!("{organization}/{project}/{name}");
        for template in templates::read(name, &prefix, &self.raw, self.workspace.types, &mut resolver) {
            if outputs.iter().any(|output| output.name == template.name) {
                let summary = format!("the output {:?} is that of a template", template.name);
                found.push(
                    Diagnostic::error(Code("duplicate-output"), template.span, summary)
                        .help("rename the output: client stacks find the template by this name"),
                );
            }
            outputs.push(template);
        }
        let before = resolver.diagnostics;
        found.extend(before);
        // A resource that could not be read has been told of: what refers to it has not to be told as well.
        let unread =
            |environment: &str, key: &str| root.is_some_and(|root| resources::is_written(root, environment, key));
        graph::check(&environments, &outputs, self.workspace.types, &unread, &mut found);
        self.diagnostics.extend(found);
        Some(Stack {
            name: name.to_owned(),
            project: project.to_owned(),
            provisioner: provisioner?,
            plugins,
            environments,
            outputs,
            variables,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// What a state can carry as the name of a stack.
fn check_stack_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > 100 {
        return Err("must have 1 to 100 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) || [".", ".."].contains(&name) {
        return Err("may only contain letters, digits, hyphens, underscores and periods");
    }
    Ok(())
}

/// Names of the plugins that were left out because of their mistakes.
fn broken_plugins(node: Option<&Node>, read: &[plugins::PluginDeclaration]) -> Vec<String> {
    let items = node.and_then(Node::as_sequence).unwrap_or_default();
    let text = |item: &Node, key: &str| Some(item.as_mapping()?.get_some(key)?.as_scalar()?.text.clone());
    let packages = items.iter().flat_map(|item| [text(item, "package"), text(item, "name")]).flatten();
    packages.filter(|name| !read.iter().any(|plugin| plugin.name() == *name || plugin.package() == *name)).collect()
}

fn outputs(root: Section<'_>, resolver: &mut Resolver<'_>) -> Vec<Output> {
    let mut found = Vec::new();
    let section = Reader::new(&mut found).section(root, "outputs", "outputs");
    let outputs = section.map(|section| {
        let read = |entry: &Entry| {
            values::check(&entry.value, &mut found);
            let value = resolver.tree(&entry.value, References::AnyEnvironment);
            Output { name: entry.key.clone(), span: entry.key_span, value }
        };
        section.mapping.into_iter().map(read).collect()
    });
    resolver.diagnostics.extend(found);
    outputs.unwrap_or_default()
}
