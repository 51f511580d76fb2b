//! Property paths: which part of a bag a text such as `a.b[0]["c d"]` names (provider protocol, section 7.3).
//!
//! Enters: text written by users and providers. Leaves: paths, and what they find or reset in a bag. Never here: what a
//! path is used for.

use std::fmt;
use std::str::FromStr;

use super::{PropertyMap, PropertyValue};

/// A path to a part of a bag. The empty path is the bag itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PropertyPath(Vec<Element>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// The member of a map.
    Key(String),
    /// The item of a list, from zero.
    Index(usize),
    /// Every member or item; meant in what users write.
    Wildcard,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text starts with a dot.
    #[error("a property path starts with a name or an index, not with a dot")]
    LeadingDot,
    /// The text ends with a dot.
    #[error("a property path ends with a name or an index, not with a dot")]
    TrailingDot,
    /// A quoted key does not end.
    #[error("a quoted key of a property path lacks its closing quote")]
    OpenQuote,
    /// A bracket does not end, or not where it should.
    #[error("a bracket of a property path lacks its closing bracket")]
    OpenBracket,
    /// Something in brackets that is neither quoted, nor a number, nor `*`.
    #[error("[{0}] in a property path is neither an index nor a quoted key nor *")]
    Index(String),
}

impl PropertyPath {
    /// The steps, from the outside in.
    pub fn elements(&self) -> &[Element] {
        &self.0
    }

    /// Whether this path names the same as the other or something around it. A wildcard of this path matches any step.
    pub fn contains(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len()
            && self.0.iter().zip(&other.0).all(|(own, other)| *own == Element::Wildcard || own == other)
    }

