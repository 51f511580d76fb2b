//! Structs as they came to bags of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_types::value::Kind;
use prost_types::{Struct, Value};

use super::{Attempt, DecodeOptions, Fault, Unknowns, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ReferenceId, ResourceReference,
    SECRET_SIGNATURE, SIGNATURE_KEY, UnknownKind,
};
use crate::urn::Urn;

/// Decodes a bag.
///
/// # Errors
/// Values without a kind, malformed special objects, nesting beyond [`super::MAX_DEPTH`], and what the options refuse.
pub fn decode(bag: Struct, options: &DecodeOptions) -> Result<PropertyMap, WireError> {
    Ok(members(bag, options, 0)?)
}

/// Decodes a single value; `None` is an unknown that the options drop.
///
/// # Errors
/// As [`decode`].
pub fn decode_value(value: Value, options: &DecodeOptions) -> Result<Option<PropertyValue>, WireError> {
    Ok(any(value, options, 0)?)
}

fn members(bag: Struct, options: &DecodeOptions, depth: usize) -> Attempt<PropertyMap> {
    let member = |(key, value): (String, Value)| match any(value, options, depth) {
        Ok(value) => value.map(|value| Ok((key, value))),
        Err(fault) => Some(Err(fault.inside(Element::Key(key)))),
    };
    bag.fields.into_iter().filter_map(member).collect()
}

fn any(value: Value, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let depth = descend(depth)?;
    Ok(Some(match value.kind.ok_or_else(|| Fault::new(WireProblem::NoKind))? {
        Kind::NullValue(_) => PropertyValue::Null,
        Kind::BoolValue(value) => PropertyValue::Bool(value),
        Kind::NumberValue(value) => PropertyValue::Number(value),
        Kind::StringValue(text) => match UnknownKind::from_sentinel(&text) {
            None => PropertyValue::String(text),
            Some(kind) => return options.unknowns.treat(PropertyValue::Unknown(kind)),
        },
        Kind::ListValue(list) => {
            let item = |(index, item)| match any(item, options, depth) {
                Ok(item) => Ok(item.unwrap_or(PropertyValue::Null)),
                Err(fault) => Err(fault.inside(Element::Index(index))),
            };
            PropertyValue::List(list.values.into_iter().enumerate().map(item).collect::<Attempt<_>>()?)
        }
        Kind::StructValue(mut object) => match object.fields.remove(SIGNATURE_KEY) {
            None => PropertyValue::Map(members(object, options, depth)?),
            Some(signature) => return special(&signature, object, options, depth),
        },
    }))
}

/// An object that is not a map. Fields that nobody knows are passed over.
fn special(signature: &Value, object: Struct, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let Some(Kind::StringValue(signature)) = &signature.kind else {
        return Err(Fault::new(WireProblem::UnrecognizedSignature("not a text".to_owned())));
    };
    let fields = |what| Fields { object, what };
    match signature.as_str() {
        SECRET_SIGNATURE => secret(fields("secret"), options, depth),
        ASSET_SIGNATURE => asset(fields("asset"), options),
        ARCHIVE_SIGNATURE => archive(fields("archive"), options, depth),
        RESOURCE_SIGNATURE => reference(fields("resource reference"), options),
        OUTPUT_SIGNATURE => output(fields("output value"), options, depth),
        BYTES_SIGNATURE => bytes(fields("byte string")).map(Some),
        other => Err(Fault::new(WireProblem::UnrecognizedSignature(other.to_owned()))),
    }
}

/// The fields of a special object.
struct Fields {
    object: Struct,
    what: &'static str,
}

impl Fields {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.object.fields.remove(key)
    }

    /// A text; empty where it is absent.
    fn text(&mut self, key: &str, fault: &'static str) -> Attempt<String> {
        match self.take(key).map(|value| value.kind) {
            None => Ok(String::new()),
            Some(Some(Kind::StringValue(text))) => Ok(text),
            Some(_) => Err(self.malformed(fault)),
        }
    }

    fn malformed(&self, fault: &'static str) -> Box<Fault> {
        Fault::new(WireProblem::Malformed { what: self.what, fault })
    }
}

fn secret(mut fields: Fields, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let inside = fields.take("value").ok_or_else(|| fields.malformed("no value"))?;
    let value = any(inside, options, depth)?;
    Ok(if options.keep_secrets { value.map(PropertyValue::secret_verbatim) } else { value })
}

fn asset(mut fields: Fields, options: &DecodeOptions) -> Attempt<Option<PropertyValue>> {
    let hash = fields.text("hash", "the hash is no text")?;
    let path = fields.text("path", "the path is no text")?;
    let uri = fields.text("uri", "the URI is no text")?;
    let text = fields.text("text", "the text is no text")?;
    if [&path, &uri, &text].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.treat(PropertyValue::Unknown(UnknownKind::Asset));
    }
    let content = if !path.is_empty() {
        AssetContent::Path(path)
    } else if !uri.is_empty() {
        AssetContent::Uri(uri)
    } else if !text.is_empty() || hash.is_empty() {
        AssetContent::Text(text)
    } else {
        AssetContent::Elided
    };
    Ok(Some(PropertyValue::Asset(Asset { hash, content })))
}

