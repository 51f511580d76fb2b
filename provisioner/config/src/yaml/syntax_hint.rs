//! Hints for syntax errors: the next step, and the start of what is not closed.
//!
//! Input: kind and position of the error of the parser, and the text. Texts of the file are not in the hints, as it may
//! hold secrets.

use granit_parser::ErrorKind;

/// Position of a syntax error, in bytes.
pub(super) struct ErrorPlace<'t> {
    /// Text of the file.
    pub(super) text: &'t str,
    /// Offset that the parser reports.
    pub(super) at: usize,
    /// End of the part of the text that the parser has read without an error.
    pub(super) read_end: usize,
    /// Starts of the collections in that part that have not ended, outermost first.
    pub(super) open_collections: &'t [usize],
}

/// Explanation of a syntax error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxHint {
    /// Offset of the error.
    pub(super) at: usize,
    /// Next step.
    pub(super) hint: Option<String>,
    /// Quote or bracket that is not closed.
    pub(super) opened: Option<Opened>,
}

/// Start of a quoted value or of a collection in brackets that is not closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// Offset of the quote or the bracket.
    pub(super) at: usize,
    /// Explanation of the position.
    pub(super) text: &'static str,
}

/// Returns the explanation of a syntax error.
pub(super) fn find_hint(kind: &ErrorKind, place: &ErrorPlace<'_>) -> SyntaxHint {
    let explain = |at: usize, hint: &str| SyntaxHint { at, hint: Some(hint.to_owned()), opened: None };
    if let Some(tab) = tab_in_indentation(kind, place) {
        return explain(tab, "use spaces for the indentation: YAML does not allow tabs there");
    }
    let (before, after) = place.text.split_at(place.at);
    if after.starts_with('{') && before.ends_with('$') {
        return explain(
            place.at - 1,
            "put the value in quotes, as in `\"${env:NAME}\"`: a brace ends a value in a flow collection",
        );
    }
    if let Some(range) = range_without_quotes(place) {
        return explain(
            range,
            "put a value that begins with `>` in quotes, as in `\">=1, <2\"`; without quotes it is a block of text",
        );
    }
    if let Some(Opened { at, text }) = find_open(kind, place) {
        let closing = match place.text[at..].chars().next() {
            Some('[') => "close the list with `]`",
            Some('{') => "close the map with `}`; put a value that contains a brace in quotes",
            _ => "close the quote; in a value in double quotes, write `\\\"` for a quote",
        };
        let opened = (at != place.at).then_some(Opened { at, text });
        return SyntaxHint { opened, ..explain(place.at, closing) };
    }
    match (kind, after.chars().next()) {
        (ErrorKind::UnknownAnchor | ErrorKind::MissingAnchorOrAliasName, Some('*')) => explain(
            place.at,
            "put a value that begins with `*` in quotes, as in `\"*.example.com\"`; without quotes it is an alias",
        ),
        (ErrorKind::UnexpectedCharacter { character: '@' | '`' | '%' }, Some(first)) => {
            explain(place.at, &format!("put a value that begins with `{first}` in quotes"))
        }
        (ErrorKind::MappingValueNotAllowed, _) => {
            explain(place.at, "put a value that contains a colon and a space in quotes, or check the indentation")
        }
        _ => SyntaxHint { at: place.at, hint: None, opened: None },
    }
}

/// Returns the position of a range of versions such as `>=1, <2` in the line of the error, if it has no quotes.
fn range_without_quotes(place: &ErrorPlace<'_>) -> Option<usize> {
    let start = place.text[..place.at].rfind('\n').map_or(0, |end| end + 1);
    let line = place.text[start..].lines().next()?;
    let at = line.find(": >").map(|at| at + 2)?;
    let rest = line[at + 1..].strip_prefix('=').unwrap_or(&line[at + 1..]);
    rest.trim_start().starts_with(|c: char| c.is_ascii_digit()).then_some(start + at)
}

/// Returns the first tab in the indentation of the lines that the parser could not read, up to the one with the error. An
/// error of a plain scalar is reported at its start, but its tab is in a later line.
fn tab_in_indentation(kind: &ErrorKind, place: &ErrorPlace<'_>) -> Option<usize> {
    let text = place.text;
    let start_of_line = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut start = start_of_line(place.read_end.min(place.at));
    let mut ends_of_lines = text[place.at..].match_indices('\n').map(|(length, _)| place.at + length);
    let end = ends_of_lines.nth(usize::from(*kind == ErrorKind::TabInPlainScalar)).unwrap_or(text.len());
    for line in text[start..end].split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..indentation].find('\t').filter(|_| !line.trim().is_empty()) {
            return Some(start + tab);
        }
        start += line.len();
    }
    None
}

/// Returns the innermost quote or bracket that is not closed before the error, if the error is about one.
fn find_open(kind: &ErrorKind, place: &ErrorPlace<'_>) -> Option<Opened> {
    let is_bracket = |at: &usize| place.text[*at..].starts_with(['[', '{']);
    let mut brackets: Vec<usize> = place.open_collections.iter().copied().filter(is_bracket).collect();
    let quote = read_open(place, &mut brackets);
    match kind {
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => quote.map(|at| Opened { at, text: "the quote begins here" }),
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::InvalidFlowScalarIndent => brackets.last().map(|at| Opened { at: *at, text: "opened here" }),
        _ => None,
    }
}

