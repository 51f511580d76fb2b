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
    plain: HashSet<String>,
    /// Number of the secrets.
    secrets: usize,
}

impl ShownNames {
    /// Returns a name as it is shown; `None`: as it is.
    pub(crate) fn name(&mut self, masker: &SecretMasker, name: &str) -> Option<String> {
        if let Some(masked) = self.masked.get(name) {
            return Some(masked.clone());
        }
        if masker.count() != self.secrets || self.plain.len() > MAX_KNOWN {
            self.plain.clear();
            self.secrets = masker.count();
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
        let shown: Vec<_> = properties.iter().map(|(name, value)| self.property(masker, name, value)).collect();
        shown.iter().any(|(name, value)| name.is_some() || value.is_some()).then(|| {
            let shown = shown.into_iter().zip(properties);
            shown
                .map(|((shown, changed), (name, value))| {
                    (shown.unwrap_or_else(|| name.clone()), changed.unwrap_or_else(|| value.clone()))
                })
                .collect()
        })
    }

    /// Returns the name and the value of a property as they are shown; `None`: as they are.
    fn property(
        &mut self,
        masker: &SecretMasker,
        name: &str,
        value: &PropertyValue,
    ) -> (Option<String>, Option<PropertyValue>) {
        (if is_internal(name) { None } else { self.name(masker, name) }, self.value(masker, value))
    }

    /// Returns a value with the names in it as they are shown. A secret is masked as a whole.
    fn value(&mut self, masker: &SecretMasker, value: &PropertyValue) -> Option<PropertyValue> {
        match value {
            PropertyValue::Map(members) => self.properties(masker, members).map(PropertyValue::Map),
            PropertyValue::List(items) => {
                let shown: Vec<_> = items.iter().map(|item| self.value(masker, item)).collect();
                shown.iter().any(Option::is_some).then(|| {
                    let items = shown.into_iter().zip(items);
                    PropertyValue::List(items.map(|(shown, item)| shown.unwrap_or_else(|| item.clone())).collect())
                })
            }
            _ => None,
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
