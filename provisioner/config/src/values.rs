//! Conversion of an untyped `config` to property values.
//!
//! Input: a resolved tree, and a lookup for references. Output: values as Pulumi's YAML language host sends them: a
//! null is omitted from a map, kept in a list, and `<nil>` in a text; a text that contains an unknown is unknown, even
//! with a secret in it; any other text that contains a secret is secret. An asset or archive has no hash yet; it is unknown or
//! secret as a whole.

use bridge::message_text::MessageText;
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue};

use crate::asset_function::AssetFunction;
use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Entry, InterpolatedString, Node, Part, Reference, Scalar, Value};
use crate::yaml::scalar::{Ambiguity, Exactness, UntypedScalar, read_untyped};

/// Text of a null that is part of a text, as Go formats it.
const NULL_IN_TEXT: &str = "<nil>";

/// Function that returns the value of a reference, or the diagnostic for an invalid reference.
pub type ReferenceLookup<'l> = dyn FnMut(&Reference) -> Result<PropertyValue, Box<Diagnostic>> + 'l;

/// Converts a tree to a property value.
///
/// # Errors
/// The lookup fails, or a value cannot be joined into a text.
pub fn evaluate(node: &Node, lookup: &mut ReferenceLookup<'_>) -> Result<PropertyValue, Box<Diagnostic>> {
    match &node.value {
        Value::Scalar(scalar) => Ok(match read_untyped(scalar) {
            UntypedScalar::Null => PropertyValue::Null,
            UntypedScalar::Bool(value) => PropertyValue::Bool(value),
            UntypedScalar::Number(value, _) => PropertyValue::Number(value),
            UntypedScalar::Text(_) => PropertyValue::String(scalar.text.clone()),
        }),
        Value::Interpolated(string) => evaluate_text(string, lookup),
        Value::Sequence(items) => {
            items.iter().map(|item| evaluate(item, lookup)).collect::<Result<_, _>>().map(PropertyValue::List)
        }
        Value::Mapping(mapping) => {
            if let Some((function, entry)) = AssetFunction::of(node) {
                return evaluate_asset(function, entry, lookup);
            }
            let mut map = PropertyMap::new();
            for entry in mapping {
                let value = evaluate(&entry.value, lookup)?;
                if value != PropertyValue::Null {
                    map.insert(entry.key.clone(), value);
                }
            }
            Ok(PropertyValue::Map(map))
        }
    }
}

/// Converts a tree without references to a property value. A reference becomes unknown.
pub fn evaluate_constant(node: &Node) -> PropertyValue {
    evaluate(node, &mut |_| Ok(PropertyValue::UNKNOWN)).unwrap_or(PropertyValue::UNKNOWN)
}

