//! Order of registrations: the root first, then each resource as soon as all that it refers to is registered. Resources
//! that could start at once start in the order of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bridge::host::{PackageTypes, TypeFacts};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::{ProviderReference, Urn};

use super::goals::{self, PluginResource};
use super::known::{Done, Known, Mode};
use super::{packages, positions};
use crate::registry::provision::{CoreResource, ProvisionError, ProvisionTable, without_unknowns};
use config::diagnostics::{Code, Diagnostic};
use config::graph::{needs, references};
use config::tree::Reference;
use config::{Resource, Stack, Target};
use engine::{Registrar, RegistrationResult};

/// Result of a program.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Completeness of the registrations.
    pub end: End,
    /// Mistakes that only running the program detects. They have not been reported yet.
    pub diagnostics: Vec<Diagnostic>,
}

/// Completeness of a program's registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All resources were registered, so recorded resources that were not registered may be deleted.
    Complete,
    /// A registration failed or was refused, so a missing registration does not mean that the user removed the
    /// resource.
    Incomplete,
}

/// Registers all resources and outputs of a stack.
pub(super) async fn run(stack: &Stack, core: &ProvisionTable, registrar: &dyn Registrar) -> Ended {
    let types = registrar.type_facts(packages::with_types(stack, core));
    let (root, types) = match tokio::join!(registrar.register(goals::root(stack)), types) {
        (Ok(root), Ok(types)) if root.result != RegistrationResult::Failed => (root.urn, types),
        (Ok(_) | Err(_), _) => return Ended { end: End::Incomplete, diagnostics: Vec::new() },
    };
    let mut run = Run::new(stack, core, registrar, &root, types);
    run.drive().await;
    run.register_outputs().await;
    Ended { end: run.end, diagnostics: run.diagnostics }
}

/// Returns the facts about a type of a plugin, which is given by its index in the stack.
fn facts_of<'t>(
    stack: &Stack,
    types: &'t BTreeMap<String, PackageTypes>,
    plugin: usize,
    token: &str,
) -> Option<&'t TypeFacts> {
    types.get(stack.plugins.get(plugin)?.name())?.get(token)
}

/// Outcome of one registration.
enum Outcome {
    /// The provider resource is registered.
    Provider(ProviderReference),
    /// The resource is registered.
    Resource(Done),
    /// The registration failed; the run continues with resources that do not depend on it.
    Failed,
    /// The deployment takes no more registrations.
    Halted,
    /// The user made a mistake that only running the program detects.
    Mistake(Box<Diagnostic>),
}

/// Resource at an index of [`Stack::resources`], with its environment.
#[derive(Clone, Copy)]
struct Slot<'r> {
    environment: &'r str,
    resource: &'r Resource,
}

