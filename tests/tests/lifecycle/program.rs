//! Programs of tests, and their execution, which registers each resource as soon as possible.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bridge::provider::{Alias, AliasParent};
use engine::{
    Announcement, Deployment, Goal, Halted, InvokeGoal, ReadGoal, Registered, Registrar as _, RegistrationResult,
};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};
use state::ResourceState;

pub(crate) const STACK: &str = "s";
pub(crate) const PROJECT: &str = "p";

/// Edit of a goal, applied after all other settings.
type GoalEdit = Arc<dyn Fn(&mut Goal) + Send + Sync>;

/// Resource of a program.
#[derive(Clone)]
pub(crate) struct ProgramResource {
    pub(crate) name: String,
    kind: Kind,
    inputs: BTreeMap<String, Input>,
    depends_on: Vec<String>,
    parent: Option<String>,
    provider: Option<String>,
    deleted_with: Option<String>,
    replace_with: Vec<String>,
    aliases: Vec<Alias>,
    outputs: Option<PropertyMap>,
    goal_edits: Vec<GoalEdit>,
    type_name: &'static str,
    /// Descriptions of the edits, for the message of a failed test.
    edit_descriptions: Vec<String>,
}

/// Options by which a program keeps a resource.
pub(crate) struct Kept {
    pub(crate) urn: Urn,
    pub(crate) protected: bool,
    pub(crate) retained: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Custom,
    Component,
    /// Component that its plugin constructs, with a child `<name>-child` that gets its inputs.
    RemoteComponent,
    Provider,
    Get(String, Duration),
    Invoke,
}

#[derive(Clone, Debug, PartialEq)]
enum Input {
    Value(PropertyValue),
    /// Id of another resource.
    IdOf(String),
}

impl std::fmt::Debug for ProgramResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {} {:?}", self.kind, self.name, self.inputs)?;
        write!(f, " depends on {:?} parent {:?} provider {:?}", self.depends_on, self.parent, self.provider)?;
        write!(f, " deleted with {:?} replace with {:?}", self.deleted_with, self.replace_with)?;
        write!(f, " aliases {:?} {}", self.aliases, self.edit_descriptions.join(", "))
    }
}

fn new(name: &str, kind: Kind) -> ProgramResource {
    ProgramResource {
        name: name.to_owned(),
        kind,
        inputs: BTreeMap::new(),
        depends_on: Vec::new(),
        parent: None,
        provider: None,
        deleted_with: None,
        replace_with: Vec::new(),
        aliases: Vec::new(),
        outputs: None,
        goal_edits: Vec::new(),
        type_name: "Thing",
        edit_descriptions: Vec::new(),
    }
}

/// Creates a custom resource of the fake cloud.
pub(crate) fn resource(name: &str) -> ProgramResource {
    new(name, Kind::Custom)
}

/// Creates a component of the program.
pub(crate) fn component(name: &str) -> ProgramResource {
    new(name, Kind::Component)
}

/// Creates a component that the plugin constructs, with a child `<name>-child` that gets its inputs.
pub(crate) fn remote_component(name: &str) -> ProgramResource {
    new(name, Kind::RemoteComponent)
}

/// Creates a provider resource.
pub(crate) fn provider(name: &str) -> ProgramResource {
    new(name, Kind::Provider)
}

/// Creates a read of an external resource.
pub(crate) fn get(name: &str, id: &str) -> ProgramResource {
    patient_get(name, id, Duration::ZERO)
}

/// Creates a read of an external resource, for which a run waits.
pub(crate) fn patient_get(name: &str, id: &str, patience: Duration) -> ProgramResource {
    new(name, Kind::Get(id.to_owned(), patience))
}

/// Creates a function call.
pub(crate) fn invoke(name: &str) -> ProgramResource {
    new(name, Kind::Invoke)
}

impl ProgramResource {
    /// Adds an input. A change of `k…` replaces; a change of `d…` replaces and deletes first.
    pub(crate) fn input(mut self, key: &str, value: impl Into<PropertyValue>) -> Self {
        self.inputs.insert(key.to_owned(), Input::Value(value.into()));
        self
    }

    /// Adds an input with the id of another resource.
    pub(crate) fn input_from(mut self, key: &str, name: &str) -> Self {
        self.inputs.insert(key.to_owned(), Input::IdOf(name.to_owned()));
        self
    }

