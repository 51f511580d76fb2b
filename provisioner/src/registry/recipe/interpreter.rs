//! Interpreter of recipes: registers each node as soon as what it refers to is registered, in the order of the recipe
//! where several could start. A failure leaves out what depends on it.

use std::sync::Arc;

use bridge::provider::{Alias, AliasParent};
use config::diagnostics::{Code, Diagnostic, Span};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};

use super::core_resource::{CoreResource, RecipeError, RecipeResult};
use super::graph::{Node, NodeKind, Recipe};
use super::hole::{Handle, Hole, HoleSource, Template};
use super::resolved::{Inputs, ResolvedValue, distinct};
use super::shared_registrations::SharedResult;
use crate::registry::sdk;
use engine::{Goal, Halted, InvokeGoal, Registered, RegistrationResult};

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
    let mut run = RecipeRun { core, recipe, states: Vec::new(), has_failed: false, halted: None, error: None };
    let mut running: FuturesUnordered<Running<'r>> = FuturesUnordered::new();
    loop {
        run.begin_ready(&mut running);
        let Some((index, outcome)) = running.next().await else { break };
        run.end(index, outcome);
    }
    run.finish()
}

/// Node that is being registered: its index, and its outcome.
type Running<'r> = BoxFuture<'r, (usize, Result<Outcome, Halted>)>;

const CORE_TYPE: Code = Code("core-type");

/// Returns the error for two core resources that register different resources of one type and name.
pub fn conflict(token: &str, name: &str, span: Span, other: Span) -> Diagnostic {
    let summary = format!("two resources would register different resources of the type {token} and the name {name:?}");
    Diagnostic::error(CORE_TYPE, span, summary)
        .label(other, "the other one")
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
    /// The resource is registered.
    Registered(Registered),
    /// The function has returned; `None` if its arguments are unknown.
    Returned(Option<PropertyMap>, Vec<Urn>),
}

struct RecipeRun<'c, 'r> {
    core: &'c CoreResource<'r>,
    recipe: Recipe<'r>,
    states: Vec<NodeState>,
    has_failed: bool,
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

    /// Adds the nodes of all parts of the recipe whose value is known.
    fn continue_recipe(&mut self) -> Result<(), String> {
        loop {
            self.states.resize_with(self.recipe.nodes.len(), || NodeState::Waiting);
            let mut next = None;
            for (index, part) in self.recipe.continuations.iter().enumerate() {
                if self.recipe.sources(&part.value).into_iter().all(|handle| self.is_done(handle)) {
                    let value = self.resolve(&part.value)?.value;
                    if !value.contains_unknowns() {
                        next = Some((index, value));
                        break;
                    }
                }
            }
            let Some((index, value)) = next else { return Ok(()) };
            let part = self.recipe.continuations.remove(index);
            (part.build)(&value, &mut self.recipe);
        }
    }

