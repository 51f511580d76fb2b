//! Indentation of JSON.

/// Returns a JSON text indented by four spaces per level and with a newline at the end; existing whitespace between
/// tokens is replaced.
pub(super) fn indent_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let token = match character {
            '"' => string_length(rest),
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
                    push_line_break(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                push_line_break(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                push_line_break(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out.push_str(token),
        }
    }
    out.push('\n');
    out
}

fn push_line_break(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("    "));
}

/// Returns the length of the string literal at the start of a text.
fn string_length(text: &str) -> usize {
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
    fn whitespace_changes_only_outside_of_strings() {
        let expected = "{\n    \"a b\": [\n        1,\n        {}\n    ],\n    \"c\": \"x, {\\\" }\"\n}\n";
        assert_eq!(indent_json(r#"{"a b":[1,{}],"c":"x, {\" }"}"#), expected);
        assert_eq!(indent_json("{ \"a b\" : [ 1 , { } ] ,\r\n\t\"c\":\"x, {\\\" }\" }\n"), expected);
    }
}
