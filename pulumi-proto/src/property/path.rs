//! Property paths such as `a.b[0]["c d"]` (docs/spec/provider-protocol.md#7.3).
//!
//! Input: texts of users and providers. Output: paths, and the values that they find or reset in a property map.
//! Excluded: the purpose of a path.

use std::fmt;
use std::str::FromStr;

use super::secretness::copy_value_secretness;
use super::{PropertyMap, PropertyValue};

/// Path to a value in a property map. The empty path is the map itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PropertyPath(Vec<Element>);

/// Element of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Member of a map.
    Key(String),
    /// Item of a list, counted from zero.
    Index(usize),
    /// All members or items.
    Wildcard,
}

/// Error for a text that is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyPathError {
    /// The text starts with a dot.
    #[error("a property path starts with a name or an index, not with a dot")]
    LeadingDot,
    /// The text ends with a dot.
    #[error("a property path ends with a name or an index, not with a dot")]
    TrailingDot,
    /// A quoted key has no closing quote.
    #[error("a quoted key of a property path lacks its closing quote")]
    OpenQuote,
    /// A closing bracket is missing.
    #[error("a bracket of a property path lacks its closing bracket")]
    OpenBracket,
    /// The text in brackets is neither quoted, nor a number, nor `*`.
    #[error("[{0}] in a property path is neither an index nor a quoted key nor *")]
    Index(String),
}

impl PropertyPath {
    /// Returns the elements, outermost first.
    pub fn elements(&self) -> &[Element] {
        &self.0
    }

    /// Returns the path to an element of the value at this path.
    pub fn child(&self, element: Element) -> Self {
        Self(self.0.iter().cloned().chain([element]).collect())
    }

    /// Returns true if this path equals `other` or is a prefix of it. A wildcard of this path matches any element.
    pub fn contains(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(own, other)| *own == Element::Wildcard || own == other)
    }

    /// Returns the value at the path in a property map. Looks into secrets. Returns `None` for a path with a wildcard.
    pub fn get<'a>(&self, bag: &'a PropertyMap) -> Option<&'a PropertyValue> {
        let (Element::Key(key), rest) = self.0.split_first()? else { return None };
        find_value(rest, bag.get(key)?)
    }

    /// Returns the value at the path in a value. Looks into secrets. The empty path returns the value itself.
    pub fn get_in<'a>(&self, value: &'a PropertyValue) -> Option<&'a PropertyValue> {
        find_value(&self.0, value)
    }

    /// Reverts the change at the path: copies the old value to the new map, or removes the new value if the old map has
    /// none. Does not create parents and does not change the length of lists. A value that is secret in either map is
    /// secret.
    ///
    /// Returns true if the path is valid in both maps. An invalid path changes no value, except that a path with a
    /// wildcard may have reset some values. The empty path is invalid.
    pub fn reset(&self, old: &PropertyMap, new: &mut PropertyMap) -> bool {
        match self.0.split_first() {
            Some((element, rest)) => reset_in_map(element, rest, Some(old), new, Secretness::default()),
            None => false,
        }
    }
}

impl From<Vec<Element>> for PropertyPath {
    fn from(elements: Vec<Element>) -> Self {
        Self(elements)
    }
}

impl FromStr for PropertyPath {
    type Err = PropertyPathError;

    /// Parses a path like Pulumi, which accepts more than `Display` writes: an unquoted name ends at the next dot or
    /// bracket, and a dot before a bracket is ignored.
    fn from_str(text: &str) -> Result<Self, PropertyPathError> {
        if text.starts_with('.') {
            return Err(PropertyPathError::LeadingDot);
        }
        let mut elements = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() {
                    return Err(PropertyPathError::TrailingDot);
                }
                rest = after;
            } else if let Some(quoted) = rest.strip_prefix("[\"") {
                let (key, after) = quoted_key(quoted)?;
                elements.push(key_or_wildcard(key));
                rest = after.strip_prefix(']').ok_or(PropertyPathError::OpenBracket)?;
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']').ok_or(PropertyPathError::OpenBracket)?;
                elements.push(match index {
                    "*" => Element::Wildcard,
                    index => Element::Index(index.parse().map_err(|_| PropertyPathError::Index(index.to_owned()))?),
                });
                rest = after;
            } else {
                let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
                elements.push(key_or_wildcard(name.to_owned()));
                rest = after;
            }
        }
        Ok(Self(elements))
    }
}

