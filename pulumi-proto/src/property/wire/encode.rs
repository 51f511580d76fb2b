//! Bags of ours to structs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use super::{Attempt, EncodeOptions, Fault, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ReferenceId, ResourceReference,
    SECRET_SIGNATURE, SIGNATURE_KEY, UnknownKind,
};
use crate::urn::Urn;

/// Encodes a bag.
///
/// # Errors
/// What the options refuse, and nesting beyond [`super::MAX_DEPTH`].
pub fn encode(bag: &PropertyMap, options: &EncodeOptions) -> Result<Struct, WireError> {
    Ok(members(bag, options, 0)?)
}

/// Encodes a single value; `None` is an unknown that the options drop.
///
/// # Errors
/// As [`encode`].
pub fn encode_value(value: &PropertyValue, options: &EncodeOptions) -> Result<Option<Value>, WireError> {
    Ok(any(value, options, 0)?)
}

fn members(map: &PropertyMap, options: &EncodeOptions, depth: usize) -> Attempt<Struct> {
    let member = |(key, value): (&String, &PropertyValue)| match any(value, options, depth) {
        Ok(value) => value.map(|value| Ok((key.clone(), value))),
        Err(fault) => Some(Err(fault.inside(Element::Key(key.clone())))),
    };
    Ok(Struct { fields: map.iter().filter_map(member).collect::<Attempt<_>>()? })
}

fn items(list: &[PropertyValue], options: &EncodeOptions, depth: usize) -> Attempt<ListValue> {
    let item = |(index, value)| match any(value, options, depth) {
        Ok(value) => value.map(Ok),
        Err(fault) => Some(Err(fault.inside(Element::Index(index)))),
    };
    Ok(ListValue { values: list.iter().enumerate().filter_map(item).collect::<Attempt<_>>()? })
}

fn any(value: &PropertyValue, options: &EncodeOptions, depth: usize) -> Attempt<Option<Value>> {
    let depth = descend(depth)?;
    let kind = match value {
        PropertyValue::Null => Kind::NullValue(0),
        PropertyValue::Bool(value) => Kind::BoolValue(*value),
        PropertyValue::Number(value) => Kind::NumberValue(*value),
        PropertyValue::String(text) => Kind::StringValue(text.clone()),
        PropertyValue::Bytes(bytes) => return bytes_value(bytes, options).map(Some),
        PropertyValue::List(list) => Kind::ListValue(items(list, options, depth)?),
        PropertyValue::Map(map) => Kind::StructValue(members(map, options, depth)?),
        PropertyValue::Asset(asset) => return Ok(Some(asset_value(asset, options))),
        PropertyValue::Archive(archive) => return archive_value(archive, options, depth).map(Some),
        PropertyValue::Resource(reference) => return reference_value(reference, options),
        PropertyValue::Secret(secret) => return secret_value(secret.expose(), options, depth),
        PropertyValue::Output(output) => return output_value(output, options, depth),
        PropertyValue::Unknown(kind) => return unknown_value(*kind, options),
    };
    Ok(Some(Value { kind: Some(kind) }))
}

fn text(text: impl Into<String>) -> Value {
    Value { kind: Some(Kind::StringValue(text.into())) }
}

/// An object that is not a map.
fn tagged<const N: usize>(signature: &str, fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let fields: BTreeMap<_, _> = fields.chain([(SIGNATURE_KEY.to_owned(), text(signature))]).collect();
    Value { kind: Some(Kind::StructValue(Struct { fields })) }
}

/// A text field that is left out where it is empty.
fn unless_empty(value: &str) -> Option<Value> {
    (!value.is_empty()).then(|| text(value))
}

fn unknown_value(kind: UnknownKind, options: &EncodeOptions) -> Attempt<Option<Value>> {
    options.unknowns.treat(text(kind.sentinel()))
}

fn bytes_value(bytes: &[u8], options: &EncodeOptions) -> Attempt<Value> {
    match std::str::from_utf8(bytes) {
        Ok(valid) => Ok(text(valid)),
        Err(_) if options.keep_bytes => Ok(tagged(BYTES_SIGNATURE, [("value", Some(text(STANDARD.encode(bytes))))])),
        Err(_) => Err(Fault::new(WireProblem::Bytes)),
    }
}

