//! Encoder of property maps and values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::write::Writer;
use super::{Bag, EncodeOptions, NestedError, NestedResult, Value, WireError, WireProblem, descend};
use crate::property::path::Element;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UnknownKind,
};
use crate::resource_id::ReferenceId;
use crate::urn::Urn;

/// Encodes a property map.
///
/// # Errors
/// [`WireError`] for values that the options reject, and nesting beyond [`super::MAX_DEPTH`].
pub fn encode(bag: &PropertyMap, options: &EncodeOptions) -> Result<Bag, WireError> {
    let mut writer = Writer::new();
    write_members(&mut writer, bag, options, 0)?;
    Ok(Bag::from_encoded(writer.done()))
}

/// Encodes a single value. Returns `None` for an unknown that the options drop.
///
/// # Errors
/// The errors of [`encode`].
pub fn encode_value(value: &PropertyValue, options: &EncodeOptions) -> Result<Option<Value>, WireError> {
    let mut writer = Writer::new();
    let is_written = write_value(&mut writer, value, options, 0)?;
    Ok(is_written.then(|| Value::from_encoded(writer.done())))
}

fn write_members(writer: &mut Writer, map: &PropertyMap, options: &EncodeOptions, depth: usize) -> NestedResult<()> {
    for (key, value) in map {
        let member = writer.member(key, |writer| write_value(writer, value, options, depth));
        member.map_err(|error| error.inside(Element::Key(key.clone())))?;
    }
    Ok(())
}

fn write_items(writer: &mut Writer, list: &[PropertyValue], options: &EncodeOptions, depth: usize) -> NestedResult<()> {
    for (index, value) in list.iter().enumerate() {
        let item = writer.item(|writer| write_value(writer, value, options, depth));
        item.map_err(|error| error.inside(Element::Index(index)))?;
    }
    Ok(())
}

/// Writes a value. Returns false if the value is dropped.
fn write_value(
    writer: &mut Writer,
    value: &PropertyValue,
    options: &EncodeOptions,
    depth: usize,
) -> NestedResult<bool> {
    let depth = descend(depth)?;
    match value {
        PropertyValue::Null => writer.null(),
        PropertyValue::Bool(value) => writer.bool(*value),
        PropertyValue::Number(value) => writer.number(*value),
        PropertyValue::String(text) => writer.text(text),
        PropertyValue::Bytes(bytes) => write_bytes(writer, bytes, options)?,
        PropertyValue::List(list) => writer.list(|writer| write_items(writer, list, options, depth))?,
        PropertyValue::Map(map) => writer.object(|writer| write_members(writer, map, options, depth))?,
        PropertyValue::Asset(asset) => write_asset(writer, asset, options)?,
        PropertyValue::Archive(archive) => write_archive(writer, archive, options, depth)?,
        PropertyValue::Resource(reference) => return write_reference(writer, reference, options),
        PropertyValue::Secret(secret) => return write_secret_or_value(writer, secret.expose(), options, depth),
        PropertyValue::Output(output) => return write_output(writer, output, options, depth),
        PropertyValue::Unknown(kind) => return write_unknown(writer, *kind, options),
    }
    Ok(true)
}

/// Writes a tagged object. The closure writes the fields after the signature.
fn write_tagged(
    writer: &mut Writer,
    signature: &str,
    fields: impl FnOnce(&mut Writer) -> NestedResult<()>,
) -> NestedResult<()> {
    writer.object(|writer| {
        writer.text_member(SIGNATURE_KEY, signature)?;
        fields(writer)
    })
}

/// Writes a text member unless it is empty.
fn write_text_unless_empty(writer: &mut Writer, key: &str, text: &str) -> NestedResult<()> {
    if text.is_empty() { Ok(()) } else { writer.text_member(key, text) }
}

/// Writes a text member if it is present.
fn write_text_if_some(writer: &mut Writer, key: &str, text: Option<&str>) -> NestedResult<()> {
    text.map_or(Ok(()), |text| writer.text_member(key, text))
}

fn write_unknown(writer: &mut Writer, kind: UnknownKind, options: &EncodeOptions) -> NestedResult<bool> {
    let unknown = options.unknowns.apply(kind.sentinel())?;
    unknown.into_iter().for_each(|sentinel| writer.text(sentinel));
    Ok(unknown.is_some())
}

fn write_bytes(writer: &mut Writer, bytes: &[u8], options: &EncodeOptions) -> NestedResult<()> {
    match std::str::from_utf8(bytes) {
        Ok(valid) => writer.text(valid),
        Err(_) if options.keep_bytes => {
            write_tagged(writer, BYTES_SIGNATURE, |writer| writer.text_member("value", &STANDARD.encode(bytes)))?;
        }
        Err(_) => return Err(NestedError::new(WireProblem::Bytes)),
    }
    Ok(())
}

