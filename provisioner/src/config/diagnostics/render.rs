//! Draws a diagnostic: file, line and column, the line itself, what was expected, what to do.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, FileId, Sensitivity, Severity, SourceFiles, Span};

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With the escapes of a colour terminal.
    Coloured,
}

/// Draws one diagnostic, without a final line end. Lines of files that hold secrets are not shown.
pub fn render(diagnostic: &Diagnostic, sources: &SourceFiles, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&*diagnostic.summary).id(diagnostic.code.0));
    for element in places(diagnostic, sources) {
        group = group.element(element);
    }
    if let Some(detail) = &diagnostic.detail {
        group = group.element(Level::NOTE.message(&**detail));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.with_name("hint").message(&**help));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// One element per file that the diagnostic points into, its own place first.
fn places<'d>(diagnostic: &'d Diagnostic, sources: &'d SourceFiles) -> Vec<Element<'d>> {
    let Some(primary) = diagnostic.span else { return Vec::new() };
    let mut marks: Vec<(FileId, AnnotationKind, Span, Option<&str>)> =
        vec![(primary.file, AnnotationKind::Primary, primary, diagnostic.expected.as_deref())];
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
            match file.sensitivity() {
                Sensitivity::Public => vec![Element::from(
                    Snippet::source(&**file.text()).path(&**file.path()).annotations(
                        here.into_iter()
                            .map(|(_, kind, span, label)| kind.span(visible(*span, file.text())).label(*label)),
                    ),
                )],
                Sensitivity::Secret => {
                    here.into_iter().map(|(_, _, span, _)| Element::from(origin(*span, sources))).collect()
                }
            }
        })
        .collect()
}

/// Only file, line and column.
fn origin(span: Span, sources: &SourceFiles) -> Origin<'_> {
    let position = sources.position(span);
    Origin::path(position.path.to_string()).line(position.line).char_column(position.column)
}

/// The part of a span on its first line: a mark under a whole block says less than one under its first line.
fn visible(span: Span, text: &str) -> std::ops::Range<usize> {
    let range = span.range();
    let (start, end) = (range.start.min(text.len()), range.end.min(text.len()));
    let first_line = text[start..end].find('\n').map_or(end, |index| start + index);
    start..first_line
}
