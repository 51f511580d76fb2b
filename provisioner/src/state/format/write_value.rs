//! Property values to the JSON of a state (spec of the state, section 4.4).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pulumi_proto::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    NUMBER_SIGNATURE, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ReferenceId, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UNKNOWN_STRING,
};

use super::json::{Escaping, write_list, write_number, write_string};
use crate::state::secrets::{Crypter, ReusePass, SecretsError};

/// How the secrets of a text are sealed.
pub(in crate::state) enum Sealing<'a> {
    /// There is no key: a secret is an error.
    Impossible,
    /// Not at all, for the whole text is going to be.
    Clear,
    /// Not at all, for somebody is to see them.
    Shown,
    /// Each afresh.
    Fresh(&'a dyn Crypter),
    /// As loaded where nothing changed, else afresh (where there is a key).
    Reusing(ReusePass<'a>, Option<&'a dyn Crypter>),
}

impl Sealing<'_> {
    /// The name and the text of the member that holds a secret.
    fn seal(&mut self, plaintext: String) -> Result<(&'static str, String), SecretsError> {
        let ciphertext = match self {
            Self::Impossible => return Err(SecretsError::KeyNeeded),
            Self::Shown => return Ok(("plaintext", plaintext)),
            Self::Clear => plaintext,
            Self::Fresh(crypter) => crypter.encrypt(&plaintext)?,
            Self::Reusing(pass, crypter) => match (pass.take(&plaintext), crypter) {
                (Some(ciphertext), _) => (*ciphertext).to_owned(),
                (None, Some(crypter)) => crypter.encrypt(&plaintext)?,
                (None, None) => return Err(SecretsError::KeyNeeded),
            },
        };
        Ok(("ciphertext", ciphertext))
    }

    /// How the secrets in a secret are sealed.
    fn inside(&self) -> Sealing<'static> {
        match self {
            Self::Shown => Sealing::Shown,
            Self::Impossible | Self::Clear | Self::Fresh(_) | Self::Reusing(..) => Sealing::Clear,
        }
    }
}

/// Writes values, and notices what a reader must be able to do to read them.
pub(super) struct ValueWriter<'a> {
    sealing: Sealing<'a>,
    escaping: Escaping,
    /// Whether a string that is not UTF-8 was written.
    pub(super) wrote_bytes: bool,
}

impl<'a> ValueWriter<'a> {
    pub(super) fn new(sealing: Sealing<'a>) -> Self {
        Self { sealing, escaping: Escaping::Plain, wrote_bytes: false }
    }

