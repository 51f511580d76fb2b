//! Names of properties, and property paths, as a display shows them: without secrets.
//!
//! Input: the names of properties of resources, and paths of plugins and options. Output: the names with each secret masked.
//! A shown name stands for one name in all events of a display, so that a display that compares properties by their names
//! compares the right ones, and no property is lost. Masks of different names are numbered: `[secret]`, `[secret] (2)`.
//! Excluded: values, and internal names (`__…`) of properties, which no display shows.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::masking::{MASK, SecretMasker};
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use super::diff::engine_reason;
use super::long_texts::mask_and_shorten;
use super::property_changes::{Segment, locate};
use super::value::is_internal;

/// Number of names without a secret that are remembered.
const MAX_KNOWN: usize = 10_000;

/// Names as a display shows them.
#[derive(Default)]
pub(crate) struct ShownNames {
    /// Masked names, by the names.
    masked: HashMap<String, String>,
    /// Number of names with each mask.
    numbers: HashMap<String, usize>,
    /// Masked names that are shown.
    taken: HashSet<String>,
    /// Names in which there is none of the secrets.
    plain: hashbrown::HashSet<String>,
    /// Number of the secrets.
    secrets: usize,
}

impl ShownNames {
    /// Forgets which names have no secret if further secrets are known. Called before the names of an event or a resource.
    pub(crate) fn update(&mut self, masker: &SecretMasker) {
        let secrets = masker.count();
        if secrets != self.secrets || self.plain.len() > MAX_KNOWN {
            self.plain.clear();
            self.secrets = secrets;
        }
    }

    /// Returns a name as it is shown; `None`: as it is.
    pub(crate) fn name(&mut self, masker: &SecretMasker, name: &str) -> Option<String> {
        if let Some(masked) = self.masked.get(name) {
            return Some(masked.clone());
        }
        // A word of the engine is no secret, and a mask would tell that a secret has the same word.
        if self.plain.contains(name) || engine_reason(name).is_some() {
            return None;
        }
        let mut masked = name.to_owned();
        mask_and_shorten(masker, &mut masked);
        // A name that has the text of a mask is numbered with the masked ones.
        if masked == name && !name.contains(MASK) {
            self.plain.insert(masked);
            return None;
        }
        let shown = self.distinct(masked);
        self.masked.insert(name.to_owned(), shown.clone());
        Some(shown)
    }

    /// Returns a masked name with a number, if an earlier one is shown alike.
    fn distinct(&mut self, masked: String) -> String {
        let number = self.numbers.entry(masked.clone()).or_default();
        loop {
            *number += 1;
            let shown = if *number == 1 { masked.clone() } else { format!("{masked} ({number})") };
            if self.taken.insert(shown.clone()) {
                return shown;
            }
        }
    }

    /// Returns properties with their names as they are shown, at every depth; `None` if all are shown as they are.
    pub(crate) fn properties(&mut self, masker: &SecretMasker, properties: &PropertyMap) -> Option<PropertyMap> {
        let may_be_masked = self.secrets > 0;
        (may_be_masked && self.are_masked(masker, properties)).then(|| self.with_shown_names(masker, properties))
    }

    /// Returns whether a name among properties, at any depth, is masked. Most have none, and need no copy.
    fn are_masked(&mut self, masker: &SecretMasker, properties: &PropertyMap) -> bool {
        let mut properties = properties.iter();
        properties.any(|(name, value)| self.property_name(masker, name).is_some() || self.is_masked(masker, value))
    }

    fn is_masked(&mut self, masker: &SecretMasker, value: &PropertyValue) -> bool {
        match value {
            PropertyValue::Map(members) => self.are_masked(masker, members),
            PropertyValue::List(items) => items.iter().any(|item| self.is_masked(masker, item)),
            _ => false,
        }
    }

    fn property_name(&mut self, masker: &SecretMasker, name: &str) -> Option<String> {
        if is_internal(name) { None } else { self.name(masker, name) }
    }

    fn with_shown_names(&mut self, masker: &SecretMasker, properties: &PropertyMap) -> PropertyMap {
        let shown = properties.iter().map(|(name, value)| {
            (self.property_name(masker, name).unwrap_or_else(|| name.clone()), self.value(masker, value))
        });
        shown.collect()
    }

    /// Returns a value with the names in it as they are shown. A secret is masked as a whole.
    fn value(&mut self, masker: &SecretMasker, value: &PropertyValue) -> PropertyValue {
        match value {
            PropertyValue::Map(members) => PropertyValue::Map(self.with_shown_names(masker, members)),
            PropertyValue::List(items) => {
                PropertyValue::List(items.iter().map(|item| self.value(masker, item)).collect())
            }
            value => value.clone(),
        }
    }

    /// Returns a property path as it is shown; `None`: as it is. `old` and `new` are the properties, with the names that the
    /// plugin has sent, so that names without quotes (`tags.app.io/name`) are found.
    pub(crate) fn path(
        &mut self,
        masker: &SecretMasker,
        path: &str,
        old: &PropertyMap,
        new: &PropertyMap,
    ) -> Option<String> {
        let shown = self.name(masker, path)?;
        let segments = locate(path, old, new);
        if segments.len() < 2 {
            return Some(shown);
        }
        let elements = segments.into_iter().map(|segment| match segment {
            Segment::Name(name) => Element::Key(self.name(masker, &name).unwrap_or(name)),
            Segment::Index(index) => Element::Index(index),
        });
        let path = PropertyPath::from(elements.collect::<Vec<_>>()).to_string();
        // The secret may have the dots and brackets of the path.
        Some(if *masker.mask(&path) == *path { path } else { shown })
    }

    /// Masks property paths in place. Returns whether one was masked.
    pub(crate) fn paths<'p>(
        &mut self,
        masker: &SecretMasker,
        paths: impl IntoIterator<Item = &'p mut String>,
        (old, new): (&PropertyMap, &PropertyMap),
    ) -> bool {
        let mut masked = false;
        for path in paths {
            if let Some(shown) = self.path(masker, path, old, new) {
                *path = shown;
                masked = true;
            }
        }
        masked
    }

    /// Masks the property paths of a map in place.
    pub(crate) fn keys<T>(
        &mut self,
        masker: &SecretMasker,
        by_path: &mut BTreeMap<String, T>,
        (old, new): (&PropertyMap, &PropertyMap),
    ) {
        let shown = std::mem::take(by_path).into_iter().map(|(path, value)| {
            let shown = self.path(masker, &path, old, new);
            (shown.unwrap_or(path), value)
        });
        *by_path = shown.collect();
    }
}
