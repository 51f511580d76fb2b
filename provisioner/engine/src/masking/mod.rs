//! Masking of secrets in texts: messages of providers and plugins, errors, recorded errors of initialization.
//!
//! Input: the secrets that a run knows, and a text of another program. Output: the text with [`MASK`] in place of each
//! secret, in whichever way the other program spelt it. Excluded: property values, which are masked by their type; a
//! text that equals a secret gets the type of one for the display.
//!
//! A secret is found in these spellings, also within each other: as it is; with escape sequences of terminals or
//! invisible characters in it; with the escapes of JSON, programming languages and shells; percent-encoded; with the
//! entities of XML; in base64 at every alignment; in hexadecimal digits; as a list of bytes. What else is masked of a
//! secret with several lines, or of a JSON document, is in `secret_texts`.
//!
//! The beginning of a secret is found as well where a text was cut before it was masked ([`CUT`]).
//!
//! A secret that is split over two messages is not found, and neither is a secret in another form, such as
//! encrypted, hashed, compressed or reversed.

mod equal_values;
mod reading;
mod secret_texts;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use bridge::error::CUT;
use bridge::message_text::MessageText;
use pulumi_proto::property::{ArchiveContent, AssetContent, PropertyMap, PropertyValue};
use state::ResourceState;

use reading::Reading;
use secret_texts::SecretTexts;

/// Mask of a secret.
pub const MASK: &str = "[secret]";

/// Number of bytes at the end of a text that continues which may be a part of an escape, or of a secret that is too short
/// to be found.
const CUT_LENGTH: usize = 128;

/// Secrets of a run, which are masked in texts. Shared by everything that writes texts of other programs.
#[derive(Default)]
pub struct SecretMasker(RwLock<SecretTexts>);

/// Shows no secret.
impl std::fmt::Debug for SecretMasker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretMasker").finish_non_exhaustive()
    }
}

impl SecretMasker {
    /// Adds a secret. Surrounding space is not part of it. A secret with fewer than four bytes is not masked, because
    /// it occurs by chance in other words, where a mask would reveal it.
    pub fn add_text(&self, secret: &str) {
        self.add_texts(&[secret]);
    }

    /// Adds the secrets in values, at every depth.
    pub fn add_values(&self, values: &PropertyMap) {
        let mut found = Vec::new();
        values.values().for_each(|value| collect(value, false, &mut found));
        self.add_texts(&found);
    }

    /// Adds the secrets in the inputs and outputs of a resource.
    pub fn add_resource(&self, resource: &ResourceState) {
        self.add_values(&resource.inputs);
        self.add_values(&resource.outputs);
    }