    /// Appends a property map.
    ///
    /// # Errors
    /// [`SecretsError`] if a secret cannot be sealed.
    pub(super) fn map(&mut self, out: &mut String, map: &PropertyMap) -> Result<(), SecretsError> {
        out.push('{');
        for (index, (name, value)) in map.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(out, name, self.escaping);
            out.push(':');
            self.value(out, value)?;
        }
        out.push('}');
        Ok(())
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`SecretsError`] if a secret cannot be sealed.
    pub(super) fn value(&mut self, out: &mut String, value: &PropertyValue) -> Result<(), SecretsError> {
        match value {
            PropertyValue::Null => out.push_str("null"),
            PropertyValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            PropertyValue::Number(number) if number.is_finite() => write_number(out, *number),
            PropertyValue::Number(number) => {
                let bits = number.to_bits();
                self.tagged(out, NUMBER_SIGNATURE, &[("value", &format!("{bits:016x}"))]);
            }
            PropertyValue::String(text) => write_string(out, text, self.escaping),
            PropertyValue::Bytes(bytes) => {
                self.wrote_bytes = true;
                self.tagged(out, BYTES_SIGNATURE, &[("value", &BASE64.encode(bytes))]);
            }
            PropertyValue::List(items) => return self.list(out, items),
            PropertyValue::Map(map) => return self.map(out, map),
            PropertyValue::Asset(asset) => self.asset(out, asset),
            PropertyValue::Archive(archive) => return self.archive(out, archive),
            PropertyValue::Resource(reference) => self.reference(out, reference),
            PropertyValue::Secret(secret) => return self.secret(out, secret.expose()),
            PropertyValue::Output(output) => {
                let value = output.value.as_ref().unwrap_or(&PropertyValue::UNKNOWN);
                return if output.secret { self.secret(out, value) } else { self.value(out, value) };
            }
            PropertyValue::Unknown(_) => write_string(out, UNKNOWN_STRING, self.escaping),
        }
        Ok(())
    }

    fn list(&mut self, out: &mut String, items: &[PropertyValue]) -> Result<(), SecretsError> {
        let mut result = Ok(());
        write_list(out, items, |out, item| {
            if result.is_ok() {
                result = self.value(out, item);
            }
        });
        result
    }

    fn asset(&self, out: &mut String, asset: &Asset) {
        let content = match &asset.content {
            AssetContent::Elided => ("text", ""),
            AssetContent::Text(text) => ("text", text.as_str()),
            AssetContent::Path(path) => ("path", path.as_str()),
            AssetContent::Uri(uri) => ("uri", uri.as_str()),
        };
        self.tagged_filled(out, ASSET_SIGNATURE, &[("hash", &asset.hash), content]);
    }

    fn archive(&mut self, out: &mut String, archive: &Archive) -> Result<(), SecretsError> {
        let content = match &archive.content {
            ArchiveContent::Elided => ("path", ""),
            ArchiveContent::Path(path) => ("path", path.as_str()),
            ArchiveContent::Uri(uri) => ("uri", uri.as_str()),
            ArchiveContent::Assets(assets) => {
                self.open_tagged(out, ARCHIVE_SIGNATURE);
                out.push_str(",\"assets\":");
                self.map(out, assets)?;
                if !archive.hash.is_empty() {
                    self.member(out, "hash", &archive.hash);
                }
                out.push('}');
                return Ok(());
            }
        };
        self.tagged_filled(out, ARCHIVE_SIGNATURE, &[("hash", &archive.hash), content]);
        Ok(())
    }

    fn reference(&self, out: &mut String, reference: &ResourceReference) {
        self.open_tagged(out, RESOURCE_SIGNATURE);
        match &reference.id {
            Some(ReferenceId::Known(id)) => self.member(out, "id", id),
            Some(ReferenceId::Unknown) => self.member(out, "id", ""),
            None => {}
        }
        self.member(out, "packageVersion", &reference.package_version);
        self.member(out, "urn", reference.urn.as_str());
        out.push('}');
    }

    /// The text that is sealed is the value in JSON with every escape Go knows; secrets in it are in clear there.
    fn secret(&mut self, out: &mut String, value: &PropertyValue) -> Result<(), SecretsError> {
        let mut inner = ValueWriter { sealing: self.sealing.inside(), escaping: Escaping::Html, wrote_bytes: false };
        let mut plaintext = String::new();
        inner.value(&mut plaintext, value)?;
        self.wrote_bytes |= inner.wrote_bytes;
        let (name, text) = self.sealing.seal(plaintext)?;
        self.tagged(out, SECRET_SIGNATURE, &[(name, &text)]);
        Ok(())
    }

    /// Appends a tagged object whose other members are texts, in the order of their names.
    fn tagged(&self, out: &mut String, signature: &str, members: &[(&str, &str)]) {
        self.open_tagged(out, signature);
        for (name, text) in members {
            self.member(out, name, text);
        }
        out.push('}');
    }

    /// The same without the members that are empty.
    fn tagged_filled(&self, out: &mut String, signature: &str, members: &[(&str, &str)]) {
        self.open_tagged(out, signature);
        for (name, text) in members.iter().filter(|(_, text)| !text.is_empty()) {
            self.member(out, name, text);
        }
        out.push('}');
    }

    fn open_tagged(&self, out: &mut String, signature: &str) {
        let written = write!(out, "{{\"{SIGNATURE_KEY}\":\"{signature}\"");
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }

    fn member(&self, out: &mut String, name: &str, text: &str) {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        write_string(out, text, self.escaping);
    }
}