    /// Adds a dependency without an input.
    pub(crate) fn depends_on(mut self, name: &str) -> Self {
        self.depends_on.push(name.to_owned());
        self
    }

    /// Sets the parent.
    pub(crate) fn parent(mut self, parent: &str) -> Self {
        self.parent = Some(parent.to_owned());
        self
    }

    /// Sets the provider resource.
    pub(crate) fn provider(mut self, provider: &str) -> Self {
        self.provider = Some(provider.to_owned());
        self
    }

    pub(crate) fn deleted_with(mut self, name: &str) -> Self {
        self.deleted_with = Some(name.to_owned());
        self
    }

    pub(crate) fn replace_with(mut self, name: &str) -> Self {
        self.replace_with.push(name.to_owned());
        self
    }

    /// Adds an alias with another name.
    pub(crate) fn alias(mut self, name: &str) -> Self {
        self.aliases.push(Alias::Spec {
            name: Some(name.to_owned()),
            type_token: None,
            stack: None,
            project: None,
            parent: AliasParent::Same,
        });
        self
    }

    /// Adds an alias with another URN.
    pub(crate) fn alias_urn(mut self, urn: Urn) -> Self {
        self.aliases.push(Alias::Urn(urn));
        self
    }

    /// Adds an alias with another name, type and parent.
    pub(crate) fn alias_spec(mut self, name: &str, type_name: &str, parent: Option<Urn>) -> Self {
        self.aliases.push(Alias::Spec {
            name: Some(name.to_owned()),
            type_token: Some(self.token_of(type_name).as_str().to_owned()),
            stack: None,
            project: None,
            parent: parent.map_or(AliasParent::None, AliasParent::Urn),
        });
        self
    }

    /// Sets the type, which is `Thing` or `Group` by default.
    pub(crate) fn of_type(mut self, type_name: &'static str) -> Self {
        self.type_name = type_name;
        self
    }

    fn token_of(&self, type_name: &str) -> TypeToken {
        match self.kind {
            Kind::Custom | Kind::Get(..) | Kind::Invoke => TypeToken::new(&format!("cloud:index:{type_name}")),
            Kind::Component => TypeToken::new(&format!("my:index:{}", type_name.replace("Thing", "Group"))),
            Kind::RemoteComponent => TypeToken::new("cloud:index:Group"),
            Kind::Provider => TypeToken::provider("cloud"),
        }
    }

    /// Returns the URN of the resource as a child of a parent.
    pub(crate) fn urn_within(&self, parent: Option<&Urn>) -> Urn {
        let root = Urn::root_stack(STACK, PROJECT);
        Urn::new(STACK, PROJECT, Some(parent.unwrap_or(&root)), self.token_of(self.type_name).as_str(), &self.name)
    }

    /// Returns the URN of the parent in a program.
    fn parent_urn(&self, program: &[ProgramResource]) -> Option<Urn> {
        let parent = program.iter().find(|resource| Some(&resource.name) == self.parent.as_ref())?;
        Some(parent.urn_within(parent.parent_urn(program).as_ref()))
    }

    /// Returns what the options of the resource keep in a program, with those that it inherits.
    pub(crate) fn kept_by(&self, program: &[ProgramResource]) -> Kept {
        let goal = announced(self, program);
        let parent = program.iter().find(|resource| Some(&resource.name) == self.parent.as_ref());
        let parent = parent.map(|parent| parent.kept_by(program));
        Kept {
            urn: self.urn_within(self.parent_urn(program).as_ref()),
            protected: goal.protect.unwrap_or(parent.as_ref().is_some_and(|parent| parent.protected)),
            retained: goal.retain_on_delete.unwrap_or(parent.is_some_and(|parent| parent.retained)),
        }
    }

    /// Returns whether the resource may have had a URN: if its name, or that of an alias, is the name in the URN.
    pub(crate) fn may_have_been(&self, urn: &Urn) -> bool {
        let is_former = |alias: &Alias| match alias {
            Alias::Urn(former) => former == urn,
            Alias::Spec { name, .. } => name.as_deref().unwrap_or(&self.name) == urn.name(),
        };
        self.name == urn.name() || self.aliases.iter().any(is_former)
    }