fn write_secret_or_value(
    writer: &mut Writer,
    inside: &PropertyValue,
    options: &EncodeOptions,
    depth: usize,
) -> NestedResult<bool> {
    if options.keep_secrets {
        write_secret(writer, |writer| write_value(writer, inside, options, depth))
    } else {
        write_value(writer, inside, options, depth)
    }
}

/// Writes a secret unless its value is dropped.
fn write_secret(writer: &mut Writer, inside: impl FnOnce(&mut Writer) -> NestedResult<bool>) -> NestedResult<bool> {
    let mut is_written = false;
    write_tagged(writer, SECRET_SIGNATURE, |writer| {
        is_written = writer.member("value", inside)?;
        Ok(())
    })?;
    Ok(is_written)
}

fn write_asset(writer: &mut Writer, asset: &Asset, options: &EncodeOptions) -> NestedResult<()> {
    write_tagged(writer, ASSET_SIGNATURE, |writer| {
        write_text_if_some(writer, "hash", asset.hash.as_deref())?;
        match &asset.content {
            _ if options.elide_assets => Ok(()),
            AssetContent::Elided => Ok(()),
            AssetContent::Text(content) => write_text_unless_empty(writer, "text", content),
            AssetContent::Path(content) => write_text_unless_empty(writer, "path", content),
            AssetContent::Uri(content) => write_text_unless_empty(writer, "uri", content),
        }
    })
}

fn write_archive(writer: &mut Writer, archive: &Archive, options: &EncodeOptions, depth: usize) -> NestedResult<()> {
    write_tagged(writer, ARCHIVE_SIGNATURE, |writer| {
        if let (ArchiveContent::Assets(assets), false) = (&archive.content, options.elide_assets) {
            let object = |writer: &mut Writer| writer.object(|writer| write_members(writer, assets, options, depth));
            writer.member("assets", |writer| object(writer).map(|()| true))?;
        }
        write_text_if_some(writer, "hash", archive.hash.as_deref())?;
        match &archive.content {
            _ if options.elide_assets => Ok(()),
            ArchiveContent::Elided | ArchiveContent::Assets(_) => Ok(()),
            ArchiveContent::Path(path) => write_text_unless_empty(writer, "path", path),
            ArchiveContent::Uri(uri) => write_text_unless_empty(writer, "uri", uri),
        }
    })
}

fn write_reference(writer: &mut Writer, reference: &ResourceReference, options: &EncodeOptions) -> NestedResult<bool> {
    if !options.keep_resources {
        match &reference.id {
            Some(ReferenceId::Known(id)) => writer.text(id),
            Some(ReferenceId::Unknown) => return write_unknown(writer, UnknownKind::String, options),
            None => writer.text(reference.urn.as_str()),
        }
        return Ok(true);
    }
    write_tagged(writer, RESOURCE_SIGNATURE, |writer| {
        match &reference.id {
            Some(ReferenceId::Known(id)) => writer.text_member("id", id)?,
            Some(ReferenceId::Unknown) => writer.text_member("id", "")?,
            None => {}
        }
        // Name and type are redundant, but Pulumi's engine writes them too.
        writer.text_member("name", reference.urn.name())?;
        write_text_if_some(writer, "packageVersion", reference.package_version.as_deref())?;
        writer.text_member("type", reference.urn.type_token())?;
        writer.text_member("urn", reference.urn.as_str())
    })?;
    Ok(true)
}

fn write_output(
    writer: &mut Writer,
    output: &OutputValue,
    options: &EncodeOptions,
    depth: usize,
) -> NestedResult<bool> {
    let inside = |writer: &mut Writer| match &output.value {
        Some(value) => write_value(writer, value, options, depth),
        None => write_unknown(writer, UnknownKind::String, options),
    };
    if !options.keep_outputs {
        let mark = output.secret && options.keep_secrets && !output.value.as_ref().is_some_and(unwraps_to_secret);
        return if mark { write_secret(writer, inside) } else { inside(writer) };
    }
    let mut is_written = true;
    write_tagged(writer, OUTPUT_SIGNATURE, |writer| {
        if !output.dependencies.is_empty() {
            writer.member("dependencies", |writer| {
                writer.list(|writer| write_urns(writer, &output.dependencies)).map(|()| true)
            })?;
        }
        if output.secret {
            writer.member("secret", |writer| {
                writer.bool(true);
                Ok(true)
            })?;
        }
        is_written = match &output.value {
            Some(_) => writer.member("value", inside)?,
            // An output value without a value is unknown.
            None => options.unknowns.apply(())?.is_some(),
        };
        Ok(())
    })?;
    Ok(is_written)
}

/// Returns true if `value` is a secret after the removal of output values.
fn unwraps_to_secret(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Output(output) => output.secret || output.value.as_ref().is_some_and(unwraps_to_secret),
        value => value.is_secret(),
    }
}

fn write_urns(writer: &mut Writer, urns: &[Urn]) -> NestedResult<()> {
    for urn in urns {
        writer.item(|writer| {
            writer.text(urn.as_str());
            Ok(true)
        })?;
    }
    Ok(())
}
