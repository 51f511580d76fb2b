//! Hints of a preview at resources that were renamed: a new resource beside one that would be deleted, with equal type and properties.

use std::sync::{Arc, Mutex, PoisonError};

use bridge::message_text::MessageText;
use engine::events::{Event, EventSink, Message, Outcome, Severity, StepInfo, StepOp};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::ResourceState;

/// Property of a provider that lists the properties which it has filled in, such as generated names.
const DEFAULTS: &str = "__defaults";

/// Event sink of the preview of an update. At its end, emits a message for each resource that seems to be renamed.
pub(super) struct RenameHints {
    events: Arc<dyn EventSink>,
    steps: Mutex<Vec<Arc<StepInfo>>>,
}

impl RenameHints {
    pub(super) fn new(events: Arc<dyn EventSink>) -> Self {
        Self { events, steps: Mutex::default() }
    }
}

impl EventSink for RenameHints {
    fn emit(&self, event: Event) {
        match &event {
            Event::StepSucceeded(info, _) if is_candidate(info) => {
                self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(info));
            }
            Event::PhaseEnded(summary) if summary.outcome == Outcome::Succeeded => {
                let steps = std::mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner));
                renames(&steps).for_each(|(created, deleted)| self.events.emit(Event::Message(hint(created, deleted))));
            }
            _ => {}
        }
        self.events.emit(event);
    }
}

/// Returns whether a step creates or deletes a resource of a provider that stays as it is.
fn is_candidate(info: &StepInfo) -> bool {
    let is_resource = |entry: &Option<Arc<ResourceState>>| {
        entry.as_ref().is_some_and(|entry| entry.custom && !entry.is_provider() && !entry.external)
    };
    match info.op {
        StepOp::Create => is_resource(&info.new) && !info.internal,
        StepOp::Delete => is_resource(&info.old) && !info.is_retained() && !info.internal,
        _ => false,
    }
}

/// Returns the pairs of a created and a deleted resource that are alike, and that no third one is like.
fn renames(steps: &[Arc<StepInfo>]) -> impl Iterator<Item = (&StepInfo, &StepInfo)> {
    let of = |op| steps.iter().filter(move |info| info.op == op).map(Arc::as_ref);
    of(StepOp::Create).filter_map(move |created| {
        let mut alike = of(StepOp::Delete).filter(|deleted| are_alike(created, deleted));
        let deleted = alike.next().filter(|_| alike.next().is_none())?;
        let is_only = of(StepOp::Create).filter(|other| are_alike(other, deleted)).count() == 1;
        is_only.then_some((created, deleted))
    })
}

/// Returns whether a created resource has the type and the properties of a deleted one, as far as they are known.
fn are_alike(created: &StepInfo, deleted: &StepInfo) -> bool {
    let (Some(new), Some(old)) = (&created.new, &deleted.old) else { return false };
    if created.urn.qualified_type() != deleted.urn.qualified_type() {
        return false;
    }
    let defaults = [defaults(&new.inputs), defaults(&old.inputs)].concat();
    let is_compared = |key: &&String| !key.starts_with("__") && !defaults.contains(&key.as_str());
    let compared = |inputs: &PropertyMap| -> PropertyMap {
        let members = inputs.iter().filter(|(key, _)| is_compared(key));
        members.map(|(key, value)| (key.clone(), value.without_wrappers())).collect()
    };
    let (old, new) = (compared(&old.inputs), compared(&new.inputs));
    let has_known = new.is_empty() || new.values().any(|value| !value.contains_unknowns());
    has_known && maps_match(&old, &new)
}

fn defaults(inputs: &PropertyMap) -> Vec<&str> {
    let Some(PropertyValue::List(names)) = inputs.get(DEFAULTS) else { return Vec::new() };
    names.iter().filter_map(PropertyValue::as_str).collect()
}

fn maps_match(old: &PropertyMap, new: &PropertyMap) -> bool {
    old.len() == new.len()
        && new.iter().all(|(key, value)| old.get(key).is_some_and(|recorded| matches(recorded, value)))
}

/// Returns whether a recorded value may be a new one, of which parts may be unknown.
fn matches(old: &PropertyValue, new: &PropertyValue) -> bool {
    match (old, new) {
        (_, PropertyValue::Unknown(_)) => true,
        (PropertyValue::Map(old), PropertyValue::Map(new)) => maps_match(old, new),
        (PropertyValue::List(old), PropertyValue::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| matches(old, new))
        }
        (old, new) => old.same_as(new),
    }
}

fn hint(created: &StepInfo, deleted: &StepInfo) -> Message {
    let old = deleted.urn.name();
    let text = MessageText::new(format_args!(
        "it has the type and the properties of {old}, which would be deleted; if it is that resource with a new name, nothing need be \
         created or deleted"
    ));
    let hint = MessageText::new(format_args!("for a rename, give it `options: {{ aliases: [{{ name: {old:?} }}] }}`"));
    let (urn, source) = (Some(created.urn.clone()), created.source);
    Message { urn, source, hint: Some(hint), ..Message::new(Severity::Info, text) }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::urn::Urn;

    use super::*;

    fn step(op: StepOp, type_token: &str, name: &str, inputs: &PropertyMap) -> Arc<StepInfo> {
        let urn = Urn::new("reef", "tank", None, type_token, name);
        let mut entry = ResourceState::new(urn.clone(), true);
        entry.inputs = Arc::new(inputs.clone());
        let entry = Some(Arc::new(entry));
        let (old, new) = if op == StepOp::Delete { (entry, None) } else { (None, entry) };
        Arc::new(StepInfo::new(op, urn, old, new))
    }

    fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    #[test]
    fn pair_of_equal_resources_is_a_rename_unless_there_are_more() {
        let generated = |name: &str| {
            let defaults = PropertyValue::List(vec!["bucket".into()]);
            bag([("acl", "private".into()), ("bucket", name.into()), (DEFAULTS, defaults)])
        };
        let (create, delete) = (StepOp::Create, StepOp::Delete);
        let unknown = bag([("a", "x".into()), ("b", PropertyValue::UNKNOWN)]);
        let known = bag([("a", "x".into()), ("b", "y".into())]);
        let table = [
            (vec![step(create, "t:m:T", "new", &generated("1")), step(delete, "t:m:T", "old", &generated("2"))], 1),
            (vec![step(create, "t:m:T", "new", &unknown), step(delete, "t:m:T", "old", &known)], 1),
            (vec![step(create, "t:m:T", "new", &known), step(delete, "t:m:U", "old", &known)], 0),
            (vec![step(create, "t:m:T", "new", &known), step(delete, "t:m:T", "old", &generated("1"))], 0),
            (
                vec![
                    step(create, "t:m:T", "new", &known),
                    step(create, "t:m:T", "newer", &known),
                    step(delete, "t:m:T", "old", &known),
                ],
                0,
            ),
        ];
        for (steps, expected) in table {
            assert_eq!(renames(&steps).count(), expected, "{steps:?}");
        }
        let [created, deleted] = [(create, "new"), (delete, "old")].map(|(op, name)| step(op, "t:m:T", name, &known));
        let message = hint(&created, &deleted);
        assert_eq!(message.hint.as_deref(), Some("for a rename, give it `options: { aliases: [{ name: \"old\" }] }`"));
    }
}
