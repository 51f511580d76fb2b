//! Tree of the properties that a step changes.
//!
//! Input: a step of the engine. Output: [`PropertyChanges`]. The detailed diff of the provider selects the paths;
//! without one, old and new properties are compared. Internal members (`__…`) are omitted, as are the paths of the
//! option `hideDiffs` if the resource exists before and after the step. A path ends at a secret: the secret changes as a
//! whole, so that none of its members is shown. A path that is deeper than any value is one name, so that the depth of the
//! tree is limited. Text and styles do not belong here.

use std::collections::BTreeMap;

use bridge::provider::DiffKind;
use engine::events::{StepInfo, StepOp};
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::wire::MAX_DEPTH;
use pulumi_proto::property::{PropertyMap, PropertyValue, same_maps};
use state::ResourceState;

use super::value::is_internal;

/// Changed properties of a map or a list, in the order of their names or indices.
pub(crate) type PropertyChanges<'a> = BTreeMap<Segment, PropertyChange<'a>>;

/// Changed property.
pub(crate) enum PropertyChange<'a> {
    /// Map or list of which some members changed.
    Nested(PropertyChanges<'a>),
    /// Value that changed as a whole.
    Value(ValueChange<'a>),
}

/// Element of a property path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    Name(String),
    Index(usize),
}

/// Value before and after a step. Both are `None` if the step has no values for the path, such as for a replacement
/// that the engine requires.
pub(crate) struct ValueChange<'a> {
    pub(crate) old: Option<&'a PropertyValue>,
    pub(crate) new: Option<&'a PropertyValue>,
    /// True if the change is a reason to replace the resource.
    pub(crate) replaces: bool,
}

/// Returns the properties that a step changes; empty if there are none.
pub(crate) fn find_changes(info: &StepInfo) -> PropertyChanges<'_> {
    let mut changes = compare_step(info);
    if let (Some(_), Some(new)) = (&info.old, &info.new) {
        let hidden = new.hide_diff.iter().map(|path| path.parse().unwrap_or_else(|_| one_name(path)));
        hidden.for_each(|path: PropertyPath| remove_hidden(&mut changes, path.elements()));
    }
    changes
}

/// Returns the change between two values; `None` if they are equal. A null equals a missing value.
pub(crate) fn compare_values<'a>(
    old: Option<&'a PropertyValue>,
    new: Option<&'a PropertyValue>,
) -> Option<PropertyChange<'a>> {
    let is_present = |value: &&PropertyValue| **value != PropertyValue::Null;
    match (old.filter(is_present), new.filter(is_present)) {
        (None, None) => None,
        (Some(PropertyValue::Map(old)), Some(PropertyValue::Map(new))) => {
            let same = same_maps(old, new);
            let changes = compare_maps(old, new);
            (!same && !changes.is_empty()).then_some(PropertyChange::Nested(changes))
        }
        (Some(PropertyValue::List(old)), Some(PropertyValue::List(new))) => {
            let length = old.len().max(new.len());
            let items = (0..length)
                .filter_map(|index| Some((Segment::Index(index), compare_values(old.get(index), new.get(index))?)));
            let changes: PropertyChanges<'a> = items.collect();
            (!changes.is_empty()).then_some(PropertyChange::Nested(changes))
        }
        (Some(old), Some(new)) if old.same_as(new) => None,
        (old, new) => Some(PropertyChange::Value(ValueChange { old, new, replaces: false })),
    }
}

