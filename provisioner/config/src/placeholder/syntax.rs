//! Grammar of placeholders: `${` up to the first `}`, split at `:` into at most three parts. There is no escaping,
//! nesting or trimming.

/// Names of all namespaces.
pub(super) const NAMESPACES: [&str; 13] =
    ["env", "secret", "auth", "var", "stack", "git", "project", "date", "user", "resource", FUNCTION, EACH, OUTPUT];

/// Namespace of the results of functions.
pub(super) const FUNCTION: &str = "function";

/// Namespace of the current entry of a `forEach`.
pub(super) const EACH: &str = "each";

/// Namespace of the outputs of other stacks.
pub(super) const OUTPUT: &str = "output";

const OPENING: &str = "${";

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Text.
    Text(&'t str),
    /// A placeholder.
    Placeholder(Placeholder<'t>),
    /// A placeholder that has no value, because its end is missing or inside another placeholder.
    Malformed(MalformedPlaceholder<'t>),
}

/// Unresolved placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder<'t> {
    /// Whole text, from `${` to `}`.
    pub(crate) raw: &'t str,
    /// Position of `raw` in the string, in bytes.
    pub(crate) offset: usize,
    /// Text before the first `:`.
    pub(crate) namespace: &'t str,
    /// Text between the first and the second `:`; `None` in `${word}`.
    pub(crate) path: Option<&'t str>,
    /// Text after the second `:`, further `:` included; may be empty.
    pub(crate) default: Option<&'t str>,
}

/// Malformed placeholder of a namespace, or around a placeholder of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedPlaceholder<'t> {
    /// Text of the piece: the whole text of a nested placeholder, the beginning of an unclosed one.
    pub(crate) raw: &'t str,
    /// Position of `raw` in the string, in bytes.
    pub(crate) offset: usize,
    /// `${namespace:`, `${` of any other text, or the whole text of a misspelled placeholder.
    pub(crate) beginning: &'t str,
    /// Reason that the placeholder has no value.
    pub(crate) fault: Fault,
}

impl MalformedPlaceholder<'_> {
    /// Returns true if the text after `${` is a namespace.
    pub(crate) fn has_namespace(&self) -> bool {
        self.beginning != OPENING
    }
}

/// Reasons that a placeholder is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The `}` is missing.
    Unclosed,
    /// The placeholder contains another one.
    Nested,
    /// There are spaces around the namespace, or it is in double braces.
    Misspelled,
}

impl<'t> Piece<'t> {
    /// Returns the text of the piece.
    fn raw(&self) -> &'t str {
        match self {
            Self::Text(text) => text,
            Self::Placeholder(placeholder) => placeholder.raw,
            Self::Malformed(malformed) => malformed.raw,
        }
    }
}

/// Splits a string into text and placeholders. Without the `:` of a namespace after it, an unclosed `${` is text. An
/// empty `${}` is text.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut end = 0;
    for opening in openings(text) {
        if opening.start < end {
            continue;
        }
        let Some(piece) = opening.piece(text) else { continue };
        if end < opening.start {
            pieces.push(Piece::Text(&text[end..opening.start]));
        }
        end = opening.start + piece.raw().len();
        pieces.push(piece);
    }
    if end < text.len() {
        pieces.push(Piece::Text(&text[end..]));
    }
    pieces
}

/// A `${`.
struct Opening<'t> {
    /// Position of the `$`.
    start: usize,
    /// `${namespace:`; `None` if the text after `${` is not a namespace.
    beginning: Option<&'t str>,
    /// Position of the first `}` after it.
    first_close: Option<usize>,
    /// Position of the `}` that belongs to it if placeholders are nested.
    matching_close: Option<usize>,
    /// Position of the next `${` after it.
    next: Option<usize>,
    /// Position of the next `${namespace:` after it.
    next_with_namespace: Option<usize>,
}

/// Returns every `${` in order, in time that is proportional to the length of the text.
fn openings(text: &str) -> Vec<Opening<'_>> {
    let mut openings: Vec<Opening<'_>> = Vec::new();
    // Indices of the openings without a matching `}`, and number of openings with a `}` after them.
    let (mut open, mut with_close) = (Vec::new(), 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'$' if text[at..].starts_with(OPENING) => {
                open.push(openings.len());
                openings.push(Opening {
                    start: at,
                    beginning: beginning_at(text, at),
                    first_close: None,
                    matching_close: None,
                    next: None,
                    next_with_namespace: None,
                });
            }
            b'}' => {
                openings[with_close..].iter_mut().for_each(|opening| opening.first_close = Some(at));
                with_close = openings.len();
                if let Some(index) = open.pop() {
                    openings[index].matching_close = Some(at);
                }
            }
            _ => {}
        }
    }
    let (mut next, mut next_with_namespace) = (None, None);
    for opening in openings.iter_mut().rev() {
        (opening.next, opening.next_with_namespace) = (next, next_with_namespace);
        next = Some(opening.start);
        next_with_namespace = opening.beginning.map(|_| opening.start).or(next_with_namespace);
    }
    openings
}

