//! Loading of the stacks that an operation works on, from the repository.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridge::fs::{MAX_DOCUMENT_BYTES, read_if_exists};
use bridge::message_text::MessageText;
use bridge::plugin::PluginPolicy;
use config::diagnostics::{Code, Diagnostic, SourceFiles, has_errors};
use config::sibling_profiles::differences;
use config::{
    Inheritance, LoadedStacks, ProcessContext, Profile, Reading, Repository, Stack, StackDocuments, StackNames,
    Workspace, read_plugin_policy,
};
use engine::masking::SecretMasker;
use state::Unrecorded;
use state::store::{LockHolder, LockInfo, LockLease, OutageReport, ProcessFingerprint};

use super::SetupError;
use super::key_stack::key_stack;
use super::stack_graph::StackGraph;
use super::stack_loading::load_with_dependencies;
use super::stack_reader::StackReader;
use super::stack_selection::{Selection, select, stack_in_files};
use crate::program::Program;
use crate::registry::recipes;

/// Environment variable with the time of the lease of a lock, in seconds, and its valid values.
const LEASE_SECONDS: &str = "SC_LOCK_LEASE_SECONDS";
const LEASE_RANGE: RangeInclusive<u64> = 3..=3600;

/// Process that runs operations. Only the binary asks the system for these values; the library receives them.
#[derive(Clone, Debug)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Effective user id.
    pub user: u32,
    /// Name of the machine.
    pub hostname: String,
    /// Identity of the process on the machine, if the system shows it.
    pub fingerprint: Option<ProcessFingerprint>,
    /// Returns whether the process of a lock has ended for certain.
    pub has_ended: fn(&LockInfo) -> bool,
    /// User ids whose repositories name programs that this process may run.
    pub trusted_owners: Vec<u32>,
}

/// Rules of the user for places of packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchRules {
    /// True if the lock file must have what is needed (`--locked`).
    pub locked: bool,
    /// True if no place of a package may be asked (`--offline`).
    pub offline: bool,
}

/// Request for stacks of a repository.
#[derive(Clone, Debug)]
pub struct StacksRequest<'a> {
    /// Absolute path of a folder in the repository.
    pub folder: &'a Path,
    /// Name of the profile.
    pub profile: &'a str,
    /// Folder of the stacks, in place of that of the profile.
    pub stacks_dir: Option<&'a Path>,
    /// Part of the files that is read, and treatment of values that are missing.
    pub reading: Reading,
    /// Environment, time and account of the caller.
    pub process_context: ProcessContext,
    /// Process that runs the operations.
    pub process: ProcessIdentity,
    /// Receives the secrets of the files, also of files with errors.
    pub masker: Arc<SecretMasker>,
    /// Receives what operations on the stacks could not record.
    pub unrecorded: Unrecorded,
    /// Receives the outages of stores, while requests to them are still tried.
    pub outages: OutageReport,
    /// Rules of the user for places of packages.
    pub fetch_rules: FetchRules,
    /// True if stacks with errors in their files are returned as far as they can be read, with the errors as warnings. They cannot be
    /// deployed.
    pub accepts_errors: bool,
}

/// Stacks that an operation works on, with the repository.
#[derive(Debug)]
pub struct Stacks {
    /// The repository.
    pub repository: Repository,
    /// Folder of the stacks.
    pub stacks_folder: PathBuf,
    /// Environment, time and account of the caller.
    pub process_context: ProcessContext,
    /// Texts of all files that were read, for messages with positions in them.
    pub sources: Arc<SourceFiles>,
    /// Loaded stacks, in an order in which each comes after those that it inherits from.
    pub stacks: Vec<Arc<Stack>>,
    /// Secrets to mask in texts.
    pub masker: Arc<SecretMasker>,
    /// Receives what operations on the stacks could not record.
    pub unrecorded: Unrecorded,
    /// Receives the outages of stores, while requests to them are still tried.
    pub outages: OutageReport,
    /// Paths of the files that were read from the store of the repository, because they are not on the disk.
    pub from_store: Vec<String>,
    /// Placeholders whose values are unknown, sorted.
    pub unknown: Vec<String>,
    /// Graph of the stacks: which comes before which.
    pub graph: StackGraph,
    /// Each `inherit` of the stacks that were read.
    pub inheritance: Vec<Inheritance>,
    /// Client stacks that a selection of all stacks has passed by: folders with a client.yaml and no server.yaml.
    pub client_stacks: Vec<String>,
    /// Folder that the command runs in.
    pub folder: PathBuf,
    /// Name of the profile.
    pub profile: String,
    /// Rules about the plugins that may be used; none for stacks that are read for their states alone.
    pub policy: Arc<PluginPolicy>,
    /// Rules of the user for places of packages.
    pub fetch_rules: FetchRules,
    /// True if these are all stacks of the repository.
    pub are_all: bool,
    pub(super) process: ProcessIdentity,
    /// Sources of the stacks, to read one again.
    pub(super) reader: Arc<StackReader>,
    /// Names of the requested stacks.
    requested: Vec<String>,
    /// Programs of all loaded stacks, and of those that were read again.
    programs: Mutex<Vec<Program>>,
}