    /// Returns whether the registration of the resource may take an entry over, or that of a child by the plugin of a component.
    pub(crate) fn may_register(&self, entry: &ResourceState) -> bool {
        let constructs = |parent: &Urn| self.kind == Kind::RemoteComponent && self.may_have_been(parent);
        self.may_have_been(&entry.urn) || entry.parent.as_ref().is_some_and(constructs)
    }

    /// Returns the inputs that are no ids of other resources.
    pub(crate) fn values(&self) -> PropertyMap {
        let values = self.inputs.iter().filter_map(|(key, input)| match input {
            Input::Value(value) => Some((key.clone(), value.clone())),
            Input::IdOf(_) => None,
        });
        values.collect()
    }

    /// Sets the outputs that a component registers.
    pub(crate) fn outputs(mut self, outputs: PropertyMap) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// Changes the goal, after all other settings.
    pub(crate) fn edit_goal(mut self, edit: impl Fn(&mut Goal) + Send + Sync + 'static) -> Self {
        self.goal_edits.push(Arc::new(edit));
        self
    }

    /// Changes the goal, with a description for the message of a failed test.
    pub(crate) fn edit_goal_as(mut self, description: &str, edit: impl Fn(&mut Goal) + Send + Sync + 'static) -> Self {
        self.edit_descriptions.push(description.to_owned());
        self.edit_goal(edit)
    }

    pub(crate) fn protected(self) -> Self {
        self.edit_goal(|goal| goal.protect = Some(true))
    }

    /// Sets the option `retainOnDelete`.
    pub(crate) fn retained(self) -> Self {
        self.edit_goal(|goal| goal.retain_on_delete = Some(true))
    }

    /// Imports the resource with an id.
    pub(crate) fn imported(self, id: &'static str) -> Self {
        self.edit_goal(move |goal| goal.import_id = ResourceId::new(id))
    }

    /// Returns the names of the resources that must be registered first.
    pub(crate) fn dependencies(&self) -> impl Iterator<Item = &String> {
        let from_inputs = self.inputs.values().filter_map(|input| match input {
            Input::IdOf(name) => Some(name),
            Input::Value(_) => None,
        });
        from_inputs
            .chain(&self.depends_on)
            .chain(&self.parent)
            .chain(&self.provider)
            .chain(&self.deleted_with)
            .chain(&self.replace_with)
    }
}

/// Reply to a registration of a program.
pub(crate) type Reply = Result<Registered, Halted>;

/// Returns the goal that announces a resource of a program.
fn announced(resource: &ProgramResource, program: &[ProgramResource]) -> Goal {
    let type_token = resource.token_of(resource.type_name);
    let mut goal = match resource.kind {
        Kind::Custom | Kind::Provider | Kind::Get(..) | Kind::Invoke => {
            Goal::custom(type_token, resource.name.as_str(), PropertyMap::new())
        }
        Kind::Component | Kind::RemoteComponent => {
            Goal::component(type_token, resource.name.as_str(), PropertyMap::new())
        }
    };
    goal.remote = matches!(resource.kind, Kind::RemoteComponent);
    goal.parent = resource.parent_urn(program).or_else(|| Some(Urn::root_stack(STACK, PROJECT)));
    goal.aliases.clone_from(&resource.aliases);
    resource.goal_edits.iter().for_each(|edit| edit(&mut goal));
    goal
}

/// Registers all resources in the order of the list, each as soon as its dependencies have replies. Dependents of
/// failed resources are registered as well, as programs may do. Returns `Halted` beside the replies if the run ended first.
pub(crate) async fn register_all(
    resources: &[ProgramResource],
    deployment: &Deployment,
) -> (BTreeMap<String, Reply>, Result<(), Halted>) {
    let mut replies = BTreeMap::new();
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    if let Err(halted) = deployment.register(root).await {
        return (replies, Err(halted));
    }
    let mut registered_by_name: BTreeMap<String, Registered> = BTreeMap::new();
    let mut waiting: Vec<&ProgramResource> = resources.iter().collect();
    let mut running: FuturesUnordered<BoxFuture<'_, (String, Result<Registered, Halted>)>> = FuturesUnordered::new();
    let mut result = Ok(());
    let goals = resources.iter().map(|resource| announced(resource, resources)).collect();
    deployment.announce(Announcement { goals, ..Announcement::default() });
    loop {
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|resource| {
            result.is_ok() && resource.dependencies().all(|name| registered_by_name.contains_key(name))
        });
        waiting = rest;
        for resource in ready {
            running.push(register(resource, deployment, &registered_by_name));
        }
        let Some((name, reply)) = running.next().await else { break };
        replies.insert(name.clone(), reply.clone());
        match reply {
            Ok(registered) => {
                registered_by_name.insert(name, registered);
            }
            Err(halted) => result = Err(halted),
        }
    }
    assert!(
        result.is_err() || waiting.is_empty(),
        "the program refers to resources that it does not contain: {waiting:?}"
    );
    (replies, result)
}

