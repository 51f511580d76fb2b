//! Registers the root stack resource first, then each resource as soon as its dependencies are registered. Resources
//! that are ready at the same time start in the order of the file. Functions are called in the same graph.

mod function_calls;
mod outputs;
mod providers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bridge::host::{AssetHashes, PackageTypes};
use bridge::message_text::MessageText;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::core_resources::CoreResources;
use super::functions::{FunctionReplies, FunctionResult};
use super::goals::{self, PluginResource};
use super::graph_nodes::{GraphNode, NodeIndices};
use super::packages::ResolvedPlugins;
use super::references::{ReferencedResource, ReferencedResources, ResolveMode};
use super::types::{ResolvedType, TypeResolver};
use super::{assets, packages, positions, written_texts};
use crate::registry::recipe::{CoreResource, Effects, RecipeError, RecipeTable, ResourceNames, SharedRegistrations};
use config::diagnostics::{Code, Diagnostic};
use config::graph::{NodeName, dependencies, dependencies_of_function};
use config::{FunctionName, PluginDeclaration, Resource, ResourceImplementation, Stack};
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
    /// Results of the functions that were called, by their names. What is not known is unknown.
    pub functions: BTreeMap<FunctionName, PropertyValue>,
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
    /// Replies to calls of functions; `None` if goals are only collected, and no function is called.
    pub(super) replies: Option<&'r FunctionReplies>,
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
            return ProgramResult { end: ProgramEnd::Failed, diagnostics: Vec::new(), functions: BTreeMap::new() };
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
    let functions = run.results.iter().map(|(index, result)| (run.name_of_function(*index), result.value.clone()));
    ProgramResult { end: run.end, functions: functions.collect(), diagnostics: run.diagnostics }
}

/// Outcome of one registration.
enum RegistrationOutcome {
    /// The provider resource of the plugin at an index of [`Stack::plugins`] is registered.
    Provider(usize, RegisteredProvider),
    /// The function at an index of [`Stack::functions`] has returned, or is not called.
    Function(usize, FunctionResult),
    /// The resource at an index of [`Stack::declarations`] is registered.
    Resource(usize, ReferencedResource),
    /// The registration failed. The program continues with resources that do not depend on it.
    Failed,
    /// The deployment accepts no more registrations.
    Halted,
    /// The configuration has an error that is detected only while the program runs.
    Diagnostic(Box<Diagnostic>),
}

