//! Escapes for characters that a terminal obeys instead of showing them, and for commands that a pipeline obeys.
//!
//! Everything that writes texts of others to a terminal uses these escapes. They have the form `\u202e`, so that JSON
//! with escaped characters is still the same JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

use bridge::terminal::is_invisible;

/// Beginnings of commands that Azure Pipelines and GitHub Actions obey anywhere in a line of output.
const PIPELINE_COMMANDS: [&str; 2] = ["##[", "##vso["];

/// Returns a text with escapes in place of invisible characters ([`is_invisible`]), control characters, and separators of
/// lines and paragraphs. Line ends, tabs, and the invisible characters that scripts and emoji need stay. A command of a
/// pipeline (`##[…]`, `##vso[…]`) is obeyed anywhere in a line, and loses a number sign to an escape.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    match PIPELINE_COMMANDS.iter().any(|command| text.contains(command)) {
        true => {
            let escape = |text: String, command: &&str| text.replace(command, &format!("#\\u0023{}", &command[2..]));
            let text = PIPELINE_COMMANDS.iter().fold(text.to_owned(), escape);
            Cow::Owned(escape_hidden(&text).into_owned())
        }
        false => escape_hidden(text),
    }
}

/// Returns a line with an escape in place of the first colon of a workflow command (`::…::`), which a pipeline obeys at the
/// start of a line, also behind spaces.
pub fn escape_workflow_command(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim_start();
    match trimmed.strip_prefix("::") {
        Some(rest) => Cow::Owned(format!("{}\\u003a:{rest}", &line[..line.len() - trimmed.len()])),
        None => Cow::Borrowed(line),
    }
}

fn escape_hidden(text: &str) -> Cow<'_, str> {
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

    /// Shows: events.md#events-as-json-lines "Characters that a terminal obeys or does not show, such as control
    ///   characters and those that change the direction of text, are written as escapes of JSON"
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

    /// Shows: security.md#secrets-in-output "So are commands that a pipeline obeys in its log"
    #[test]
    fn commands_of_pipelines_are_escaped() {
        for (text, escaped) in [
            ("a ##vso[task.setvariable variable=x]y", "a #\\u0023vso[task.setvariable variable=x]y"),
            ("##[add-mask]x ###[y]", "#\\u0023[add-mask]x ##\\u0023[y]"),
            ("# ## [x] ##vs", "# ## [x] ##vs"),
        ] {
            assert_eq!(escape_controls(text), escaped, "{text:?}");
        }
        let json = serde_json::json!({ "text": "##vso[x] ##[y]" });
        let escaped = escape_controls(&json.to_string()).into_owned();
        assert!(!escaped.contains("##"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), json);
        for (line, escaped) in [
            ("::set-env name=x::y", "\\u003a:set-env name=x::y"),
            ("  \t::stop-commands::x", "  \t\\u003a:stop-commands::x"),
            ("urn::a: ::x", "urn::a: ::x"),
            (":x", ":x"),
        ] {
            assert_eq!(escape_workflow_command(line), escaped, "{line:?}");
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

    /// Shows: events.md#events-as-json-lines "Characters that a terminal obeys or does not show, such as control
    ///   characters and those that change the direction of text, are written as escapes of JSON"
    #[test]
    fn escaped_json_is_the_same_json() {
        let value = serde_json::json!({ "\u{202e}k": "a\u{85}\u{2028}\u{feff}\u{1b}\u{e0041}" });
        let escaped = escape_controls(&value.to_string()).into_owned();
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
