//! Outline of a recipe: what it registers, as far as it is known before a run.

use pulumi_proto::property::PropertyMap;

use super::graph::Recipe;
use super::hole::Handle;
use super::node::{Node, NodeKind};
use super::resolved::ResolvedValue;

/// Registration that a recipe will make.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Type of the resource.
    pub token: String,
    /// Name of the resource.
    pub name: String,
    /// Inputs of the resource. What is computed in the run is unknown.
    pub inputs: PropertyMap,
    /// Inputs of its provider; empty for a provider.
    pub provider: PropertyMap,
}

impl Recipe<'_> {
    /// Returns the registrations of the recipe, except what it adds once a value is known.
    pub(super) fn outline(&self) -> Vec<Outline> {
        let outline = self.registered_nodes().map(|node| Outline {
            token: node.token.clone(),
            name: node.name.clone(),
            inputs: self.known_inputs(node),
            provider: node.provider.map(|Handle(index)| self.known_inputs(&self.nodes[index])).unwrap_or_default(),
        });
        outline.collect()
    }

    /// Returns the types and names of these registrations.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        self.registered_nodes().map(|node| (node.token.clone(), node.name.clone())).collect()
    }

    fn registered_nodes(&self) -> impl Iterator<Item = &Node> {
        let is_registered =
            |kind| !matches!(kind, NodeKind::Function | NodeKind::ComponentOutputs | NodeKind::GoogleApi);
        self.nodes.iter().filter(move |node| is_registered(node.kind))
    }

    fn known_inputs(&self, node: &Node) -> PropertyMap {
        let inputs = node.templates.iter().map(|(name, template)| {
            let filled = template.fill(&|hole| self.resolve(hole, &|_| ResolvedValue::unknown()));
            // A text that cannot be made is reported in the run.
            (name.clone(), filled.unwrap_or_else(|_| ResolvedValue::unknown()).value)
        });
        inputs.collect()
    }
}