/// Parses a key up to the closing quote. The only escape is `\"`.
fn quoted_key(text: &str) -> Result<(String, &str), PropertyPathError> {
    let mut key = String::new();
    let mut rest = text;
    loop {
        let at = rest.find('"').ok_or(PropertyPathError::OpenQuote)?;
        let (before, quote) = rest.split_at(at);
        rest = &quote[1..];
        match before.strip_suffix('\\') {
            Some(before) => {
                key.push_str(before);
                key.push('"');
            }
            None => {
                key.push_str(before);
                return Ok((key, rest));
            }
        }
    }
}

/// Returns a wildcard for `*`. A literal key `*` has no notation, not even in quotes.
fn key_or_wildcard(key: String) -> Element {
    if key == "*" { Element::Wildcard } else { Element::Key(key) }
}

impl fmt::Display for PropertyPath {
    /// Writes the most portable form: a key is quoted unless it consists of ASCII letters, digits and `_`. A key that
    /// ends with a backslash has no quoted form; it has no form at all if it contains a dot or a bracket, too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, element) in self.0.iter().enumerate() {
            match element {
                Element::Key(key) if is_bare(key) => write!(f, "{}{key}", if position == 0 { "" } else { "." })?,
                Element::Key(key) => write!(f, "[\"{}\"]", key.replace('"', "\\\""))?,
                Element::Index(index) => write!(f, "[{index}]")?,
                Element::Wildcard => f.write_str("[\"*\"]")?,
            }
        }
        Ok(())
    }
}

fn is_bare(key: &str) -> bool {
    let is_word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word || key.ends_with('\\') && !key.contains(['.', '['])
}

fn find_value<'a>(path: &[Element], value: &'a PropertyValue) -> Option<&'a PropertyValue> {
    let Some((element, rest)) = path.split_first() else { return Some(value) };
    let inside = match (element, unwrap_secrets(value)) {
        (Element::Key(key), PropertyValue::Map(map)) => map.get(key)?,
        (Element::Index(index), PropertyValue::List(items)) => items.get(*index)?,
        _ => return None,
    };
    find_value(rest, inside)
}

/// Returns the value inside any secrets.
fn unwrap_secrets(mut value: &PropertyValue) -> &PropertyValue {
    while let PropertyValue::Secret(secret) = value {
        value = secret.expose();
    }
    value
}

/// Returns a mutable reference to the value inside any secrets.
fn unwrap_secrets_mut(mut value: &mut PropertyValue) -> &mut PropertyValue {
    while let PropertyValue::Secret(secret) = value {
        value = &mut secret.0;
    }
    value
}

/// Secretness of the values along the path.
#[derive(Clone, Copy, Default)]
struct Secretness {
    old_is_secret: bool,
    new_is_secret: bool,
}

impl Secretness {
    fn within(self, old: Option<&PropertyValue>, new: &PropertyValue) -> Self {
        let is_secret = |value: &PropertyValue| matches!(value, PropertyValue::Secret(_));
        Self {
            old_is_secret: self.old_is_secret || old.is_some_and(is_secret),
            new_is_secret: self.new_is_secret || is_secret(new),
        }
    }

    /// Returns the old value for the place of `new` in the new map: as a secret if only the old map has a secret along
    /// the path, and where `new` is secret.
    fn copy_old_value(self, old: &PropertyValue, new: Option<&PropertyValue>) -> PropertyValue {
        let mut copy =
            if self.old_is_secret && !self.new_is_secret { PropertyValue::secret(old.clone()) } else { old.clone() };
        if let Some(new) = new {
            copy_value_secretness(new, &mut copy);
        }
        copy
    }
}