struct Run<'r> {
    stack: &'r Stack,
    core: &'r ProvisionTable,
    registrar: &'r dyn Registrar,
    root: &'r Urn,
    /// Facts about types, by the name of their plugin.
    types: BTreeMap<String, PackageTypes>,
    /// Plugins that children of components use; empty without components.
    of_children: Vec<usize>,
    mode: Mode,
    slots: Vec<Slot<'r>>,
    /// Number of nodes that each node still waits for. Nodes are the plugins, then the slots.
    waiting: Vec<usize>,
    waiters: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
    providers: BTreeMap<usize, ProviderReference>,
    done: BTreeMap<usize, Arc<Done>>,
    by_key: BTreeMap<(&'r str, &'r str), usize>,
    end: End,
    stopped: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'r> Run<'r> {
    fn new(
        stack: &'r Stack,
        core: &'r ProvisionTable,
        registrar: &'r dyn Registrar,
        root: &'r Urn,
        types: BTreeMap<String, PackageTypes>,
    ) -> Self {
        let plugins = stack.plugins.len();
        let is_component =
            |plugin, token| facts_of(stack, &types, plugin, token).is_some_and(|facts| facts.is_component);
        let has_components = types.values().flat_map(PackageTypes::values).any(|facts| facts.is_component);
        let of_children = if has_components { packages::of_children(stack, core) } else { Vec::new() };
        let slots = stack.resources().map(|(environment, resource)| Slot { environment: &environment.name, resource });
        let slots: Vec<Slot<'r>> = slots.collect();
        let by_key: BTreeMap<_, _> = slots
            .iter()
            .enumerate()
            .map(|(index, slot)| ((slot.environment, slot.resource.key.as_str()), plugins + index))
            .collect();
        let nodes = plugins + slots.len();
        let (mut waiting, mut waiters) = (vec![0; nodes], vec![Vec::new(); nodes]);
        for (index, slot) in slots.iter().enumerate() {
            // The children of a component use the plugins of their packages, so the component waits for all of these.
            let providers = match &slot.resource.target {
                Target::Plugin { token, plugin } if is_component(*plugin, token) => {
                    of_children.iter().copied().chain([*plugin]).collect()
                }
                Target::Plugin { plugin, .. } => vec![*plugin],
                Target::Core { .. } => Vec::new(),
            };
            let named = needs(slot.resource).filter_map(|(key, _)| by_key.get(&(slot.environment, key)).copied());
            let needed: BTreeSet<usize> = named.chain(providers).collect();
            waiting[plugins + index] = needed.len();
            for node in needed {
                waiters[node].push(plugins + index);
            }
        }
        // A plugin that only core types use is not registered, as each core resource registers its own provider.
        let sources = packages::of_core_types(stack, core);
        let wanted = |node: &usize| {
            stack.plugins.get(*node).is_none_or(|declaration| {
                let source_only = waiters[*node].is_empty() && sources.contains(declaration.package());
                declaration.plugin.enabled && !source_only
            })
        };
        let ready = (0..nodes).filter(|node| waiting[*node] == 0).filter(wanted).collect();
        let mode = if registrar.is_preview() { Mode::Preview } else { Mode::Real };
        Self {
            stack,
            core,
            registrar,
            root,
            types,
            of_children,
            mode,
            slots,
            waiting,
            waiters,
            ready,
            providers: BTreeMap::new(),
            done: BTreeMap::new(),
            by_key,
            end: End::Complete,
            stopped: false,
            diagnostics: Vec::new(),
        }
    }

    async fn drive(&mut self) {
        let mut running: FuturesUnordered<BoxFuture<'r, (usize, Outcome)>> = FuturesUnordered::new();
        loop {
            while !self.stopped
                && let Some(node) = self.ready.pop_first()
            {
                let registration = self.start(node);
                running.push(Box::pin(async move { (node, registration.await) }));
            }
            let Some((node, outcome)) = running.next().await else { return };
            self.settle(node, outcome);
        }
    }

    fn settle(&mut self, node: usize, outcome: Outcome) {
        match outcome {
            Outcome::Provider(reference) => {
                self.providers.insert(node, reference);
            }
            Outcome::Resource(done) => {
                self.done.insert(node, Arc::new(done));
            }
            // Nodes that wait for a failed one never start.
            Outcome::Failed => {
                self.end = End::Incomplete;
                return;
            }
            Outcome::Halted => {
                (self.end, self.stopped) = (End::Incomplete, true);
                return;
            }
            Outcome::Mistake(diagnostic) => {
                (self.end, self.stopped) = (End::Incomplete, true);
                self.diagnostics.push(*diagnostic);
                return;
            }
        }
        for waiter in std::mem::take(&mut self.waiters[node]) {
            self.waiting[waiter] -= 1;
            if self.waiting[waiter] == 0 {
                self.ready.insert(waiter);
            }
        }
    }

    fn start(&self, node: usize) -> BoxFuture<'r, Outcome> {
        let plugins = self.stack.plugins.len();
        match node.checked_sub(plugins) {
            None => self.start_provider(node),
            Some(slot) => {
                let Slot { environment, resource } = self.slots[slot];
                let mut known = Known::new(self.mode);
                for (key, _) in needs(resource) {
                    if let Some(done) = self.by_key.get(&(environment, key)).and_then(|node| self.done.get(node)) {
                        known.insert(environment, key, done.clone());
                    }
                }
                match &resource.target {
                    Target::Plugin { token, plugin } => self.start_plugin_resource(slot, token, *plugin, known),
                    Target::Core { type_name } => self.start_core_resource(slot, type_name, known),
                }
            }
        }
    }

    fn start_provider(&self, index: usize) -> BoxFuture<'r, Outcome> {
        let mut goal = goals::provider(&self.stack.plugins[index], index, self.root);
        if let Some(facts) = facts_of(self.stack, &self.types, index, goal.type_token.as_str()) {
            goals::fill_in(&mut goal, facts);
        }
        let registrar = self.registrar;
        Box::pin(async move {
            match registrar.register(goal).await {
                Ok(registered) if registered.result == RegistrationResult::Failed => Outcome::Failed,
                Ok(registered) => Outcome::Provider(registered.as_provider_reference()),
                Err(_) => Outcome::Halted,
            }
        })
    }

    fn start_plugin_resource(
        &self,
        slot: usize,
        token: &'r str,
        plugin: usize,
        known: Known,
    ) -> BoxFuture<'r, Outcome> {
        let Slot { environment, resource } = self.slots[slot];
        let Some(provider) = self.providers.get(&plugin).cloned() else { return Box::pin(async { Outcome::Failed }) };
        let depends_on = depends_on(resource, environment, &known);
        let plugin_resource =
            PluginResource { resource, token, environment, root: self.root, provider, depends_on: &depends_on };
        let source = positions::of_resource(self.stack.plugins.len(), slot);
        let facts = facts_of(self.stack, &self.types, plugin, token);
        let remote = facts.is_some_and(|facts| facts.is_component);
        let providers = if remote { self.providers_of_children() } else { BTreeMap::new() };
        let goal = plugin_resource.goal(&known).map(|mut goal| {
            (goal.custom, goal.remote, goal.providers) = (!remote, remote, providers);
            goal.source = Some(source);
            facts.into_iter().for_each(|facts| goals::fill_in(&mut goal, facts));
            goal
        });
        let registrar = self.registrar;
        Box::pin(async move {
            let goal = match goal {
                Ok(goal) => goal,
                Err(diagnostic) => return Outcome::Mistake(diagnostic),
            };
            match registrar.register(goal).await {
                Ok(registered) if registered.result == RegistrationResult::Failed => Outcome::Failed,
                Ok(registered) => Outcome::Resource(Done::Plugin(registered)),
                Err(_) => Outcome::Halted,
            }
        })
    }

    /// Returns the providers that children of components use, by package.
    fn providers_of_children(&self) -> BTreeMap<String, ProviderReference> {
        let named = self.of_children.iter().filter_map(|plugin| {
            Some((self.stack.plugins[*plugin].package().to_owned(), self.providers.get(plugin)?.clone()))
        });
        named.collect()
    }

    fn start_core_resource(&self, slot: usize, type_name: &'r str, known: Known) -> BoxFuture<'r, Outcome> {
        let Slot { environment, resource } = self.slots[slot];
        let (stack, root, registrar) = (self.stack, self.root, self.registrar);
        let source = positions::of_resource(self.stack.plugins.len(), slot);
        let provision = self.core.get(type_name).cloned();
        Box::pin(async move {
            let Some(provision) = provision else {
                let summary = format!("the core type {type_name:?} is not supported yet");
                let unknown = Diagnostic::error(Code("unknown-resource-type"), resource.type_span, summary);
                return Outcome::Mistake(unknown.into());
            };
            let depends_on = depends_on(resource, environment, &known);
            let core = CoreResource {
                stack: &stack.name,
                project: &stack.project,
                environment,
                name: &resource.name,
                root,
                config: &resource.config,
                options: &resource.options,
                depends_on: &depends_on,
                source,
                registrar,
                texts: &|template| known.text(template, environment),
            };
            match provision.provision(core).await {
                Ok(provisioned) => Outcome::Resource(Done::Core(provisioned)),
                Err(ProvisionError::Halted(_)) => Outcome::Halted,
                Err(ProvisionError::Failed) => Outcome::Failed,
                Err(ProvisionError::Mistake(diagnostic)) => Outcome::Mistake(diagnostic),
            }
        })
    }

    /// Registers the stack outputs all at once. Registers none if an output refers to a resource that is not
    /// registered.
    async fn register_outputs(&mut self) {
        if self.stopped {
            return;
        }
        match self.outputs() {
            Ok(Some(outputs)) => {
                if self.registrar.register_outputs(self.root, outputs).await.is_err() {
                    self.end = End::Incomplete;
                }
            }
            Ok(None) => {}
            Err(diagnostic) => {
                self.end = End::Incomplete;
                self.diagnostics.push(*diagnostic);
            }
        }
    }

    fn outputs(&self) -> Result<Option<PropertyMap>, Box<Diagnostic>> {
        let mut outputs = PropertyMap::new();
        for done in self.done.values() {
            if let Done::Core(provisioned) = &**done {
                for (name, value) in &provisioned.exports {
                    let value = if self.mode == Mode::Real { without_unknowns(value.clone()) } else { value.clone() };
                    goals::output(&mut outputs, name, value);
                }
            }
        }
        for output in &self.stack.outputs {
            let mut known = Known::new(self.mode);
            for reference in references(&output.value) {
                let Some((node, done)) = self.target(reference) else { return Ok(None) };
                known.insert(self.slots[node].environment, &reference.resource, done.clone());
            }
            if outputs.contains_key(&output.name) {
                let summary = format!("the output {:?} is already exported by a core type", output.name);
                return Err(Diagnostic::error(Code("duplicate-output"), output.span, summary).into());
            }
            goals::output(&mut outputs, &output.name, known.tree(&output.value, None)?.value);
        }
        Ok(Some(outputs))
    }

    /// Returns the slot that a reference of an output leads to, and its registered resource.
    fn target(&self, reference: &Reference) -> Option<(usize, &Arc<Done>)> {
        let node = match &reference.environment {
            Some(environment) => *self.by_key.get(&(environment.as_str(), reference.resource.as_str()))?,
            None => *self.by_key.iter().find(|((_, key), _)| *key == reference.resource)?.1,
        };
        Some((node - self.stack.plugins.len(), self.done.get(&node)?))
    }
}

/// Returns the URNs that `dependsOn` refers to.
fn depends_on(resource: &Resource, environment: &str, known: &Known) -> Vec<Urn> {
    let named = resource.options.depends_on.iter();
    named.filter_map(|(key, _)| known.get(environment, key)).flat_map(|done| done.urns()).collect()
}
