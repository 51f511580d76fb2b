//! A mistake of the user: its code, place, words and next steps.

use super::sources::Span;
use super::suggest::closest;

/// The stable name of a kind of mistake, such as `unknown-key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The run cannot start.
    Error,
    /// The run goes on; the user should know.
    Warning,
}

/// A second place that explains the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// One mistake of the user: where it is, what is wrong, what to do.
///
/// Every text is free of secrets. [`SourceFiles::position`](super::SourceFiles::position) turns the span into file, line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind of mistake.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where it is; `None` where there is no text to point at (a missing file).
    pub span: Option<Span>,
    /// What is wrong, in one sentence.
    pub summary: String,
    /// What was expected at this very place; short.
    pub expected: Option<String>,
    /// More than fits into the summary.
    pub detail: Option<String>,
    /// What to do next; each line stands alone.
    pub help: Vec<String>,
    /// Other places that explain it.
    pub labels: Vec<Label>,
}

impl Diagnostic {
    /// A mistake that stops the run.
    pub fn error(code: Code, span: impl Into<Option<Span>>, summary: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: span.into(),
            summary: summary.into(),
            expected: None,
            detail: None,
            help: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Something the user should know.
    pub fn warning(code: Code, span: impl Into<Option<Span>>, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, summary) }
    }

    /// Says what was expected at the place itself.
    #[must_use]
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(text.into());
        self
    }

    /// Adds what does not fit into the summary.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(text.into());
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds `did you mean` if one of the candidates is close to what was written.
    #[must_use]
    pub fn did_you_mean<'c>(self, written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Self {
        match closest(written, candidates) {
            Some(candidate) => self.help(format!("did you mean `{candidate}`?")),
            None => self,
        }
    }

    /// Adds a second place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }
}

/// Whether any of these stops the run.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Orders by file and place; what has no place comes first.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.file, span.start)));
}