/// Resets a part of a value, and returns true if the path is valid. `old` is `None` if the old map has no value here.
fn reset_value(path: &[Element], old: Option<&PropertyValue>, new: &mut PropertyValue, context: Secretness) -> bool {
    let Some((element, rest)) = path.split_first() else { return false };
    let context = context.within(old, new);
    let old = old.map(unwrap_secrets);
    match (element, unwrap_secrets_mut(new)) {
        (Element::Key(_) | Element::Wildcard, PropertyValue::Map(new)) => {
            reset_in_map(element, rest, old.and_then(PropertyValue::as_map), new, context)
        }
        (Element::Index(_) | Element::Wildcard, PropertyValue::List(new)) => {
            let old = match old {
                Some(PropertyValue::List(items)) => Some(items.as_slice()),
                _ => None,
            };
            reset_in_list(element, rest, old, new, context)
        }
        _ => is_missing_in_old(element, rest, old),
    }
}

/// Returns true if a path is valid although its element does not apply to the new value: the element does not apply to
/// the old value either, or is the last one and missing there. A wildcard is never valid.
fn is_missing_in_old(element: &Element, rest: &[Element], old: Option<&PropertyValue>) -> bool {
    match (element, old) {
        (Element::Wildcard, _) => false,
        (Element::Key(key), Some(PropertyValue::Map(old))) => rest.is_empty() && !old.contains_key(key),
        (Element::Index(_), Some(PropertyValue::List(_))) => false,
        _ => true,
    }
}

fn reset_in_map(
    element: &Element,
    rest: &[Element],
    old: Option<&PropertyMap>,
    new: &mut PropertyMap,
    context: Secretness,
) -> bool {
    match (element, old) {
        (Element::Key(key), old) if rest.is_empty() => {
            match old.and_then(|old| old.get(key)) {
                Some(old) => new.insert(key.clone(), context.copy_old_value(old, new.get(key))),
                None => new.remove(key),
            };
            true
        }
        (Element::Key(key), Some(old)) => match (old.get(key), new.get_mut(key)) {
            (None, None) => true,
            (Some(_), None) => false,
            (old, Some(new)) => reset_value(rest, old, new, context),
        },
        (Element::Wildcard, Some(old)) if rest.is_empty() => {
            *new = old.iter().map(|(key, old)| (key.clone(), context.copy_old_value(old, new.get(key)))).collect();
            true
        }
        // Stops at the first failure in the order of keys. Pulumi uses the random order of Go's maps.
        (Element::Wildcard, Some(old)) => {
            old.iter().all(|(key, old)| new.get_mut(key).is_some_and(|new| reset_value(rest, Some(old), new, context)))
        }
        (Element::Wildcard, None) => rest.is_empty(),
        (Element::Key(_), None) => false,
        // Neither value is a list.
        (Element::Index(_), _) => true,
    }
}

fn reset_in_list(
    element: &Element,
    rest: &[Element],
    old: Option<&[PropertyValue]>,
    new: &mut [PropertyValue],
    context: Secretness,
) -> bool {
    let reset_item = |old: &PropertyValue, new: &mut PropertyValue| {
        if rest.is_empty() {
            *new = context.copy_old_value(old, Some(new));
            true
        } else {
            reset_value(rest, Some(old), new, context)
        }
    };
    match (element, old) {
        (Element::Index(index), Some(old)) => match (old.get(*index), new.get_mut(*index)) {
            (Some(old), Some(new)) => reset_item(old, new),
            (None, None) => rest.is_empty(),
            _ => false,
        },
        (Element::Wildcard, Some(old)) => {
            let same_length = old.len() == new.len();
            old.iter().zip(new).all(|(old, new)| reset_item(old, new)) && same_length
        }
        (Element::Wildcard, None) => rest.is_empty(),
        (Element::Index(_) | Element::Key(_), _) => false,
    }
}

#[cfg(test)]
mod tests;
