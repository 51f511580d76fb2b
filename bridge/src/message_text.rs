//! Texts of messages to users, with the parts that are constants of the program.
//!
//! A message is put together from literals of its code and from texts from outside: names, paths, errors of the system,
//! replies of plugins and services. Secrets are masked in all of them but not in the literals. A mask within a literal
//! would hide no secret, and would reveal one: a passphrase `secret` in "the secrets of the stack".
//!
//! A part of a text is a constant only if it was formatted from the read-only memory of the program, so that a text from
//! outside is never taken for a literal with the same words. A text that was formatted as a `String` has no constants. A
//! [`MessageText`] that is formatted into another one keeps them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Read as _;
use std::ops::{Deref, Range};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Maximum size in bytes of the list of mappings that is read.
const MAX_MAPPINGS: u64 = 1 << 20;

/// Text of a message, with the places of its constants.
#[derive(Clone, Debug, Default)]
pub struct MessageText {
    text: String,
    /// Constants in their order.
    constants: Vec<Constant>,
}

/// Part of a text that is a constant.
#[derive(Clone, Debug)]
struct Constant {
    place: Range<usize>,
    text: &'static str,
}

impl MessageText {
    /// Formats a text. Its constants are the literals of this format string, and of those of the values in it.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut formatted = Self::default();
        // Only the implementation of a value can fail; what it has written so far stays.
        formatted.write_fmt(text).ok();
        formatted
    }

    /// Formats a value, such as an error.
    pub fn of(value: &(impl fmt::Display + ?Sized)) -> Self {
        Self::new(format_args!("{value}"))
    }

    /// Formats an error and its causes in one line, as [`crate::error::chain`] does.
    pub fn chain(error: &(dyn Error + 'static)) -> Self {
        let mut line = Self::of(error);
        let mut next = error.source();
        while let Some(error) = next {
            let text = Self::of(error);
            if line.is_empty() {
                line = text;
            } else if !line.contains(&*text) {
                line.push(": ");
                line.push_text(&text);
            }
            next = error.source();
        }
        line
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text without the places of its constants.
    pub fn into_string(self) -> String {
        self.text
    }

    /// Returns whether a range is within one constant.
    pub fn is_constant(&self, range: &Range<usize>) -> bool {
        // The last constant that begins at or before the range.
        let next = self.constants.partition_point(|constant| constant.place.start <= range.start);
        self.constants[..next].last().is_some_and(|constant| range.end <= constant.place.end)
    }

    fn push(&mut self, piece: &str) {
        let start = self.text.len();
        self.text.push_str(piece);
        if let Some(text) = constant(piece) {
            self.constants.push(Constant { place: start..self.text.len(), text });
        }
    }

    /// Appends a text with its constants.
    pub fn push_text(&mut self, other: &Self) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        let place = |place: &Range<usize>| place.start + start..place.end + start;
        let constants = other.constants.iter().map(|constant| Constant { place: place(&constant.place), ..*constant });
        self.constants.extend(constants);
    }
}

/// Receives the pieces of a text that is formatted: literals from the memory of the program, everything else from elsewhere.
impl fmt::Write for MessageText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.push(piece);
        Ok(())
    }
}

/// Writes the constants from the memory in which they are known, so that a text that contains this one knows them.
impl fmt::Display for MessageText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut end = 0;
        for Constant { place, text } in &self.constants {
            f.write_str(&self.text[end..place.start])?;
            f.write_str(text)?;
            end = place.end;
        }
        f.write_str(&self.text[end..])
    }
}

impl Deref for MessageText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// A text that is formatted now.
impl From<fmt::Arguments<'_>> for MessageText {
    fn from(text: fmt::Arguments<'_>) -> Self {
        Self::new(text)
    }
}

/// A text from outside.
impl From<String> for MessageText {
    fn from(text: String) -> Self {
        Self { text, constants: Vec::new() }
    }
}

/// A literal, or a text from outside.
impl From<&str> for MessageText {
    fn from(text: &str) -> Self {
        let mut pushed = Self::default();
        pushed.push(text);
        pushed
    }
}

impl From<&MessageText> for MessageText {
    fn from(text: &MessageText) -> Self {
        text.clone()
    }
}

