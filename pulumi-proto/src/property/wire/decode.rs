//! Decoder of property maps and values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::read::{Kind, Object, Raw};
use super::{Bag, DecodeOptions, NestedError, NestedResult, Unknowns, Value, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UnknownKind,
};
use crate::resource_id::ReferenceId;
use crate::urn::Urn;

/// Decodes a property map.
///
/// # Errors
/// [`WireError`] for values without a kind, malformed tagged objects, nesting beyond [`super::MAX_DEPTH`], and values
/// that the options reject.
pub fn decode(bag: &Bag, options: &DecodeOptions) -> Result<PropertyMap, WireError> {
    Ok(decode_members(Object(bag.bytes()), options, 0)?)
}

/// Decodes a single value. Returns `None` for an unknown that the options drop.
///
/// # Errors
/// The errors of [`decode`].
pub fn decode_value(value: &Value, options: &DecodeOptions) -> Result<Option<PropertyValue>, WireError> {
    Ok(decode_any(Raw(value.bytes()), options, 0)?)
}

fn decode_members(object: Object<'_>, options: &DecodeOptions, depth: usize) -> NestedResult<PropertyMap> {
    let mut members = PropertyMap::new();
    for entry in object.members() {
        let (key, value) = entry?;
        let value = decode_any(value, options, depth).map_err(|error| error.inside(Element::Key(key.to_owned())))?;
        members.extend(value.map(|value| (key.to_owned(), value)));
    }
    Ok(members)
}

fn decode_any(value: Raw<'_>, options: &DecodeOptions, depth: usize) -> NestedResult<Option<PropertyValue>> {
    let depth = descend(depth)?;
    Ok(Some(match value.kind()? {
        Kind::Null => PropertyValue::Null,
        Kind::Bool(value) => PropertyValue::Bool(value),
        Kind::Number(value) => PropertyValue::Number(value),
        Kind::Text(text) => match UnknownKind::from_sentinel(text) {
            None => PropertyValue::String(text.to_owned()),
            Some(kind) => return options.unknowns.apply(PropertyValue::Unknown(kind)),
        },
        Kind::List(list) => {
            let item = |(index, item): (usize, NestedResult<Raw<'_>>)| match item
                .and_then(|item| decode_any(item, options, depth))
            {
                Ok(item) => Ok(item.unwrap_or(PropertyValue::Null)),
                Err(error) => Err(error.inside(Element::Index(index))),
            };
            PropertyValue::List(list.items().enumerate().map(item).collect::<NestedResult<_>>()?)
        }
        Kind::Object(object) => match object.get(SIGNATURE_KEY)? {
            None => PropertyValue::Map(decode_members(object, options, depth)?),
            Some(signature) => return decode_tagged(signature, object, options, depth),
        },
    }))
}

/// Decodes a tagged object. Unknown fields are ignored.
fn decode_tagged(
    signature: Raw<'_>,
    object: Object<'_>,
    options: &DecodeOptions,
    depth: usize,
) -> NestedResult<Option<PropertyValue>> {
    let Kind::Text(signature) = signature.kind()? else {
        return Err(NestedError::new(WireProblem::UnrecognizedSignature("not a string".to_owned())));
    };
    let fields = |description| Fields { object, description };
    match signature {
        SECRET_SIGNATURE => decode_secret(fields("secret"), options, depth),
        ASSET_SIGNATURE => decode_asset(fields("asset"), options),
        ARCHIVE_SIGNATURE => decode_archive(fields("archive"), options, depth),
        RESOURCE_SIGNATURE => decode_reference(fields("resource reference"), options),
        OUTPUT_SIGNATURE => decode_output(fields("output value"), options, depth),
        BYTES_SIGNATURE => decode_bytes(fields("byte string")).map(Some),
        other => Err(NestedError::new(WireProblem::UnrecognizedSignature(other.to_owned()))),
    }
}

/// Fields of a tagged object.
#[derive(Clone, Copy)]
struct Fields<'a> {
    object: Object<'a>,
    description: &'static str,
}

