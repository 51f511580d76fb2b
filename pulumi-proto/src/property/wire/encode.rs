//! Bags of ours to what travels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::write::Writer;
use super::{Attempt, Bag, EncodeOptions, Fault, Value, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UnknownKind,
};
use crate::resource_id::ReferenceId;
use crate::urn::Urn;

/// Encodes a bag.
///
/// # Errors
/// What the options refuse, and nesting beyond [`super::MAX_DEPTH`].
pub fn encode(bag: &PropertyMap, options: &EncodeOptions) -> Result<Bag, WireError> {
    let mut writer = Writer::new();
    members(&mut writer, bag, options, 0)?;
    Ok(Bag::of(writer.done()))
}

/// Encodes a single value; `None` is an unknown that the options drop.
///
/// # Errors
/// As [`encode`].
pub fn encode_value(value: &PropertyValue, options: &EncodeOptions) -> Result<Option<Value>, WireError> {
    let mut writer = Writer::new();
    let there = any(&mut writer, value, options, 0)?;
    Ok(there.then(|| Value::of(writer.done())))
}

fn members(writer: &mut Writer, map: &PropertyMap, options: &EncodeOptions, depth: usize) -> Attempt<()> {
    for (key, value) in map {
        let member = writer.member(key, |writer| any(writer, value, options, depth));
        member.map_err(|fault| fault.inside(Element::Key(key.clone())))?;
    }
    Ok(())
}

fn items(writer: &mut Writer, list: &[PropertyValue], options: &EncodeOptions, depth: usize) -> Attempt<()> {
    for (index, value) in list.iter().enumerate() {
        let item = writer.item(|writer| any(writer, value, options, depth));
        item.map_err(|fault| fault.inside(Element::Index(index)))?;
    }
    Ok(())
}

/// Writes a value, or says that there is none to write.
fn any(writer: &mut Writer, value: &PropertyValue, options: &EncodeOptions, depth: usize) -> Attempt<bool> {
    let depth = descend(depth)?;
    match value {
        PropertyValue::Null => writer.null(),
        PropertyValue::Bool(value) => writer.bool(*value),
        PropertyValue::Number(value) => writer.number(*value),
        PropertyValue::String(text) => writer.text(text),
        PropertyValue::Bytes(bytes) => bytes_value(writer, bytes, options)?,
        PropertyValue::List(list) => writer.list(|writer| items(writer, list, options, depth))?,
        PropertyValue::Map(map) => writer.object(|writer| members(writer, map, options, depth))?,
        PropertyValue::Asset(asset) => asset_value(writer, asset, options)?,
        PropertyValue::Archive(archive) => archive_value(writer, archive, options, depth)?,
        PropertyValue::Resource(reference) => return reference_value(writer, reference, options),
        PropertyValue::Secret(secret) => return secret_value(writer, secret.expose(), options, depth),
        PropertyValue::Output(output) => return output_value(writer, output, options, depth),
        PropertyValue::Unknown(kind) => return unknown_value(writer, *kind, options),
    }
    Ok(true)
}

/// An object that is not a map; the closure writes what it has beside its signature.
fn tagged(writer: &mut Writer, signature: &str, fields: impl FnOnce(&mut Writer) -> Attempt<()>) -> Attempt<()> {
    writer.object(|writer| {
        writer.text_member(SIGNATURE_KEY, signature)?;
        fields(writer)
    })
}

/// A text member that is left out where it is empty.
fn unless_empty(writer: &mut Writer, key: &str, text: &str) -> Attempt<()> {
    if text.is_empty() { Ok(()) } else { writer.text_member(key, text) }
}

/// A text member that is left out where there is none.
fn if_given(writer: &mut Writer, key: &str, text: Option<&str>) -> Attempt<()> {
    text.map_or(Ok(()), |text| writer.text_member(key, text))
}

fn unknown_value(writer: &mut Writer, kind: UnknownKind, options: &EncodeOptions) -> Attempt<bool> {
    let unknown = options.unknowns.treat(kind.sentinel())?;
    unknown.into_iter().for_each(|sentinel| writer.text(sentinel));
    Ok(unknown.is_some())
}

fn bytes_value(writer: &mut Writer, bytes: &[u8], options: &EncodeOptions) -> Attempt<()> {
    match std::str::from_utf8(bytes) {
        Ok(valid) => writer.text(valid),
        Err(_) if options.keep_bytes => {
            tagged(writer, BYTES_SIGNATURE, |writer| writer.text_member("value", &STANDARD.encode(bytes)))?;
        }
        Err(_) => return Err(Fault::new(WireProblem::Bytes)),
    }
    Ok(())
}