    fn next_ready(&self) -> Option<usize> {
        let is_ready = |index: &usize| {
            matches!(self.states[*index], NodeState::Waiting)
                && self.recipe.nodes[*index].dependencies(&self.recipe).into_iter().all(|handle| self.is_done(handle))
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
            NodeKind::Provider | NodeKind::Resource => {
                let shared = self.shared_registration(node, &inputs)?;
                let goal = self.goal(node, inputs);
                Box::pin(async move {
                    let registered = shared.get_or_init(|| registrar.register(goal)).await.clone();
                    (index, registered.map(Outcome::Registered))
                })
            }
            NodeKind::Function => {
                let dependencies = distinct(inputs.dependencies().cloned().collect());
                let goal = self.invoke_goal(node, inputs);
                Box::pin(async move {
                    let returned = match goal {
                        Some(goal) => registrar.invoke(goal).await.map(Some),
                        None => Ok(None),
                    };
                    (index, returned.map(|returned| Outcome::Returned(returned, dependencies)))
                })
            }
        })
    }

    /// Returns the registration of a resource, which another recipe may have begun.
    fn shared_registration(&self, node: &Node, inputs: &Inputs) -> Result<Arc<SharedResult>, Box<Diagnostic>> {
        let provider = match node.provider {
            Some(Handle(index)) => self.fill(&self.recipe.nodes[index]).map_err(|error| self.text_error(error))?,
            None => Inputs::default(),
        };
        let (key, span) = ((node.token.clone(), node.name.clone()), self.core.config.span);
        let claimed = self.core.shared.claim(key, inputs.values(), provider.values(), span);
        claimed.map_err(|other| conflict(&node.token, &node.name, span, other).into())
    }

    fn end(&mut self, index: usize, outcome: Result<Outcome, Halted>) {
        self.states[index] = match outcome {
            Ok(Outcome::Registered(registered)) if registered.result == RegistrationResult::Failed => {
                self.has_failed = true;
                NodeState::Failed
            }
            Ok(outcome) => NodeState::Done(outcome),
            Err(halted) => {
                self.halted.get_or_insert(halted);
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
        if self.has_failed {
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
        Ok(RecipeResult { registered: registered.collect(), outputs, stack_outputs })
    }

    /// Returns the inputs of a node, with filled holes.
    fn fill(&self, node: &Node) -> Result<Inputs, String> {
        node.templates.iter().try_fold(Inputs::default(), |inputs, (name, template)| {
            Ok(inputs.set(name, template.fill(&|hole| self.resolve(hole))?))
        })
    }

    fn goal(&self, node: &Node, mut inputs: Inputs) -> Goal {
        let (core, is_provider) = (self.core, node.kind == NodeKind::Provider);
        let after = node.after.iter().filter_map(|handle| self.registered(*handle)).map(|registered| &registered.urn);
        // The options of the core resource do not apply to its provider.
        let after = after.chain(if is_provider { &[] } else { core.depends_on });
        let after: Vec<Urn> = after.cloned().collect();
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
            goal.aliases = added.aliases.iter().map(|former| former_type(former)).collect();
        }
        goal.parent = Some(core.root.clone());
        goal.source = Some(core.source);
        goal.version = node.package.version().map(str::to_owned);
        goal.ignore_changes.clone_from(&node.ignore_changes);
        goal.import_id.clone_from(&node.import_id);
        if !is_provider {
            goal.provider =
                node.provider.and_then(|handle| self.registered(handle)).map(Registered::as_provider_reference);
            goal.protect = core.options.protect;
            goal.retain_on_delete = core.options.retain_on_delete;
            goal.custom_timeouts = core.options.custom_timeouts;
        }
        goal
    }

    /// Returns the call of a function; `None` if an argument is unknown, or if its provider is out of scope and does not
    /// exist.
    fn invoke_goal(&self, node: &Node, arguments: Inputs) -> Option<InvokeGoal> {
        let provider = self.registered(node.provider?)?;
        let is_known = !arguments.values().values().any(PropertyValue::contains_unknowns);
        (is_known && provider.result != RegistrationResult::Skipped).then(|| InvokeGoal {
            token: TypeToken::new(&node.token),
            arguments: arguments.into_values(),
            provider: Some(provider.as_provider_reference()),
            version: node.package.version().map(str::to_owned),
            plugin_download_url: None,
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
            HoleSource::Value(_) | HoleSource::Text(_) => ResolvedValue::unknown(),
        })
    }
}

/// Returns an output of a registered resource, with the resource as its dependency. An output that does not exist is
/// null.
fn output(registered: &Registered, path: &str) -> ResolvedValue {
    let missing = if registered.has_all_outputs { PropertyValue::Null } else { PropertyValue::UNKNOWN };
    let value = part(&registered.outputs, path).unwrap_or(missing);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns the id of a registered resource, with the resource as its dependency.
fn id(registered: &Registered) -> ResolvedValue {
    let value = registered.id.as_deref().map_or(PropertyValue::UNKNOWN, PropertyValue::from);
    ResolvedValue { value, dependencies: vec![registered.urn.clone()] }
}

/// Returns the part of a value at a path of names and indices that are joined by dots. A part of a secret is secret, a part
/// of an unknown is unknown.
fn part(outputs: &PropertyMap, path: &str) -> Option<PropertyValue> {
    let mut names = path.split('.');
    let mut value = outputs.get(names.next()?)?;
    let mut secret = false;
    for name in names {
        while let PropertyValue::Secret(inner) = value {
            (value, secret) = (inner.expose(), true);
        }
        value = match value {
            PropertyValue::Map(map) => map.get(name)?,
            PropertyValue::List(items) => items.get(name.parse::<usize>().ok()?)?,
            PropertyValue::Unknown(_) => return Some(PropertyValue::UNKNOWN),
            _ => return None,
        };
    }
    Some(if secret { PropertyValue::secret(value.clone()) } else { value.clone() })
}

/// Returns the alias that an SDK sends for a resource whose type was renamed.
fn former_type(type_token: &str) -> Alias {
    Alias::Spec {
        name: None,
        type_token: Some(type_token.to_owned()),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    }
}
