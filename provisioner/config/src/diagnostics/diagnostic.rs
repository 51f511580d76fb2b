//! Diagnostics about the user's files: code, severity, position, text and hints.

use super::sources::Span;
use super::suggest::closest;

/// Stable name of a kind of diagnostic, such as `unknown-key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The operation fails.
    Error,
    /// The operation continues.
    Warning,
}

/// A second position with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Position of the label.
    pub span: Span,
    /// Explanation of the position.
    pub text: String,
}

/// An error or a warning about the user's files: position, problem, next steps.
///
/// No text holds a secret. [`SourceFiles::position`](super::SourceFiles::position) converts the span to file, line and
/// column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind of diagnostic.
    pub code: Code,
    /// Severity.
    pub severity: Severity,
    /// Position; `None` if there is no source text, as for a missing file.
    pub span: Option<Span>,
    /// Problem, in one sentence.
    pub summary: String,
    /// Text shown at the position, a few words.
    pub span_label: Option<String>,
    /// Explanation of the problem.
    pub detail: Option<String>,
    /// Next steps, one hint each.
    pub help: Vec<String>,
    /// Further positions with explanations.
    pub labels: Vec<Label>,
}

impl Diagnostic {
    /// Returns an error.
    pub fn error(code: Code, span: impl Into<Option<Span>>, summary: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: span.into(),
            summary: summary.into(),
            span_label: None,
            detail: None,
            help: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Returns a warning.
    pub fn warning(code: Code, span: impl Into<Option<Span>>, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, summary) }
    }

    /// Sets the text that is shown at the position.
    #[must_use]
    pub fn span_label(mut self, text: impl Into<String>) -> Self {
        self.span_label = Some(text.into());
        self
    }

    /// Sets the explanation of the problem.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(text.into());
        self
    }

    /// Adds a hint with a next step.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds the hint `did you mean` if one of the candidates is similar to the given name.
    #[must_use]
    pub fn did_you_mean<'c>(self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Self {
        match closest(name, candidates) {
            Some(candidate) => self.help(format!("did you mean `{candidate}`?")),
            None => self,
        }
    }

    /// Adds a second position with an explanation.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }
}

/// Returns true if any diagnostic is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Sorts by file and position. Diagnostics without a position come first.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.file, span.start)));
}
