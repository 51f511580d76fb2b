//! Property values in printable form.
//!
//! Input: values of the engine. Output: values in which secrets are masked, unless `--show-secrets` was given. Code
//! that prints properties prints only [`DisplayValue`], so that secrets are always masked.

use std::collections::BTreeMap;

use engine::masking::MASK;
use pulumi_proto::property::{Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ReferenceId;

/// Text for an unknown value.
pub(crate) const COMPUTED: &str = "<computed>";
/// Text for an unknown value in JSON.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// Treatment of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Secrets are replaced by a mask.
    Masked,
    /// Secrets are shown, as the user gave `--show-secrets`.
    Shown,
}

/// Value that is safe to print.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DisplayValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// Mask of a secret, or description of a value that is not a string; printed without quotes.
    Placeholder(String),
    Unknown,
    List(Vec<DisplayValue>),
    Map(BTreeMap<String, DisplayValue>),
}

impl DisplayValue {
    /// Converts a value, with secrets masked unless they are to be shown.
    pub(crate) fn of(value: &PropertyValue, secrets: Secrets) -> Self {
        match value {
            PropertyValue::Null => Self::Null,
            PropertyValue::Bool(value) => Self::Bool(*value),
            PropertyValue::Number(value) => Self::Number(*value),
            PropertyValue::String(text) => Self::Text(text.clone()),
            PropertyValue::Bytes(bytes) => Self::Placeholder(format!("<{} bytes>", bytes.len())),
            PropertyValue::List(items) => Self::List(items.iter().map(|item| Self::of(item, secrets)).collect()),
            PropertyValue::Map(map) => Self::Map(Self::of_map(map, secrets)),
            PropertyValue::Asset(asset) => Self::Placeholder(describe_asset(asset)),
            PropertyValue::Archive(archive) => Self::Placeholder(describe_archive(archive)),
            PropertyValue::Resource(reference) => Self::Placeholder(match &reference.id {
                Some(ReferenceId::Known(id)) => format!("<resource {} {id}>", reference.urn.name()),
                Some(ReferenceId::Unknown) | None => format!("<resource {}>", reference.urn.name()),
            }),
            PropertyValue::Secret(secret) => Self::of_secret(secret.expose(), secrets),
            PropertyValue::Output(output) => match &output.value {
                None => Self::Unknown,
                Some(value) if output.secret => Self::of_secret(value, secrets),
                Some(value) => Self::of(value, secrets),
            },
            PropertyValue::Unknown(_) => Self::Unknown,
        }
    }

    /// Converts the members of a map, without the internal ones (`__…`).
    pub(crate) fn of_map(map: &PropertyMap, secrets: Secrets) -> BTreeMap<String, DisplayValue> {
        let shown = map.iter().filter(|(key, _)| !is_internal(key));
        shown.map(|(key, value)| (key.clone(), Self::of(value, secrets))).collect()
    }

    fn of_secret(value: &PropertyValue, secrets: Secrets) -> Self {
        match secrets {
            Secrets::Masked => Self::Placeholder(MASK.to_owned()),
            Secrets::Shown => Self::of(value, secrets),
        }
    }

    /// Returns the value on one line, if it is a scalar, empty, or a short list of scalars.
    pub(crate) fn inline(&self) -> Option<String> {
        match self {
            Self::Text(text) if text.contains('\n') => None,
            Self::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(Self::scalar).collect();
                items.map(|items| format!("[{}]", items.join(", "))).filter(|text| text.len() <= 60)
            }
            Self::Map(map) => map.is_empty().then(|| "{}".to_owned()),
            scalar => scalar.scalar(),
        }
    }

    fn scalar(&self) -> Option<String> {
        match self {
            Self::Null => Some("null".to_owned()),
            Self::Bool(value) => Some(value.to_string()),
            // `to_string` returns the shortest form that parses to the same number: 80, not 80.0.
            Self::Number(value) => Some(value.to_string()),
            Self::Text(text) => Some(quoted(text)),
            Self::Placeholder(text) => Some(text.clone()),
            Self::Unknown => Some(COMPUTED.to_owned()),
            Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the value as JSON. Masks, descriptions and unknowns become strings.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(value) => number_to_json(*value),
            Self::Text(text) | Self::Placeholder(text) => text.as_str().into(),
            Self::Unknown => UNKNOWN.into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(map) => map_to_json(map),
        }
    }
}

