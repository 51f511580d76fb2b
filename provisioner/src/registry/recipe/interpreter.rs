//! Interpreter of recipes: registers each node as soon as what it refers to is registered, in the order of the recipe
//! where several could start. A failure leaves out what depends on it.

use std::sync::Arc;

use bridge::message_text::MessageText;
use bridge::provider::{Alias, AliasParent};
use bridge::shell::{operand, option};
use config::diagnostics::{Code, Diagnostic, Span};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::core_resource::{CoreResource, RecipeError, RecipeResult};
use super::effects::GoogleApi;
use super::graph::Recipe;
use super::hole::{Handle, Hole, HoleSource, Template};
use super::node::{Node, NodeKind};
use super::resolved::{Inputs, ResolvedValue, distinct, exposed_text, without_unknowns};
use super::shared_registrations::SharedResult;
use super::values::{id, output, part, reference, version};
use crate::registry::sdk;
use engine::{Goal, Halted, InvokeGoal, ReadGoal, Registered, RegistrationResult};

/// Registers a recipe.
///
/// # Errors
/// The most severe error: [`RecipeError::Failed`] is the least severe, because the deployment continues after it.
pub(super) async fn interpret<'r>(
    mut recipe: Recipe<'r>,
    core: &CoreResource<'r>,
) -> Result<RecipeResult, RecipeError> {
    if let Some(diagnostic) = recipe.diagnostics.pop() {
        return Err(RecipeError::Diagnostic(diagnostic.into()));
    }
    let mut run = RecipeRun { core, recipe, states: Vec::new(), halted: None, error: None };
    let mut running: FuturesUnordered<Running<'r>> = FuturesUnordered::new();
    loop {
        run.begin_ready(&mut running);
        let Some((index, outcome)) = running.next().await else { break };
        run.end(index, outcome);
    }
    run.finish()
}

/// Node that is being registered: its index, and its outcome.
type Running<'r> = BoxFuture<'r, (usize, Result<Outcome, RecipeError>)>;

const CORE_TYPE: Code = Code("core-type");

/// Returns the error for two core resources that register different resources of one type and name. Each has its position, and
/// its place in words: both positions are one where the resources are aliases of one anchor.
pub fn conflict(token: &str, name: &str, (span, place): (Span, String), (other, first): (Span, String)) -> Diagnostic {
    let summary = MessageText::new(format_args!(
        "two resources would register different resources of the type {token} and the name {name:?}"
    ));
    Diagnostic::error(CORE_TYPE, span, summary)
        .label(other, "the other one")
        .detail(format_args!("they belong to {first} and {place}"))
        .help("give one of them another name, or put them into different stacks")
}

/// State of a node.
enum NodeState {
    Waiting,
    Running,
    Done(Outcome),
    Failed,
}

/// Result of a node.
enum Outcome {
    /// The resource is registered or read.
    Registered(Registered),
    /// The function has returned; `None` if its arguments are unknown.
    Returned(Option<PropertyMap>, Vec<Urn>),
    /// The outputs of a component are registered, or an effect has been made, or is left out.
    Completed,
}

struct RecipeRun<'c, 'r> {
    core: &'c CoreResource<'r>,
    recipe: Recipe<'r>,
    states: Vec<NodeState>,
    halted: Option<Halted>,
    /// First error that is detected while the recipe is registered.
    error: Option<Box<Diagnostic>>,
}

