//! Characters and escape sequences that a terminal obeys, or does not show.
//!
//! Input: texts of others. Output: which parts of them a reader does not see. This is the one table for everything that
//! removes or escapes such parts, so that what is looked for in a text is what a terminal shows of it. Excluded: output.

/// Returns whether a terminal shows nothing for a character: a control character that is no space, a format character
/// (general category `Cf`) that has no glyph, or one with the property `Default_Ignorable_Code_Point`.
pub fn is_invisible(character: char) -> bool {
    match character {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control() && !other.is_whitespace(),
    }
}

/// Returns whether a text may have escape sequences.
pub fn has_escape_sequences(text: &str) -> bool {
    text.contains(|character| character == '\u{1b}' || ('\u{80}'..='\u{9f}').contains(&character))
}

/// Returns a text without its escape sequences. What follows the beginning of a sequence that does not end in its line
/// stays: a terminal may hide it, but it may be all that the text says.
pub fn without_escape_sequences(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        match escape_sequence(rest) {
            Some(length) => rest = &rest[length..],
            None => {
                visible.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    visible
}

/// Returns the length in bytes of the escape sequence that a text begins with. `None` if it begins with none, or with one
/// that does not end before the next line end or control character (ECMA-48).
pub fn escape_sequence(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let mut length = first.len_utf8();
    let kind = match first {
        '\u{1b}' => {
            let kind = text[length..].chars().next().filter(char::is_ascii)?;
            length += 1;
            kind
        }
        // The characters U+0080 to U+009F are short forms of an escape and the characters from `@` to `_`.
        '\u{80}'..='\u{9f}' => char::from_u32(u32::from(first) - 0x40)?,
        _ => return None,
    };
    let rest = &text[length..];
    let count = |text: &str, from: u8, to: u8| text.bytes().take_while(|byte| (from..=to).contains(byte)).count();
    match kind {
        // Control sequence: parameters, intermediate bytes, one final byte.
        '[' => {
            let parameters = count(rest, b'0', b'?');
            let before = parameters + count(&rest[parameters..], b' ', b'/');
            rest.as_bytes().get(before).filter(|byte| (b'@'..=b'~').contains(*byte))?;
            Some(length + before + 1)
        }
        // Control strings, such as a title or a link.
        ']' | 'P' | 'X' | '^' | '_' => {
            let end = rest.find(char::is_control)?;
            let after = &rest[end..];
            let terminators = ["\u{1b}\\", "\u{9c}", "\u{7}"];
            terminators.into_iter().find(|end| after.starts_with(end)).map(|found| length + end + found.len())
        }
        // Intermediate bytes and one final byte, such as the choice of a character set.
        ' '..='/' if first == '\u{1b}' => {
            let before = count(rest, b' ', b'/');
            rest.as_bytes().get(before).filter(|byte| (b'0'..=b'~').contains(*byte))?;
            Some(length + before + 1)
        }
        '0'..='~' if first == '\u{1b}' => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escape_sequences_that_end_are_removed() {
        for (text, visible) in [
            ("a\u{1b}[31mb\u{1b}[?25lc\u{1b}[1 qd", "abcd"),
            ("a\u{9b}31mb\u{9d}0;title\u{9c}c", "abc"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;https://x/ä\u{1b}\\c\u{1b}P1$r\u{1b}\\d", "abcd"),
            ("a\u{1b}(Bb\u{1b}7c", "abc"),
            ("a\u{1b}]0;title", "a\u{1b}]0;title"),
            ("a\u{1b}]0;title\nb\u{7}", "a\u{1b}]0;title\nb\u{7}"),
            ("a\u{1b}Pone\u{1b}[31mtwo\u{1b}\\", "a\u{1b}Ponetwo"),
            ("a\u{90}one\u{90}two\u{7}", "a\u{90}one"),
            ("a\u{1b}[12", "a\u{1b}[12"),
            ("a\u{9b}ä\u{85}\u{1b}", "a\u{9b}ä\u{85}\u{1b}"),
            ("a\u{1b}ä\u{1b}(", "a\u{1b}ä\u{1b}("),
        ] {
            assert_eq!(without_escape_sequences(text), visible, "{text:?}");
        }
    }

    #[test]
    fn sequences_that_do_not_end_cost_time_in_proportion_to_their_length() {
        for begin in ["\u{1b}]", "\u{9d}", "\u{1b}P", "\u{1b}[0", "\u{1b} "] {
            let text = begin.repeat(200_000);
            assert_eq!(without_escape_sequences(&text), text);
        }
    }

    /// Shows: events.md#events-as-json-lines "Characters that a terminal obeys or does not show, such as control
    ///   characters and those that change the direction of text, are written as escapes of JSON"
    #[test]
    fn format_characters_are_invisible_and_other_characters_are_not() {
        let invisible = "\0\u{7f}\u{9b}\u{ad}\u{34f}\u{115f}\u{17b4}\u{17b5}\u{180b}\u{180e}\u{200b}\u{200d}\u{2064}\u{3164}\
                         \u{fe0f}\u{feff}\u{fff9}\u{fffa}\u{fffb}\u{13430}\u{e0041}\u{e0100}";
        assert!(invisible.chars().all(is_invisible));
        // Some format characters of Arabic and Syriac have a glyph.
        assert!(!"a \n\t\r\u{85}\u{a0}\u{600}\u{6dd}\u{70f}\u{fffc}\u{fffd}🚀".contains(is_invisible));
    }
}