/// Provider resource of a plugin, which is registered.
struct RegisteredProvider {
    reference: ProviderReference,
    result: RegistrationResult,
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
    replies: Option<&'r FunctionReplies>,
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
    /// Functions that are called, by index.
    functions: BTreeMap<usize, Arc<ResolvedType>>,
    nodes: NodeIndices<'r>,
    /// Number of unregistered dependencies of each resource and each function.
    missing_dependencies: BTreeMap<GraphNode, usize>,
    dependents: BTreeMap<GraphNode, Vec<GraphNode>>,
    ready: BTreeSet<GraphNode>,
    /// Registered providers, by index of the plugin.
    providers: BTreeMap<usize, RegisteredProvider>,
    /// Registered resources, by index.
    registered: BTreeMap<usize, Arc<ReferencedResource>>,
    /// Results of functions, by index.
    results: BTreeMap<usize, Arc<FunctionResult>>,
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
        let ProgramParts { stack, core, core_resources, resolved, assets, replies } = program;
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
        let called = stack.functions.iter().enumerate().filter(|(_, function)| function.is_enabled);
        let functions: BTreeMap<_, _> = called
            .map(|(index, function)| (index, resolver.resolve_function(function.plugin, &function.token_text)))
            .collect();
        let nodes = NodeIndices::new(stack);
        let (mut missing_dependencies, mut dependents) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        let mut depend = |node: GraphNode, on: BTreeSet<GraphNode>| {
            missing_dependencies.insert(node, on.len());
            on.into_iter().for_each(|dependency| dependents.entry(dependency).or_default().push(node));
        };
        for index in functions.keys() {
            let function = &stack.functions[*index];
            let named = dependencies_of_function(function).filter_map(|(name, _)| nodes.find(name));
            let on = named.chain([GraphNode::Provider(function.plugin)]).collect();
            depend(GraphNode::Function(*index), on);
        }
        for (index, declared) in resources.iter().enumerate() {
            let DeclaredResource { environment, resource, kind } = declared;
            // Children of a component use these plugins, so the component depends on all of them.
            let of_children = if declared.is_component() { child_plugins.as_slice() } else { &[] };
            let provider = match kind {
                ResourceKind::Plugin { plugin, .. } => Some(*plugin),
                ResourceKind::Core { .. } => None,
            };
            let providers = of_children.iter().copied().chain(provider).map(GraphNode::Provider);
            let named = dependencies(environment, resource).filter_map(|(name, _)| nodes.find(name));
            depend(GraphNode::Resource(index), named.chain(providers).collect());
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
            replies,
            registrar,
            effects,
            root,
            types,
            child_plugins,
            mode,
            shared: Arc::default(),
            resources,
            functions,
            nodes,
            missing_dependencies,
            dependents,
            ready,
            providers: BTreeMap::new(),
            registered: BTreeMap::new(),
            results: BTreeMap::new(),
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

    /// Returns whether a node takes one of the slots of `--parallel`. A component and a core resource take none: they
    /// wait for resources that do.
    fn takes_slot(&self, node: GraphNode) -> bool {
        let index = match node {
            GraphNode::Provider(_) => return false,
            GraphNode::Function(_) => return true,
            GraphNode::Resource(index) => index,
        };
        let declared = &self.resources[index];
        matches!(declared.kind, ResourceKind::Plugin { .. }) && !declared.is_component()
    }

    fn is_done(&self, node: GraphNode) -> bool {
        match node {
            GraphNode::Provider(plugin) => self.providers.contains_key(&plugin),
            GraphNode::Function(index) => self.results.contains_key(&index),
            GraphNode::Resource(index) => self.registered.contains_key(&index),
        }
    }

    fn handle_outcome(&mut self, outcome: RegistrationOutcome) {
        let node = match outcome {
            RegistrationOutcome::Provider(plugin, provider) => {
                self.providers.insert(plugin, provider);
                GraphNode::Provider(plugin)
            }
            RegistrationOutcome::Function(index, result) => {
                self.results.insert(index, Arc::new(result));
                GraphNode::Function(index)
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
            GraphNode::Function(index) => self.start_function(index),
            GraphNode::Resource(index) => self.start_resource(index),
        }
    }

    fn start_resource(&self, index: usize) -> BoxFuture<'r, RegistrationOutcome> {
        let DeclaredResource { environment, resource, kind } = &self.resources[index];
        let referenced = self.referenced(dependencies(environment, resource).map(|(name, _)| name));
        match kind {
            ResourceKind::Plugin { plugin, resolved } => {
                self.start_plugin_resource(index, resolved, *plugin, referenced)
            }
            ResourceKind::Core { type_name } => self.start_core_resource(index, type_name, referenced),
        }
    }

    /// Returns what these nodes have come to, as far as they are done.
    fn referenced<'n>(&self, names: impl Iterator<Item = NodeName<'n>>) -> ReferencedResources {
        let mut referenced = ReferencedResources::new(self.mode);
        for name in names {
            match (name, self.nodes.find(name)) {
                (NodeName::Resource(environment, key), Some(GraphNode::Resource(index))) => {
                    if let Some(resource) = self.registered.get(&index) {
                        referenced.insert(environment, key, Arc::clone(resource));
                    }
                }
                (NodeName::Function(environment, name), Some(GraphNode::Function(index))) => {
                    if let Some(result) = self.results.get(&index) {
                        referenced.insert_function(environment, name, Arc::clone(result));
                    }
                }
                _ => {}
            }
        }
        referenced
    }

    fn start_plugin_resource(
        &self,
        resource_index: usize,
        resolved: &Arc<ResolvedType>,
        plugin: usize,
        referenced: ReferencedResources,
    ) -> BoxFuture<'r, RegistrationOutcome> {
        let DeclaredResource { environment, resource, .. } = self.resources[resource_index];
        let provider = self.providers.get(&plugin).map(|provider| provider.reference.clone());
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
}