/// Returns the changes of a step, those of `hideDiffs` included.
fn compare_step(info: &StepInfo) -> PropertyChanges<'_> {
    let old = info.old.as_deref();
    let new = info.new.as_deref();
    match (info.op, old, new) {
        (StepOp::Same, ..) => PropertyChanges::new(),
        (StepOp::Delete | StepOp::Discard, Some(old), _) => list_values(&old.inputs, Side::Old),
        (StepOp::DeleteReplaced | StepOp::DiscardReplaced | StepOp::RemovePendingReplace, ..) => PropertyChanges::new(),
        (StepOp::Refresh, Some(old), Some(new)) => compare_maps(&old.outputs, &new.outputs),
        (_, Some(old), Some(new)) => compare_states(info, old, new),
        (StepOp::Read, None, Some(new)) => list_values(&new.outputs, Side::New),
        (_, None, Some(new)) => list_values(&new.inputs, Side::New),
        (_, _, None) => PropertyChanges::new(),
    }
}

/// Returns the changes of a resource that exists before and after the step: those of the detailed diff, or else those
/// of its inputs and of the names that the provider or the engine reports as changed.
fn compare_states<'a>(info: &StepInfo, old: &'a ResourceState, new: &'a ResourceState) -> PropertyChanges<'a> {
    let mut changes = PropertyChanges::new();
    for (path, difference) in &info.detailed_diff {
        let old_properties = if difference.input_diff { &old.inputs } else { &old.outputs };
        let segments = locate(path, old_properties, &new.inputs);
        if segments.iter().any(|segment| matches!(segment, Segment::Name(name) if is_internal(name))) {
            continue;
        }
        let (depth, mut change) = find_values(old_properties, &new.inputs, &segments);
        match difference.kind {
            DiffKind::Add | DiffKind::AddReplace => change.old = None,
            DiffKind::Delete | DiffKind::DeleteReplace => change.new = None,
            DiffKind::Update | DiffKind::UpdateReplace => {}
        }
        if !difference.input_diff && is_output(&segments, old, new) {
            change.new = new_output(new, &segments[..depth]);
            if is_same_output(&change) {
                continue;
            }
        }
        change.replaces = difference.kind.is_replace();
        insert_change(&mut changes, &segments[..depth], change);
    }
    if changes.is_empty() {
        changes = compare_maps(&old.inputs, &new.inputs);
        let contains = |changes: &PropertyChanges<'_>, key: &String| changes.contains_key(&Segment::Name(key.clone()));
        for key in info.diffs.iter().chain(&info.replace_keys) {
            // The inputs have no change of this name: the provider may compare with the actual state.
            if !is_internal(key) && !contains(&changes, key) {
                let segments = locate(key, &old.outputs, &new.inputs);
                let (depth, mut change) = find_values(&old.outputs, &new.inputs, &segments);
                if is_output(&segments, old, new) {
                    change.new = new_output(new, &segments[..depth]);
                    if is_same_output(&change) {
                        continue;
                    }
                }
                insert_change(&mut changes, &segments[..depth], change);
            }
        }
    }
    for key in &info.replace_keys {
        mark_replaces(&mut changes, &locate(key, &old.inputs, &new.inputs));
    }
    changes
}

/// Value of an output that the provider has yet to compute.
static COMPUTED: PropertyValue = PropertyValue::UNKNOWN;

/// Returns whether a path is that of an output that the provider computes: the inputs have no such property, neither before nor
/// after the step.
fn is_output(segments: &[Segment], old: &ResourceState, new: &ResourceState) -> bool {
    let Some(Segment::Name(name)) = segments.first() else { return false };
    old.outputs.contains_key(name) && !old.inputs.contains_key(name) && !new.inputs.contains_key(name)
}

/// Returns the value of a computed output after the step. A preview knows it only if the provider has predicted it.
fn new_output<'a>(new: &'a ResourceState, segments: &[Segment]) -> Option<&'a PropertyValue> {
    let (first, rest) = segments.split_first()?;
    let Segment::Name(name) = first else { return None };
    let value = rest.iter().fold(new.outputs.get(name), |value, segment| step_into(value?, segment));
    Some(value.filter(|value| **value != PropertyValue::Null).unwrap_or(&COMPUTED))
}

