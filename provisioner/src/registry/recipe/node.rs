//! Nodes of a recipe: resources, components, functions, reads, and effects.

use std::time::Duration;

use pulumi_proto::duration::Timeouts;
use pulumi_proto::resource_id::ResourceId;
use serde_json::Value;

use super::effects::GoogleApi;
use super::hole::{Handle, Hole, Template};
use crate::registry::packages::Package;

/// Kind of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Registers a provider.
    Provider,
    /// Registers a custom resource.
    #[default]
    Resource,
    /// Registers a component of the program.
    Component,
    /// Registers a component that its plugin constructs.
    RemoteComponent,
    /// Registers the outputs of a component, which is the parent of the node. It has no name.
    ComponentOutputs,
    /// Reads a resource that the stack does not own.
    Read,
    /// Calls a function. It has no name.
    Function,
    /// Switches on an API of Google, in a run that changes resources.
    GoogleApi,
}

/// Node of the graph. Methods set its options.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Node {
    pub(super) kind: NodeKind,
    pub(super) token: String,
    pub(super) name: String,
    /// Package of the type or the function; `None` for what belongs to no package.
    pub(super) package: Option<Package>,
    pub(super) inputs: Value,
    /// Inputs with holes, once the node is added.
    pub(super) templates: Vec<(String, Template)>,
    /// Provider; `None`: the default provider of the package.
    pub(super) provider: Option<Handle>,
    /// Providers of the children of a component, with their packages.
    pub(super) providers: Vec<(Package, Handle)>,
    /// Parent; `None`: the root stack resource.
    pub(super) parent: Option<Handle>,
    pub(super) after: Vec<Handle>,
    pub(super) ignore_changes: Vec<String>,
    pub(super) import_id: Option<ResourceId>,
    /// Id of the resource to read.
    pub(super) read_id: Option<Hole>,
    /// Time for which a run waits for the resource to read.
    pub(super) patience: Duration,
    pub(super) protect: Option<bool>,
    pub(super) retain_on_delete: Option<bool>,
    pub(super) timeouts: Timeouts,
}

impl Node {
    fn new(kind: NodeKind, token: &str, name: &str, package: Option<Package>, inputs: Value) -> Self {
        Self { kind, token: token.to_owned(), name: name.to_owned(), package, inputs, ..Self::default() }
    }

    pub(super) fn provider(package: Package, name: &str, inputs: Value) -> Self {
        Self::new(NodeKind::Provider, &format!("pulumi:providers:{}", package.name), name, Some(package), inputs)
    }

    /// Returns the node of a component of the program, with its type and its name. It has no inputs.
    pub fn component(token: &str, name: &str) -> Self {
        Self::new(NodeKind::Component, token, name, None, Value::Null)
    }

    pub(super) fn component_outputs(component: Handle, outputs: Value) -> Self {
        Self::new(NodeKind::ComponentOutputs, "", "", None, outputs).parent(component)
    }

    pub(super) fn google_api(provider: Provider, api: GoogleApi) -> Self {
        let node = Self::new(NodeKind::GoogleApi, api.service, "", None, api.inputs());
        Self { provider: provider.handle, ..node }
    }

    /// Makes the resource depend on others.
    pub fn after(mut self, others: impl IntoIterator<Item = Handle>) -> Self {
        self.after.extend(others);
        self
    }

    /// Makes the resource a child of another one.
    pub fn parent(mut self, parent: Handle) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Passes a provider on to the children of the component.
    pub fn passing(mut self, provider: Provider) -> Self {
        self.providers.extend(provider.handle.map(|handle| (provider.package, handle)));
        self
    }

    /// Ignores changes of inputs.
    pub fn ignore_changes<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        self.ignore_changes.extend(paths.into_iter().map(str::to_owned));
        self
    }

    /// Imports the existing resource with this id.
    pub fn import(mut self, id: &str) -> Self {
        self.import_id = ResourceId::new(id);
        self
    }

    /// Lets a run wait for the resource to read, which something else creates.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Protects the resource against deletion, unless the option `protect` of the core resource says otherwise.
    pub fn protect(mut self, protect: bool) -> Self {
        self.protect = protect.then_some(true);
        self
    }

    /// Keeps the actual resource when its entry is deleted, unless the option `retainOnDelete` of the core resource says
    /// otherwise.
    pub fn retain_on_delete(mut self) -> Self {
        self.retain_on_delete = Some(true);
        self
    }

    /// Sets timeouts, which the option `customTimeouts` of the core resource overrides.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// Provider of the resources and functions of a recipe.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    /// Provider resource; `None`: the default provider of the package.
    handle: Option<Handle>,
    package: Package,
}

impl Provider {
    pub(super) fn of(handle: Handle, package: Package) -> Self {
        Self { handle: Some(handle), package }
    }

    /// Returns the default provider of a package, which the deployment registers.
    pub fn default_of(package: Package) -> Self {
        Self { handle: None, package }
    }

    fn node(self, kind: NodeKind, token: &str, name: &str, inputs: Value) -> Node {
        Node { provider: self.handle, ..Node::new(kind, token, name, Some(self.package), inputs) }
    }

    /// Returns the node of a custom resource with its token, its name and its inputs.
    pub fn resource(self, token: &str, name: &str, inputs: Value) -> Node {
        self.node(NodeKind::Resource, token, name, inputs)
    }

    /// Returns the node of a component that the plugin constructs, with its token, its name and its inputs. Its children
    /// have this provider.
    pub fn remote_component(self, token: &str, name: &str, inputs: Value) -> Node {
        self.node(NodeKind::RemoteComponent, token, name, inputs).passing(self)
    }

    /// Returns the node of the read of a resource that the stack does not own, with its token, its name and its id. A preview
    /// reads it only if the custom resources before it exist.
    pub fn read(self, token: &str, name: &str, id: Hole) -> Node {
        Node { read_id: Some(id), ..self.node(NodeKind::Read, token, name, Value::Null) }
    }

    /// Returns the node of a call of a function with its token and its arguments.
    pub fn function(self, token: &str, arguments: Value) -> Node {
        self.node(NodeKind::Function, token, "", arguments)
    }
}
