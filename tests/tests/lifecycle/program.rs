//! Programs of tests, and the driver that registers each resource as soon as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::provider::{Alias, AliasParent};
use engine::{
    Deployment, Goal, Halted, InvokeGoal, ProgramEnd, ReadGoal, Registered, Registrar as _, RegistrationResult,
};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};

pub(crate) const STACK: &str = "s";
pub(crate) const PROJECT: &str = "p";

/// Change of a goal, applied last.
type Tweak = Arc<dyn Fn(&mut Goal) + Send + Sync>;

/// Resource of a program.
#[derive(Clone)]
pub(crate) struct Thing {
    pub(crate) name: String,
    kind: Kind,
    inputs: BTreeMap<String, In>,
    after: Vec<String>,
    parent: Option<String>,
    provider: Option<String>,
    deleted_with: Option<String>,
    replace_with: Vec<String>,
    aliases: Vec<Alias>,
    outputs: Option<PropertyMap>,
    tweaks: Vec<Tweak>,
    type_name: &'static str,
    /// Descriptions of the tweaks, for the message of a failed test.
    marks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Custom,
    Component,
    /// Component that its plugin constructs, with a child `<name>-child` that gets its inputs.
    Remote,
    Provider,
    Get(String),
    Invoke,
}

#[derive(Clone, Debug, PartialEq)]
enum In {
    Value(PropertyValue),
    /// Id of another resource.
    IdOf(String),
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {} {:?}", self.kind, self.name, self.inputs)?;
        write!(f, " after {:?} in {:?} by {:?}", self.after, self.parent, self.provider)?;
        write!(f, " deleted with {:?} replaced with {:?}", self.deleted_with, self.replace_with)?;
        write!(f, " was {:?} {}", self.aliases, self.marks.join(", "))
    }
}

fn new(name: &str, kind: Kind) -> Thing {
    Thing {
        name: name.to_owned(),
        kind,
        inputs: BTreeMap::new(),
        after: Vec::new(),
        parent: None,
        provider: None,
        deleted_with: None,
        replace_with: Vec::new(),
        aliases: Vec::new(),
        outputs: None,
        tweaks: Vec::new(),
        type_name: "Thing",
        marks: Vec::new(),
    }
}

/// Creates a resource of the cloud.
pub(crate) fn thing(name: &str) -> Thing {
    new(name, Kind::Custom)
}

/// Creates a component.
pub(crate) fn group(name: &str) -> Thing {
    new(name, Kind::Component)
}

/// Creates a component that the plugin constructs, with a child `<name>-child` that gets its inputs.
pub(crate) fn remote(name: &str) -> Thing {
    new(name, Kind::Remote)
}

/// Creates a provider resource.
pub(crate) fn provider(name: &str) -> Thing {
    new(name, Kind::Provider)
}

/// Creates a read of an external resource.
pub(crate) fn get(name: &str, id: &str) -> Thing {
    new(name, Kind::Get(id.to_owned()))
}

/// Creates a function call.
pub(crate) fn invoke(name: &str) -> Thing {
    new(name, Kind::Invoke)
}

impl Thing {
    /// Adds an input. A change of `k…` replaces; a change of `d…` replaces and deletes first.
    pub(crate) fn with(mut self, key: &str, value: impl Into<PropertyValue>) -> Self {
        self.inputs.insert(key.to_owned(), In::Value(value.into()));
        self
    }

    /// Adds an input with the id of another resource.
    pub(crate) fn of(mut self, key: &str, name: &str) -> Self {
        self.inputs.insert(key.to_owned(), In::IdOf(name.to_owned()));
        self
    }

    /// Adds a dependency without an input.
    pub(crate) fn after(mut self, name: &str) -> Self {
        self.after.push(name.to_owned());
        self
    }

    /// Sets the parent.
    pub(crate) fn within(mut self, parent: &str) -> Self {
        self.parent = Some(parent.to_owned());
        self
    }

