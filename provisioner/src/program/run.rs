//! Registers the root stack resource first, then each resource as soon as its dependencies are registered. Resources
//! that are ready at the same time start in the order of the file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bridge::host::{AssetHashes, PackageTypes};
use bridge::message_text::MessageText;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::core_resources::CoreResources;
use super::goals::{self, PluginResource};
use super::packages::ResolvedPlugins;
use super::references::{ReferencedResource, ReferencedResources, ResolveMode};
use super::types::{ResolvedType, TypeResolver};
use super::{assets, packages, positions, written_texts};
use crate::registry::recipe::{
    CoreResource, Effects, RecipeError, RecipeTable, ResourceNames, SharedRegistrations, without_unknowns,
};
use config::diagnostics::{Code, Diagnostic};
use config::graph::{dependencies, references};
use config::tree::Reference;
use config::{PluginDeclaration, Resource, ResourceImplementation, Stack};
use engine::{Announcement, Goal, ProgramEnd, Registrar, RegistrationResult};

/// Number of registrations of plugin resources that are started for each one that the deployment carries out at the same time.
/// The others wait as nodes: a started registration has all its inputs, and a stack may have tens of thousands.
const STARTED_PER_SLOT: usize = 4;

/// Result of a program.
#[derive(Clone, Debug)]
pub struct ProgramResult {
    /// End of the program: [`ProgramEnd::Failed`] if a registration failed or was not made, because a missing
    /// registration then does not mean that the user removed the resource.
    pub end: ProgramEnd,
    /// Errors that are detected only while the program runs. They are not reported yet.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parts of a program.
#[derive(Clone, Copy)]
pub(super) struct ProgramParts<'r> {
    pub(super) stack: &'r Stack,
    pub(super) core: &'r RecipeTable,
    pub(super) core_resources: &'r CoreResources,
    /// The plugins, once they are resolved.
    pub(super) resolved: Option<&'r ResolvedPlugins>,
    /// Hashes of assets; `None` if goals are only collected.
    pub(super) assets: Option<&'r AssetHashes>,
}

/// Registers all resources and outputs of a stack. Announces its plugin resources and the goals of its core resources first.
pub(super) async fn run(
    program: ProgramParts<'_>,
    core_goals: Vec<Goal>,
    registrar: &dyn Registrar,
    effects: &dyn Effects,
) -> ProgramResult {
    let ProgramParts { stack, core_resources, .. } = program;
    let types = registrar.package_types(packages::plugins_with_package_types(stack, core_resources));
    let (root, types) = match tokio::join!(registrar.register(goals::root(stack)), types) {
        (Ok(root), Ok(types)) if root.result != RegistrationResult::Failed => (root.urn, types),
        (Ok(_) | Err(_), _) => {
            return ProgramResult { end: ProgramEnd::Failed, diagnostics: Vec::new() };
        }
    };
    let mut run = Run::new(program, registrar, effects, &root, types);
    registrar.announce(Announcement {
        goals: run.announced().chain(core_goals).collect(),
        // What a core resource registers may depend on outputs that are not known yet.
        incomplete_packages: core_resources.packages.iter().map(|(_, package)| package.name.to_owned()).collect(),
    });
    run.register_all().await;
    run.register_outputs().await;
    ProgramResult { end: run.end, diagnostics: run.diagnostics }
}

/// Outcome of one registration.
enum RegistrationOutcome {
    /// The provider resource of the plugin at an index of [`Stack::plugins`] is registered.
    Provider(usize, ProviderReference),
    /// The resource at an index of [`Stack::declarations`] is registered.
    Resource(usize, ReferencedResource),
    /// The registration failed. The program continues with resources that do not depend on it.
    Failed,
    /// The deployment accepts no more registrations.
    Halted,
    /// The configuration has an error that is detected only while the program runs.
    Diagnostic(Box<Diagnostic>),
}

/// Node of the graph of registrations. Those that are ready at the same time start in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GraphNode {
    /// Provider resource of the plugin at an index of [`Stack::plugins`].
    Provider(usize),
    /// Resource at an index of [`Stack::declarations`].
    Resource(usize),
}