/// Converts a map like [`DisplayValue::to_json`].
pub(crate) fn map_to_json(map: &BTreeMap<String, DisplayValue>) -> serde_json::Value {
    serde_json::Value::Object(map.iter().map(|(key, value)| (key.clone(), value.to_json())).collect())
}

/// Returns whether a member is internal (`__defaults`, `__internal`).
pub(crate) fn is_internal(key: &str) -> bool {
    key.starts_with("__")
}

/// Quotes a text as JSON, so that outer spaces and inner quotes are visible.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn number_to_json(value: f64) -> serde_json::Value {
    // Beyond 2^53 a double no longer represents every whole number.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        return (value as i64).into();
    }
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), serde_json::Value::Number)
}

fn describe_asset(asset: &Asset) -> String {
    let hash = asset.hash.as_deref();
    match &asset.content {
        AssetContent::Elided => with_hash("<asset", hash),
        AssetContent::Text(text) => with_hash(&format!("<asset of {} characters", text.chars().count()), hash),
        AssetContent::Path(place) | AssetContent::Uri(place) => with_hash(&format!("<asset {place}"), hash),
    }
}

fn describe_archive(archive: &Archive) -> String {
    let hash = archive.hash.as_deref();
    match &archive.content {
        ArchiveContent::Elided => with_hash("<archive", hash),
        ArchiveContent::Assets(assets) => with_hash(&format!("<archive of {} files", assets.len()), hash),
        ArchiveContent::Path(place) | ArchiveContent::Uri(place) => with_hash(&format!("<archive {place}"), hash),
    }
}

/// Adds the first eight digits of the hash, which suffice to see that two assets differ.
fn with_hash(description: &str, hash: Option<&str>) -> String {
    match hash.and_then(|hash| hash.get(..8)) {
        Some(digits) => format!("{description}, {digits}>"),
        None => format!("{description}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bag() -> PropertyMap {
        PropertyMap::from([
            ("__defaults".to_owned(), PropertyValue::List(vec![])),
            ("count".to_owned(), 3.0.into()),
            ("later".to_owned(), PropertyValue::UNKNOWN),
            ("list".to_owned(), PropertyValue::List(vec![PropertyValue::secret("hush".into()), "b".into()])),
            ("map".to_owned(), PropertyValue::Map([("__x".to_owned(), 1.0.into())].into())),
            ("password".to_owned(), PropertyValue::secret(PropertyValue::List(vec!["hush".into()]))),
        ])
    }

    /// Shows: events.md#events-as-json-lines "A secret value is written as the text `[secret]`"
    /// Shows: events.md#events-as-json-lines "Members that only the engine uses (names that begin with `__`) are left
    ///   out."
    #[test]
    fn secrets_are_masked_at_every_depth_and_internal_members_omitted() {
        let json = map_to_json(&DisplayValue::of_map(&bag(), Secrets::Masked)).to_string();
        insta::assert_snapshot!(json, @r#"{"count":3,"later":"[unknown]","list":["[secret]","b"],"map":{},"password":"[secret]"}"#);
    }

    /// Shows: events.md#events-as-json-lines "A secret value is written as the text `[secret]` unless `--show-secrets`
    ///   was given"
    #[test]
    fn secrets_are_shown_on_request() {
        let json = map_to_json(&DisplayValue::of_map(&bag(), Secrets::Shown)).to_string();
        insta::assert_snapshot!(json, @r#"{"count":3,"later":"[unknown]","list":["hush","b"],"map":{},"password":["hush"]}"#);
    }
}
