//! Renders a diagnostic as text: file, line and column, source line, labels, hints.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use bridge::message_text::MessageText;

use super::diagnostic::{Diagnostic, Severity};
use super::escape::{escape_controls, escape_workflow_command};
use super::sources::{FileId, Sensitivity, SourceFiles, Span};

/// Style of rendered text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    Plain,
    /// Text with the escape sequences of a colour terminal.
    Coloured,
}

/// Maximum length of a source line that is shown, in bytes. For a longer one only the position is shown.
const MAX_LINE_BYTES: usize = 2000;

/// Functions that mask secrets.
#[derive(Clone, Copy)]
pub struct Masks<'m> {
    /// Masks secrets in a text of a diagnostic.
    pub message: &'m dyn Fn(&MessageText) -> String,
    /// Masks secrets in a text from outside: a path, or lines of a file.
    pub outside: &'m dyn Fn(&str) -> String,
}

/// Renders one diagnostic as [`render_masked`] does, without masks.
pub fn render(diagnostic: &Diagnostic, sources: &SourceFiles, style: Style) -> String {
    let masks = Masks { message: &MessageText::to_string, outside: &str::to_owned };
    render_masked(diagnostic, sources, style, &masks)
}

/// Renders one diagnostic, without a final line break, with secrets masked in each of its parts. Lines of files that hold secrets
/// are not shown. Characters that a terminal obeys are escaped.
pub fn render_masked(diagnostic: &Diagnostic, sources: &SourceFiles, style: Style, masks: &Masks<'_>) -> String {
    let diagnostic = &diagnostic.clone().map_texts(masks.message);
    let shown = &|text: &str| escape_controls(&(masks.outside)(text)).into_owned();
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(escape_message(&diagnostic.summary)).id(diagnostic.code.0));
    for element in snippet_elements(diagnostic, sources, shown) {
        group = group.element(element);
    }
    if let Some(detail) = &diagnostic.detail {
        group = group.element(Level::NOTE.message(escape_message(detail)));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.with_name("hint").message(escape_message(help)));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// Escapes a text of several lines, each of which could begin with a command of a pipeline.
fn escape_message(text: &str) -> String {
    escape_controls(text).split('\n').map(escape_workflow_command).collect::<Vec<_>>().join("\n")
}

/// Returns the numbered source line on which a span starts, with a mark under the span. Characters that a terminal
/// obeys are escaped. Empty for files that hold secrets, and for very long lines.
pub fn excerpt(span: Span, sources: &SourceFiles) -> Vec<String> {
    let file = sources.get(span.file);
    if file.sensitivity() == Sensitivity::Secret {
        return Vec::new();
    }
    let position = sources.position(span);
    let line = file.text()[file.line_range(position.line)].trim_end();
    if line.len() > MAX_LINE_BYTES {
        return Vec::new();
    }
    let width = |text: &str| escape_controls(text).chars().count();
    let marked = file.text().get(first_line_range(span, file.text())).map_or(0, |piece| width(piece.trim_end())).max(1);
    let before: String = line.chars().take(position.column - 1).collect();
    let number = position.line.to_string();
    let margin = " ".repeat(number.len());
    vec![
        format!("{margin} |"),
        format!("{number} | {}", escape_controls(line)),
        format!("{margin} | {}{}", " ".repeat(width(&before)), "^".repeat(marked)),
    ]
}

/// Returns one element per file that the diagnostic refers to, the file of its position first. `shown` masks and escapes a text of
/// a file.
fn snippet_elements<'d>(
    diagnostic: &'d Diagnostic,
    sources: &'d SourceFiles,
    shown: &dyn Fn(&str) -> String,
) -> Vec<Element<'d>> {
    let Some(primary) = diagnostic.span else { return Vec::new() };
    let mut marks: Vec<(FileId, AnnotationKind, Span, Option<&str>)> =
        vec![(primary.file, AnnotationKind::Primary, primary, diagnostic.span_label.as_deref())];
    marks.extend(
        diagnostic
            .labels
            .iter()
            .map(|label| (label.span.file, AnnotationKind::Context, label.span, Some(label.text.as_str()))),
    );
    let mut files: Vec<FileId> = Vec::new();
    for (file, ..) in &marks {
        if !files.contains(file) {
            files.push(*file);
        }
    }
    files
        .into_iter()
        .flat_map(|id| {
            let file = sources.get(id);
            let here: Vec<_> = marks.iter().filter(|(file, ..)| *file == id).collect();
            // The renderer takes time for each line that it gets.
            let lines = here.iter().map(|(_, _, span, _)| file.line_of(span.start as usize));
            let (first, last) = lines.fold((usize::MAX, 0), |(first, last), line| (first.min(line), last.max(line)));
            let is_shown = file.sensitivity() == Sensitivity::Public
                && (first..=last).all(|line| file.line_range(line).len() <= MAX_LINE_BYTES);
            if !is_shown {
                return here.into_iter().map(|(_, _, span, _)| Element::from(origin(*span, sources, shown))).collect();
            }
            let (start, end) = (file.line_range(first).start, file.line_range(last).end);
            let lines = &file.text()[start..end];
            let text = shown(lines);
            let annotations = here.into_iter().map(|(_, kind, span, label)| {
                let range = first_line_range(*span, file.text());
                let range = shown_range(range.start - start..range.end - start, lines, &text, shown);
                kind.span(range).label(label.map(escape_controls))
            });
            let annotations: Vec<_> = annotations.collect();
            let snippet = Snippet::source(text).line_start(first).path(shown(file.path()));
            vec![Element::from(snippet.annotations(annotations))]
        })
        .collect()
}