/// Result of reading stacks.
#[derive(Debug)]
pub enum StacksRead {
    /// The files have no errors. The diagnostics are warnings.
    Stacks(Box<Stacks>, Vec<Diagnostic>),
    /// The files have errors.
    Errors(Vec<Diagnostic>, SourceFiles),
}

impl Stacks {
    /// Loads stacks, with those that they inherit from.
    ///
    /// # Errors
    /// [`SetupError`] if the repository is not trusted, or the selection does not fit the stacks that exist. Errors in the
    /// files are in the result.
    pub fn read(request: StacksRequest<'_>, selection: Selection<'_>) -> Result<StacksRead, SetupError> {
        let mut sources = SourceFiles::default();
        match load(&request, &mut sources, selection)? {
            Err(found) => Ok(StacksRead::Errors(found, sources)),
            Ok(loaded) => {
                let Loaded { repository, stacks_folder, stacks, client_stacks, .. } = loaded;
                let Loaded { warnings, requested, from_store, unknown, inheritance, are_all, .. } = loaded;
                let Loaded { policy, profile, documents, .. } = loaded;
                let StacksRequest { process_context, process, masker, unrecorded, outages, .. } = request;
                let fetch_rules = request.fetch_rules;
                let mut stacks: Vec<Arc<Stack>> = stacks.into_iter().map(Arc::new).collect();
                let graph = StackGraph::of(&stacks, &inheritance);
                match graph.order() {
                    Ok(order) => stacks.sort_by_key(|stack| order.iter().position(|name| *name == stack.name)),
                    Err(cycle) if !request.accepts_errors => {
                        return Ok(StacksRead::Errors(vec![cycle.diagnostic()], sources));
                    }
                    Err(_) => {}
                }
                let sources = Arc::new(sources);
                let reader = StackReader {
                    repository: repository.clone(),
                    profile,
                    stacks_dir: request.stacks_dir.map(Path::to_owned),
                    process_context: process_context.clone(),
                    sources: Arc::clone(&sources),
                    documents: Mutex::new(documents),
                    outputs: tokio::sync::Mutex::default(),
                };
                let reader = Arc::new(reader);
                let programs = stacks.iter().map(|stack| program(stack, &repository)).collect();
                let stacks = Self {
                    repository,
                    stacks_folder,
                    process_context,
                    sources,
                    stacks,
                    masker,
                    unrecorded,
                    outages,
                    from_store,
                    unknown,
                    graph,
                    inheritance,
                    client_stacks: if selection.names().next().is_none() { client_stacks } else { Vec::new() },
                    folder: request.folder.to_owned(),
                    profile: request.profile.to_owned(),
                    policy: Arc::new(policy),
                    fetch_rules,
                    are_all,
                    process,
                    reader,
                    requested,
                    programs: Mutex::new(programs),
                };
                Ok(StacksRead::Stacks(Box::new(stacks), warnings))
            }
        }
    }

    /// Returns the requested stacks, in an order in which each comes after those that it inherits from.
    pub fn requested(&self) -> impl Iterator<Item = &Arc<Stack>> {
        self.stacks.iter().filter(|stack| self.requested.contains(&stack.name))
    }

    /// Requests only some of the stacks that are requested. The others stay loaded.
    pub fn retain_requested(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.requested.retain(|name| is_kept(name));
    }

