//! What is made: resources that are the same for the engine and for the bare loop.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};
use serde::{Deserialize, Serialize};

/// Name of the project.
pub(crate) const PROJECT: &str = "bench";
/// Name of the stack.
pub(crate) const STACK: &str = "dev";
/// The type of all resources.
pub(crate) const TYPE: &str = "rec:index:Thing";
/// How many calls are in flight.
pub(crate) const PARALLEL: usize = 16;
/// How many resources there are in a layer.
const LAYER: usize = 50;

/// How the resources hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    /// Not at all.
    Independent,
    /// Each takes an output of two of the layer before.
    Layers,
}

/// Which resources there are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Workload {
    /// How many.
    pub(crate) resources: usize,
    /// How they hang together.
    pub(crate) shape: Shape,
}

/// One resource.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// Its name.
    pub(crate) name: String,
    /// Its place among all.
    pub(crate) index: usize,
    /// The places of those it takes an output of.
    pub(crate) needs: Vec<usize>,
}

impl Workload {
    /// The resources, those that are needed first.
    pub(crate) fn things(self) -> Vec<Thing> {
        (0..self.resources)
            .map(|index| Thing { name: format!("thing-{index:06}"), index, needs: self.needs(index) })
            .collect()
    }

    fn needs(self, index: usize) -> Vec<usize> {
        let (layer, place) = (index / LAYER, index % LAYER);
        if self.shape == Shape::Independent || layer == 0 {
            return Vec::new();
        }
        vec![(layer - 1) * LAYER + place, (layer - 1) * LAYER + (place + 1) % LAYER]
    }

    /// Resources that may be made at once, in order.
    pub(crate) fn layers(self) -> Vec<std::ops::Range<usize>> {
        let step = if self.shape == Shape::Layers { LAYER } else { self.resources.max(1) };
        (0..self.resources).step_by(step).map(|start| start..(start + step).min(self.resources)).collect()
    }
}

impl Thing {
    /// Its URN.
    pub(crate) fn urn(&self) -> Urn {
        let root = Urn::new(STACK, PROJECT, None, ROOT_STACK_TYPE, &format!("{PROJECT}-{STACK}"));
        Urn::new(STACK, PROJECT, Some(&root), TYPE, &self.name)
    }

    /// Its inputs as the engine gets them; `links` are the outputs it takes.
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

    /// The same inputs as a file has them; `link` says how an output of another one is referred to.
    pub(crate) fn described(&self, link: impl Fn(usize) -> String) -> serde_json::Value {
        let name = &self.name;
        serde_json::json!({
            "v": format!("contents of {name}"),
            "size": 8,
            "public": false,
            "labels": {
                "app": format!("app of {name}"), "owner": format!("owner of {name}"), "tier": format!("tier of {name}"),
            },
            "zones": ["eu-west-1a", "eu-west-1b", "eu-west-1c"],
            "links": self.needs.iter().map(|index| link(*index)).collect::<Vec<_>>(),
        })
    }

    /// The same inputs as they travel.
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
