//! Outline of a recipe: what it registers, as far as it is known before a run.

use std::collections::BTreeMap;

use pulumi_proto::property::{PropertyMap, PropertyValue};

use super::graph::{Node, NodeKind, Recipe};
use super::hole::{Handle, Hole, HoleSource};
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
        let inputs = |node: &Node| -> PropertyMap {
            let filled = node.templates.iter().map(|(name, template)| (name, template.fill(&|hole| self.known(hole))));
            filled
                .map(|(name, resolved)| (name.clone(), resolved.value))
                .collect::<BTreeMap<_, _>>()
                .into_iter()
                .collect()
        };
        let resources = self.nodes.iter().filter(|node| node.kind != NodeKind::Function);
        let outline = resources.map(|node| Outline {
            token: node.token.clone(),
            name: node.name.clone(),
            inputs: inputs(node),
            provider: node.provider.map(|Handle(index)| inputs(&self.nodes[index])).unwrap_or_default(),
        });
        outline.collect()
    }

    /// Returns the value of a hole that needs no registration; any other is unknown.
    fn known(&self, hole: &Hole) -> ResolvedValue {
        let resolved = match &hole.source {
            HoleSource::Id(_) | HoleSource::Output(..) => ResolvedValue::unknown(),
            HoleSource::Value(index) => self.values[*index].clone(),
            HoleSource::Text(index) => {
                let text = &self.texts[*index];
                let parts: Vec<ResolvedValue> = text.parts.iter().map(|part| self.known(part)).collect();
                let made = ResolvedValue::from_texts(&parts, |texts| (text.make)(texts));
                made.unwrap_or_else(|_| ResolvedValue::unknown())
            }
        };
        match resolved.value {
            PropertyValue::Unknown(_) => resolved,
            _ if hole.secret => resolved.secret(),
            _ => resolved,
        }
    }
}