    /// Returns the names of requested stacks that cannot be read at all, which is possible only if errors are accepted.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        let is_read = |name: &&String| self.stacks.iter().any(|stack| stack.name == **name);
        self.requested.iter().filter(move |name| !is_read(name)).map(String::as_str)
    }

    /// Returns the programs of the requested stacks.
    pub fn programs(&self) -> Vec<Program> {
        self.requested().map(|stack| self.program(stack)).collect()
    }

    /// Returns the program of a stack, or of the key of one. A stack has one program, which inspects its recipes once.
    pub fn program(&self, stack: &Arc<Stack>) -> Program {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = programs.iter().find(|program| program.is_of(stack)) {
            return known.clone();
        }
        let new = program(stack, &self.repository);
        programs.push(new.clone());
        new
    }

    /// Returns the time for which a lock is held unless it is renewed.
    ///
    /// # Errors
    /// [`SetupError::LeaseSeconds`].
    pub(super) fn lease_duration(&self) -> Result<Duration, SetupError> {
        let Some(text) = self.process_context.environment.get(LEASE_SECONDS) else { return Ok(LockLease::DURATION) };
        let seconds = text.parse().ok().filter(|seconds| LEASE_RANGE.contains(seconds));
        seconds.map(Duration::from_secs).ok_or_else(|| SetupError::LeaseSeconds {
            variable: LEASE_SECONDS,
            value: text.clone(),
            valid: LEASE_RANGE,
        })
    }

    /// Returns the holder that is written into locks of the states.
    pub fn holder(&self) -> LockHolder {
        let account = self.process_context.account.as_ref();
        LockHolder {
            pid: self.process.pid,
            username: account.map(|account| account.username.clone()).unwrap_or_default(),
            hostname: self.process.hostname.clone(),
            process: self.process.fingerprint.clone(),
            // An invalid value was refused when the store was opened.
            lease: Some(LockLease::new(self.lease_duration().unwrap_or(LockLease::DURATION))),
        }
    }
}

/// Creates the program of a stack of a repository, or of the key of one.
fn program(stack: &Arc<Stack>, repository: &Repository) -> Program {
    let recipes = if stack.key_of.is_some() { recipes::keys() } else { recipes::core_types() };
    Program::new(Arc::clone(stack), recipes).in_folder(&repository.root)
}

/// Checks that a repository belongs to an account whose programs the process may run.
///
/// # Errors
/// [`SetupError::ForeignRepository`]: the root of the repository, `.git` or `.sc` belongs to another account.
pub fn check_owner(repository: &Repository, process: &ProcessIdentity) -> Result<(), SetupError> {
    repository.check_owner(&process.trusted_owners).map_err(|foreign| SetupError::ForeignRepository {
        root: repository.root.clone(),
        foreign,
        user: process.user,
    })
}

struct Loaded {
    repository: Repository,
    stacks_folder: PathBuf,
    stacks: Vec<Stack>,
    client_stacks: Vec<String>,
    warnings: Vec<Diagnostic>,
    requested: Vec<String>,
    from_store: Vec<String>,
    unknown: Vec<String>,
    inheritance: Vec<Inheritance>,
    are_all: bool,
    policy: PluginPolicy,
    profile: Profile,
    documents: Option<StackDocuments>,
}