    /// Sets the provider resource.
    pub(crate) fn by(mut self, provider: &str) -> Self {
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
    pub(crate) fn was(mut self, name: &str) -> Self {
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
    pub(crate) fn was_urn(mut self, urn: Urn) -> Self {
        self.aliases.push(Alias::Urn(urn));
        self
    }

    /// Adds an alias with another name, type and parent.
    pub(crate) fn was_all(mut self, name: &str, type_name: &str, parent: Option<Urn>) -> Self {
        self.aliases.push(Alias::Spec {
            name: Some(name.to_owned()),
            type_token: Some(self.token_of(type_name).as_str().to_owned()),
            stack: None,
            project: None,
            parent: parent.map_or(AliasParent::None, AliasParent::Urn),
        });
        self
    }

    /// Sets a type other than `Thing` or `Group`.
    pub(crate) fn of_type(mut self, type_name: &'static str) -> Self {
        self.type_name = type_name;
        self
    }

    fn token_of(&self, type_name: &str) -> TypeToken {
        match self.kind {
            Kind::Custom | Kind::Get(_) | Kind::Invoke => TypeToken::new(&format!("cloud:index:{type_name}")),
            Kind::Component => TypeToken::new(&format!("my:index:{}", type_name.replace("Thing", "Group"))),
            Kind::Remote => TypeToken::new("cloud:index:Group"),
            Kind::Provider => TypeToken::provider("cloud"),
        }
    }

    /// Returns the URN as a child of a parent.
    pub(crate) fn urn_within(&self, parent: Option<&Urn>) -> Urn {
        let root = Urn::root_stack(STACK, PROJECT);
        Urn::new(STACK, PROJECT, Some(parent.unwrap_or(&root)), self.token_of(self.type_name).as_str(), &self.name)
    }

    /// Sets the outputs that a component registers.
    pub(crate) fn says(mut self, outputs: PropertyMap) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// Changes the goal, after all other settings.
    pub(crate) fn but(mut self, tweak: impl Fn(&mut Goal) + Send + Sync + 'static) -> Self {
        self.tweaks.push(Arc::new(tweak));
        self
    }

    /// Changes the goal, with a description for the message of a failed test.
    pub(crate) fn but_marked(mut self, mark: &str, tweak: impl Fn(&mut Goal) + Send + Sync + 'static) -> Self {
        self.marks.push(mark.to_owned());
        self.but(tweak)
    }

    pub(crate) fn protected(self) -> Self {
        self.but(|goal| goal.protect = Some(true))
    }

    /// Returns the names of the resources that must be registered first.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &String> {
        let referred = self.inputs.values().filter_map(|input| match input {
            In::IdOf(name) => Some(name),
            In::Value(_) => None,
        });
        referred
            .chain(&self.after)
            .chain(&self.parent)
            .chain(&self.provider)
            .chain(&self.deleted_with)
            .chain(&self.replace_with)
    }
}

/// Reply to a registration of a program.
pub(crate) type Answer = Result<RegistrationResult, Halted>;

/// Registers all resources in the order of the list, each as soon as its dependencies have replies. Dependents of
/// failed resources are registered as well, as programs may do.
pub(crate) async fn drive(things: &[Thing], deployment: &Deployment, end: ProgramEnd) -> BTreeMap<String, Answer> {
    let mut answers = BTreeMap::new();
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    let Ok(_) = deployment.register(root).await else {
        deployment.finish(ProgramEnd::Failed).await;
        return answers;
    };
    let mut known: BTreeMap<String, Registered> = BTreeMap::new();
    let mut waiting: Vec<&Thing> = things.iter().collect();
    let mut under_way: FuturesUnordered<BoxFuture<'_, (String, Result<Registered, Halted>)>> = FuturesUnordered::new();
    let mut refused = false;
    loop {
        let (ready, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|thing| !refused && thing.needs().all(|name| known.contains_key(name)));
        waiting = rest;
        for thing in ready {
            under_way.push(begin(thing, deployment, &known));
        }
        let Some((name, answer)) = under_way.next().await else { break };
        answers.insert(name.clone(), answer.as_ref().map(|registered| registered.result).map_err(|refused| *refused));
        match answer {
            Ok(registered) => {
                known.insert(name, registered);
            }
            Err(_) => refused = true,
        }
    }
    assert!(refused || waiting.is_empty(), "the program names what it does not hold: {waiting:?}");
    deployment.finish(if refused { ProgramEnd::Failed } else { end }).await;
    answers
}

fn begin<'a>(
    thing: &'a Thing,
    deployment: &'a Deployment,
    known: &BTreeMap<String, Registered>,
) -> BoxFuture<'a, (String, Result<Registered, Halted>)> {
    let name = thing.name.clone();
    let urn_of = |name: &String| known.get(name).map(|registered| registered.urn.clone());
    let mut inputs = PropertyMap::new();
    let mut property_dependencies = BTreeMap::new();
    let mut dependencies: Vec<Urn> = thing.after.iter().filter_map(urn_of).collect();
    for (key, input) in &thing.inputs {
        let mut from = Vec::new();
        let value = match input {
            In::Value(value) => Some(value.clone()),
            In::IdOf(name) => {
                from.extend(urn_of(name));
                match known.get(name).and_then(|registered| registered.id.clone()) {
                    Some(id) => Some(id.as_str().into()),
                    None => deployment.is_preview().then_some(PropertyValue::UNKNOWN),
                }
            }
        };
        inputs.extend(value.map(|value| (key.clone(), value)));
        dependencies.extend(from.clone());
        property_dependencies.insert(key.clone(), from);
    }
    dependencies.sort();
    dependencies.dedup();
    let parent = thing.parent.as_ref().and_then(urn_of).or_else(|| Some(Urn::root_stack(STACK, PROJECT)));
    let provider = thing.provider.as_ref().and_then(|name| known.get(name)).map(Registered::as_provider_reference);
    let type_token = thing.token_of(thing.type_name);
    let mut goal = match &thing.kind {
        Kind::Custom | Kind::Provider => Goal::custom(type_token, name.as_str(), inputs),
        Kind::Component => Goal::component(type_token, name.as_str(), inputs),
        Kind::Remote => Goal { remote: true, ..Goal::component(type_token, name.as_str(), inputs) },
        Kind::Get(id) => {
            let goal = ReadGoal {
                type_token,
                name: name.clone(),
                id: ReferenceId::from(id.as_str()),
                properties: inputs,
                parent: thing.parent.as_ref().and_then(urn_of),
                dependencies,
                provider,
                additional_secret_outputs: Vec::new(),
                version: None,
                plugin_download_url: None,
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
            };
            return Box::pin(async move {
                let answer = deployment.invoke(goal).await.map(|outputs| Registered {
                    outputs: Arc::new(outputs),
                    ..Registered::without_outputs(Urn::root_stack(STACK, PROJECT), RegistrationResult::Succeeded)
                });
                (name, answer)
            });
        }
    };
    goal.parent = parent;
    goal.dependencies = dependencies;
    goal.property_dependencies = property_dependencies;
    goal.provider = provider;
    goal.deleted_with = thing.deleted_with.as_ref().and_then(urn_of);
    goal.replace_with = thing.replace_with.iter().filter_map(urn_of).collect();
    goal.aliases.clone_from(&thing.aliases);
    thing.tweaks.iter().for_each(|tweak| tweak(&mut goal));
    let outputs = thing.outputs.clone();
    Box::pin(async move {
        let answer = deployment.register(goal).await;
        if let (Ok(registered), Some(outputs)) = (&answer, outputs)
            && deployment.register_outputs(&registered.urn, outputs).await.is_err()
        {
            return (name, Err(Halted::Stopped));
        }
        (name, answer)
    })
}