/// Returns whether an output that might have changed has not.
fn is_same_output(change: &ValueChange<'_>) -> bool {
    matches!((change.old, change.new), (Some(old), Some(new)) if old.same_as(new))
}

/// Side of a step: before or after it.
enum Side {
    Old,
    New,
}

/// Returns each property of a map as added or deleted.
fn list_values<'a>(properties: &'a PropertyMap, side: Side) -> PropertyChanges<'a> {
    let shown = properties.iter().filter(|(key, value)| !is_internal(key) && **value != PropertyValue::Null);
    shown
        .map(|(key, value)| {
            let change = match side {
                Side::Old => ValueChange { old: Some(value), new: None, replaces: false },
                Side::New => ValueChange { old: None, new: Some(value), replaces: false },
            };
            (Segment::Name(key.clone()), PropertyChange::Value(change))
        })
        .collect()
}

/// Returns the changes between two maps, internal members left out.
pub(super) fn compare_maps<'a>(old: &'a PropertyMap, new: &'a PropertyMap) -> PropertyChanges<'a> {
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    keys.filter(|key| !is_internal(key))
        .filter_map(|key| Some((Segment::Name(key.clone()), compare_values(old.get(key), new.get(key))?)))
        .collect()
}

/// Returns the values at a path and the number of segments that lead to them. Stops at a secret, which is shown as a
/// whole.
fn find_values<'a>(old: &'a PropertyMap, new: &'a PropertyMap, segments: &[Segment]) -> (usize, ValueChange<'a>) {
    let Some(Segment::Name(first)) = segments.first() else {
        return (segments.len(), ValueChange { old: None, new: None, replaces: false });
    };
    let (mut old, mut new) = (old.get(first), new.get(first));
    for (depth, segment) in segments.iter().enumerate().skip(1) {
        if [old, new].into_iter().flatten().any(PropertyValue::is_secret) {
            return (depth, ValueChange { old, new, replaces: false });
        }
        old = old.and_then(|value| step_into(value, segment));
        new = new.and_then(|value| step_into(value, segment));
    }
    (segments.len(), ValueChange { old, new, replaces: false })
}

fn step_into<'a>(value: &'a PropertyValue, segment: &Segment) -> Option<&'a PropertyValue> {
    match (value, segment) {
        (PropertyValue::Map(map), Segment::Name(name)) => map.get(name),
        (PropertyValue::List(items), Segment::Index(index)) => items.get(*index),
        _ => None,
    }
}

/// Inserts a change at a path, unless the map has a change that contains it.
fn insert_change<'a>(changes: &mut PropertyChanges<'a>, path: &[Segment], change: ValueChange<'a>) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        let replaces =
            change.replaces || matches!(changes.get(first), Some(PropertyChange::Value(earlier)) if earlier.replaces);
        changes.insert(first.clone(), PropertyChange::Value(ValueChange { replaces, ..change }));
        return;
    }
    match changes.entry(first.clone()).or_insert_with(|| PropertyChange::Nested(PropertyChanges::new())) {
        PropertyChange::Nested(inner) => insert_change(inner, rest, change),
        // The containing value is shown as a whole.
        PropertyChange::Value(whole) => whole.replaces |= change.replaces,
    }
}

/// Marks the change at a path as a reason to replace. Marks all changes below the path if none of them is marked, and
/// the change above it if that is shown as a whole.
fn mark_replaces(changes: &mut PropertyChanges<'_>, path: &[Segment]) {
    fn mark(change: &mut PropertyChange<'_>) {
        match change {
            PropertyChange::Value(value) => value.replaces = true,
            PropertyChange::Nested(inner) => {
                // Marks below come from the detailed diff, which is more exact.
                if !has_mark(inner) {
                    inner.values_mut().for_each(mark);
                }
            }
        }
    }
    fn has_mark(changes: &PropertyChanges<'_>) -> bool {
        changes.values().any(|change| match change {
            PropertyChange::Value(value) => value.replaces,
            PropertyChange::Nested(inner) => has_mark(inner),
        })
    }
    match (path.split_first(), path.first().and_then(|first| changes.get_mut(first))) {
        (Some((_, [])), Some(change)) => mark(change),
        (Some((_, rest)), Some(PropertyChange::Nested(inner))) => mark_replaces(inner, rest),
        (Some(_), Some(change)) => mark(change),
        _ => {}
    }
}