fn load(
    request: &StacksRequest<'_>,
    sources: &mut SourceFiles,
    selection: Selection<'_>,
) -> Result<Result<Loaded, Vec<Diagnostic>>, SetupError> {
    let process_context = &request.process_context;
    let repository = Repository::discover(request.folder);
    check_owner(&repository, &request.process)?;
    secrets_store::remove_abandoned_files(&repository.root);
    let profile = match Profile::read(request.profile, &repository, process_context, sources) {
        Ok(profile) => profile,
        Err(found) => return Ok(Err(found)),
    };
    let policy = match request.reading {
        Reading::Whole | Reading::WithoutValues | Reading::WithValues => read_plugin_policy(process_context, sources),
        Reading::StateOnly => Ok(PluginPolicy::default()),
    };
    let policy = match policy {
        Ok(policy) => policy,
        Err(found) => return Ok(Err(found)),
    };
    let types = recipes::built_in_types();
    let workspace = Workspace {
        repository: &repository,
        profile: &profile,
        stacks_dir: request.stacks_dir,
        process_context,
        types: &types,
    };
    let StackNames { stacks: names, client_stacks } = match workspace.stack_names() {
        Ok(names) => names,
        Err(found) => return Ok(Err(vec![*found])),
    };
    if let Some(name) = selection.names().find(|name| client_stacks.contains(name)) {
        return Err(SetupError::ClientStack { name });
    }
    let requested = select(&names, selection)?;
    let mut files: Vec<String> = Vec::new();
    for name in requested.iter().filter_map(|name| stack_in_files(&names, name)) {
        if !files.iter().any(|known| known == name) {
            files.push(name.to_owned());
        }
    }
    let loaded = match selection {
        Selection::WithDependencies(_) => load_with_dependencies(&workspace, request.reading, files, sources),
        Selection::Named(_) | Selection::One(_) | Selection::All => workspace.load_as(request.reading, &files, sources),
    };
    let LoadedStacks { mut stacks, incomplete, diagnostics, secrets, from_store, unknown, inheritance, documents } =
        loaded;
    if request.accepts_errors && stacks.is_empty() {
        stacks = incomplete;
    }
    let of_profile = [&profile.private_key, &profile.private_key_password];
    let masker = &request.masker;
    secrets.iter().chain(of_profile.into_iter().flatten()).for_each(|secret| masker.add_text(secret.expose()));
    stacks.iter().for_each(|stack| add_stack_secrets(masker, stack));
    let mut diagnostics = diagnostics;
    diagnostics.extend(differences(request.profile, &profile, &repository));
    diagnostics.extend(stacks.iter().filter_map(|stack| key_stack_clash(stack, &names)));
    if has_errors(&diagnostics) && !request.accepts_errors {
        return Ok(Err(diagnostics));
    }
    for name in requested.iter().filter(|name| !names.contains(name)) {
        let unknown = || SetupError::UnknownStack { name: name.clone(), existing: names.clone() };
        let key = stacks.iter().filter_map(key_stack).find(|key| key.name == *name).ok_or_else(unknown)?;
        stacks.push(Arc::unwrap_or_clone(key));
    }
    let stacks_folder = workspace.stacks_folder();
    let warnings = diagnostics;
    let are_all = request.reading == Reading::Whole
        && !has_errors(&warnings)
        && names.iter().all(|name| requested.contains(name))
        && is_only_folder(request, &repository, &stacks_folder);
    Ok(Ok(Loaded {
        repository,
        stacks_folder,
        stacks,
        client_stacks,
        warnings,
        requested,
        from_store,
        unknown,
        inheritance,
        are_all,
        policy,
        profile,
        documents,
    }))
}

/// Returns whether all stacks of a repository are in one folder, as far as its profiles tell: whether no other profile names a folder.
fn is_only_folder(request: &StacksRequest<'_>, repository: &Repository, folder: &Path) -> bool {
    let own = format!("cfg.{}.yaml", request.profile);
    let profiles = fs::read_dir(repository.root.join(".sc")).into_iter().flatten().flatten();
    let others = profiles.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        name.starts_with("cfg.") && name.ends_with(".yaml") && name != own
    });
    let names_folder = |file: fs::DirEntry| {
        let text = read_if_exists(&file.path(), MAX_DOCUMENT_BYTES).ok().flatten().unwrap_or_default();
        String::from_utf8_lossy(&text).contains("stacksDir")
    };
    let default = repository.root.join(".sc/stacks");
    let is_default = folder == default || !default.exists();
    request.stacks_dir.is_none() && is_default && !others.into_iter().any(names_folder)
}

/// Returns the error of a stack whose key has a stack with the name of another one in files: both would have one state.
fn key_stack_clash(stack: &Stack, names: &[String]) -> Option<Diagnostic> {
    let key = key_stack(stack).filter(|key| names.contains(&key.name))?;
    let summary = MessageText::new(format_args!(
        "the key of stack {} belongs to the stack {}, which is also that of a folder",
        stack.name, key.name
    ));
    let span = key.provisioner.secrets_provider.span();
    Some(Diagnostic::error(Code("stack-name"), span, summary).help("rename the folder, or the stack"))
}

/// Adds the secrets of a stack's files to those that are masked: what its plugins and their sources receive, and
/// those of its secrets provider.
fn add_stack_secrets(masker: &SecretMasker, stack: &Stack) {
    let sent = stack.plugins.iter().map(|plugin| &plugin.secrets);
    let sent = sent.flat_map(|secrets| {
        secrets.secrets.values().chain(secrets.auth.values().flat_map(|auth| auth.config.values()))
    });
    sent.chain(stack.provisioner.secrets_provider.secrets()).for_each(|text| masker.add_text(text.expose()));
    let sources = stack.plugins.iter().flat_map(|plugin| plugin.plugin.source.secrets());
    sources.for_each(|text| masker.add_text(text));
}