impl From<Cow<'_, str>> for MessageText {
    fn from(text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

/// Compares the texts only.
impl PartialEq for MessageText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for MessageText {}

impl PartialEq<str> for MessageText {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<String> for MessageText {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

impl PartialEq<&str> for MessageText {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// Returns a text if it is a constant: it is in the read-only memory of the program, or it is the copy of such a text that
/// an earlier call has returned. Keeps a copy of each literal for the rest of the process.
fn constant(text: &str) -> Option<&'static str> {
    static COPIES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if text.is_empty() {
        return None;
    }
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = copies.get(text).copied();
    if copy.is_some_and(|copy| std::ptr::eq(copy, text)) {
        return copy;
    }
    if !is_literal(text) {
        return None;
    }
    Some(copy.unwrap_or_else(|| {
        let copy = &*Box::leak(Box::from(text));
        copies.insert(copy);
        copy
    }))
}

/// Returns whether a text is in the read-only memory of the program, which holds its literals and nothing that it learns
/// while it runs. Where the system does not tell, no text is.
fn is_literal(text: &str) -> bool {
    static LITERALS: OnceLock<Option<Range<usize>>> = OnceLock::new();
    let literals = LITERALS.get_or_init(|| find_mapping(&mappings()?, "a literal".as_ptr().addr()));
    let start = text.as_ptr().addr();
    literals.as_ref().is_some_and(|literals| literals.start <= start && start + text.len() <= literals.end)
}

/// Returns the mappings of the memory of the process.
fn mappings() -> Option<String> {
    let mut mappings = String::new();
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel, which is never a pipe")]
    let file = File::open("/proc/self/maps").ok()?;
    file.take(MAX_MAPPINGS).read_to_string(&mut mappings).ok()?;
    Some(mappings)
}

/// Returns the mapping that has an address, if it cannot be written to: lines of `START-END PERMISSIONS …`.
fn find_mapping(mappings: &str, address: usize) -> Option<Range<usize>> {
    mappings.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let hexadecimal = |digits| usize::from_str_radix(digits, 16).ok();
        let range = hexadecimal(start)?..hexadecimal(end)?;
        (range.contains(&address) && rest.starts_with("r-")).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants(text: &MessageText) -> Vec<&str> {
        text.constants.iter().map(|constant| &text[constant.place.clone()]).collect()
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read {path:?} of {what}")]
    struct ReadError {
        path: String,
        what: &'static str,
        #[source]
        source: std::io::Error,
    }

    fn read_error(path: &str) -> ReadError {
        let source = std::io::Error::other(String::from("secret key"));
        ReadError { path: path.to_owned(), what: "the plugin", source }
    }

    #[test]
    fn literals_of_format_strings_are_constants_and_values_are_not() {
        let name = String::from("secret");
        let text = MessageText::new(format_args!("the secrets of {name} and {:>8}, {}", name.as_str(), name.len()));
        assert_eq!(text, "the secrets of secret and   secret, 6");
        assert_eq!(constants(&text), ["the secrets of ", " and ", ", "]);
        assert!(text.is_constant(&(4..10)) && !text.is_constant(&(15..21)) && !text.is_constant(&(14..16)));
        assert!(!text.is_constant(&(100..101)) && !MessageText::default().is_constant(&(0..0)));
    }

    #[test]
    fn literals_of_errors_and_their_causes_are_constants() {
        let text = MessageText::chain(&read_error("a\nsecret"));
        assert_eq!(text, "cannot read \"a\\nsecret\" of the plugin: secret key");
        let of_values = ["secret", "secret key"].map(|value| text.rfind(value).unwrap());
        assert!(!text.is_constant(&(of_values[0]..of_values[0] + 6)));
        let secret = text.find("secret").unwrap();
        assert!(!text.is_constant(&(secret..secret + 6)));
        for literal in ["cannot read ", " of ", "the plugin", ": "] {
            let start = text.find(literal).unwrap();
            assert!(text.is_constant(&(start..start + literal.len())), "{literal}");
        }
    }

    #[test]
    fn text_within_a_text_keeps_its_constants() {
        let name = String::from("secret");
        let inner = MessageText::new(format_args!("the secrets of {name}"));
        let mut text = MessageText::new(format_args!("no, {inner}; {}", MessageText::of(&inner)));
        text.push_text(&inner);
        assert_eq!(text, "no, the secrets of secret; the secrets of secretthe secrets of secret");
        let of_inner = "the secrets of ";
        assert_eq!(constants(&text), ["no, ", of_inner, "; ", of_inner, of_inner]);
        // The same words elsewhere in memory.
        assert_eq!(constants(&String::from(of_inner).as_str().into()), [""; 0]);
        assert_eq!(constants(&MessageText::new(format_args!("{}", inner.as_str()))), [""; 0]);
    }

    #[test]
    fn texts_from_outside_have_no_constants() {
        let owned = String::from("the secrets");
        for text in [MessageText::from(owned.clone()), owned.as_str().into(), Cow::Borrowed(owned.as_str()).into()] {
            assert_eq!((text.as_str(), constants(&text)), ("the secrets", vec![]));
        }
        assert_eq!(constants(&MessageText::new(format_args!("{owned}"))), [""; 0]);
        assert_eq!(constants(&"the secrets".into()), ["the secrets"]);
        // The program writes texts of others beside its literals, on the stack and in memory that it leaks.
        let on_stack = *b"secret";
        assert_eq!(constants(&std::str::from_utf8(&on_stack).unwrap().into()), [""; 0]);
        assert_eq!(constants(&(&*owned.leak()).into()), [""; 0]);
    }

    #[test]
    fn only_a_mapping_without_write_access_has_constants() {
        let mappings =
            "1000-2000 r--p 00000000 00:00 0 /sc\n2000-3000 rw-p 00000000 00:00 0\nx\n3000-4000 r-xp 0 0 0 /sc\n";
        let found = [0x0fff, 0x1000, 0x1fff, 0x2000, 0x3000, 0x4000].map(|address| find_mapping(mappings, address));
        assert_eq!(found, [None, Some(0x1000..0x2000), Some(0x1000..0x2000), None, Some(0x3000..0x4000), None]);
    }
}