/// Reads the text between the last event and the error. Returns the quote that is not closed there, and adds the
/// brackets that are open to `brackets`.
fn read_open(place: &ErrorPlace<'_>, brackets: &mut Vec<usize>) -> Option<usize> {
    let (mut quote, mut before) = (None, ' ');
    let start = place.read_end.min(place.text.len());
    let mut characters = place.text[start..].char_indices().map(|(at, character)| (start + at, character)).peekable();
    // The parser reports an open quote at its start, or where it cannot go on.
    while let Some((at, character)) = characters.next_if(|(at, _)| *at <= place.at) {
        match (quote, character) {
            (Some((_, '"')), '\\') => {
                characters.next();
            }
            (Some((_, open)), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if is_start_of_value(before) => quote = Some((at, character)),
            (None, '[' | '{') if is_start_of_value(before) && brackets.last().is_none_or(|last| *last < at) => {
                brackets.push(at)
            }
            (None, ']' | '}') if at < place.at => {
                brackets.pop();
            }
            (None, '#') if before.is_whitespace() => while characters.next_if(|(_, next)| *next != '\n').is_some() {},
            (None, _) => {}
        }
        before = character;
    }
    quote.map(|(at, _)| at)
}

/// Returns whether a quote or a bracket after this character begins a value.
fn is_start_of_value(before: char) -> bool {
    before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':')
}

#[cfg(test)]
mod tests {
    use crate::diagnostics::{Sensitivity, SourceFiles};
    use crate::yaml::parse;

    /// Returns the position, the hint and the position of the label of a syntax error.
    fn explanation(text: &str) -> String {
        let mut sources = SourceFiles::default();
        let file = sources.add("t.yaml", text, Sensitivity::Public);
        let error = parse(file, &sources).unwrap_err();
        let position = |span| {
            let position = sources.position(span);
            format!("{}:{}", position.line, position.column)
        };
        let labels = error.labels.iter().map(|label| format!(" ({} at {})", label.text, position(label.span)));
        format!(
            "{} {}{}",
            position(error.span.unwrap()),
            error.help.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            labels.collect::<String>()
        )
    }

    /// Shows: server-yaml.md#serveryaml "only the first syntax error is reported, with its position and a hint"
    #[test]
    fn syntax_errors_have_position_and_hint() {
        const BRACE: &str =
            "put the value in quotes, as in `\"${env:NAME}\"`: a brace ends a value in a flow collection";
        const ALIAS: &str =
            "put a value that begins with `*` in quotes, as in `\"*.example.com\"`; without quotes it is an alias";
        const TAB: &str = "use spaces for the indentation: YAML does not allow tabs there";
        const QUOTE: &str = "close the quote; in a value in double quotes, write `\\\"` for a quote";
        const MAP: &str = "close the map with `}`; put a value that contains a brace in quotes";
        const LIST: &str = "close the list with `]`";
        const RANGE: &str =
            "put a value that begins with `>` in quotes, as in `\">=1, <2\"`; without quotes it is a block of text";
        const COLON: &str = "put a value that contains a colon and a space in quotes, or check the indentation";
        let table = [
            ("a: { b: ${env:X} }\n", format!("1:9 {BRACE}")),
            ("a:\n  - [one, ${env:X}]\n", format!("2:11 {BRACE}")),
            ("a: { b: x-${env:X} }\n", format!("1:11 {BRACE}")),
            ("host: *.example.com\n", format!("1:7 {ALIAS}")),
            ("hosts:\n  - *\n", format!("2:5 {ALIAS}")),
            ("a: @b\n", "1:4 put a value that begins with `@` in quotes".to_owned()),
            ("a: `b`\n", "1:4 put a value that begins with ``` in quotes".to_owned()),
            ("a: %b\n", "1:4 put a value that begins with `%` in quotes".to_owned()),
            ("a:\n\tb: 1\n", format!("2:1 {TAB}")),
            ("a:\n  b: 1\n  \tc: 1\n", format!("3:3 {TAB}")),
            ("a:\n  - b: 1\n\t  c: 1\n", format!("3:1 {TAB}")),
            ("a: 1\nb: \"open\nc: 2\n", format!("3:1 {QUOTE} (the quote begins here at 2:4)")),
            ("a: 1\nb: 'open\nc: it is\n", format!("3:1 {QUOTE} (the quote begins here at 2:4)")),
            ("a: # it's\n  b: \"open\nc: 2\n", format!("3:1 {QUOTE} (the quote begins here at 2:6)")),
            ("a: {b: 1\nc: 2\n", format!("2:2 {MAP} (opened here at 1:4)")),
            ("a: {b: 1, c: [2}\n", format!("1:14 {LIST}")),
            ("a: [1\n", format!("1:4 {LIST}")),
            ("a: {b: [1, 2]\n", format!("1:4 {MAP}")),
            ("a: b: c\n", format!("1:5 {COLON}")),
            ("a:\n  version: >=1, <2\n  b: 1\n", format!("2:12 {RANGE}")),
            ("a:\n  version: >1.2, <2\n  b: 1\n", format!("2:12 {RANGE}")),
        ];
        let found: Vec<String> = table.iter().map(|(text, _)| explanation(text)).collect();
        let wrong: Vec<String> = table
            .iter()
            .zip(&found)
            .filter(|((_, expected), found)| expected != *found)
            .map(|((text, expected), found)| format!("{text:?}\n  expected {expected}\n  found    {found}\n"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.concat());
    }
}