/// Resource of the stack, with its environment.
struct DeclaredResource<'r> {
    environment: &'r str,
    resource: &'r Resource,
    kind: ResourceKind<'r>,
}

/// Kind of a resource.
enum ResourceKind<'r> {
    /// Resource of the plugin at an index of [`Stack::plugins`].
    Plugin { plugin: usize, resolved: Arc<ResolvedType> },
    /// Core resource.
    Core { type_name: &'r str },
}

impl DeclaredResource<'_> {
    fn is_component(&self) -> bool {
        matches!(&self.kind, ResourceKind::Plugin { resolved, .. } if resolved.is_component())
    }
}

struct Run<'r> {
    stack: &'r Stack,
    core: &'r RecipeTable,
    resolved: Option<&'r ResolvedPlugins>,
    assets: Option<&'r AssetHashes>,
    registrar: &'r dyn Registrar,
    effects: &'r dyn Effects,
    root: &'r Urn,
    /// Types of the packages, by name of the plugin.
    types: BTreeMap<String, PackageTypes>,
    /// Plugins that children of components use; empty without components.
    child_plugins: Vec<usize>,
    mode: ResolveMode,
    /// Registrations that several core resources share.
    shared: Arc<SharedRegistrations>,
    resources: Vec<DeclaredResource<'r>>,
    /// Number of unregistered dependencies of each resource.
    missing_dependencies: BTreeMap<GraphNode, usize>,
    dependents: BTreeMap<GraphNode, Vec<GraphNode>>,
    ready: BTreeSet<GraphNode>,
    /// Registered providers, by index of the plugin.
    providers: BTreeMap<usize, ProviderReference>,
    /// Registered resources, by index.
    registered: BTreeMap<usize, Arc<ReferencedResource>>,
    /// Indices of the resources, by environment and key.
    by_key: BTreeMap<(&'r str, &'r str), usize>,
    end: ProgramEnd,
    stopped: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'r> Run<'r> {
    fn new(
        program: ProgramParts<'r>,
        registrar: &'r dyn Registrar,
        effects: &'r dyn Effects,
        root: &'r Urn,
        types: BTreeMap<String, PackageTypes>,
    ) -> Self {
        let ProgramParts { stack, core, core_resources, resolved, assets } = program;
        let mut resolver = TypeResolver::new(stack, &types);
        let declared = |(environment, resource): (&'r str, &'r Resource)| {
            let kind = match &resource.implementation {
                ResourceImplementation::Plugin { plugin, type_text } => {
                    ResourceKind::Plugin { plugin: *plugin, resolved: resolver.resolve(*plugin, type_text) }
                }
                ResourceImplementation::Core { type_name } => ResourceKind::Core { type_name },
            };
            DeclaredResource { environment, resource, kind }
        };
        let resources: Vec<_> = stack.declarations().map(declared).collect();
        let has_components = types.values().any(PackageTypes::has_components);
        let child_plugins =
            if has_components { packages::plugins_for_children(stack, core_resources) } else { Vec::new() };
        let by_key: BTreeMap<_, _> = resources
            .iter()
            .enumerate()
            .map(|(index, declared)| ((declared.environment, declared.resource.key.as_str()), index))
            .collect();
        let (mut missing_dependencies, mut dependents) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (index, declared) in resources.iter().enumerate() {
            let DeclaredResource { environment, resource, kind } = declared;
            // Children of a component use these plugins, so the component depends on all of them.
            let of_children = if declared.is_component() { child_plugins.as_slice() } else { &[] };
            let provider = match kind {
                ResourceKind::Plugin { plugin, .. } => Some(*plugin),
                ResourceKind::Core { .. } => None,
            };
            let providers = of_children.iter().copied().chain(provider).map(GraphNode::Provider);
            let named = dependencies(resource).filter_map(|(key, _)| by_key.get(&(*environment, key)).copied());
            let node_dependencies: BTreeSet<_> = named.map(GraphNode::Resource).chain(providers).collect();
            missing_dependencies.insert(GraphNode::Resource(index), node_dependencies.len());
            for dependency in node_dependencies {
                dependents.entry(dependency).or_default().push(GraphNode::Resource(index));
            }
        }
        // A plugin that only core types use is not registered, because each core resource registers its own provider.
        let core_packages = packages::core_type_packages(stack, core_resources);
        let is_registered = |(index, declaration): (usize, &PluginDeclaration)| {
            let is_used = dependents.contains_key(&GraphNode::Provider(index));
            let is_core_only = !is_used && core_packages.contains(declaration.package());
            (declaration.plugin.enabled && !is_core_only).then_some(GraphNode::Provider(index))
        };
        let providers = stack.plugins.iter().enumerate().filter_map(is_registered);
        let independent = missing_dependencies.iter().filter(|(_, missing)| **missing == 0).map(|(node, _)| *node);
        let ready = providers.chain(independent).collect();
        let mode = if registrar.is_preview() { ResolveMode::Preview } else { ResolveMode::Apply };
        Self {
            stack,
            core,
            resolved,
            assets,
            registrar,
            effects,
            root,
            types,
            child_plugins,
            mode,
            shared: Arc::default(),
            resources,
            missing_dependencies,
            dependents,
            ready,
            providers: BTreeMap::new(),
            registered: BTreeMap::new(),
            by_key,
            end: ProgramEnd::Completed,
            stopped: false,
            diagnostics: Vec::new(),
        }
    }

    /// Returns the goals that announce the plugin resources.
    fn announced(&self) -> impl Iterator<Item = Goal> {
        self.resources.iter().filter_map(|DeclaredResource { environment, resource, kind }| {
            let ResourceKind::Plugin { resolved, .. } = kind else { return None };
            let mut goal = goals::announced(resource, resolved.token.as_str(), environment, self.root);
            goal.aliases.extend(goals::type_aliases(&resolved.former_types));
            goal.remote = resolved.is_component();
            Some(goal)
        })
    }

    async fn register_all(&mut self) {
        let limit = self.registrar.parallel().saturating_mul(STARTED_PER_SLOT);
        let mut running = FuturesUnordered::new();
        // Nodes that take a slot, in the order in which they became ready, and the number of those that are started.
        let (mut waiting, mut started) = (VecDeque::new(), 0);
        loop {
            while !self.stopped {
                // Those that wait became ready earlier.
                let next = if started < limit { waiting.pop_front() } else { None };
                let Some(node) = next.or_else(|| self.ready.pop_first()) else { break };
                let takes_slot = self.takes_slot(node);
                if takes_slot && started == limit {
                    waiting.push_back(node);
                    continue;
                }
                started += usize::from(takes_slot);
                running.push(self.start(node).map(move |outcome| (takes_slot, outcome)));
            }
            let Some((took_slot, outcome)) = running.next().await else { return };
            started -= usize::from(took_slot);
            self.handle_outcome(outcome);
        }
    }

    /// Returns whether a registration takes one of the slots of `--parallel`. A component and a core resource take none: they
    /// wait for resources that do.
    fn takes_slot(&self, node: GraphNode) -> bool {
        let GraphNode::Resource(index) = node else { return false };
        let declared = &self.resources[index];
        matches!(declared.kind, ResourceKind::Plugin { .. }) && !declared.is_component()
    }

    fn handle_outcome(&mut self, outcome: RegistrationOutcome) {
        let node = match outcome {
            RegistrationOutcome::Provider(plugin, reference) => {
                self.providers.insert(plugin, reference);
                GraphNode::Provider(plugin)
            }
            RegistrationOutcome::Resource(index, resource) => {
                self.registered.insert(index, Arc::new(resource));
                GraphNode::Resource(index)
            }
            // Nodes that depend on a failed node never start.
            RegistrationOutcome::Failed => {
                self.end = ProgramEnd::Failed;
                return;
            }
            RegistrationOutcome::Halted => {
                (self.end, self.stopped) = (ProgramEnd::Failed, true);
                return;
            }
            RegistrationOutcome::Diagnostic(diagnostic) => {
                (self.end, self.stopped) = (ProgramEnd::Failed, true);
                self.diagnostics.push(*diagnostic);
                return;
            }
        };
        for dependent in self.dependents.remove(&node).unwrap_or_default() {
            let Some(missing) = self.missing_dependencies.get_mut(&dependent) else { continue };
            *missing -= 1;
            if *missing == 0 {
                self.ready.insert(dependent);
            }
        }
    }

    fn start(&self, node: GraphNode) -> BoxFuture<'r, RegistrationOutcome> {
        match node {
            GraphNode::Provider(plugin) => self.start_provider(plugin),
            GraphNode::Resource(index) => self.start_resource(index),
        }
    }

    fn start_resource(&self, index: usize) -> BoxFuture<'r, RegistrationOutcome> {
        let DeclaredResource { environment, resource, kind } = &self.resources[index];
        let mut referenced = ReferencedResources::new(self.mode);
        let registered = |key| self.registered.get(self.by_key.get(&(*environment, key))?);
        for (key, dependency) in dependencies(resource).filter_map(|(key, _)| Some((key, registered(key)?))) {
            referenced.insert(environment, key, dependency.clone());
        }
        match kind {
            ResourceKind::Plugin { plugin, resolved } => {
                self.start_plugin_resource(index, resolved, *plugin, referenced)
            }
            ResourceKind::Core { type_name } => self.start_core_resource(index, type_name, referenced),
        }
    }

    fn start_provider(&self, index: usize) -> BoxFuture<'r, RegistrationOutcome> {
        let mut goal = goals::provider(&self.stack.plugins[index], index, self.root, self.resolved);
        let types = self.types.get(self.stack.plugins[index].name());
        if let Some(type_info) = types.and_then(|types| types.get(goal.type_token.as_str())) {
            goals::apply_type_info(&mut goal, &type_info);
            goal.aliases.extend(goals::type_aliases(&type_info.former_types));
        }
        let registrar = self.registrar;
        Box::pin(async move {
            match registrar.register(goal).await {
                Ok(registered) if registered.result == RegistrationResult::Failed => RegistrationOutcome::Failed,
                Ok(registered) => RegistrationOutcome::Provider(index, registered.as_provider_reference()),
                Err(_) => RegistrationOutcome::Halted,
            }
        })
    }

    fn start_plugin_resource(
        &self,
        resource_index: usize,
        resolved: &Arc<ResolvedType>,
        plugin: usize,
        referenced: ReferencedResources,
    ) -> BoxFuture<'r, RegistrationOutcome> {
        let DeclaredResource { environment, resource, .. } = self.resources[resource_index];
        let provider = self.providers.get(&plugin).cloned();
        let provider = provider.expect("a resource starts after the provider of its plugin, on which it depends");
        let depends_on = goals::named(&resource.options.depends_on, environment, &referenced);
        let (token, root) = (resolved.token.as_str(), self.root);
        let config = &*written_texts::keep(&resource.config, resolved);
        let depends_on = &depends_on;
        let plugin_resource = PluginResource { resource, config, token, environment, root, provider, depends_on };
        let source = positions::resource_ref(self.stack.plugins.len(), resource_index);
        let remote = resolved.is_component();
        let providers = if remote { self.providers_of_children() } else { BTreeMap::new() };
        let goal = plugin_resource.goal(&referenced).map(|mut goal| {
            (goal.custom, goal.remote, goal.providers) = (!remote, remote, providers);
            goal.source = Some(source);
            resolved.info.iter().for_each(|info| goals::apply_type_info(&mut goal, info));
            goal.aliases.extend(goals::type_aliases(&resolved.former_types));
            goal
        });
        let (registrar, resolved) = (self.registrar, Arc::clone(resolved));
        let (assets, stack) = (self.assets, self.stack);
        Box::pin(async move {
            let goal = match (goal, assets) {
                (Ok(goal), Some(assets)) => assets::add_hashes(goal, assets, stack).await,
                (goal, _) => goal,
            };
            let goal = match goal {
                Ok(goal) => goal,
                Err(diagnostic) => return RegistrationOutcome::Diagnostic(diagnostic),
            };
            match registrar.register(goal).await {
                Ok(registered) if registered.result == RegistrationResult::Failed => RegistrationOutcome::Failed,
                Ok(registered) => {
                    RegistrationOutcome::Resource(resource_index, ReferencedResource::Plugin(registered, resolved))
                }
                Err(_) => RegistrationOutcome::Halted,
            }
        })
    }

    /// Returns the providers that children of components use, by package.
    fn providers_of_children(&self) -> BTreeMap<String, ProviderReference> {
        let named = self.child_plugins.iter().filter_map(|plugin| {
            Some((self.stack.plugins[*plugin].package().to_owned(), self.providers.get(plugin)?.clone()))
        });
        named.collect()
    }

    fn start_core_resource(
        &self,
        resource_index: usize,
        type_name: &'r str,
        referenced: ReferencedResources,
    ) -> BoxFuture<'r, RegistrationOutcome> {
        let DeclaredResource { environment, resource, .. } = self.resources[resource_index];
        let (stack, root, registrar, effects) = (self.stack, self.root, self.registrar, self.effects);
        let source = positions::resource_ref(self.stack.plugins.len(), resource_index);
        let recipe = self.core.get(type_name).cloned();
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let Some(recipe) = recipe else {
                let summary = MessageText::new(format_args!("the core type {type_name:?} is not supported yet"));
                let unknown = Diagnostic::error(Code("unknown-resource-type"), resource.type_span, summary);
                return RegistrationOutcome::Diagnostic(unknown.into());
            };
            let depends_on = goals::named(&resource.options.depends_on, environment, &referenced);
            let core = CoreResource {
                place: ResourceNames::new(stack, environment, type_name, resource),
                root,
                config: &resource.config,
                options: &resource.options,
                depends_on: &depends_on,
                source,
                registrar,
                shared: &shared,
                effects,
                resolve_text: &|string| referenced.evaluate_text(string, environment),
            };
            match recipe.register(core).await {
                Ok(provisioned) => RegistrationOutcome::Resource(resource_index, ReferencedResource::Core(provisioned)),
                Err(RecipeError::Halted(_)) => RegistrationOutcome::Halted,
                Err(RecipeError::Failed) => RegistrationOutcome::Failed,
                Err(RecipeError::Diagnostic(diagnostic)) => RegistrationOutcome::Diagnostic(diagnostic),
            }
        })
    }

    /// Registers the stack outputs all at once. Registers none if an output refers to a resource that is not
    /// registered.
    async fn register_outputs(&mut self) {
        if self.stopped {
            return;
        }
        let outputs = self.evaluate_outputs().unwrap_or_else(|diagnostic| {
            self.end = ProgramEnd::Failed;
            self.diagnostics.push(*diagnostic);
            None
        });
        if let Some(outputs) = outputs
            && self.registrar.register_outputs(self.root, outputs).await.is_err()
        {
            self.end = ProgramEnd::Failed;
        }
    }

    fn evaluate_outputs(&self) -> Result<Option<PropertyMap>, Box<Diagnostic>> {
        let mut outputs = PropertyMap::new();
        for resource in self.registered.values() {
            let ReferencedResource::Core(provisioned) = &**resource else { continue };
            for (name, value) in provisioned.stack_outputs.clone() {
                let value = if self.mode == ResolveMode::Apply { without_unknowns(value) } else { value };
                goals::insert_output(&mut outputs, &name, value);
            }
        }
        for output in &self.stack.outputs {
            let mut referenced = ReferencedResources::new(self.mode);
            for reference in references(&output.value) {
                let indices = reference.targets().filter_map(|key| Some((key, self.find_target(reference, key)?)));
                for (key, index) in indices {
                    let Some(target) = self.registered.get(&index) else { return Ok(None) };
                    referenced.insert(self.resources[index].environment, key, target.clone());
                }
            }
            if outputs.contains_key(&output.name) {
                let summary =
                    MessageText::new(format_args!("the output {:?} is already exported by a core type", output.name));
                return Err(Diagnostic::error(Code("duplicate-output"), output.span, summary).into());
            }
            goals::insert_output(&mut outputs, &output.name, referenced.evaluate(&output.value, None)?.value);
        }
        Ok(Some(outputs))
    }

    /// Returns the index of a resource that a reference of an output refers to; `None` for one that is switched off: its default counts.
    fn find_target(&self, reference: &Reference, key: &str) -> Option<usize> {
        let Some(environment) = reference.environment.as_deref() else {
            return self.by_key.iter().find(|((_, known), _)| *known == key).map(|(_, index)| *index);
        };
        self.by_key.get(&(environment, key)).copied()
    }
}