fn secret_value(writer: &mut Writer, inside: &PropertyValue, options: &EncodeOptions, depth: usize) -> Attempt<bool> {
    if options.keep_secrets {
        marked(writer, |writer| any(writer, inside, options, depth))
    } else {
        any(writer, inside, options, depth)
    }
}

/// A secret, unless there is nothing in it.
fn marked(writer: &mut Writer, inside: impl FnOnce(&mut Writer) -> Attempt<bool>) -> Attempt<bool> {
    let mut there = false;
    tagged(writer, SECRET_SIGNATURE, |writer| {
        there = writer.member("value", inside)?;
        Ok(())
    })?;
    Ok(there)
}

fn asset_value(writer: &mut Writer, asset: &Asset, options: &EncodeOptions) -> Attempt<()> {
    tagged(writer, ASSET_SIGNATURE, |writer| {
        if_given(writer, "hash", asset.hash.as_deref())?;
        match &asset.content {
            _ if options.elide_assets => Ok(()),
            AssetContent::Elided => Ok(()),
            AssetContent::Text(content) => unless_empty(writer, "text", content),
            AssetContent::Path(content) => unless_empty(writer, "path", content),
            AssetContent::Uri(content) => unless_empty(writer, "uri", content),
        }
    })
}

fn archive_value(writer: &mut Writer, archive: &Archive, options: &EncodeOptions, depth: usize) -> Attempt<()> {
    tagged(writer, ARCHIVE_SIGNATURE, |writer| {
        if let (ArchiveContent::Assets(assets), false) = (&archive.content, options.elide_assets) {
            let object = |writer: &mut Writer| writer.object(|writer| members(writer, assets, options, depth));
            writer.member("assets", |writer| object(writer).map(|()| true))?;
        }
        if_given(writer, "hash", archive.hash.as_deref())?;
        match &archive.content {
            _ if options.elide_assets => Ok(()),
            ArchiveContent::Elided | ArchiveContent::Assets(_) => Ok(()),
            ArchiveContent::Path(path) => unless_empty(writer, "path", path),
            ArchiveContent::Uri(uri) => unless_empty(writer, "uri", uri),
        }
    })
}

fn reference_value(writer: &mut Writer, reference: &ResourceReference, options: &EncodeOptions) -> Attempt<bool> {
    if !options.keep_resources {
        match &reference.id {
            Some(ReferenceId::Known(id)) => writer.text(id),
            Some(ReferenceId::Unknown) => return unknown_value(writer, UnknownKind::String, options),
            None => writer.text(reference.urn.as_str()),
        }
        return Ok(true);
    }
    tagged(writer, RESOURCE_SIGNATURE, |writer| {
        match &reference.id {
            Some(ReferenceId::Known(id)) => writer.text_member("id", id)?,
            Some(ReferenceId::Unknown) => writer.text_member("id", "")?,
            None => {}
        }
        // Name and type are what readers make of an URN themselves; written all the same, as the engine does.
        writer.text_member("name", reference.urn.name())?;
        if_given(writer, "packageVersion", reference.package_version.as_deref())?;
        writer.text_member("type", reference.urn.type_token())?;
        writer.text_member("urn", reference.urn.as_str())
    })?;
    Ok(true)
}

fn output_value(writer: &mut Writer, output: &OutputValue, options: &EncodeOptions, depth: usize) -> Attempt<bool> {
    let inside = |writer: &mut Writer| match &output.value {
        Some(value) => any(writer, value, options, depth),
        None => unknown_value(writer, UnknownKind::String, options),
    };
    if !options.keep_outputs {
        let mark = output.secret && options.keep_secrets && !output.value.as_ref().is_some_and(unwraps_to_secret);
        return if mark { marked(writer, inside) } else { inside(writer) };
    }
    let mut there = true;
    tagged(writer, OUTPUT_SIGNATURE, |writer| {
        if !output.dependencies.is_empty() {
            writer.member("dependencies", |writer| {
                writer.list(|writer| urns(writer, &output.dependencies)).map(|()| true)
            })?;
        }
        if output.secret {
            writer.member("secret", |writer| {
                writer.bool(true);
                Ok(true)
            })?;
        }
        there = match &output.value {
            Some(_) => writer.member("value", inside)?,
            // An output of nothing is an unknown one.
            None => options.unknowns.treat(())?.is_some(),
        };
        Ok(())
    })?;
    Ok(there)
}

/// Whether a secret is what remains of `value` where output values are left out.
fn unwraps_to_secret(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Output(output) => output.secret || output.value.as_ref().is_some_and(unwraps_to_secret),
        value => value.is_secret(),
    }
}

fn urns(writer: &mut Writer, urns: &[Urn]) -> Attempt<()> {
    for urn in urns {
        writer.item(|writer| {
            writer.text(urn.as_str());
            Ok(true)
        })?;
    }
    Ok(())
}