fn register<'a>(
    resource: &'a ProgramResource,
    deployment: &'a Deployment,
    known: &BTreeMap<String, Registered>,
) -> BoxFuture<'a, (String, Result<Registered, Halted>)> {
    let name = resource.name.clone();
    let urn_of = |name: &String| known.get(name).map(|registered| registered.urn.clone());
    let mut inputs = PropertyMap::new();
    let mut property_dependencies = BTreeMap::new();
    let mut dependencies: Vec<Urn> = resource.depends_on.iter().filter_map(urn_of).collect();
    for (key, input) in &resource.inputs {
        let mut input_dependencies = Vec::new();
        let value = match input {
            Input::Value(value) => Some(value.clone()),
            Input::IdOf(name) => {
                input_dependencies.extend(urn_of(name));
                match known.get(name).and_then(|registered| registered.id.clone()) {
                    Some(id) => Some(id.as_str().into()),
                    None => deployment.is_preview().then_some(PropertyValue::UNKNOWN),
                }
            }
        };
        inputs.extend(value.map(|value| (key.clone(), value)));
        dependencies.extend(input_dependencies.clone());
        property_dependencies.insert(key.clone(), input_dependencies);
    }
    dependencies.sort();
    dependencies.dedup();
    let parent = resource.parent.as_ref().and_then(urn_of).or_else(|| Some(Urn::root_stack(STACK, PROJECT)));
    let provider = resource.provider.as_ref().and_then(|name| known.get(name)).map(Registered::as_provider_reference);
    let type_token = resource.token_of(resource.type_name);
    let mut goal = match &resource.kind {
        Kind::Custom | Kind::Provider => Goal::custom(type_token, name.as_str(), inputs),
        Kind::Component => Goal::component(type_token, name.as_str(), inputs),
        Kind::RemoteComponent => Goal { remote: true, ..Goal::component(type_token, name.as_str(), inputs) },
        Kind::Get(id, patience) => {
            let goal = ReadGoal {
                patience: *patience,
                type_token,
                name: name.clone(),
                id: ReferenceId::from(id.as_str()),
                properties: inputs,
                parent: resource.parent.as_ref().and_then(urn_of),
                dependencies,
                provider,
                additional_secret_outputs: Vec::new(),
                version: None,
                plugin_download_url: None,
                subpackage: None,
                source: None,
            };
            return Box::pin(async move { (name, deployment.read(goal).await) });
        }
        Kind::Invoke => {
            let goal = InvokeGoal {
                token: TypeToken::new("cloud:index:ask"),
                arguments: inputs,
                provider,
                version: None,
                plugin_download_url: None,
                subpackage: None,
                source: None,
            };
            return Box::pin(async move {
                let reply = deployment.invoke(goal).await.map(|outputs| Registered {
                    outputs: Arc::new(outputs),
                    ..Registered::without_outputs(Urn::root_stack(STACK, PROJECT), RegistrationResult::Succeeded)
                });
                (name, reply)
            });
        }
    };
    goal.parent = parent;
    goal.dependencies = dependencies;
    goal.property_dependencies = property_dependencies;
    goal.provider = provider;
    goal.deleted_with = resource.deleted_with.as_ref().and_then(urn_of);
    goal.replace_with = resource.replace_with.iter().filter_map(urn_of).collect();
    goal.aliases.clone_from(&resource.aliases);
    resource.goal_edits.iter().for_each(|edit| edit(&mut goal));
    let outputs = resource.outputs.clone();
    Box::pin(async move {
        let reply = deployment.register(goal).await;
        if let (Ok(registered), Some(outputs)) = (&reply, outputs)
            && deployment.register_outputs(&registered.urn, outputs).await.is_err()
        {
            return (name, Err(Halted::Stopped));
        }
        (name, reply)
    })
}