fn archive(mut fields: Fields, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let hash = fields.text("hash", "the hash is no text")?;
    let path = fields.text("path", "the path is no text")?;
    let uri = fields.text("uri", "the URI is no text")?;
    if [&path, &uri].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.treat(PropertyValue::Unknown(UnknownKind::Archive));
    }
    let assets = match fields.take("assets").map(|assets| assets.kind) {
        None => None,
        Some(Some(Kind::StructValue(assets))) => Some(assets),
        Some(_) => return Err(fields.malformed("the assets are no map")),
    };
    let content = if !path.is_empty() {
        ArchiveContent::Path(path)
    } else if !uri.is_empty() {
        ArchiveContent::Uri(uri)
    } else if let Some(assets) = assets {
        // Dropping a member would make another archive of it: one unknown member makes the whole unknown.
        let assets = members(assets, &DecodeOptions { unknowns: Unknowns::Keep, ..*options }, depth)?;
        for (name, member) in &assets {
            match member {
                PropertyValue::Asset(_) | PropertyValue::Archive(_) => (),
                PropertyValue::Unknown(_) => {
                    let unknown = options.unknowns.treat(PropertyValue::Unknown(UnknownKind::Archive));
                    return unknown.map_err(|fault| fault.inside(Element::Key(name.clone())));
                }
                _ => {
                    let fault = fields.malformed("a member is neither asset nor archive");
                    return Err(fault.inside(Element::Key(name.clone())));
                }
            }
        }
        ArchiveContent::Assets(assets)
    } else if hash.is_empty() {
        ArchiveContent::Assets(PropertyMap::new())
    } else {
        ArchiveContent::Elided
    };
    Ok(Some(PropertyValue::Archive(Archive { hash, content })))
}

fn reference(mut fields: Fields, options: &DecodeOptions) -> Attempt<Option<PropertyValue>> {
    let urn = fields.text("urn", "the URN is no text")?;
    let urn: Urn = urn.parse().map_err(|_| fields.malformed("the URN is none"))?;
    let package_version = fields.text("packageVersion", "the package version is no text")?;
    let id = match fields.take("id") {
        None => None,
        Some(id) => reference_id(id, &fields, options)?,
    };
    if options.keep_resources {
        return Ok(Some(PropertyValue::Resource(ResourceReference { urn, id, package_version })));
    }
    match id {
        Some(ReferenceId::Known(id)) => Ok(Some(PropertyValue::String(id))),
        Some(ReferenceId::Unknown) => options.unknowns.treat(PropertyValue::UNKNOWN),
        None => Ok(Some(PropertyValue::String(urn.as_str().to_owned()))),
    }
}

/// Reads an id: a text, or an output value around one. Null is no id; an empty text is an id not known yet, as the
/// engine writes it even where unknown values are refused.
fn reference_id(id: Value, fields: &Fields, options: &DecodeOptions) -> Attempt<Option<ReferenceId>> {
    let id = match id.kind {
        Some(Kind::StructValue(mut output)) if has_signature(&output, OUTPUT_SIGNATURE) => {
            match output.fields.remove("value") {
                Some(value) => value.kind,
                None => Some(Kind::StringValue(UnknownKind::String.sentinel().to_owned())),
            }
        }
        id => id,
    };
    match id {
        Some(Kind::NullValue(_)) => Ok(None),
        Some(Kind::StringValue(id)) if id.is_empty() => Ok(Some(ReferenceId::Unknown)),
        Some(Kind::StringValue(id)) if UnknownKind::from_sentinel(&id).is_some() => match options.unknowns {
            Unknowns::Reject => Err(Fault::new(WireProblem::Unknown)),
            // Without its id the reference would be one to a component.
            Unknowns::Keep | Unknowns::Drop => Ok(Some(ReferenceId::Unknown)),
        },
        Some(Kind::StringValue(id)) => Ok(Some(ReferenceId::Known(id))),
        _ => Err(fields.malformed("the id is no text")),
    }
}

fn has_signature(object: &Struct, signature: &str) -> bool {
    let value = object.fields.get(SIGNATURE_KEY);
    matches!(value, Some(Value { kind: Some(Kind::StringValue(value)) }) if value == signature)
}

fn output(mut fields: Fields, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let secret = match fields.take("secret").map(|secret| secret.kind) {
        None => false,
        Some(Some(Kind::BoolValue(secret))) => secret,
        Some(_) => return Err(fields.malformed("whether it is secret is no bool")),
    };
    let value = fields.take("value");
    let known = value.is_some();
    let value = match value {
        Some(value) => any(value, options, depth)?,
        None => options.unknowns.treat(PropertyValue::UNKNOWN)?,
    };
    let Some(value) = value else { return Ok(None) };
    if !options.keep_outputs {
        return Ok(Some(if secret && options.keep_secrets { PropertyValue::secret(value) } else { value }));
    }
    let dependencies = dependencies(&mut fields)?;
    let value = known.then_some(value);
    Ok(Some(PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies }))))
}

fn dependencies(fields: &mut Fields) -> Attempt<Vec<Urn>> {
    let Some(list) = fields.take("dependencies") else { return Ok(Vec::new()) };
    let Some(Kind::ListValue(list)) = list.kind else { return Err(fields.malformed("the dependencies are no list")) };
    let urn = |dependency: Value| match dependency.kind {
        Some(Kind::StringValue(urn)) => urn.parse().map_err(|_| fields.malformed("a dependency is no URN")),
        _ => Err(fields.malformed("a dependency is no text")),
    };
    list.values.into_iter().map(urn).collect()
}

fn bytes(mut fields: Fields) -> Attempt<PropertyValue> {
    let value = fields.take("value").ok_or_else(|| fields.malformed("no value"))?;
    let Some(Kind::StringValue(encoded)) = value.kind else { return Err(fields.malformed("the value is no text")) };
    let bytes = STANDARD.decode(encoded).map_err(|_| fields.malformed("the value is no base64"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => PropertyValue::String(text),
        Err(bytes) => PropertyValue::Bytes(bytes.into_bytes()),
    })
}