/// Returns the segments of a property path of a provider. If the properties have no value at the path, its keys may lack
/// their quotes (`tags.app.io/name`): the segments are then those of a value that the properties have, if there is one.
pub(super) fn locate(path: &str, old: &PropertyMap, new: &PropertyMap) -> Vec<Segment> {
    let segments = parse_segments(path);
    let (_, found) = find_values(old, new, &segments);
    if found.old.is_some() || found.new.is_some() {
        return segments;
    }
    [new, old].into_iter().find_map(|properties| locate_key(path, properties)).unwrap_or(segments)
}

/// Returns the segments of a path that begins with a key of the map. The longest key that leads to a value counts.
fn locate_key(path: &str, map: &PropertyMap) -> Option<Vec<Segment>> {
    let mut keys: Vec<_> = map.iter().filter(|(key, _)| !key.is_empty() && path.starts_with(key.as_str())).collect();
    keys.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    keys.into_iter().find_map(|(key, value)| {
        let rest = locate_rest(&path[key.len()..], value)?;
        Some([vec![Segment::Name(key.clone())], rest].concat())
    })
}

/// Returns the segments of the rest of a path, which begins with a dot or an index, in a value.
fn locate_rest(rest: &str, value: &PropertyValue) -> Option<Vec<Segment>> {
    match value {
        _ if rest.is_empty() => Some(Vec::new()),
        // A secret is shown as a whole.
        PropertyValue::Secret(_) => Some(Vec::new()),
        PropertyValue::Map(map) => locate_key(rest.strip_prefix('.')?, map),
        PropertyValue::List(items) => {
            let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
            let index = index.parse().ok()?;
            Some([vec![Segment::Index(index)], locate_rest(rest, items.get(index)?)?].concat())
        }
        _ => None,
    }
}

/// Returns the segments of a property path. A path that cannot be parsed, or that is deeper than any value of a provider,
/// is one name: each segment is a level of the tree, and functions that call themselves for each level visit the tree.
fn parse_segments(path: &str) -> Vec<Segment> {
    let parsed = path.parse::<PropertyPath>().ok().filter(|parsed| parsed.elements().len() <= MAX_DEPTH);
    let Some(parsed) = parsed else { return vec![Segment::Name(path.to_owned())] };
    let segment = |element: &Element| match element {
        Element::Key(name) => Segment::Name(name.clone()),
        Element::Index(index) => Segment::Index(*index),
        Element::Wildcard => Segment::Name("*".to_owned()),
    };
    parsed.elements().iter().map(segment).collect()
}

/// Returns the path of a text that is no path, such as a masked name: it is one name.
fn one_name(text: &str) -> PropertyPath {
    PropertyPath::from(vec![Element::Key(text.to_owned())])
}

/// Removes the changes at a path of the option `hideDiffs`.
fn remove_hidden(changes: &mut PropertyChanges<'_>, path: &[Element]) {
    let Some((first, rest)) = path.split_first() else { return };
    changes.retain(|segment, change| {
        let is_on_path = match (first, segment) {
            (Element::Wildcard, _) => true,
            (Element::Key(key), Segment::Name(name)) => key == name,
            (Element::Index(index), Segment::Index(place)) => index == place,
            _ => false,
        };
        match change {
            _ if !is_on_path => true,
            PropertyChange::Nested(members) if !rest.is_empty() => {
                remove_hidden(members, rest);
                !members.is_empty()
            }
            _ => !rest.is_empty(),
        }
    });
}
