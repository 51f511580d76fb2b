//! Fake deployment that records registrations, and programs of stacks that are read from text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bridge::host::PackageTypes;
use config::diagnostics::{Diagnostic, SourceFiles, Style, render};
use config::types::TypeTable;
use config::{LoadedStacks, ProcessContext, Profile, Repository, Stack, Workspace};
use engine::{Announcement, Goal, Halted, InvokeGoal, ProgramEnd, ReadGoal, Registered, Registrar, RegistrationResult};
use provisioner::operation::key_stack;
use provisioner::program::Program;
use provisioner::registry::recipe::{Effects, RecipeTable};
use provisioner::registry::recipes;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;

/// Kind of a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Run {
    /// Registrations create resources.
    #[default]
    Update,
    /// Registrations are previewed.
    Preview,
}

/// Deployment that records registrations. Outputs of a resource are its inputs and the entries of `outputs`.
#[derive(Default)]
pub(crate) struct FakeDeployment {
    pub(crate) run: Run,
    /// Number of registrations at the same time; any number by default.
    pub(crate) parallel: Option<usize>,
    /// Number of registrations that have no reply yet, and the largest number so far.
    pub(crate) open: Mutex<(usize, usize)>,
    /// Outputs by resource name, added to the inputs.
    pub(crate) outputs: BTreeMap<String, PropertyMap>,
    /// Types of the plugins' packages, by plugin.
    pub(crate) types: BTreeMap<String, PackageTypes>,
    /// Names of the resources that the run does not change.
    pub(crate) unchanged: Vec<&'static str>,
    /// Results of registrations, by resource name. Other registrations succeed.
    pub(crate) results: BTreeMap<&'static str, RegistrationResult>,
    /// Resource names at which the deployment stops.
    pub(crate) rejected: Vec<&'static str>,
    /// Replies of functions, by token. Other functions stop the deployment.
    pub(crate) replies: BTreeMap<String, PropertyMap>,
    /// Reasons for which APIs of Google cannot be switched on, by API (`projects/PROJECT/services/API`). Others can.
    pub(crate) refused_apis: BTreeMap<String, String>,
    /// APIs that the program switched on, or could not.
    pub(crate) apis: Mutex<Vec<String>>,
    /// Reads, in order.
    pub(crate) reads: Mutex<Vec<ReadGoal>>,
    /// Texts of the providers' refusals, by the name of the resource to read or the token of the function.
    pub(crate) refused: BTreeMap<String, String>,
    /// Outputs of components, in order.
    pub(crate) component_outputs: Mutex<Vec<(Urn, PropertyMap)>>,
    /// Announcement before the first registration of a resource.
    pub(crate) announced: Mutex<Announcement>,
    /// Registered goals, in order.
    pub(crate) goals: Mutex<Vec<Goal>>,
    /// Calls of functions, in order.
    pub(crate) invokes: Mutex<Vec<InvokeGoal>>,
    /// Stack outputs; `None` until they are registered.
    pub(crate) stack_outputs: Mutex<Option<PropertyMap>>,
}

impl FakeDeployment {
    pub(crate) fn preview() -> Self {
        Self { run: Run::Preview, ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &str, property: &str, value: impl Into<PropertyValue>) -> Self {
        self.outputs.entry(name.to_owned()).or_default().insert(property.to_owned(), value.into());
        self
    }

    pub(crate) fn goal(&self, name: &str) -> Goal {
        self.goals.lock().unwrap().iter().find(|goal| goal.name == name).unwrap_or_else(|| panic!("no {name}")).clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.goals.lock().unwrap().iter().map(|goal| goal.name.clone()).collect()
    }

    pub(crate) fn output(&self, name: &str) -> PropertyValue {
        self.stack_outputs.lock().unwrap().as_ref().unwrap()[name].clone()
    }
}

pub(crate) fn urn(goal: &Goal) -> Urn {
    Urn::new("s", "reef", goal.parent.as_ref(), goal.type_token.as_str(), &goal.name)
}

fn read_urn(goal: &ReadGoal) -> Urn {
    Urn::new("s", "reef", goal.parent.as_ref(), goal.type_token.as_str(), &goal.name)
}

#[async_trait]
impl Registrar for FakeDeployment {
    fn is_preview(&self) -> bool {
        self.run == Run::Preview
    }

    fn changes_resources(&self) -> bool {
        self.run == Run::Update
    }

    fn parallel(&self) -> usize {
        self.parallel.unwrap_or(usize::MAX)
    }

