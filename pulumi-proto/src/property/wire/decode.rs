//! What came to bags of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::read::{Kind, Object, Raw};
use super::{Attempt, Bag, DecodeOptions, Fault, Unknowns, Value, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UnknownKind,
};
use crate::resource_id::ReferenceId;
use crate::urn::Urn;

/// Decodes a bag.
///
/// # Errors
/// Values without a kind, malformed special objects, nesting beyond [`super::MAX_DEPTH`], and what the options refuse.
pub fn decode(bag: &Bag, options: &DecodeOptions) -> Result<PropertyMap, WireError> {
    Ok(members(Object(bag.bytes()), options, 0)?)
}

/// Decodes a single value; `None` is an unknown that the options drop.
///
/// # Errors
/// As [`decode`].
pub fn decode_value(value: &Value, options: &DecodeOptions) -> Result<Option<PropertyValue>, WireError> {
    Ok(any(Raw(value.bytes()), options, 0)?)
}

fn members(object: Object<'_>, options: &DecodeOptions, depth: usize) -> Attempt<PropertyMap> {
    let mut members = PropertyMap::new();
    for entry in object.members() {
        let (key, value) = entry?;
        let value = any(value, options, depth).map_err(|fault| fault.inside(Element::Key(key.to_owned())))?;
        members.extend(value.map(|value| (key.to_owned(), value)));
    }
    Ok(members)
}