    /// The value at the path, seen through secrets. A wildcard finds nothing.
    pub fn get<'a>(&self, bag: &'a PropertyMap) -> Option<&'a PropertyValue> {
        let (Element::Key(key), rest) = self.0.split_first()? else { return None };
        find(rest, bag.get(key)?)
    }

    /// The value at the path inside a value, seen through secrets; the empty path finds the value itself.
    pub fn get_in<'a>(&self, value: &'a PropertyValue) -> Option<&'a PropertyValue> {
        find(&self.0, value)
    }

    /// Takes back what changed at the path: the old value is written into the new bag, or removed from it where there
    /// was none. Nothing is created around the place and lists keep their length. What was secret stays secret.
    ///
    /// Returns whether the path made sense in both bags. A path that did not leaves what it could not reach as it is;
    /// below a wildcard it may have reset a part. The empty path never makes sense.
    pub fn reset(&self, old: &PropertyMap, new: &mut PropertyMap) -> bool {
        match self.0.split_first() {
            Some((element, rest)) => reset_in_map(element, rest, Some(old), new, Context::default()),
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
    type Err = PathError;

    /// Reads a path as Pulumi does, which takes more than the printer writes: a bare name runs to the next dot or
    /// bracket, and a dot before a bracket is let pass.
    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.starts_with('.') {
            return Err(PathError::LeadingDot);
        }
        let mut elements = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() {
                    return Err(PathError::TrailingDot);
                }
                rest = after;
            } else if let Some(quoted) = rest.strip_prefix("[\"") {
                let (key, after) = quoted_key(quoted)?;
                elements.push(key_or_wildcard(key));
                rest = after.strip_prefix(']').ok_or(PathError::OpenBracket)?;
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']').ok_or(PathError::OpenBracket)?;
                elements.push(match index {
                    "*" => Element::Wildcard,
                    index => Element::Index(index.parse().map_err(|_| PathError::Index(index.to_owned()))?),
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

/// Reads up to the closing quote. The only escape is `\"`.
fn quoted_key(text: &str) -> Result<(String, &str), PathError> {
    let mut key = String::new();
    let mut rest = text;
    loop {
        let at = rest.find('"').ok_or(PathError::OpenQuote)?;
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

/// A literal key `*` cannot be written, not even in quotes.
fn key_or_wildcard(key: String) -> Element {
    if key == "*" { Element::Wildcard } else { Element::Key(key) }
}

impl fmt::Display for PropertyPath {
    /// Writes the form that every reader understands: a key is quoted unless it is made of ASCII letters, digits and
    /// `_` alone.
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
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn find<'a>(path: &[Element], value: &'a PropertyValue) -> Option<&'a PropertyValue> {
    let Some((element, rest)) = path.split_first() else { return Some(value) };
    let inside = match (element, exposed(value)) {
        (Element::Key(key), PropertyValue::Map(map)) => map.get(key)?,
        (Element::Index(index), PropertyValue::List(items)) => items.get(*index)?,
        _ => return None,
    };
    find(rest, inside)
}

/// The value without its secret marks.
fn exposed(mut value: &PropertyValue) -> &PropertyValue {
    while let PropertyValue::Secret(secret) = value {
        value = secret.expose();
    }
    value
}

/// The same, to change it in place.
fn exposed_mut(mut value: &mut PropertyValue) -> &mut PropertyValue {
    while let PropertyValue::Secret(secret) = value {
        value = &mut secret.0;
    }
    value
}

/// Whether the values on the way were secret.
#[derive(Clone, Copy, Default)]
struct Context {
    old_is_secret: bool,
    new_is_secret: bool,
}

impl Context {
    fn within(self, old: Option<&PropertyValue>, new: &PropertyValue) -> Self {
        let is_secret = |value: &PropertyValue| matches!(value, PropertyValue::Secret(_));
        Self {
            old_is_secret: self.old_is_secret || old.is_some_and(is_secret),
            new_is_secret: self.new_is_secret || is_secret(new),
        }
    }

    /// The old value as it goes into the new place.
    fn carry(self, old: &PropertyValue) -> PropertyValue {
        if self.old_is_secret && !self.new_is_secret { PropertyValue::secret(old.clone()) } else { old.clone() }
    }
}

/// Resets a part of a value. `old` is absent where the old bag had nothing at this place.
fn reset(path: &[Element], old: Option<&PropertyValue>, new: &mut PropertyValue, context: Context) -> bool {
    let Some((element, rest)) = path.split_first() else { return false };
    let context = context.within(old, new);
    let old = old.map(exposed);
    match (element, exposed_mut(new)) {
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
        _ => nothing_there(element, rest, old),
    }
}

/// Whether the step finds nothing in the old value either, where the new one cannot be stepped into.
fn nothing_there(element: &Element, rest: &[Element], old: Option<&PropertyValue>) -> bool {
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
    context: Context,
) -> bool {
    match (element, old) {
        (Element::Key(key), old) if rest.is_empty() => {
            match old.and_then(|old| old.get(key)) {
                Some(old) => new.insert(key.clone(), context.carry(old)),
                None => new.remove(key),
            };
            true
        }
        (Element::Key(key), Some(old)) => match (old.get(key), new.get_mut(key)) {
            (None, None) => true,
            (Some(_), None) => false,
            (old, Some(new)) => reset(rest, old, new, context),
        },
        (Element::Wildcard, Some(old)) if rest.is_empty() => {
            *new = old.iter().map(|(key, old)| (key.clone(), context.carry(old))).collect();
            true
        }
        // Up to the first that fails, by key; Pulumi goes in whatever order Go's map happens to have.
        (Element::Wildcard, Some(old)) => {
            old.iter().all(|(key, old)| new.get_mut(key).is_some_and(|new| reset(rest, Some(old), new, context)))
        }
        (Element::Wildcard, None) => rest.is_empty(),
        (Element::Key(_), None) => false,
        // Neither bag is a list.
        (Element::Index(_), _) => true,
    }
}

fn reset_in_list(
    element: &Element,
    rest: &[Element],
    old: Option<&[PropertyValue]>,
    new: &mut [PropertyValue],
    context: Context,
) -> bool {
    let reset_item = |old: &PropertyValue, new: &mut PropertyValue| {
        if rest.is_empty() {
            *new = context.carry(old);
            true
        } else {
            reset(rest, Some(old), new, context)
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
