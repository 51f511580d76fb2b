//! Indentation of JSON texts.

/// A text with four blanks for each level and a newline at the end, whatever blanks it had.
pub(super) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let token = match character {
            '"' => string_end(rest),
            _ => character.len_utf8(),
        };
        let (token, after) = rest.split_at(token);
        rest = after;
        match character {
            '{' | '[' => {
                out.push(character);
                rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix(['}', ']']) {
                    out.push(if character == '{' { '}' } else { ']' });
                    rest = after;
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                break_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out.push_str(token),
        }
    }
    out.push('\n');
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("    "));
}

/// Where the string literal ends that a text begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let closing = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |closing| closing + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_come_and_go_outside_of_texts_only() {
        let expected = "{\n    \"a b\": [\n        1,\n        {}\n    ],\n    \"c\": \"x, {\\\" }\"\n}\n";
        assert_eq!(indented(r#"{"a b":[1,{}],"c":"x, {\" }"}"#), expected);
        assert_eq!(indented("{ \"a b\" : [ 1 , { } ] ,\r\n\t\"c\":\"x, {\\\" }\" }\n"), expected);
    }
}