fn any(value: Raw<'_>, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let depth = descend(depth)?;
    Ok(Some(match value.kind()? {
        Kind::Null => PropertyValue::Null,
        Kind::Bool(value) => PropertyValue::Bool(value),
        Kind::Number(value) => PropertyValue::Number(value),
        Kind::Text(text) => match UnknownKind::from_sentinel(text) {
            None => PropertyValue::String(text.to_owned()),
            Some(kind) => return options.unknowns.treat(PropertyValue::Unknown(kind)),
        },
        Kind::List(list) => {
            let item = |(index, item): (usize, Attempt<Raw<'_>>)| match item.and_then(|item| any(item, options, depth))
            {
                Ok(item) => Ok(item.unwrap_or(PropertyValue::Null)),
                Err(fault) => Err(fault.inside(Element::Index(index))),
            };
            PropertyValue::List(list.items().enumerate().map(item).collect::<Attempt<_>>()?)
        }
        Kind::Object(object) => match object.get(SIGNATURE_KEY)? {
            None => PropertyValue::Map(members(object, options, depth)?),
            Some(signature) => return special(signature, object, options, depth),
        },
    }))
}

/// An object that is not a map. Fields that nobody knows are passed over.
fn special(
    signature: Raw<'_>,
    object: Object<'_>,
    options: &DecodeOptions,
    depth: usize,
) -> Attempt<Option<PropertyValue>> {
    let Kind::Text(signature) = signature.kind()? else {
        return Err(Fault::new(WireProblem::UnrecognizedSignature("not a text".to_owned())));
    };
    let fields = |what| Fields { object, what };
    match signature {
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
#[derive(Clone, Copy)]
struct Fields<'a> {
    object: Object<'a>,
    what: &'static str,
}

impl<'a> Fields<'a> {
    fn get(self, key: &str) -> Attempt<Option<Raw<'a>>> {
        self.object.get(key)
    }

    fn kind(self, key: &str) -> Attempt<Option<Kind<'a>>> {
        self.get(key)?.map(Raw::kind).transpose()
    }

    /// A text; empty where it is absent.
    fn text(self, key: &str, fault: &'static str) -> Attempt<&'a str> {
        match self.kind(key)? {
            None => Ok(""),
            Some(Kind::Text(text)) => Ok(text),
            Some(_) => Err(self.malformed(fault)),
        }
    }

    /// A text that means the same where it is empty as where it is missing.
    fn filled(self, key: &str, fault: &'static str) -> Attempt<Option<&'a str>> {
        Ok(Some(self.text(key, fault)?).filter(|text| !text.is_empty()))
    }

    fn malformed(self, fault: &'static str) -> Box<Fault> {
        Fault::new(WireProblem::Malformed { what: self.what, fault })
    }
}

fn secret(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let inside = fields.get("value")?.ok_or_else(|| fields.malformed("no value"))?;
    let value = any(inside, options, depth)?;
    Ok(if options.keep_secrets { value.map(PropertyValue::secret_verbatim) } else { value })
}

fn asset(fields: Fields<'_>, options: &DecodeOptions) -> Attempt<Option<PropertyValue>> {
    let hash = fields.filled("hash", "the hash is no text")?;
    let path = fields.text("path", "the path is no text")?;
    let uri = fields.text("uri", "the URI is no text")?;
    let text = fields.text("text", "the text is no text")?;
    if [path, uri, text].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.treat(PropertyValue::Unknown(UnknownKind::Asset));
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

fn archive(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let hash = fields.filled("hash", "the hash is no text")?;
    let path = fields.text("path", "the path is no text")?;
    let uri = fields.text("uri", "the URI is no text")?;
    if [path, uri].into_iter().any(|content| UnknownKind::from_sentinel(content).is_some()) {
        return options.unknowns.treat(PropertyValue::Unknown(UnknownKind::Archive));
    }
    let assets = match fields.kind("assets")? {
        None => None,
        Some(Kind::Object(assets)) => Some(assets),
        Some(_) => return Err(fields.malformed("the assets are no map")),
    };
    let content = if !path.is_empty() {
        ArchiveContent::Path(path.to_owned())
    } else if !uri.is_empty() {
        ArchiveContent::Uri(uri.to_owned())
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
    } else if hash.is_none() {
        ArchiveContent::Assets(PropertyMap::new())
    } else {
        ArchiveContent::Elided
    };
    Ok(Some(PropertyValue::Archive(Archive { hash: hash.map(str::to_owned), content })))
}

fn reference(fields: Fields<'_>, options: &DecodeOptions) -> Attempt<Option<PropertyValue>> {
    let urn = fields.text("urn", "the URN is no text")?;
    let urn: Urn = urn.parse().map_err(|_| fields.malformed("the URN is none"))?;
    let package_version = fields.filled("packageVersion", "the package version is no text")?.map(str::to_owned);
    let id = match fields.kind("id")? {
        None => None,
        Some(id) => reference_id(id, fields, options)?,
    };
    if options.keep_resources {
        return Ok(Some(PropertyValue::Resource(ResourceReference { urn, id, package_version })));
    }
    match id {
        Some(ReferenceId::Known(id)) => Ok(Some(PropertyValue::String(id.to_string()))),
        Some(ReferenceId::Unknown) => options.unknowns.treat(PropertyValue::UNKNOWN),
        None => Ok(Some(PropertyValue::String(urn.as_str().to_owned()))),
    }
}

/// Reads an id: a text, or an output value around one. Null is no id; an empty text is an id not known yet, as the
/// engine writes it even where unknown values are refused.
fn reference_id(id: Kind<'_>, fields: Fields<'_>, options: &DecodeOptions) -> Attempt<Option<ReferenceId>> {
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
            Unknowns::Reject => Err(Fault::new(WireProblem::Unknown)),
            // Without its id the reference would be one to a component.
            Unknowns::Keep | Unknowns::Drop => Ok(Some(ReferenceId::Unknown)),
        },
        Kind::Text(id) => Ok(Some(ReferenceId::from(id))),
        _ => Err(fields.malformed("the id is no text")),
    }
}

fn has_signature(object: Object<'_>, signature: &str) -> Attempt<bool> {
    let Some(value) = object.get(SIGNATURE_KEY)? else { return Ok(false) };
    Ok(matches!(value.kind()?, Kind::Text(value) if value == signature))
}

fn output(fields: Fields<'_>, options: &DecodeOptions, depth: usize) -> Attempt<Option<PropertyValue>> {
    let secret = match fields.kind("secret")? {
        None => false,
        Some(Kind::Bool(secret)) => secret,
        Some(_) => return Err(fields.malformed("whether it is secret is no bool")),
    };
    let value = fields.get("value")?;
    let known = value.is_some();
    let value = match value {
        Some(value) => any(value, options, depth)?,
        None => options.unknowns.treat(PropertyValue::UNKNOWN)?,
    };
    let Some(value) = value else { return Ok(None) };
    if !options.keep_outputs {
        return Ok(Some(if secret && options.keep_secrets { PropertyValue::secret(value) } else { value }));
    }
    let dependencies = dependencies(fields)?;
    let value = known.then_some(value);
    Ok(Some(PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies }))))
}

fn dependencies(fields: Fields<'_>) -> Attempt<Vec<Urn>> {
    let Some(list) = fields.kind("dependencies")? else { return Ok(Vec::new()) };
    let Kind::List(list) = list else { return Err(fields.malformed("the dependencies are no list")) };
    let urn = |dependency: Raw<'_>| match dependency.kind()? {
        Kind::Text(urn) => urn.parse().map_err(|_| fields.malformed("a dependency is no URN")),
        _ => Err(fields.malformed("a dependency is no text")),
    };
    list.items().map(|dependency| dependency.and_then(urn)).collect()
}

fn bytes(fields: Fields<'_>) -> Attempt<PropertyValue> {
    let value = fields.get("value")?.ok_or_else(|| fields.malformed("no value"))?;
    let Kind::Text(encoded) = value.kind()? else { return Err(fields.malformed("the value is no text")) };
    let bytes = STANDARD.decode(encoded).map_err(|_| fields.malformed("the value is no base64"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => PropertyValue::String(text),
        Err(bytes) => PropertyValue::Bytes(bytes.into_bytes()),
    })
}