    async fn package_types(&self, plugins: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted> {
        Ok(self.types.clone().into_iter().filter(|(plugin, _)| plugins.contains(plugin)).collect())
    }

    fn announce(&self, announcement: Announcement) {
        assert_eq!(self.goals.lock().unwrap().len(), 1, "only the root stack is registered before");
        *self.announced.lock().unwrap() = announcement;
    }

    async fn register(&self, goal: Goal) -> Result<Registered, Halted> {
        let urn = urn(&goal);
        {
            let mut goals = self.goals.lock().unwrap();
            let reads = self.reads.lock().unwrap();
            let known: Vec<Urn> = goals.iter().map(self::urn).chain(reads.iter().map(read_urn)).collect();
            for needed in goal.dependencies.iter().chain(&goal.parent).chain(goal.provider.iter().map(|p| &p.urn)) {
                assert!(known.contains(needed), "{urn} needs {needed}");
            }
            goals.push(goal.clone());
        }
        if self.rejected.contains(&goal.name.as_str()) {
            return Err(Halted::Stopped);
        }
        {
            let (open, most) = &mut *self.open.lock().unwrap();
            *open += 1;
            *most = (*most).max(*open);
        }
        // Responses arrive in another order than registrations.
        for _ in 0..goal.name.len() % 3 {
            tokio::task::yield_now().await;
        }
        self.open.lock().unwrap().0 -= 1;
        let result = self.results.get(goal.name.as_str()).copied().unwrap_or(RegistrationResult::Succeeded);
        let mut outputs = PropertyMap::new();
        if result == RegistrationResult::Succeeded {
            outputs.extend((*goal.inputs).clone());
            let by_type = self.outputs.get(&format!("{}::{}", goal.type_token.as_str(), goal.name));
            outputs.extend(by_type.or_else(|| self.outputs.get(&goal.name)).cloned().unwrap_or_default());
        }
        let known = self.run == Run::Update && goal.custom && result == RegistrationResult::Succeeded;
        let id = goal.import_id.clone().or_else(|| ResourceId::new(format!("{}-1", goal.name))).filter(|_| known);
        let has_all_outputs = result == RegistrationResult::Succeeded
            && (self.run == Run::Update || self.unchanged.contains(&goal.name.as_str()));
        let outputs = Arc::new(outputs);
        Ok(Registered { id, outputs, has_all_outputs, ..Registered::without_outputs(urn, result) })
    }

    async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Halted> {
        if urn.type_token() == "pulumi:pulumi:Stack" {
            *self.stack_outputs.lock().unwrap() = Some(outputs);
        } else {
            self.component_outputs.lock().unwrap().push((urn.clone(), outputs));
        }
        Ok(())
    }

    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted> {
        let urn = read_urn(&goal);
        let (name, id) = (goal.name.clone(), goal.id.known().cloned());
        self.reads.lock().unwrap().push(goal);
        if self.refused.contains_key(&name) {
            return Err(Halted::Stopped);
        }
        let outputs = Arc::new(self.outputs.get(&name).cloned().unwrap_or_default());
        let read = Registered::without_outputs(urn, RegistrationResult::Succeeded);
        Ok(Registered { id, outputs, has_all_outputs: true, ..read })
    }

    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Halted> {
        let reply = self.replies.get(goal.token.as_str()).filter(|_| !self.refused.contains_key(goal.token.as_str()));
        let reply = reply.cloned();
        self.invokes.lock().unwrap().push(goal);
        reply.ok_or(Halted::Stopped)
    }
}

#[async_trait]
impl Effects for FakeDeployment {
    async fn enable_google_api(&self, project: &str, service: &str, _: &str) -> Result<(), String> {
        let api = format!("projects/{project}/services/{service}");
        let refusal = self.refused_apis.get(&api).cloned();
        self.apis.lock().unwrap().push(api);
        refusal.map_or(Ok(()), Err)
    }
}

/// Program of a stack that was read from files, with the text of the files.
pub(crate) struct StackProgram {
    pub(crate) program: Program,
    pub(crate) sources: SourceFiles,
}

impl StackProgram {
    /// Reads a stack with a plugin `p`, resources in the environment `e`, and further sections.
    pub(crate) fn resources(resources: &str, rest: &str) -> Self {
        let indented: String = resources.trim_matches('\n').lines().map(|line| format!("        {line}\n")).collect();
        Self::server(&format!(
            "plugins: [{{ name: p, source: {{ type: local, path: p }} }}]
resources:
  resources:
    e:
      resources:
{indented}{rest}"
        ))
    }

    pub(crate) fn server(sections: &str) -> Self {
        Self::with_types(sections, recipes::built_in_types(), recipes::core_types())
    }

    pub(crate) fn with_secrets(sections: &str, secrets: &str) -> Self {
        let plugin = "plugins: [{ name: p, source: { type: local, path: p } }]";
        Self::with_provisioner(
            &format!("{plugin}\n{sections}"),
            secrets,
            recipes::built_in_types(),
            recipes::core_types(),
        )
    }

    pub(crate) fn with_types(sections: &str, types: TypeTable, core: RecipeTable) -> Self {
        Self::with_provisioner(sections, "values: { s: hush }", types, core)
    }