/// Returns `${namespace:` at a `${`; `None` if the text after `${` is not a namespace.
fn beginning_at(text: &str, start: usize) -> Option<&str> {
    let rest = &text[start + OPENING.len()..];
    let namespace =
        NAMESPACES.iter().find(|name| rest.strip_prefix(**name).is_some_and(|rest| rest.starts_with(':')))?;
    Some(&text[start..start + OPENING.len() + namespace.len() + 1])
}

impl<'t> Opening<'t> {
    /// Returns the piece that begins here; `None` if it is text.
    fn piece(&self, text: &'t str) -> Option<Piece<'t>> {
        let Some(close) = self.first_close else {
            return self.beginning.map(|_| self.malformed(text, Fault::Unclosed));
        };
        let inner = if self.beginning.is_some() { self.next } else { self.next_with_namespace };
        if inner.is_some_and(|inner| inner < close) {
            let fault = if self.matching_close.is_some() { Fault::Nested } else { Fault::Unclosed };
            return Some(self.malformed(text, fault));
        }
        if let Some(Misspelled { raw, .. }) = Misspelled::at(text, self.start, close) {
            let (offset, fault) = (self.start, Fault::Misspelled);
            return Some(Piece::Malformed(MalformedPlaceholder { raw, offset, beginning: raw, fault }));
        }
        let raw = &text[self.start..=close];
        let tag = &text[self.start + OPENING.len()..close];
        let mut parts = tag.splitn(3, ':');
        let (namespace, path, default) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        if self.beginning.is_some() && path.is_some_and(|path| path.contains(is_beyond_path)) {
            return Some(self.malformed(text, Fault::Unclosed));
        }
        let placeholder = Placeholder { raw, offset: self.start, namespace, path, default };
        (!tag.is_empty()).then_some(Piece::Placeholder(placeholder))
    }

    fn malformed(&self, text: &'t str, fault: Fault) -> Piece<'t> {
        let beginning = self.beginning.unwrap_or(OPENING);
        let raw = match (fault, self.matching_close) {
            (Fault::Nested, Some(close)) => &text[self.start..=close],
            _ => beginning,
        };
        Piece::Malformed(MalformedPlaceholder { raw, offset: self.start, beginning, fault })
    }
}

/// Text that is a placeholder but for its spelling: `${ secret:pw }`, or `${{ secrets.pw }}` as on GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misspelled<'t> {
    /// Whole text.
    raw: &'t str,
    /// The placeholder that is meant.
    pub(super) spelling: String,
}

impl<'t> Misspelled<'t> {
    /// Reads the whole text of a malformed placeholder.
    pub(super) fn of(raw: &'t str) -> Option<Self> {
        Self::at(raw, 0, raw.find('}')?)
    }