fn secret_value(inside: &PropertyValue, options: &EncodeOptions, depth: usize) -> Attempt<Option<Value>> {
    let value = any(inside, options, depth)?;
    if !options.keep_secrets {
        return Ok(value);
    }
    Ok(value.map(|value| tagged(SECRET_SIGNATURE, [("value", Some(value))])))
}

fn asset_value(asset: &Asset, options: &EncodeOptions) -> Value {
    let content = match &asset.content {
        _ if options.elide_assets => None,
        AssetContent::Elided => None,
        AssetContent::Text(content) => Some(("text", content)),
        AssetContent::Path(content) => Some(("path", content)),
        AssetContent::Uri(content) => Some(("uri", content)),
    };
    let (key, content) = content.map_or(("text", None), |(key, content)| (key, unless_empty(content)));
    tagged(ASSET_SIGNATURE, [("hash", unless_empty(&asset.hash)), (key, content)])
}

fn archive_value(archive: &Archive, options: &EncodeOptions, depth: usize) -> Attempt<Value> {
    let (key, content) = match &archive.content {
        _ if options.elide_assets => ("assets", None),
        ArchiveContent::Elided => ("assets", None),
        ArchiveContent::Assets(assets) => {
            let assets = members(assets, options, depth)?;
            ("assets", Some(Value { kind: Some(Kind::StructValue(assets)) }))
        }
        ArchiveContent::Path(path) => ("path", unless_empty(path)),
        ArchiveContent::Uri(uri) => ("uri", unless_empty(uri)),
    };
    Ok(tagged(ARCHIVE_SIGNATURE, [("hash", unless_empty(&archive.hash)), (key, content)]))
}

fn reference_value(reference: &ResourceReference, options: &EncodeOptions) -> Attempt<Option<Value>> {
    if !options.keep_resources {
        return match &reference.id {
            Some(ReferenceId::Known(id)) => Ok(Some(text(id))),
            Some(ReferenceId::Unknown) => unknown_value(UnknownKind::String, options),
            None => Ok(Some(text(reference.urn.as_str()))),
        };
    }
    let id = reference.id.as_ref().map(|id| match id {
        ReferenceId::Known(id) => text(id),
        ReferenceId::Unknown => text(""),
    });
    Ok(Some(tagged(
        RESOURCE_SIGNATURE,
        [
            ("urn", Some(text(reference.urn.as_str()))),
            // What readers make of an URN themselves; written all the same, as the engine does.
            ("name", Some(text(reference.urn.name()))),
            ("type", Some(text(reference.urn.type_token()))),
            ("id", id),
            ("packageVersion", unless_empty(&reference.package_version)),
        ],
    )))
}

fn output_value(output: &OutputValue, options: &EncodeOptions, depth: usize) -> Attempt<Option<Value>> {
    let value = match &output.value {
        Some(value) => any(value, options, depth)?,
        None => unknown_value(UnknownKind::String, options)?,
    };
    let Some(value) = value else { return Ok(None) };
    if !options.keep_outputs {
        let mark =
            output.secret && options.keep_secrets && !output.value.as_ref().is_some_and(PropertyValue::is_secret);
        return Ok(Some(if mark { tagged(SECRET_SIGNATURE, [("value", Some(value))]) } else { value }));
    }
    let dependencies = output.dependencies.iter().map(Urn::as_str).map(text).collect::<Vec<_>>();
    let dependencies =
        (!dependencies.is_empty()).then_some(Value { kind: Some(Kind::ListValue(ListValue { values: dependencies })) });
    Ok(Some(tagged(
        OUTPUT_SIGNATURE,
        [
            ("value", output.value.is_some().then_some(value)),
            ("secret", output.secret.then_some(Value { kind: Some(Kind::BoolValue(true)) })),
            ("dependencies", dependencies),
        ],
    )))
}
