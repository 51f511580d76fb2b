//! Escapes for characters that a terminal obeys instead of showing them.
//!
//! Everything that writes texts of others to a terminal uses these escapes. They have the form `\u202e`, so that JSON
//! with escaped characters is still the same JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a text with escapes in place of control characters, characters that change the direction of text, separators
/// of lines and paragraphs, and spaces without width. Line ends and tabs stay.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
        if is_escaped(character) && !is_line_end {
            // Writing to a String cannot fail.
            write!(escaped, "\\u{:04x}", u32::from(character)).unwrap_or_default();
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character is escaped: see [`escape_controls`]. Other invisible characters, such as the joiners
/// U+200C and U+200D, are not escaped, because emoji and some scripts need them.
fn is_escaped(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        for (text, escaped) in [
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u202eb\\u2066c\\u2069"),
            ("\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}", "\\u061c\\u200e\\u200f\\u2028\\u2029"),
            ("\u{1b}[2J\u{9b}31m\u{7f}\0", "\\u001b[2J\\u009b31m\\u007f\\u0000"),
            ("x\u{200b}y\u{2060}z\u{feff}", "x\\u200by\\u2060z\\ufeff"),
            ("progress\r100%\r\nend", "progress\\u000d100%\r\nend"),
        ] {
            assert_eq!(escape_controls(text), escaped, "{text:?}");
        }
    }

    #[test]
    fn other_characters_stay() {
        for text in ["", "a\tb\nc", "ä 日本 שלום 👩\u{200d}🚀 \u{a0}"] {
            assert!(matches!(escape_controls(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = serde_json::json!({ "\u{202e}k": "a\u{85}\u{2028}\u{feff}\u{1b}" });
        let escaped = escape_controls(&value.to_string()).into_owned();
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
