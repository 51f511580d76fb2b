//! Comparison of planned values with those of a run: a value that the plan does not know may be any, all others are equal.

use std::collections::BTreeSet;

use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use super::text::property_text;

/// Returns the differences of property maps, one text each: path, value of the run and planned value. `skipped` names properties
/// that are not compared.
pub(super) fn differences(planned: &PropertyMap, now: &PropertyMap, skipped: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    compare_maps(planned, now, &PropertyPath::default(), skipped, &mut found);
    found
}

/// Returns the outputs of a stack that are other ones than planned, one text each.
pub fn output_differences(planned: &PropertyMap, now: &PropertyMap) -> Vec<String> {
    differences(planned, now, &BTreeSet::new())
}

/// Returns whether a planned value leaves open what it is.
fn is_open(planned: &PropertyValue) -> bool {
    match planned {
        PropertyValue::Unknown(_) => true,
        PropertyValue::Secret(secret) => is_open(secret.expose()),
        PropertyValue::Output(output) => output.value.as_ref().is_none_or(is_open),
        _ => false,
    }
}

fn compare_maps(
    planned: &PropertyMap,
    now: &PropertyMap,
    path: &PropertyPath,
    skipped: &BTreeSet<String>,
    found: &mut Vec<String>,
) {
    let names: BTreeSet<&String> = planned.keys().chain(now.keys()).collect();
    for name in names.into_iter().filter(|name| !skipped.contains(*name)) {
        let path = path.child(Element::Key(name.clone()));
        match (planned.get(name), now.get(name)) {
            (Some(planned), Some(now)) => compare(planned, now, &path, found),
            (Some(planned), None) if is_open(planned) => {}
            (Some(planned), None) => found.push(format!("{path} is missing (planned: {})", property_text(planned))),
            (None, Some(now)) => {
                found.push(format!("{path} is {}, and the plan has no such property", property_text(now)))
            }
            (None, None) => {}
        }
    }
}

fn compare(planned: &PropertyValue, now: &PropertyValue, path: &PropertyPath, found: &mut Vec<String>) {
    if is_open(planned) {
        return;
    }
    match (planned, now) {
        (PropertyValue::Output(output), now) => {
            if let Some(value) = &output.value {
                compare(value, now, path, found);
            }
        }
        (planned, PropertyValue::Output(output)) => {
            compare(planned, output.value.as_ref().unwrap_or(&PropertyValue::UNKNOWN), path, found);
        }
        (PropertyValue::Secret(planned), PropertyValue::Secret(now)) => {
            compare_secrets(planned.expose(), now.expose(), path, found);
        }
        (PropertyValue::Secret(_), _) => found.push(format!("{path} is not secret any more")),
        // The value is better protected than in the plan.
        (planned, PropertyValue::Secret(now)) => compare_secrets(planned, now.expose(), path, found),
        (PropertyValue::Map(planned), PropertyValue::Map(now)) => {
            compare_maps(planned, now, path, &BTreeSet::new(), found);
        }
        (PropertyValue::List(planned), PropertyValue::List(now)) if planned.len() == now.len() => {
            for (at, (planned, now)) in planned.iter().zip(now).enumerate() {
                compare(planned, now, &path.child(Element::Index(at)), found);
            }
        }
        (PropertyValue::Resource(planned), PropertyValue::Resource(now)) if planned.urn == now.urn => {}
        (planned, now) if planned.same_as(now) => {}
        (planned, now) => {
            found.push(format!("{path} is {} (planned: {})", property_text(now), property_text(planned)));
        }
    }
}

/// Compares values without showing them.
fn compare_secrets(planned: &PropertyValue, now: &PropertyValue, path: &PropertyPath, found: &mut Vec<String>) {
    let mut inner = Vec::new();
    compare(planned, now, path, &mut inner);
    if !inner.is_empty() {
        found.push(format!("{path} is another secret"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: impl Into<PropertyValue>) -> PropertyMap {
        [("k".to_owned(), value.into())].into()
    }

    #[test]
    fn planned_values_bind_and_unknown_ones_do_not() {
        let secret = |value: &str| PropertyValue::secret(value.into());
        let list = |items: &[&str]| PropertyValue::List(items.iter().map(|item| (*item).into()).collect());
        let nested = |value: PropertyValue| PropertyValue::Map(map(value));
        let table: Vec<(PropertyMap, PropertyMap, &[&str])> = vec![
            (map("a"), map("a"), &[]),
            (map("a"), map("b"), &["k is \"b\" (planned: \"a\")"]),
            (map(PropertyValue::UNKNOWN), map("b"), &[]),
            (map(PropertyValue::UNKNOWN), PropertyMap::new(), &[]),
            (map(nested(PropertyValue::UNKNOWN)), map(nested("b".into())), &[]),
            (map("a"), map(PropertyValue::UNKNOWN), &["k is not known (planned: \"a\")"]),
            (map("a"), PropertyMap::new(), &["k is missing (planned: \"a\")"]),
            (PropertyMap::new(), map("b"), &["k is \"b\", and the plan has no such property"]),
            (map(nested("a".into())), map(nested("b".into())), &["k.k is \"b\" (planned: \"a\")"]),
            (map(list(&["a", "b"])), map(list(&["a", "c"])), &["k[1] is \"c\" (planned: \"b\")"]),
            (map(list(&["a"])), map(list(&["a", "c"])), &["k is a list of 2 (planned: a list of 1)"]),
            (map(secret("a")), map(secret("a")), &[]),
            (map(secret("a")), map(secret("b")), &["k is another secret"]),
            (map(secret("a")), map("a"), &["k is not secret any more"]),
            (map("a"), map(secret("a")), &[]),
            (map("a"), map(secret("b")), &["k is another secret"]),
            (map(PropertyValue::secret(PropertyValue::UNKNOWN)), map("b"), &[]),
        ];
        for (planned, now, expected) in table {
            assert_eq!(differences(&planned, &now, &BTreeSet::new()), expected, "{planned:?} {now:?}");
            assert_eq!(differences(&planned, &now, &BTreeSet::from(["k".to_owned()])), Vec::<String>::new());
        }
    }
}