    fn with_provisioner(sections: &str, secrets: &str, types: TypeTable, core: RecipeTable) -> Self {
        let provisioner = "provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: file:///x } }, secrets-provider: { type: passphrase } } }";
        Self::complete(&format!("{provisioner}\n{sections}"), secrets, types, core)
    }

    /// Reads a stack from a complete server.yaml.
    pub(crate) fn complete(server: &str, secrets: &str, types: TypeTable, core: RecipeTable) -> Self {
        let (stack, sources, diagnostics) = Self::load(server, secrets, &types);
        // Keys without effect are part of some recordings.
        let unused = |diagnostic: &str| diagnostic.is_empty() || diagnostic.starts_with("warning[unused]");
        assert!(diagnostics.split("\n\n").all(unused), "{diagnostics}");
        Self { program: Program::new(Arc::new(stack.unwrap()), core), sources }
    }

    /// Reads a stack from a complete server.yaml without secrets.
    ///
    /// # Errors
    /// Returns the errors of the file as text.
    pub(crate) fn try_complete(server: &str, types: TypeTable, core: RecipeTable) -> Result<Self, String> {
        let (stack, sources, diagnostics) = Self::load(server, "", &types);
        match stack.filter(|_| !diagnostics.contains("error[")) {
            Some(stack) => Ok(Self { program: Program::new(Arc::new(stack), core), sources }),
            None => Err(diagnostics),
        }
    }

    /// Reads the stack of the key of a stack; `None` if the stack asks for no key.
    ///
    /// # Errors
    /// Returns the errors of the file as text.
    pub(crate) fn key(server: &str, project: &str, stack: &str) -> Result<Option<Self>, String> {
        let (loaded, sources, diagnostics) = Self::load_named(server, "", &recipes::built_in_types(), project, stack);
        match loaded.filter(|_| !diagnostics.contains("error")) {
            Some(stack) => {
                Ok(key_stack(&stack).map(|key| Self { program: Program::new(key, recipes::keys()), sources }))
            }
            None => Err(diagnostics),
        }
    }

    fn load(server: &str, secrets: &str, types: &TypeTable) -> (Option<Stack>, SourceFiles, String) {
        Self::load_named(server, secrets, types, "reef", "s")
    }

    fn load_named(
        server: &str,
        secrets: &str,
        types: &TypeTable,
        project: &str,
        name: &str,
    ) -> (Option<Stack>, SourceFiles, String) {
        let folder = tempfile::tempdir().unwrap();
        let stack = folder.path().join(".sc/stacks").join(name);
        fs::create_dir_all(&stack).unwrap();
        fs::write(folder.path().join(".sc/cfg.default.yaml"), format!("projectName: {project}")).unwrap();
        fs::write(stack.join("server.yaml"), server).unwrap();
        fs::write(stack.join("secrets.yaml"), secrets).unwrap();
        load(folder.path(), name, types)
    }

    /// Runs the program, which must complete without diagnostics.
    pub(crate) async fn run(&self, deployment: &FakeDeployment) {
        let result = self.program.run(deployment, deployment).await;
        assert_eq!((result.end, result.diagnostics), (ProgramEnd::Completed, vec![]));
    }

    /// Runs the program, which must not complete, and returns its diagnostics as text.
    pub(crate) async fn diagnostics(&self, deployment: &FakeDeployment) -> String {
        let result = self.program.run(deployment, deployment).await;
        assert_eq!(result.end, ProgramEnd::Failed);
        self.render(&result.diagnostics)
    }

    pub(crate) fn render(&self, diagnostics: &[Diagnostic]) -> String {
        let messages: Vec<_> = diagnostics.iter().map(|d| render(d, &self.sources, Style::Plain)).collect();
        messages.join("\n\n")
    }
}

pub(crate) fn read(root: &Path, name: &str, types: &TypeTable) -> (Stack, SourceFiles) {
    let (stack, sources, diagnostics) = load(root, name, types);
    assert_eq!(diagnostics, "");
    (stack.unwrap(), sources)
}

/// Reads a stack, and returns the diagnostics as text.
fn load(root: &Path, name: &str, types: &TypeTable) -> (Option<Stack>, SourceFiles, String) {
    let process_context = ProcessContext {
        environment: BTreeMap::new(),
        now: "2024-01-02T03:04:05Z".parse().unwrap(),
        time_zone: Some(jiff::tz::TimeZone::UTC),
        account: None,
    };
    let repository = Repository { root: root.to_owned(), git: None };
    let mut sources = SourceFiles::default();
    let profile = Profile::read("default", &repository, &process_context, &mut sources).unwrap();
    let workspace = Workspace {
        repository: &repository,
        profile: &profile,
        stacks_dir: None,
        process_context: &process_context,
        types,
    };
    let LoadedStacks { mut stacks, diagnostics, .. } = workspace.load(&[name.to_owned()], &mut sources);
    let messages: Vec<_> = diagnostics.iter().map(|d| render(d, &sources, Style::Plain)).collect();
    (stacks.pop(), sources, messages.join("\n\n"))
}
