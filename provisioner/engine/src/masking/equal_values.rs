//! Values that equal a secret: a provider may return a secret at a path where nothing says that it is one.

use pulumi_proto::property::{PropertyMap, PropertyValue};

/// Returns the values with each text that is a secret by `is_secret` marked as secret; `None` if there is none.
pub(super) fn marked(values: &PropertyMap, is_secret: &impl Fn(&str) -> bool) -> Option<PropertyMap> {
    if !values.values().any(|value| has_secret_text(value, is_secret)) {
        return None;
    }
    Some(values.iter().map(|(key, value)| (key.clone(), mark(value, is_secret))).collect())
}

fn has_secret_text(value: &PropertyValue, is_secret: &impl Fn(&str) -> bool) -> bool {
    match value {
        PropertyValue::String(text) => is_secret(text),
        PropertyValue::List(items) => items.iter().any(|item| has_secret_text(item, is_secret)),
        PropertyValue::Map(members) => members.values().any(|member| has_secret_text(member, is_secret)),
        _ => false,
    }
}

fn mark(value: &PropertyValue, is_secret: &impl Fn(&str) -> bool) -> PropertyValue {
    match value {
        PropertyValue::String(text) if is_secret(text) => PropertyValue::secret(value.clone()),
        PropertyValue::List(items) => PropertyValue::List(items.iter().map(|item| mark(item, is_secret)).collect()),
        PropertyValue::Map(members) => {
            PropertyValue::Map(members.iter().map(|(key, member)| (key.clone(), mark(member, is_secret))).collect())
        }
        other => other.clone(),
    }
}
