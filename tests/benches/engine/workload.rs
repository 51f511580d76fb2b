//! Resources of a measurement, which are equal for the engine and for the bare loop.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use serde::{Deserialize, Serialize};

/// Name of the project.
pub(crate) const PROJECT: &str = "bench";
/// Name of the stack.
pub(crate) const STACK: &str = "dev";
/// Type of all resources.
pub(crate) const TYPE: &str = "rec:index:Thing";
/// Number of concurrent calls.
pub(crate) const PARALLEL: usize = 16;
/// Number of resources in a layer.
const LAYER_SIZE: usize = 50;

/// Dependencies between the resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    /// No dependencies.
    Independent,
    /// Each resource has outputs of two resources of the preceding layer as inputs.
    Layers,
}

/// Resources of a measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Workload {
    /// Number of resources.
    pub(crate) resources: usize,
    /// Dependencies between the resources.
    pub(crate) shape: Shape,
}

/// Resource of a workload.
#[derive(Clone, Debug)]
pub(crate) struct BenchResource {
    /// Name of the resource.
    pub(crate) name: String,
    /// Index of the resource in the workload.
    pub(crate) index: usize,
    /// Indices of the resources whose outputs are inputs of this resource.
    pub(crate) dependencies: Vec<usize>,
}

impl Workload {
    /// Returns the resources, dependencies first.
    pub(crate) fn resources(self) -> Vec<BenchResource> {
        (0..self.resources)
            .map(|index| BenchResource {
                name: format!("thing-{index:06}"),
                index,
                dependencies: self.dependencies(index),
            })
            .collect()
    }

    fn dependencies(self, index: usize) -> Vec<usize> {
        let (layer, place) = (index / LAYER_SIZE, index % LAYER_SIZE);
        if self.shape == Shape::Independent || layer == 0 {
            return Vec::new();
        }
        vec![(layer - 1) * LAYER_SIZE + place, (layer - 1) * LAYER_SIZE + (place + 1) % LAYER_SIZE]
    }

    /// Returns the ranges of resources that can be created concurrently, in order.
    pub(crate) fn layers(self) -> Vec<std::ops::Range<usize>> {
        let step = if self.shape == Shape::Layers { LAYER_SIZE } else { self.resources.max(1) };
        (0..self.resources).step_by(step).map(|start| start..(start + step).min(self.resources)).collect()
    }
}

impl BenchResource {
    /// Returns the URN.
    pub(crate) fn urn(&self) -> Urn {
        let root = Urn::new(STACK, PROJECT, None, ROOT_STACK_TYPE, &format!("{PROJECT}-{STACK}"));
        Urn::new(STACK, PROJECT, Some(&root), TYPE, &self.name)
    }

    /// Returns the inputs as property values; `links` are the outputs of its dependencies.
    pub(crate) fn inputs(&self, links: Vec<String>) -> PropertyMap {
        let text = |text: String| PropertyValue::from(text.as_str());
        let labels = ["app", "owner", "tier"].map(|key| (key.to_owned(), text(format!("{key} of {}", self.name))));
        let zones = ["a", "b", "c"].map(|zone| text(format!("eu-west-1{zone}")));
        [
            ("v".to_owned(), text(format!("contents of {}", self.name))),
            ("size".to_owned(), PropertyValue::Number(8.0)),
            ("public".to_owned(), PropertyValue::Bool(false)),
            ("labels".to_owned(), PropertyValue::Map(labels.into_iter().collect())),
            ("zones".to_owned(), PropertyValue::List(zones.into())),
            ("links".to_owned(), PropertyValue::List(links.into_iter().map(text).collect())),
        ]
        .into_iter()
        .collect()
    }

    /// Returns the inputs as JSON for a file; `link` returns the reference to the output of another resource.
    pub(crate) fn config(&self, link: impl Fn(usize) -> String) -> serde_json::Value {
        let name = &self.name;
        serde_json::json!({
            "v": format!("contents of {name}"),
            "size": 8,
            "public": false,
            "labels": {
                "app": format!("app of {name}"), "owner": format!("owner of {name}"), "tier": format!("tier of {name}"),
            },
            "zones": ["eu-west-1a", "eu-west-1b", "eu-west-1c"],
            "links": self.dependencies.iter().map(|index| link(*index)).collect::<Vec<_>>(),
        })
    }

    /// Returns the inputs as a message.
    pub(crate) fn message(&self, links: Vec<String>) -> Struct {
        let kind = |kind| Value { kind: Some(kind) };
        let text = |text: String| kind(Kind::StringValue(text));
        let list = |values| kind(Kind::ListValue(ListValue { values }));
        let labels = ["app", "owner", "tier"].map(|key| (key.to_owned(), text(format!("{key} of {}", self.name))));
        let zones = ["a", "b", "c"].map(|zone| text(format!("eu-west-1{zone}")));
        let fields = [
            ("v".to_owned(), text(format!("contents of {}", self.name))),
            ("size".to_owned(), kind(Kind::NumberValue(8.0))),
            ("public".to_owned(), kind(Kind::BoolValue(false))),
            ("labels".to_owned(), kind(Kind::StructValue(Struct { fields: labels.into() }))),
            ("zones".to_owned(), list(zones.into())),
            ("links".to_owned(), list(links.into_iter().map(text).collect())),
        ];
        Struct { fields: fields.into() }
    }
}