/// Converts a text: a single reference keeps the type of its value, otherwise all parts are joined.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_text(
    string: &InterpolatedString,
    lookup: &mut ReferenceLookup<'_>,
) -> Result<PropertyValue, Box<Diagnostic>> {
    if let ([Part::Reference(reference)], false) = (&string.parts[..], string.secret) {
        return lookup(reference);
    }
    if let [Part::Value(value)] = &string.parts[..] {
        let value = value.clone();
        return Ok(if string.secret { PropertyValue::secret(value) } else { value });
    }
    let (mut joined, mut secret, mut unknown) = (String::new(), string.secret, false);
    for part in &string.parts {
        match part {
            Part::Text(text) => joined.push_str(text),
            // A value that is no text stands alone.
            Part::Unknown { .. } | Part::Value(_) => unknown = true,
            Part::Reference(reference) => {
                let mut value = lookup(reference)?;
                while let PropertyValue::Secret(inner) = value {
                    secret = true;
                    value = inner.into_exposed();
                }
                match value {
                    PropertyValue::String(text) => joined.push_str(&text),
                    PropertyValue::Bool(value) => joined.push_str(&value.to_string()),
                    PropertyValue::Number(number) => joined.push_str(&format_json_number(number)),
                    PropertyValue::Null => joined.push_str(NULL_IN_TEXT),
                    PropertyValue::Unknown(_) => unknown = true,
                    other => return Err(cannot_join_error(reference, &other)),
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

/// Returns the asset or archive that a function makes.
fn evaluate_asset(
    function: AssetFunction,
    entry: &Entry,
    lookup: &mut ReferenceLookup<'_>,
) -> Result<PropertyValue, Box<Diagnostic>> {
    let asset = |content| PropertyValue::Asset(Asset { hash: None, content });
    let archive = |content| PropertyValue::Archive(Archive { hash: None, content });
    let mut is_secret = false;
    let value = if function == AssetFunction::AssetArchive {
        let (mut members, mut is_unknown) = (PropertyMap::new(), false);
        for member in entry.value.as_mapping().into_iter().flatten() {
            let value = match evaluate(&member.value, lookup)? {
                PropertyValue::Secret(secret) => {
                    is_secret = true;
                    secret.into_exposed()
                }
                value => value,
            };
            is_unknown |= matches!(value, PropertyValue::Unknown(_));
            members.insert(member.key.clone(), value);
        }
        if is_unknown {
            return Ok(PropertyValue::UNKNOWN);
        }
        archive(ArchiveContent::Assets(members))
    } else {
        let text = match &entry.value.value {
            Value::Scalar(scalar) => scalar.text.clone(),
            _ => {
                let mut value = evaluate(&entry.value, lookup)?;
                while let PropertyValue::Secret(secret) = value {
                    is_secret = true;
                    value = secret.into_exposed();
                }
                match value {
                    PropertyValue::String(text) => text,
                    PropertyValue::Number(number) => format_json_number(number),
                    PropertyValue::Bool(value) => value.to_string(),
                    PropertyValue::Unknown(_) => return Ok(PropertyValue::UNKNOWN),
                    _ => {
                        let summary = MessageText::new(format_args!("the value of `{}` is not a text", entry.key));
                        return Err(Diagnostic::error(Code("asset"), entry.value.span, summary).into());
                    }
                }
            }
        };
        match function {
            AssetFunction::StringAsset => asset(AssetContent::Text(text)),
            AssetFunction::FileAsset => asset(AssetContent::Path(text)),
            AssetFunction::RemoteAsset => asset(AssetContent::Uri(text)),
            AssetFunction::RemoteArchive => archive(ArchiveContent::Uri(text)),
            AssetFunction::FileArchive | AssetFunction::AssetArchive => archive(ArchiveContent::Path(text)),
        }
    };
    Ok(if is_secret { PropertyValue::secret(value) } else { value })
}

fn cannot_join_error(reference: &Reference, value: &PropertyValue) -> Box<Diagnostic> {
    let kind = match value {
        PropertyValue::List(_) => "a list",
        PropertyValue::Map(_) => "a map",
        PropertyValue::Bytes(_) => "bytes",
        PropertyValue::Asset(_) => "an asset",
        PropertyValue::Archive(_) => "an archive",
        PropertyValue::Resource(_) => "a resource",
        _ => "not a text",
    };
    let summary = MessageText::new(format_args!("{reference} is {kind}: it cannot be part of a text"));
    Diagnostic::error(Code("cannot-join"), reference.span, summary)
        .help("use it as the whole value, or reference a property inside it")
        .into()
}

/// Formats a double as Go does in JSON.
pub(crate) fn format_json_number(number: f64) -> String {
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

/// Reading of a plain scalar that its author may not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurprisingReading {
    /// A number that is written in another way than the scalar, such as 1.3 for `1.30`; its text.
    OtherText(String),
    /// An integer beyond 2^53, which loses its last digits.
    Rounded,
    /// A text that YAML 1.1 reads as a number, a boolean or a date.
    Text,
}

impl SurprisingReading {
    /// Returns how a scalar of an untyped `config` is read, if its author may not expect it.
    pub fn of(scalar: &Scalar) -> Option<Self> {
        match read_untyped(scalar) {
            UntypedScalar::Number(_, Exactness::Rounded) => Some(Self::Rounded),
            UntypedScalar::Number(number, Exactness::Exact) => {
                Some(format_json_number(number)).filter(|text| *text != scalar.text).map(Self::OtherText)
            }
            UntypedScalar::Text(Ambiguity::Ambiguous) => Some(Self::Text),
            UntypedScalar::Text(Ambiguity::Clear) | UntypedScalar::Null | UntypedScalar::Bool(_) => None,
        }
    }
}

/// Warns of scalars that YAML 1.1 reads differently, and of numbers that lose digits.
pub(super) fn check(node: &Node, diagnostics: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::Scalar(scalar) => match SurprisingReading::of(scalar) {
            Some(SurprisingReading::Rounded) => diagnostics.push(
                Diagnostic::warning(Code("rounded-number"), node.span, "the number is too large to be exact")
                    .detail("integers beyond 2^53 lose their last digits")
                    .help("put it in quotes if it is an identifier"),
            ),
            Some(SurprisingReading::Text) => diagnostics.push(
                Diagnostic::warning(
                    Code("ambiguous-scalar"),
                    node.span,
                    format_args!("`{}` is read as text", scalar.text),
                )
                .detail("YAML 1.1 reads it as something else")
                .help("put it in quotes"),
            ),
            Some(SurprisingReading::OtherText(_)) | None => {}
        },
        Value::Interpolated(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| check(item, diagnostics)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| check(&entry.value, diagnostics)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_text_are_formatted_as_in_json() {
        let texts = [24.0, -0.5, 1e21, 1.5e-7, 1e20, 0.0].map(format_json_number);
        assert_eq!(texts, ["24", "-0.5", "1e+21", "1.5e-7", "100000000000000000000", "0"]);
    }
}
