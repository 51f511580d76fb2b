//! Nodes of the graph in which a program registers resources and calls functions.

use std::collections::BTreeMap;

use config::Stack;
use config::graph::NodeName;

/// Node of the graph of registrations. Those that are ready at the same time start in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GraphNode {
    /// Provider resource of the plugin at an index of [`Stack::plugins`].
    Provider(usize),
    /// Function at an index of [`Stack::functions`].
    Function(usize),
    /// Resource at an index of [`Stack::declarations`].
    Resource(usize),
}

/// Indices of the nodes, by their names in the file. Functions that are switched off have none.
pub(super) struct NodeIndices<'r> {
    resources: BTreeMap<(&'r str, &'r str), usize>,
    functions: BTreeMap<(Option<&'r str>, &'r str), usize>,
}

impl<'r> NodeIndices<'r> {
    pub(super) fn new(stack: &'r Stack) -> Self {
        let resources = stack.declarations().enumerate();
        let functions = stack.functions.iter().enumerate().filter(|(_, function)| function.is_enabled);
        Self {
            resources: resources.map(|(index, (place, resource))| ((place, resource.key.as_str()), index)).collect(),
            functions: functions
                .map(|(index, function)| ((function.environment.as_deref(), function.name.as_str()), index))
                .collect(),
        }
    }

    /// Returns the node with a name; `None` for one that is not declared or switched off.
    pub(super) fn find(&self, name: NodeName<'_>) -> Option<GraphNode> {
        match name {
            NodeName::Resource(environment, key) => {
                self.resources.get(&(environment, key)).copied().map(GraphNode::Resource)
            }
            NodeName::Function(environment, name) => {
                self.functions.get(&(environment, name)).copied().map(GraphNode::Function)
            }
        }
    }

    /// Returns the name of the first resource with a key.
    pub(super) fn only_resource(&self, key: &str) -> Option<NodeName<'r>> {
        let (environment, key) = self.resources.keys().find(|(_, known)| *known == key)?;
        Some(NodeName::Resource(environment, key))
    }
}