    /// Reads a text from its `${` and the first `}` after it.
    fn at(text: &'t str, start: usize, close: usize) -> Option<Self> {
        let tag = &text[start + OPENING.len()..close];
        match tag.strip_prefix('{') {
            Some(expression) => {
                let spelling = spelling_of_expression(expression.trim())?;
                text[close..].starts_with("}}").then(|| Self { raw: &text[start..close + 2], spelling })
            }
            None => {
                let (namespace, rest) = tag.split_once(':')?;
                let is_path = !rest.split(':').next().unwrap_or_default().contains(is_beyond_path);
                let is_spaced = namespace != namespace.trim() && NAMESPACES.contains(&namespace.trim());
                let spelling = || format!("${{{}:{}}}", namespace.trim(), rest.trim());
                (is_spaced && is_path).then(|| Self { raw: &text[start..=close], spelling: spelling() })
            }
        }
    }
}

/// Returns the placeholder for an expression in double braces that begins with a namespace, or with one in the plural; `None` if
/// it begins with another word.
fn spelling_of_expression(expression: &str) -> Option<String> {
    let (word, path) = expression.split_at(expression.find(['.', ':'])?);
    let word = word.trim();
    let namespace = NAMESPACES.iter().find(|name| word == **name || word.strip_suffix('s') == Some(**name))?;
    let path = path[1..].trim();
    let is_path =
        !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./:[]".contains(&byte));
    Some(format!("${{{namespace}:{}}}", if is_path { path } else { "NAME" }))
}

/// Returns true for characters that no path has. The `}` after them belongs to the text around the placeholder, such as
/// JSON.
fn is_beyond_path(character: char) -> bool {
    character.is_control() || matches!(character, '"' | '{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_placeholder_has_a_right_spelling() {
        for (text, expected) in [
            ("${ secret:pw }", "${secret:pw}"),
            ("${\tenv :A:a b }", "${env:A:a b}"),
            ("${{ secrets.PW }}", "${secret:PW}"),
            ("${{ vars.a-b }}", "${var:a-b}"),
            ("${{resource.web.ips[0]}}", "${resource:web.ips[0]}"),
            ("${{ secrets.A || 'x' }}", "${secret:NAME}"),
            ("${{ project: root }}", "${project:root}"),
        ] {
            assert_eq!(Misspelled::of(text).map(|found| found.spelling).as_deref(), Some(expected), "{text}");
        }
        for text in ["${secret:pw}", "${{ github.ref }}", "${{ secretly.x }}", "${ HOME:-x }", "${{ secrets.A }", "${}"]
        {
            assert_eq!(Misspelled::of(text), None, "{text}");
        }
    }

    /// Shows: server-yaml.md#placeholders "ends at the first `}`"
    #[test]
    fn text_is_split_into_placeholders_and_malformed_placeholders() {
        let seen = |text| {
            pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => format!("{text:?}"),
                    Piece::Placeholder(p) => format!("<{} {:?} {:?}>", p.namespace, p.path, p.default),
                    Piece::Malformed(m) => format!("{:?}@{} {:?}", m.fault, m.offset, m.raw),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (text, expected) in [
            // A placeholder ends at the first brace and has at most three parts.
            ("a${env:B}c", r#""a" <env Some("B") None> "c""#),
            ("$${env:B:a:b}}", r#""$" <env Some("B") Some("a:b")> "}""#),
            ("${word}", "<word None None>"),
            ("${env:B:}${}${:x}", r#"<env Some("B") Some("")> "${}" < Some("x") None>"#),
            ("${env:B:{\"a\"\n}", r#"<env Some("B") Some("{\"a\"\n")>"#),
            // Unclosed.
            ("x ${env:", r#""x " Unclosed@2 "${env:""#),
            ("${resource:a.b ${var:c} d", r#"Unclosed@0 "${resource:" "a.b " <var Some("c") None> " d""#),
            (r#"{"a": "${env:X", "b": "é"}"#, r#""{\"a\": \"" Unclosed@7 "${env:" "X\", \"b\": \"é\"}""#),
            ("${env:X\ny}", "Unclosed@0 \"${env:\" \"X\\ny}\""),
            ("${a ${env:X:d} e", r#"Unclosed@0 "${" "a " <env Some("X") Some("d")> " e""#),
            // Nested.
            ("${resource:${env:X}.b} c", r#"Nested@0 "${resource:${env:X}.b}" " c""#),
            ("${env:A:${HOME}}}", r#"Nested@0 "${env:A:${HOME}}" "}""#),
            ("${HOME:-${env:A}}", r#"Nested@0 "${HOME:-${env:A}}""#),
            // Misspelled.
            ("a ${ secret:pw } b", r#""a " Misspelled@2 "${ secret:pw }" " b""#),
            ("${env :X:d}", r#"Misspelled@0 "${env :X:d}""#),
            ("${{ secrets.PW }}x", r#"Misspelled@0 "${{ secrets.PW }}" "x""#),
            ("${{env.A}}${{ secret:b }}", r#"Misspelled@0 "${{env.A}}" Misspelled@10 "${{ secret:b }}""#),
            ("${{ github.sha }}", "<{ github.sha  None None> \"}\""),
            ("${ env \"A:b\" }", "< env \"A Some(\"b\\\" \") None>"),
            ("${ env:\"a\"; }", "< env Some(\"\\\"a\\\"; \") None>"),
            // Shell code.
            ("${1:-x}${#a[@]}", r##"<1 Some("-x") None> <#a[@] None None>"##),
            ("x ${} y ${", r#""x ${} y ${""#),
            ("${HOME ${environment:", r#""${HOME ${environment:""#),
            ("${A:-${B}}", r#"<A Some("-${B") None> "}""#),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }
}