    /// Returns properties with each text that equals a known secret marked as secret; `None` if there is none.
    pub fn mark_equal_values(&self, values: &PropertyMap) -> Option<PropertyMap> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return None;
        }
        equal_values::marked(values, &|text| known.contains(text))
    }

    /// Returns a resource with each text of its inputs and outputs that equals a known secret marked as secret; `None` if there is
    /// none. An input may be the output of another resource.
    pub fn mark_equal_values_of(&self, resource: &ResourceState) -> Option<Arc<ResourceState>> {
        let (inputs, outputs) = (self.mark_equal_values(&resource.inputs), self.mark_equal_values(&resource.outputs));
        if inputs.is_none() && outputs.is_none() {
            return None;
        }
        let mut marked = resource.clone();
        marked.inputs = inputs.map_or(marked.inputs, Arc::new);
        marked.outputs = outputs.map_or(marked.outputs, Arc::new);
        Some(Arc::new(marked))
    }

    fn add_texts(&self, secrets: &[&str]) {
        if secrets.is_empty() {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().for_each(|secret| known.add(secret));
    }

    /// Returns a text with the known secrets masked. A text before [`CUT`] is the beginning of a longer one, see
    /// [`SecretMasker::mask_beginning`].
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match text.rsplit_once(CUT) {
            Some((cut, rest)) if !self.is_empty() => {
                let beginnings: Vec<_> = cut.split(CUT).map(|beginning| self.mask_beginning(beginning)).collect();
                Cow::Owned([&beginnings.join(CUT), CUT, &replace(rest, self.find(rest, None))].concat())
            }
            _ => replace(text, self.find(text, None)),
        }
    }

    /// Returns the text of a message with the known secrets masked, except for those within a constant of the program: a mask there
    /// would hide nothing, and would reveal that the word is a secret.
    pub fn mask_message(&self, message: &MessageText) -> String {
        if message.contains(CUT) {
            return self.mask(message).into_owned();
        }
        let mut found = self.find(message, None);
        found.retain(|range| !message.is_constant(range));
        replace(message, found).into_owned()
    }

    /// Returns the beginning of a longer text with the known secrets masked. A secret that the end of `text` cuts is
    /// removed with all of its beginning, in each of its spellings, as are the last `CUT_LENGTH` bytes, which may be a
    /// part of an escape or of a secret that is too short to be found.
    pub fn mask_beginning(&self, text: &str) -> String {
        let mut end = text.len().saturating_sub(CUT_LENGTH);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut found = self.find(text, Some(end));
        found.push(end..text.len());
        let masked = replace(text, found);
        masked.strip_suffix(MASK).unwrap_or(&masked).to_owned()
    }

    /// Returns the number of known secrets, which grows only.
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).count()
    }

    fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the places of the known secrets in a text. `cut` is the place from which on the end of the text may be a
    /// part of a secret or of an escape, if the text continues.
    fn find(&self, text: &str, cut: Option<usize>) -> Vec<Range<usize>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        if known.is_empty() {
            return found;
        }
        reading::each(text, |reading: &Reading<'_>| {
            let length = reading.text().len();
            let is_cut = cut.is_some_and(|cut| length > 0 && reading.place(length - 1..length).end >= cut);
            known.find(reading.text(), is_cut, |range| found.push(reading.place(range)));
        });
        found
    }

    /// Masks the known secrets in a text.
    pub fn mask_in_place(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask(text) {
            *text = masked;
        }
    }
}

/// Returns a text with a mask in place of each range. Ranges that overlap get one mask.
fn replace(text: &str, mut found: Vec<Range<usize>>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for range in found {
        if range.start >= end {
            masked.push_str(text.get(end..range.start).unwrap_or_default());
            masked.push_str(MASK);
        }
        end = end.max(range.end);
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Adds the secret texts in a value to `found`. Secret numbers and bools are left out: they occur by chance in every
/// text.
fn collect<'v>(value: &'v PropertyValue, is_secret: bool, found: &mut Vec<&'v str>) {
    match value {
        PropertyValue::String(text) if is_secret => found.push(text),
        PropertyValue::Bytes(bytes) if is_secret => found.extend(std::str::from_utf8(bytes)),
        PropertyValue::Asset(asset) if is_secret => match &asset.content {
            AssetContent::Text(text) => found.push(text),
            AssetContent::Elided | AssetContent::Path(_) | AssetContent::Uri(_) => {}
        },
        PropertyValue::Archive(archive) => match &archive.content {
            ArchiveContent::Assets(members) => members.values().for_each(|value| collect(value, is_secret, found)),
            ArchiveContent::Elided | ArchiveContent::Path(_) | ArchiveContent::Uri(_) => {}
        },
        PropertyValue::Secret(secret) => collect(secret.expose(), true, found),
        PropertyValue::Output(output) => {
            output.value.iter().for_each(|value| collect(value, is_secret || output.secret, found));
        }
        PropertyValue::List(items) => items.iter().for_each(|item| collect(item, is_secret, found)),
        PropertyValue::Map(map) => map.values().for_each(|value| collect(value, is_secret, found)),
        PropertyValue::Null
        | PropertyValue::Bool(_)
        | PropertyValue::Number(_)
        | PropertyValue::String(_)
        | PropertyValue::Bytes(_)
        | PropertyValue::Asset(_)
        | PropertyValue::Resource(_)
        | PropertyValue::Unknown(_) => {}
    }
}

#[cfg(test)]
mod tests;