/// Returns file, line and column without source text.
fn origin<'s>(span: Span, sources: &'s SourceFiles, shown: &dyn Fn(&str) -> String) -> Origin<'s> {
    let position = sources.position(span);
    Origin::path(shown(&position.path)).line(position.line).char_column(position.column)
}

/// Returns the range in a shown text of a range of the original one. A mark within a masked secret is at a place near it.
fn shown_range(range: Range<usize>, original: &str, text: &str, shown: &dyn Fn(&str) -> String) -> Range<usize> {
    if original == text {
        return range;
    }
    let place = |end: usize| {
        let length = original.get(..end).map_or(end, |before| shown(before).len());
        text.floor_char_boundary(length.min(text.len()))
    };
    let start = place(range.start);
    start..place(range.end).max(start)
}

/// Returns the part of a span on its first line, because a mark under a whole block is hard to read.
fn first_line_range(span: Span, text: &str) -> Range<usize> {
    let range = span.range();
    let (start, end) = (range.start.min(text.len()), range.end.min(text.len()));
    let first_line = text[start..end].find('\n').map_or(end, |index| start + index);
    start..first_line
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::Code;
    use super::*;

    /// Returns a public and a secret file, and a diagnostic with positions in both.
    fn sample_diagnostic() -> (SourceFiles, Diagnostic) {
        let mut sources = SourceFiles::default();
        let public = sources.add("server.yaml", "a: 1\nb:\n  c: über ${x}\n  d: 2\n", Sensitivity::Public);
        let secret = sources.add("secrets.yaml", "values:\n  x: hunter2\n", Sensitivity::Secret);
        let span = |file, start, end| Span { file, start, end };
        let diagnostic = Diagnostic::error(Code("sample"), span(public, 19, 23), "something is wrong")
            .span_label("a number")
            .label(span(public, 0, 1), "because of this")
            .label(span(secret, 10, 11), "and of that")
            .detail("There is more to it.")
            .help("do this")
            .did_you_mean("ax", ["bx", "unlike"]);
        (sources, diagnostic)
    }

    #[test]
    fn diagnostic_shows_source_line_labels_and_hints() {
        let (sources, diagnostic) = sample_diagnostic();
        let rendered = render(&diagnostic, &sources, Style::Plain);
        assert!(!rendered.contains("hunter2"));
        insta::assert_snapshot!(rendered, @r"
        error[sample]: something is wrong
         --> server.yaml:3:11
          |
        1 | a: 1
          | - because of this
        2 | b:
        3 |   c: über ${x}
          |           ^^^^ a number
         ::: secrets.yaml:2:3
          = note: There is more to it.
          = hint: do this
          = hint: did you mean `bx`?
        ");
    }

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped_and_marks_stay_below_their_text() {
        let mut sources = SourceFiles::default();
        let file = sources.add("\u{202e}.yaml", "a: 1\r\nk\u{202e}ey: \u{9b}value # \u{2066}\r\n", Sensitivity::Public);
        let span = Span { file, start: 14, end: 21 };
        assert_eq!(sources.slice(span), "\u{9b}value");
        let diagnostic = Diagnostic::error(Code("sample"), span, "no \u{202e} here")
            .span_label("\u{2067}label")
            .detail("d\u{85}")
            .help("h\u{200f}");
        // The column counts the characters of the escapes, as the mark does.
        insta::assert_snapshot!(render(&diagnostic, &sources, Style::Plain), @r"
        error[sample]: no \u202e here
         --> \u202e.yaml:2:12
          |
        2 | k\u202eey: \u009bvalue # \u2066
          |            ^^^^^^^^^^^ \u2067label
          |
          = note: d\u0085
          = hint: h\u200f
        ");
        insta::assert_snapshot!(excerpt(span, &sources).join("\n"), @r"
          |
        2 | k\u202eey: \u009bvalue # \u2066
          |            ^^^^^^^^^^^
        ");
    }

    #[test]
    fn diagnostic_without_position_shows_no_source_line() {
        let diagnostic = Diagnostic::warning(Code("sample"), None, "no such file").help("make one");
        insta::assert_snapshot!(render(&diagnostic, &SourceFiles::default(), Style::Plain), @r"
        warning[sample]: no such file
         |
         = hint: make one
        ");
    }

    #[test]
    fn line_of_a_message_is_no_command_of_a_pipeline() {
        let diagnostic = Diagnostic::error(Code("sample"), None, "the plugin failed").detail("first\n::add-mask::x");
        let rendered = render(&diagnostic, &SourceFiles::default(), Style::Plain);
        assert!(rendered.contains("\\u003a:add-mask::x") && !rendered.contains(" ::add-mask"), "{rendered}");
    }

    #[test]
    fn coloured_style_adds_only_escape_sequences() {
        let (sources, diagnostic) = sample_diagnostic();
        let coloured = render(&diagnostic, &sources, Style::Coloured);
        assert!(coloured.contains("\u{1b}[1m\u{1b}[91merror[sample]"), "{coloured:?}");
        let stripped = anstream::adapter::strip_str(&coloured).to_string();
        assert_eq!(stripped, render(&diagnostic, &sources, Style::Plain));
    }
}
