//! Grammar of placeholders: `${` up to the first `}`, split at `:` into at most three parts. There is no escaping,
//! nesting or trimming.

/// A piece of a string: text or a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Text.
    Text(&'t str),
    /// A placeholder.
    Placeholder(Placeholder<'t>),
}

/// Unresolved placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder<'t> {
    /// Whole text, from `${` to `}`.
    pub(crate) raw: &'t str,
    /// Text before the first `:`.
    pub(crate) namespace: &'t str,
    /// Text between the first and the second `:`; `None` in `${word}`.
    pub(crate) path: Option<&'t str>,
    /// Text after the second `:`, further `:` included; may be empty.
    pub(crate) default: Option<&'t str>,
}

/// Splits a string into text and placeholders. An empty `${}` and an unclosed `${` are text.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut text_end = 0;
    while let Some(start) = rest[text_end..].find("${").map(|at| at + text_end) {
        let Some(length) = rest[start..].find('}') else { break };
        let tag = &rest[start + 2..start + length];
        if tag.is_empty() {
            text_end = start + length + 1;
            continue;
        }
        if start > 0 {
            pieces.push(Piece::Text(&rest[..start]));
        }
        let mut parts = tag.splitn(3, ':');
        pieces.push(Piece::Placeholder(Placeholder {
            raw: &rest[start..=start + length],
            namespace: parts.next().unwrap_or_default(),
            path: parts.next(),
            default: parts.next(),
        }));
        rest = &rest[start + length + 1..];
        text_end = 0;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_ends_at_first_brace_and_has_at_most_three_parts() {
        let seen = |text| {
            pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => format!("{text:?}"),
                    Piece::Placeholder(p) => format!("<{} {:?} {:?}>", p.namespace, p.path, p.default),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(seen("a${env:B}c"), r#""a" <env Some("B") None> "c""#);
        assert_eq!(seen("$${env:B:a:b}}"), r#""$" <env Some("B") Some("a:b")> "}""#);
        assert_eq!(seen("${env:A${env:NAME}"), r#"<env Some("A${env") Some("NAME")>"#);
        assert_eq!(seen("${word}"), "<word None None>");
        assert_eq!(seen("x ${} y ${env:"), r#""x ${} y ${env:""#);
        assert_eq!(seen("${}${:x}"), r#""${}" < Some("x") None>"#);
    }
}