impl<'r> RecipeRun<'_, 'r> {
    /// Starts all nodes that are ready. After an error, nothing starts.
    fn begin_ready(&mut self, running: &mut FuturesUnordered<Running<'r>>) {
        while self.error.is_none() && self.halted.is_none() {
            if let Err(error) = self.continue_recipe() {
                self.error = Some(self.text_error(error));
                return;
            }
            let Some(index) = self.next_ready() else { return };
            match self.start(index) {
                Ok(registration) => {
                    self.states[index] = NodeState::Running;
                    running.push(registration);
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn text_error(&self, error: String) -> Box<Diagnostic> {
        Diagnostic::error(CORE_TYPE, self.core.config.span, error).into()
    }

    /// Adds the nodes of all parts of the recipe whose values are known.
    fn continue_recipe(&mut self) -> Result<(), String> {
        loop {
            self.states.resize_with(self.recipe.nodes.len(), || NodeState::Waiting);
            let mut next = None;
            for (index, part) in self.recipe.continuations.iter().enumerate() {
                if let Some(values) = self.known_values(&part.values)? {
                    next = Some((index, values));
                    break;
                }
            }
            let Some((index, values)) = next else { return Ok(()) };
            let part = self.recipe.continuations.remove(index);
            (part.build)(&values, &mut self.recipe);
        }
    }

    /// Returns the values of holes; `None` if one is not known.
    fn known_values(&self, holes: &[Hole]) -> Result<Option<Vec<ResolvedValue>>, String> {
        let mut sources = holes.iter().flat_map(|hole| self.recipe.nodes_of(&hole.source));
        if !sources.all(|handle| self.is_done(handle)) {
            return Ok(None);
        }
        let values = holes.iter().map(|hole| self.resolve(hole)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(values).filter(|values| !values.iter().any(|resolved| resolved.value.contains_unknowns())))
    }

    fn next_ready(&self) -> Option<usize> {
        let is_ready = |index: &usize| {
            matches!(self.states[*index], NodeState::Waiting)
                && self.recipe.dependencies(&self.recipe.nodes[*index]).into_iter().all(|handle| self.is_done(handle))
        };
        (0..self.states.len()).find(is_ready)
    }

    fn is_done(&self, Handle(index): Handle) -> bool {
        matches!(self.states.get(index), Some(NodeState::Done(_)))
    }

    fn start(&self, index: usize) -> Result<Running<'r>, Box<Diagnostic>> {
        let node = &self.recipe.nodes[index];
        let inputs = self.fill(node).map_err(|error| self.text_error(error))?;
        let registrar = self.core.registrar;
        Ok(match node.kind {
            NodeKind::Provider | NodeKind::Resource | NodeKind::Component | NodeKind::RemoteComponent => {
                let shared = self.shared_registration(node, &inputs)?;
                let goal = self.goal(node, inputs);
                Box::pin(async move {
                    let registered = shared.get_or_init(|| registrar.register(goal)).await.clone();
                    (index, registered.map(Outcome::Registered).map_err(RecipeError::from))
                })
            }
            // What the resources before it have made can exist only if they do.
            NodeKind::Read if registrar.is_preview() && !self.have_ids(&node.after) => {
                Box::pin(async move { (index, Ok(Outcome::Completed)) })
            }
            NodeKind::Read => {
                let goal = self.read_goal(node, inputs).map_err(|error| self.text_error(error))?;
                let identity = Inputs::default().plain("id", goal.id.as_str());
                let shared = self.shared_registration(node, &identity)?;
                Box::pin(async move {
                    let registered = shared.get_or_init(|| registrar.read(goal)).await.clone();
                    (index, registered.map(Outcome::Registered).map_err(RecipeError::from))
                })
            }
            NodeKind::ComponentOutputs => {
                let component = node.parent.and_then(|component| self.registered(component)).cloned();
                let outputs = self.component_outputs(node).map_err(|error| self.text_error(error))?;
                Box::pin(async move {
                    let registered = match component {
                        Some(component) => registrar.register_outputs(&component.urn, outputs).await,
                        None => Ok(()),
                    };
                    (index, registered.map(|()| Outcome::Completed).map_err(RecipeError::from))
                })
            }
            NodeKind::Function => {
                let dependencies = distinct(inputs.dependencies().cloned().collect());
                let goal = self.invoke_goal(node, inputs);
                let call = goal.map(|goal| (self.core.shared.function(&goal), goal));
                Box::pin(async move {
                    let returned = match call {
                        Some((shared, goal)) => shared.get_or_init(|| registrar.invoke(goal)).await.clone().map(Some),
                        None => Ok(None),
                    };
                    let outcome = returned.map(|returned| Outcome::Returned(returned, dependencies));
                    (index, outcome.map_err(RecipeError::from))
                })
            }
            NodeKind::GoogleApi => self.enable_google_api(index, node, &inputs),
        })
    }

    /// Switches on an API of Google, unless the run changes no resources, or the provider is out of scope.
    fn enable_google_api(&self, index: usize, node: &Node, inputs: &Inputs) -> Running<'r> {
        let text = |name: &str| inputs.values().get(name).and_then(exposed_text).unwrap_or_default().to_owned();
        let (project, credentials) = (text(GoogleApi::PROJECT), text(GoogleApi::CREDENTIALS));
        let provider = node.provider.and_then(|handle| self.registered(handle));
        let is_in_scope = provider.is_some_and(|provider| provider.result != RegistrationResult::Skipped);
        let (core, service) = (*self.core, node.token.clone());
        Box::pin(async move {
            if !is_in_scope || !core.registrar.changes_resources() {
                return (index, Ok(Outcome::Completed));
            }
            let enabled = core.shared.effect(&[&project, &service, &credentials]);
            let enable = || core.effects.enable_google_api(&project, &service, &credentials);
            let result = enabled.get_or_init(enable).await.clone();
            let failure = |error| {
                let summary = MessageText::new(format_args!(
                    "cannot switch on the API {service} in the project {project:?}: {error}"
                ));
                let command = format!("gcloud services enable {} {}", option("--project", &project), operand(&service));
                let hint = MessageText::new(format_args!(
                    "give the account the role `Service Usage Admin`, or run `{command}` yourself"
                ));
                RecipeError::Diagnostic(Diagnostic::error(CORE_TYPE, core.config.span, summary).help(hint).into())
            };
            (index, result.map(|()| Outcome::Completed).map_err(failure))
        })
    }

    /// Returns the registration of a resource, which another recipe may have begun.
    fn shared_registration(&self, node: &Node, inputs: &Inputs) -> Result<Arc<SharedResult>, Box<Diagnostic>> {
        let provider = match node.provider {
            Some(Handle(index)) => self.fill(&self.recipe.nodes[index]).map_err(|error| self.text_error(error))?,
            None => Inputs::default(),
        };
        let parent = node.parent.and_then(|handle| self.registered(handle)).map(|parent| format!("{} ", parent.urn));
        let token = format!("{}{}", parent.unwrap_or_default(), node.token);
        let (key, span) = ((token, node.name.clone()), self.core.config.span);
        let claimant = (span, self.core.place.in_words());
        let claimed = self.core.shared.claim(key, inputs.values(), provider.values(), &claimant);
        claimed.map_err(|other| conflict(&node.token, &node.name, claimant, other).into())
    }

    fn end(&mut self, index: usize, outcome: Result<Outcome, RecipeError>) {
        self.states[index] = match outcome {
            Ok(Outcome::Registered(registered)) if registered.result == RegistrationResult::Failed => NodeState::Failed,
            Ok(outcome) => NodeState::Done(outcome),
            Err(error) => {
                match error {
                    RecipeError::Halted(halted) => drop(self.halted.get_or_insert(halted)),
                    RecipeError::Diagnostic(error) => self.error = Some(error),
                    RecipeError::Failed => {}
                }
                NodeState::Failed
            }
        };
    }

    fn finish(mut self) -> Result<RecipeResult, RecipeError> {
        if let Some(halted) = self.halted {
            return Err(halted.into());
        }
        if let Some(error) = self.error.take().or_else(|| self.recipe.diagnostics.pop().map(Box::new)) {
            return Err(error.into());
        }
        if self.states.iter().any(|state| matches!(state, NodeState::Failed)) {
            return Err(RecipeError::Failed);
        }
        let fill = |(name, template): &(String, Template)| match template.fill(&|hole| self.resolve(hole)) {
            Ok(filled) => Ok((name.clone(), filled)),
            Err(error) => Err(self.text_error(error)),
        };
        let outputs = self.recipe.outputs.iter().map(fill).collect::<Result<_, _>>()?;
        let exports = self.recipe.exports.iter().map(|export| fill(export).map(|(name, filled)| (name, filled.value)));
        let stack_outputs = exports.collect::<Result<_, _>>()?;
        let registered = self.recipe.nodes.iter().zip(&self.states).filter_map(|(node, state)| match state {
            NodeState::Done(Outcome::Registered(registered)) if node.kind != NodeKind::Provider => {
                Some(registered.urn.clone())
            }
            _ => None,
        });
        let is_complete = |(node, state): (&Node, &NodeState)| match state {
            NodeState::Done(Outcome::Registered(registered)) => {
                registered.has_all_outputs || !matches!(node.kind, NodeKind::Resource | NodeKind::Read)
            }
            _ => true,
        };
        let has_all_outputs = self.recipe.nodes.iter().zip(&self.states).all(is_complete);
        Ok(RecipeResult { registered: registered.collect(), outputs, stack_outputs, has_all_outputs })
    }

    /// Returns the inputs of a node, with filled holes.
    fn fill(&self, node: &Node) -> Result<Inputs, String> {
        node.templates.iter().try_fold(Inputs::default(), |inputs, (name, template)| {
            Ok(inputs.set(name, template.fill(&|hole| self.resolve(hole))?))
        })
    }

    /// Returns whether these resources exist, apart from components.
    fn have_ids(&self, handles: &[Handle]) -> bool {
        let resources = handles.iter().filter(|Handle(index)| self.recipe.nodes[*index].kind == NodeKind::Resource);
        resources.into_iter().all(|handle| self.registered(*handle).is_some_and(|registered| registered.id.is_some()))
    }

    /// Returns the outputs of a component. Unknown ones are left out, except in a preview.
    fn component_outputs(&self, node: &Node) -> Result<PropertyMap, String> {
        let mut outputs = PropertyMap::new();
        for (name, template) in &node.templates {
            let value = template.fill(&|hole| self.resolve(hole))?.value;
            let value = if self.core.registrar.is_preview() { value } else { without_unknowns(value) };
            outputs.insert(name.clone(), value);
        }
        Ok(outputs)
    }

    /// Returns the URNs that the node and the core resource depend on by option.
    fn depends_on(&self, node: &Node) -> Vec<Urn> {
        let after = node.after.iter().filter_map(|handle| self.registered(*handle)).map(|registered| &registered.urn);
        // The options of the core resource do not apply to its provider.
        let of_core = if node.kind == NodeKind::Provider { &[] } else { self.core.depends_on };
        after.chain(of_core).cloned().collect()
    }

    fn parent(&self, node: &Node) -> Urn {
        node.parent.and_then(|handle| self.registered(handle)).map_or(self.core.root, |parent| &parent.urn).clone()
    }

    fn provider(&self, node: &Node) -> Option<ProviderReference> {
        node.provider.and_then(|handle| self.registered(handle)).map(Registered::as_provider_reference)
    }

    fn goal(&self, node: &Node, mut inputs: Inputs) -> Goal {
        let (core, is_provider) = (self.core, node.kind == NodeKind::Provider);
        let after = self.depends_on(node);
        if !core.registrar.is_preview() {
            inputs = inputs.without_unknowns();
        }
        let added = sdk::resource(&node.token);
        if let Some(added) = added {
            inputs = inputs.completed(added);
        }
        let mut goal = inputs.into_goal(TypeToken::new(&node.token), &node.name, &after);
        if let Some(added) = added {
            goal.additional_secret_outputs.clone_from(&added.secret_outputs);
            let former_type = |token: &String| Alias::Spec {
                name: None,
                type_token: Some(token.clone()),
                stack: None,
                project: None,
                parent: AliasParent::Same,
            };
            goal.aliases = added.aliases.iter().map(former_type).collect();
        }
        goal.custom = !matches!(node.kind, NodeKind::Component | NodeKind::RemoteComponent);
        goal.remote = node.kind == NodeKind::RemoteComponent;
        goal.parent = Some(self.parent(node));
        goal.source = Some(core.source);
        goal.version = version(node);
        goal.ignore_changes.clone_from(&node.ignore_changes);
        goal.import_id.clone_from(&node.import_id);
        if !is_provider {
            goal.provider = self.provider(node);
            let passed = node.providers.iter().filter_map(|(package, handle)| {
                Some((package.name.to_owned(), self.registered(*handle)?.as_provider_reference()))
            });
            goal.providers = passed.collect();
            goal.protect = core.options.protect.or(node.protect);
            goal.retain_on_delete = core.options.retain_on_delete.or(node.retain_on_delete);
            goal.custom_timeouts = core.options.custom_timeouts.or(node.timeouts);
        }
        goal
    }

    /// Returns the read of a resource. An unknown id stays unknown.
    fn read_goal(&self, node: &Node, inputs: Inputs) -> Result<ReadGoal, String> {
        let id = match &node.read_id {
            Some(hole) => self.resolve(hole)?,
            None => ResolvedValue::unknown(),
        };
        let after = self.depends_on(node);
        let dependencies = inputs.dependencies().chain(&id.dependencies).chain(&after).cloned().collect();
        Ok(ReadGoal {
            type_token: TypeToken::new(&node.token),
            name: node.name.clone(),
            id: ReferenceId::from(id.exposed_text().unwrap_or_default()),
            parent: Some(self.parent(node)),
            dependencies: distinct(dependencies),
            properties: inputs.into_values(),
            patience: node.patience,
            provider: self.provider(node),
            additional_secret_outputs: sdk::resource(&node.token)
                .map(|added| added.secret_outputs.clone())
                .unwrap_or_default(),
            version: version(node),
            plugin_download_url: None,
            subpackage: None,
            source: Some(self.core.source),
        })
    }

    /// Returns the call of a function; `None` if an argument is unknown, or if its provider is out of scope and does not
    /// exist.
    fn invoke_goal(&self, node: &Node, arguments: Inputs) -> Option<InvokeGoal> {
        let provider = node.provider.and_then(|handle| self.registered(handle));
        let is_known = !arguments.values().values().any(PropertyValue::contains_unknowns);
        let is_in_scope = provider.is_none_or(|provider| provider.result != RegistrationResult::Skipped);
        (is_known && is_in_scope).then(|| InvokeGoal {
            token: TypeToken::new(&node.token),
            arguments: arguments.into_values(),
            provider: provider.map(Registered::as_provider_reference),
            version: version(node),
            plugin_download_url: None,
            subpackage: None,
            source: Some(self.core.source),
        })
    }

    fn registered(&self, Handle(index): Handle) -> Option<&Registered> {
        match self.states.get(index) {
            Some(NodeState::Done(Outcome::Registered(registered))) => Some(registered),
            _ => None,
        }
    }

    /// Returns the value of a hole whose nodes are done.
    fn resolve(&self, hole: &Hole) -> Result<ResolvedValue, String> {
        self.recipe.resolve(hole, &|source| match source {
            HoleSource::Id(handle) => self.registered(*handle).map_or_else(ResolvedValue::unknown, id),
            HoleSource::Output(Handle(index), path) => match self.states.get(*index) {
                Some(NodeState::Done(Outcome::Registered(registered))) => output(registered, path),
                Some(NodeState::Done(Outcome::Returned(Some(returned), dependencies))) => ResolvedValue {
                    value: part(returned, path).unwrap_or(PropertyValue::Null),
                    dependencies: dependencies.clone(),
                },
                _ => ResolvedValue::unknown(),
            },
            HoleSource::Reference(handle) => self
                .registered(*handle)
                .map_or_else(ResolvedValue::unknown, |registered| reference(registered, &self.recipe.nodes[handle.0])),
            HoleSource::Value(_) | HoleSource::Text(_) | HoleSource::Member(..) => ResolvedValue::unknown(),
        })
    }
}
