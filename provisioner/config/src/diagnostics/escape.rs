//! Escapes for characters that a terminal obeys instead of showing them.
//!
//! Everything that writes texts of others to a terminal uses these escapes. They have the form `\u202e`, so that JSON
//! with escaped characters is still the same JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use bridge::terminal::is_invisible;

/// Returns a text with escapes in place of invisible characters ([`is_invisible`]), control characters, and separators of
/// lines and paragraphs. Line ends, tabs, and the invisible characters that scripts and emoji need stay.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
        if is_hidden(character) && !is_line_end && !is_needed(before, character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                write!(escaped, "\\u{unit:04x}").unwrap_or_default();
            }
        } else {
            escaped.push(character);
        }
        before = Some(character);
    }
    Cow::Owned(escaped)
}

/// Returns whether a character is escaped unless it [is needed](is_needed).
fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{2028}' | '\u{2029}' => true,
        other => is_invisible(other) || other.is_control(),
    }
}

/// Returns whether an invisible character forms the one before it, as in emoji and some scripts: a joiner, or a variation
/// selector of a visible character that is not ASCII, or of a key such as `1`. Several of them in a row could hide text.
fn is_needed(before: Option<char>, character: char) -> bool {
    let Some(before) = before else { return false };
    let is_formed = !before.is_ascii() && !is_invisible(before);
    match character {
        '\u{200c}' | '\u{200d}' => is_formed || before == '\u{fe0f}',
        '\u{fe0f}' => is_formed || before.is_ascii_digit() || matches!(before, '#' | '*'),
        '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0e}' => is_formed,
        _ => false,
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
            ("a\u{fff9}b\u{fffb}\u{3164}\u{17b4}\u{180e}\u{ad}", "a\\ufff9b\\ufffb\\u3164\\u17b4\\u180e\\u00ad"),
            ("a\u{fe00}b\u{200d}c\u{fe0f}", "a\\ufe00b\\u200dc\\ufe0f"),
            ("é\u{fe00}\u{fe01}\u{fe0f}\u{e0041}", "é\u{fe00}\\ufe01\\ufe0f\\udb40\\udc41"),
            ("progress\r100%\r\nend", "progress\\u000d100%\r\nend"),
        ] {
            assert_eq!(escape_controls(text), escaped, "{text:?}");
        }
    }

    #[test]
    fn other_characters_stay() {
        for text in
            ["", "a\tb\nc", "ä 日本 שלום 👩\u{200d}🚀 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} क\u{94d}\u{200d} \u{a0}"]
        {
            assert_eq!(escape_controls(text), text);
        }
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = serde_json::json!({ "\u{202e}k": "a\u{85}\u{2028}\u{feff}\u{1b}\u{e0041}" });
        let escaped = escape_controls(&value.to_string()).into_owned();
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
