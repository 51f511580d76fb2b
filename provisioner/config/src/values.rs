//! A free `config` to property values.
//!
//! Enters: a resolved tree, and what references stand for. Leaves: values as Pulumi's own YAML host sends them: a null
//! is left out of a map and stays in a list, unknowns swallow what they are joined with, secrets stay secret.

use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Node, Part, Reference, Template, Value};
use crate::yaml::scalar::{Ambiguity, Exactness, Free, free};

/// What a reference stands for; an error says why it stands for nothing.
pub type Lookup<'l> = dyn FnMut(&Reference) -> Result<PropertyValue, Box<Diagnostic>> + 'l;

/// The value of a tree.
///
/// # Errors
/// What the lookup refused, or what cannot be joined into a text.
pub fn value(node: &Node, lookup: &mut Lookup<'_>) -> Result<PropertyValue, Box<Diagnostic>> {
    match &node.value {
        Value::Scalar(scalar) => Ok(match free(scalar) {
            Free::Null => PropertyValue::Null,
            Free::Bool(value) => PropertyValue::Bool(value),
            Free::Number(value, _) => PropertyValue::Number(value),
            Free::Text(_) => PropertyValue::String(scalar.text.clone()),
        }),
        Value::Template(template) => text(template, lookup),
        Value::Sequence(items) => {
            items.iter().map(|item| value(item, lookup)).collect::<Result<_, _>>().map(PropertyValue::List)
        }
        Value::Mapping(mapping) => {
            let mut map = PropertyMap::new();
            for entry in mapping {
                let value = value(&entry.value, lookup)?;
                if value != PropertyValue::Null {
                    map.insert(entry.key.clone(), value);
                }
            }
            Ok(PropertyValue::Map(map))
        }
    }
}

/// The value of a tree without references; a reference would be unknown.
pub fn plain(node: &Node) -> PropertyValue {
    value(node, &mut |_| Ok(PropertyValue::UNKNOWN)).unwrap_or(PropertyValue::UNKNOWN)
}

/// The value of a text: that of its only reference with its type, or everything joined.
///
/// # Errors
/// As [`value`].
pub fn text(template: &Template, lookup: &mut Lookup<'_>) -> Result<PropertyValue, Box<Diagnostic>> {
    if let ([Part::Reference(reference)], false) = (&template.parts[..], template.secret) {
        return lookup(reference);
    }
    let (mut joined, mut secret, mut unknown) = (String::new(), template.secret, false);
    for part in &template.parts {
        match part {
            Part::Text(text) => joined.push_str(text),
            Part::Reference(reference) => {
                let mut value = lookup(reference)?;
                while let PropertyValue::Secret(inner) = value {
                    secret = true;
                    value = inner.into_exposed();
                }
                match value {
                    PropertyValue::String(text) => joined.push_str(&text),
                    PropertyValue::Bool(value) => joined.push_str(&value.to_string()),
                    PropertyValue::Number(number) => joined.push_str(&json_number(number)),
                    PropertyValue::Unknown(_) => unknown = true,
                    other => return Err(cannot_join(reference, &other)),
                }
            }
        }
    }
    Ok(match (unknown, secret) {
        (true, _) => PropertyValue::UNKNOWN,
        (false, true) => PropertyValue::secret(joined.into()),
        (false, false) => joined.into(),
    })
}

fn cannot_join(reference: &Reference, value: &PropertyValue) -> Box<Diagnostic> {
    let kind = match value {
        PropertyValue::Null => "null",
        PropertyValue::List(_) => "a list",
        PropertyValue::Map(_) => "a map",
        _ => "no text",
    };
    Diagnostic::error(
        Code("cannot-join"),
        reference.span,
        format!("{reference} is {kind}: it cannot be part of a text"),
    )
    .help("let it stand alone, or name something inside of it")
    .into()
}

/// A double as Go writes it in JSON.
fn json_number(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return match text.split_once("e-") {
            Some(_) => text,
            None => text.replacen('e', "e+", 1),
        };
    }
    number.to_string()
}

/// Warns of scalars that others read otherwise, and of numbers that lose digits.
pub(super) fn check(node: &Node, diagnostics: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::Scalar(scalar) => match free(scalar) {
            Free::Number(_, Exactness::Rounded) => diagnostics.push(
                Diagnostic::warning(Code("rounded-number"), node.span, "the number is too large to be exact")
                    .detail("integers beyond 2^53 lose their last digits")
                    .help("put it in quotes if it is an identifier"),
            ),
            Free::Text(Ambiguity::Ambiguous) => diagnostics.push(
                Diagnostic::warning(Code("ambiguous-scalar"), node.span, format!("`{}` is read as text", scalar.text))
                    .detail("YAML 1.1 reads it as something else")
                    .help("put it in quotes"),
            ),
            _ => {}
        },
        Value::Template(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| check(item, diagnostics)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| check(&entry.value, diagnostics)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_text_look_like_those_of_json() {
        let texts = [24.0, -0.5, 1e21, 1.5e-7, 1e20, 0.0].map(json_number);
        assert_eq!(texts, ["24", "-0.5", "1e+21", "1.5e-7", "100000000000000000000", "0"]);
    }
}
