//! Views that the fake cloud's provider publishes for a resource. An input of the resource has their names.

use std::collections::BTreeSet;
use std::sync::Arc;

use bridge::provider::{View, ViewFailure, ViewListener, ViewOp, ViewStep, Views};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

use super::{CallFailure, FakeCloud, VIEWS};

const VIEW_TYPE: &str = "cloud:index:Part";

/// Returns the names of the views in the inputs of a resource.
fn view_names(inputs: &PropertyMap) -> BTreeSet<String> {
    match inputs.get(VIEWS).map(PropertyValue::without_wrappers) {
        Some(PropertyValue::String(names)) => {
            names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn view(name: &str, inputs: &PropertyMap) -> View {
    // Outputs have no secret marks, like those of a provider that drops them.
    let v = inputs.get("v").map(|value| ("v".to_owned(), value.clone()));
    let outputs = v.iter().map(|(key, value)| (key.clone(), value.without_wrappers()));
    View {
        type_token: VIEW_TYPE.to_owned(),
        parent: None,
        name: name.to_owned(),
        outputs: Arc::new(outputs.collect()),
        inputs: Arc::new(v.into_iter().collect()),
    }
}

/// Publishes the steps from the known views of a resource to those in its inputs; `None`: the resource is deleted with
/// its views.
pub(super) fn publish(cloud: &FakeCloud, urn: &Urn, views: &Views, inputs: Option<&PropertyMap>) {
    let new_names = inputs.map(view_names).unwrap_or_default();
    let empty = PropertyMap::new();
    let inputs = inputs.unwrap_or(&empty);
    let mut steps = Vec::new();
    // Views of other providers are ignored.
    for old in views.recorded.iter().filter(|view| view.type_token == VIEW_TYPE) {
        let new = new_names.contains(&old.name).then(|| view(&old.name, inputs));
        let op = match &new {
            None => ViewOp::Delete,
            Some(new) if new == old => ViewOp::Same,
            Some(_) => ViewOp::Update,
        };
        steps.push((op, Some(old.clone()), new));
    }
    let is_new = |name: &&String| !views.recorded.iter().any(|view| view.name == **name);
    for name in new_names.iter().filter(is_new) {
        steps.push((ViewOp::Create, None, Some(view(name, inputs))));
    }
    let Some(listener) = &views.listener else {
        if !steps.is_empty() {
            cloud.add_violation(format!("the call for {} has no listener for views", urn.name()));
        }
        return;
    };
    let steps = steps.into_iter().map(|(op, old, new)| {
        let name = old.as_ref().or(new.as_ref()).map(|view| view.name.clone()).unwrap_or_default();
        let failure = {
            let failures = &cloud.inner().failures;
            let for_all_views = || failures.get(&format!("view {}", urn.name()));
            failures.get(&format!("view {}.{name}", urn.name())).or_else(for_all_views).copied()
        };
        let failure = failure.map(|failure| ViewFailure {
            message: format!("{name} went wrong"),
            partial: failure == CallFailure::Partial,
            indeterminate: matches!(failure, CallFailure::Lost(_)),
        });
        step(op, old, new, failure)
    });
    listener.publish(steps.collect());
}

/// Replaces every view of a resource; `first`: the new views are created before the old ones are deleted.
pub(super) fn replace(listener: &Arc<dyn ViewListener>, views: &Views, inputs: &PropertyMap, first: bool) {
    for old in &views.recorded {
        let new = Some(view(&old.name, inputs));
        let steps = [
            step(ViewOp::CreateReplacement, first.then(|| old.clone()), new.clone(), None),
            step(ViewOp::Replace, Some(old.clone()), new, None),
            step(ViewOp::DeleteReplaced, Some(old.clone()), None, None),
        ];
        let steps = steps.to_vec();
        listener.publish(if first { steps } else { steps.into_iter().rev().collect() });
    }
}

fn step(op: ViewOp, old: Option<View>, new: Option<View>, failure: Option<ViewFailure>) -> ViewStep {
    ViewStep { op, old, new, failure, replace_keys: Vec::new(), diffs: Vec::new(), detailed_diff: None }
}