impl<'a> Fields<'a> {
    fn get(self, key: &str) -> NestedResult<Option<Raw<'a>>> {
        self.object.get(key)
    }

    fn kind(self, key: &str) -> NestedResult<Option<Kind<'a>>> {
        self.get(key)?.map(Raw::kind).transpose()
    }

    /// Returns a text field, empty if it is absent.
    fn text(self, key: &str, reason: &'static str) -> NestedResult<&'a str> {
        match self.kind(key)? {
            None => Ok(""),
            Some(Kind::Text(text)) => Ok(text),
            Some(_) => Err(self.malformed(reason)),
        }
    }

    /// Returns a text field, `None` if it is absent or empty.
    fn non_empty_text(self, key: &str, reason: &'static str) -> NestedResult<Option<&'a str>> {
        Ok(Some(self.text(key, reason)?).filter(|text| !text.is_empty()))
    }

    fn malformed(self, reason: &'static str) -> Box<NestedError> {
        NestedError::new(WireProblem::Malformed { kind: self.description, reason })
    }
}

fn decode_secret(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> NestedResult<Option<PropertyValue>> {
    let inside = fields.get("value")?.ok_or_else(|| fields.malformed("no value"))?;
    let value = decode_any(inside, options, depth)?;
    Ok(if options.keep_secrets { value.map(PropertyValue::secret_verbatim) } else { value })
}

fn decode_asset(fields: Fields<'_>, options: &DecodeOptions) -> NestedResult<Option<PropertyValue>> {
    let hash = fields.non_empty_text("hash", "the hash is not a string")?;
    let path = fields.text("path", "the path is not a string")?;
    let uri = fields.text("uri", "the URI is not a string")?;
    let text = fields.text("text", "the text is not a string")?;
    if [path, uri, text].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.apply(PropertyValue::Unknown(UnknownKind::Asset));
    }
    let content = if !path.is_empty() {
        AssetContent::Path(path.to_owned())
    } else if !uri.is_empty() {
        AssetContent::Uri(uri.to_owned())
    } else if !text.is_empty() || hash.is_none() {
        AssetContent::Text(text.to_owned())
    } else {
        AssetContent::Elided
    };
    Ok(Some(PropertyValue::Asset(Asset { hash: hash.map(str::to_owned), content })))
}

fn decode_archive(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> NestedResult<Option<PropertyValue>> {
    let hash = fields.non_empty_text("hash", "the hash is not a string")?;
    let path = fields.text("path", "the path is not a string")?;
    let uri = fields.text("uri", "the URI is not a string")?;
    if [path, uri].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.apply(PropertyValue::Unknown(UnknownKind::Archive));
    }
    let assets = match fields.kind("assets")? {
        None => None,
        Some(Kind::Object(assets)) => Some(assets),
        Some(_) => return Err(fields.malformed("the assets are not a map")),
    };
    let content = if !path.is_empty() {
        ArchiveContent::Path(path.to_owned())
    } else if !uri.is_empty() {
        ArchiveContent::Uri(uri.to_owned())
    } else if let Some(assets) = assets {
        // An archive without the unknown member would be another archive, so the whole archive becomes unknown.
        let assets = decode_members(assets, &DecodeOptions { unknowns: Unknowns::Keep, ..*options }, depth)?;
        for (name, member) in &assets {
            match member {
                PropertyValue::Asset(_) | PropertyValue::Archive(_) => (),
                PropertyValue::Unknown(_) => {
                    let unknown = options.unknowns.apply(PropertyValue::Unknown(UnknownKind::Archive));
                    return unknown.map_err(|error| error.inside(Element::Key(name.clone())));
                }
                _ => {
                    let error = fields.malformed("a member is neither asset nor archive");
                    return Err(error.inside(Element::Key(name.clone())));
                }
            }
        }
        ArchiveContent::Assets(assets)
    } else if hash.is_none() {
        ArchiveContent::Assets(PropertyMap::new())
    } else {
        ArchiveContent::Elided
    };
    Ok(Some(PropertyValue::Archive(Archive { hash: hash.map(str::to_owned), content })))
}

fn decode_reference(fields: Fields<'_>, options: &DecodeOptions) -> NestedResult<Option<PropertyValue>> {
    let urn = fields.text("urn", "the URN is not a string")?;
    let urn: Urn = urn.parse().map_err(|_| fields.malformed("the URN is invalid"))?;
    let package_version =
        fields.non_empty_text("packageVersion", "the package version is not a string")?.map(str::to_owned);
    let id = match fields.kind("id")? {
        None => None,
        Some(id) => decode_reference_id(id, fields, options)?,
    };
    if options.keep_resources {
        return Ok(Some(PropertyValue::Resource(ResourceReference { urn, id, package_version })));
    }
    match id {
        Some(ReferenceId::Known(id)) => Ok(Some(PropertyValue::String(id.to_string()))),
        Some(ReferenceId::Unknown) => options.unknowns.apply(PropertyValue::UNKNOWN),
        None => Ok(Some(PropertyValue::String(urn.as_str().to_owned()))),
    }
}

/// Decodes an id: a text, or an output value with a text. Null is no id. An empty text is an unknown id: the engine
/// sends it even to calls that reject unknown values.
fn decode_reference_id(id: Kind<'_>, fields: Fields<'_>, options: &DecodeOptions) -> NestedResult<Option<ReferenceId>> {
    let id = match id {
        Kind::Object(output) if has_signature(output, OUTPUT_SIGNATURE)? => match output.get("value")? {
            Some(value) => value.kind()?,
            None => Kind::Text(UnknownKind::String.sentinel()),
        },
        id => id,
    };
    match id {
        Kind::Null => Ok(None),
        Kind::Text(id) if UnknownKind::from_sentinel(id).is_some() => match options.unknowns {
            Unknowns::Reject => Err(NestedError::new(WireProblem::Unknown)),
            // A reference without an id would refer to a component.
            Unknowns::Keep | Unknowns::Drop => Ok(Some(ReferenceId::Unknown)),
        },
        Kind::Text(id) => Ok(Some(ReferenceId::from(id))),
        _ => Err(fields.malformed("the id is not a string")),
    }
}

fn has_signature(object: Object<'_>, signature: &str) -> NestedResult<bool> {
    let Some(value) = object.get(SIGNATURE_KEY)? else { return Ok(false) };
    Ok(matches!(value.kind()?, Kind::Text(value) if value == signature))
}

fn decode_output(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> NestedResult<Option<PropertyValue>> {
    let secret = match fields.kind("secret")? {
        None => false,
        Some(Kind::Bool(secret)) => secret,
        Some(_) => return Err(fields.malformed("the field secret is not a bool")),
    };
    let value = fields.get("value")?;
    let known = value.is_some();
    let value = match value {
        Some(value) => decode_any(value, options, depth)?,
        None => options.unknowns.apply(PropertyValue::UNKNOWN)?,
    };
    let Some(value) = value else { return Ok(None) };
    if !options.keep_outputs {
        return Ok(Some(if secret && options.keep_secrets { PropertyValue::secret(value) } else { value }));
    }
    let dependencies = decode_dependencies(fields)?;
    let value = known.then_some(value);
    Ok(Some(PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies }))))
}

fn decode_dependencies(fields: Fields<'_>) -> NestedResult<Vec<Urn>> {
    let Some(list) = fields.kind("dependencies")? else { return Ok(Vec::new()) };
    let Kind::List(list) = list else { return Err(fields.malformed("the dependencies are not a list")) };
    let urn = |dependency: Raw<'_>| match dependency.kind()? {
        Kind::Text(urn) => urn.parse().map_err(|_| fields.malformed("a dependency is not a URN")),
        _ => Err(fields.malformed("a dependency is not a string")),
    };
    list.items().map(|dependency| dependency.and_then(urn)).collect()
}

fn decode_bytes(fields: Fields<'_>) -> NestedResult<PropertyValue> {
    let value = fields.get("value")?.ok_or_else(|| fields.malformed("no value"))?;
    let Kind::Text(encoded) = value.kind()? else { return Err(fields.malformed("the value is not a string")) };
    let bytes = STANDARD.decode(encoded).map_err(|_| fields.malformed("the value is not base64"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => PropertyValue::String(text),
        Err(bytes) => PropertyValue::Bytes(bytes.into_bytes()),
    })
}
