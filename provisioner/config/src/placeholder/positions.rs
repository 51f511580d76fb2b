//! Positions of the placeholders of a scalar in its file.

use crate::diagnostics::{SourceFiles, Span};

/// Finds the positions of placeholders, in the order of the text. If YAML escapes hide placeholders in the source text,
/// each position is the whole scalar.
pub(super) struct PlaceholderPositions<'t> {
    text: &'t str,
    span: Span,
    /// Source text of the scalar; `None` if it has another number of `${` than the text.
    source: Option<&'t str>,
    /// Ends of the parts of text and source that were searched.
    searched: (usize, usize),
}

impl<'t> PlaceholderPositions<'t> {
    /// Returns the positions of the placeholders of a scalar.
    pub(super) fn new(text: &'t str, span: Span, sources: &'t SourceFiles) -> Self {
        let source = sources.slice(span);
        let count = |text: &str| text.matches("${").count();
        let is_verbatim = count(text) == count(source);
        Self { text, span, source: is_verbatim.then_some(source), searched: (0, 0) }
    }

    /// Returns the position of a placeholder, given its offset in the text: its first line if it has several.
    pub(super) fn find(&mut self, offset: usize, raw: &str) -> Span {
        let Some(source) = self.source else { return self.span };
        let (searched_text, searched_source) = self.searched;
        let skipped = self.text[searched_text..offset].matches("${").count();
        let Some((start, _)) = source[searched_source..].match_indices("${").nth(skipped) else { return self.span };
        let start = searched_source + start;
        self.searched = (offset, start);
        let same = source[start..].chars().zip(raw.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
        let position = |bytes: usize| self.span.start + u32::try_from(bytes).unwrap_or_default();
        Span { file: self.span.file, start: position(start), end: position(start + same.sum::<usize>()) }
    }
}
