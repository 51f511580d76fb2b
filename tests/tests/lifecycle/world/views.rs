//! Views that the cloud's provider publishes: the parts of a thing, which its inputs name.

use std::collections::BTreeSet;
use std::sync::Arc;

use bridge::provider::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

use super::{Goes, PARTS, World};

const PART: &str = "cloud:index:Part";

/// Returns the names of the parts of a thing with these inputs.
fn parts(inputs: &PropertyMap) -> BTreeSet<String> {
    match inputs.get(PARTS).map(PropertyValue::without_wrappers) {
        Some(PropertyValue::String(parts)) => {
            parts.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn view(part: &str, inputs: &PropertyMap) -> View {
    // Outputs have no secret marks, like those of a provider that drops them.
    let v = inputs.get("v").map(|value| ("v".to_owned(), value.clone()));
    let outputs = v.iter().map(|(key, value)| (key.clone(), value.without_wrappers()));
    View {
        type_token: PART.to_owned(),
        within: None,
        name: part.to_owned(),
        outputs: Arc::new(outputs.collect()),
        inputs: Arc::new(v.into_iter().collect()),
    }
}

/// Publishes the steps from the known parts of a thing to those of its inputs; `None`: the thing is deleted with its
/// parts.
pub(super) fn publish(world: &World, urn: &Urn, views: &Views, inputs: Option<&PropertyMap>) {
    let wanted = inputs.map(parts).unwrap_or_default();
    let empty = PropertyMap::new();
    let inputs = inputs.unwrap_or(&empty);
    let mut steps = Vec::new();
    // Views of other providers are ignored.
    for old in views.known.iter().filter(|view| view.type_token == PART) {
        let new = wanted.contains(&old.name).then(|| view(&old.name, inputs));
        let op = match &new {
            None => ViewOp::Delete,
            Some(new) if new == old => ViewOp::Same,
            Some(_) => ViewOp::Update,
        };
        steps.push((op, Some(old.clone()), new));
    }
    let known = |part: &&String| !views.known.iter().any(|view| view.name == **part);
    for part in wanted.iter().filter(known) {
        steps.push((ViewOp::Create, None, Some(view(part, inputs))));
    }
    let Some(listener) = &views.listener else {
        if !steps.is_empty() {
            world.fault(format!("nobody listens to the views of {}", urn.name()));
        }
        return;
    };
    let steps = steps.into_iter().map(|(op, old, new)| {
        let name = old.as_ref().or(new.as_ref()).map(|view| view.name.clone()).unwrap_or_default();
        let goes = {
            let script = &world.inner().script;
            let of_all = || script.get(&format!("part {}", urn.name()));
            script.get(&format!("part {}.{name}", urn.name())).or_else(of_all).copied()
        };
        let failure = goes.map(|goes| ViewFailure {
            message: format!("{name} went wrong"),
            partial: goes == Goes::HalfWell,
            indeterminate: goes == Goes::Lost,
        });
        step(op, old, new, failure)
    });
    listener.publish(steps.collect());
}

/// Replaces every part of a thing; `first`: the new ones are created before the old ones are deleted.
pub(super) fn replace(listener: &Arc<dyn ViewListener>, views: &Views, inputs: &PropertyMap, first: bool) {
    for old in &views.known {
        let new = Some(view(&old.name, inputs));
        let halves = [
            step(ViewOp::CreateReplacement, first.then(|| old.clone()), new.clone(), None),
            step(ViewOp::Replace, Some(old.clone()), new, None),
            step(ViewOp::DeleteReplaced, Some(old.clone()), None, None),
        ];
        let halves = halves.to_vec();
        listener.publish(if first { halves } else { halves.into_iter().rev().collect() });
    }
}

fn step(op: ViewOp, old: Option<View>, new: Option<View>, failure: Option<ViewFailure>) -> ViewStep {
    ViewStep { op, old, new, failure, replace_keys: Vec::new(), diffs: Vec::new(), detailed_diff: None }
}
