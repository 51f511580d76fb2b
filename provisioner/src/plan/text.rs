//! Short texts of property values for messages. Secrets are not shown.

use pulumi_proto::property::PropertyValue;

/// Maximum number of characters that a message shows of a text.
const MAX_CHARACTERS: usize = 60;

/// Returns the text of a value.
pub fn property_text(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Null => "null".to_owned(),
        PropertyValue::Bool(value) => value.to_string(),
        PropertyValue::Number(value) => value.to_string(),
        PropertyValue::String(value) if value.chars().count() > MAX_CHARACTERS => {
            format!("{:?}…", value.chars().take(MAX_CHARACTERS).collect::<String>())
        }
        PropertyValue::String(value) => format!("{value:?}"),
        PropertyValue::Bytes(bytes) => format!("{} bytes", bytes.len()),
        PropertyValue::List(items) => format!("a list of {}", items.len()),
        PropertyValue::Map(members) => format!("a mapping of {}", members.len()),
        PropertyValue::Asset(_) => "an asset".to_owned(),
        PropertyValue::Archive(_) => "an archive".to_owned(),
        PropertyValue::Resource(reference) => reference.urn.to_string(),
        PropertyValue::Secret(_) => "[secret]".to_owned(),
        PropertyValue::Output(output) => match &output.value {
            Some(_) if output.secret => "[secret]".to_owned(),
            Some(value) => property_text(value),
            None => "not known".to_owned(),
        },
        PropertyValue::Unknown(_) => "not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_secrets_are_not_shown() {
        let table = [
            (PropertyValue::from("a\nb"), "\"a\\nb\"".to_owned()),
            ("x".repeat(61).as_str().into(), format!("\"{}\"…", "x".repeat(60))),
            (PropertyValue::secret("s".into()), "[secret]".to_owned()),
            (PropertyValue::UNKNOWN, "not known".to_owned()),
        ];
        for (value, expected) in table {
            assert_eq!(property_text(&value), expected);
        }
    }
}
