//! Check of all types: validates inputs and adds defaults.
//!
//! Input: the inputs of the program. Output: the normalized inputs, and failures per property. Reasons never quote a
//! value, because it may be a secret.

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::CheckFailure;

use crate::property::{Default, Kind, Property};
use crate::value::{secret_if, unwrap_secrets};

/// Rule for a single value beyond its type. Returns the normalized value, or the reason why it is invalid.
pub(crate) type Rule<'a> = &'a dyn Fn(&str, &PropertyValue) -> Result<PropertyValue, String>;

/// Checks a property map against the table of its properties. Messages call the type or function `owner`.
///
/// Unknown values are accepted: they are checked again when they are known.
pub(crate) fn check<'a>(
    owner: &str,
    properties: impl IntoIterator<Item = &'a Property>,
    news: PropertyMap,
    rule: Rule<'_>,
) -> (PropertyMap, Vec<CheckFailure>) {
    let properties: Vec<&Property> = properties.into_iter().collect();
    let mut inputs = PropertyMap::new();
    let mut failures = Vec::new();
    for (name, value) in news {
        let checked = match properties.iter().find(|property| property.name == name) {
            Some(property) => check_value(property, &value, rule),
            // Names with this prefix are reserved for engines, which expect them in the response.
            None if name.starts_with("__") => Ok(Some(value)),
            None => Err(format!("{owner} has no such property; it has {}", names(&properties))),
        };
        match checked {
            Ok(Some(value)) => drop(inputs.insert(name, value)),
            Ok(None) => (),
            Err(reason) => failures.push(CheckFailure { property: name, reason }),
        }
    }
    for property in properties {
        if inputs.contains_key(property.name) || failures.iter().any(|failure| failure.property == property.name) {
            continue;
        }
        if let Some(default) = property.default {
            inputs.insert(property.name.to_owned(), default.into());
        } else if property.required {
            let reason = format!("{} is required but missing", property.kind.with_article());
            failures.push(CheckFailure { property: property.name.to_owned(), reason });
        }
    }
    (inputs, failures)
}

/// Checks a value. Returns `None` for null, which is treated as absent.
fn check_value(property: &Property, value: &PropertyValue, rule: Rule<'_>) -> Result<Option<PropertyValue>, String> {
    let plain = unwrap_secrets(value);
    let fits = match (plain, property.kind) {
        (PropertyValue::Null, _) => return Ok(None),
        (PropertyValue::Unknown(_), _)
        | (PropertyValue::String(_), Kind::String)
        | (PropertyValue::Bool(_), Kind::Boolean) => true,
        (PropertyValue::Number(number), Kind::Integer) => number.fract() == 0.0,
        _ => false,
    };
    if !fits {
        return Err(format!("{} is expected, not {}", property.kind.with_article(), kind_of(plain)));
    }
    Ok(Some(secret_if(value.is_secret(), rule(property.name, value)?)))
}

/// Returns the kind of a value, in words.
fn kind_of(value: &PropertyValue) -> &'static str {
    match value {
        PropertyValue::Null => "null",
        PropertyValue::Bool(_) => "a boolean",
        PropertyValue::Number(number) if number.fract() == 0.0 => "a number (quote it to make it a string)",
        PropertyValue::Number(_) => "a fraction",
        PropertyValue::String(_) => "a string",
        PropertyValue::Bytes(_) => "a string that is not UTF-8",
        PropertyValue::List(_) => "a list",
        PropertyValue::Map(_) => "a map",
        PropertyValue::Asset(_) => "an asset",
        PropertyValue::Archive(_) => "an archive",
        PropertyValue::Resource(_) => "a resource",
        PropertyValue::Secret(_) | PropertyValue::Output(_) | PropertyValue::Unknown(_) => "something else",
    }
}

/// Lists the names of properties: "a, b and c".
fn names(properties: &[&Property]) -> String {
    let names: Vec<&str> = properties.iter().map(|property| property.name).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}

impl From<Default> for PropertyValue {
    fn from(default: Default) -> Self {
        match default {
            Default::String(text) => text.into(),
            Default::Boolean(value) => value.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPERTIES: [Property; 3] = [
        Property::required("path", Kind::String, ""),
        Property::optional("mode", Kind::String, "").default(Default::String("0644")),
        Property::optional("length", Kind::Integer, ""),
    ];

    fn checked(news: &[(&str, PropertyValue)]) -> (PropertyMap, Vec<(String, String)>) {
        let news = news.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let (inputs, failures) = check("thing", &PROPERTIES, news, &|_, value| Ok(unwrap_secrets(value).clone()));
        (inputs, failures.into_iter().map(|failure| (failure.property, failure.reason)).collect())
    }

    #[test]
    fn default_replaces_an_absent_or_null_input() {
        let (inputs, failures) = checked(&[("path", "a".into()), ("mode", PropertyValue::Null)]);
        assert_eq!(inputs, [("mode".to_owned(), "0644".into()), ("path".to_owned(), "a".into())].into());
        assert_eq!(failures, []);
    }

    #[test]
    fn each_invalid_input_is_reported_once() {
        let (_, failures) = checked(&[("mode", 600.0.into()), ("pth", "a".into()), ("length", 1.5.into())]);
        let failures: Vec<_> = failures.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
        assert_eq!(
            failures,
            [
                ("length", "an integer is expected, not a fraction"),
                ("mode", "a string is expected, not a number (quote it to make it a string)"),
                ("pth", "thing has no such property; it has path, mode and length"),
                ("path", "a string is required but missing"),
            ]
        );
    }

    #[test]
    fn unknowns_and_secrets_are_returned_unchanged() {
        let secret = PropertyValue::secret("s3cr3t".into());
        let (inputs, failures) = checked(&[("path", PropertyValue::UNKNOWN), ("mode", secret.clone())]);
        assert_eq!(failures, []);
        assert_eq!((&inputs["path"], &inputs["mode"]), (&PropertyValue::UNKNOWN, &secret));
    }

    #[test]
    fn reserved_names_of_engines_are_returned_unchanged() {
        let (inputs, failures) = checked(&[("path", "a".into()), ("__defaults", PropertyValue::List(Vec::new()))]);
        assert!(inputs.contains_key("__defaults") && failures.is_empty());
    }
}
