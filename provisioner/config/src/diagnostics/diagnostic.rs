//! Diagnostics about the user's files: code, severity, position, text and hints.

use std::sync::Arc;

use bridge::error::{closest, shorten_to};
use bridge::message_text::MessageText;

use super::sources::Span;

/// Number of errors, and of warnings, that are shown. The rest is counted.
pub const MAX_SHOWN: usize = 50;
/// Maximum number of characters of each text of a diagnostic. A name in a file may have any length.
const MAX_CHARACTERS: usize = 500;

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
    pub text: MessageText,
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
    pub summary: MessageText,
    /// Text shown at the position, a few words.
    pub span_label: Option<MessageText>,
    /// Explanation of the problem.
    pub detail: Option<MessageText>,
    /// Next steps, one hint each.
    pub help: Vec<MessageText>,
    /// Further positions with explanations.
    pub labels: Vec<Label>,
    suggestion: Option<Suggestion>,
}

/// Name that may be misspelled, with all names that exist. The search takes time for each of them, so only the
/// diagnostics that are shown are searched for one.
#[derive(Clone)]
struct Suggestion {
    name: String,
    candidates: Arc<[String]>,
}

/// Compares the names only: diagnostics at the same position have the same candidates.
impl PartialEq for Suggestion {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Suggestion {}

impl std::fmt::Debug for Suggestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Suggestion").field(&self.name).finish()
    }
}

impl Diagnostic {
    /// An error.
    pub fn error(code: Code, span: impl Into<Option<Span>>, summary: impl Into<MessageText>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: span.into(),
            summary: limited(summary),
            span_label: None,
            detail: None,
            help: Vec::new(),
            labels: Vec::new(),
            suggestion: None,
        }
    }

    /// A warning.
    pub fn warning(code: Code, span: impl Into<Option<Span>>, summary: impl Into<MessageText>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, summary) }
    }

    /// Sets the text that is shown at the position.
    #[must_use]
    pub fn span_label(mut self, text: impl Into<MessageText>) -> Self {
        self.span_label = Some(limited(text));
        self
    }

    /// Sets the explanation of the problem.
    #[must_use]
    pub fn detail(mut self, text: impl Into<MessageText>) -> Self {
        self.detail = Some(limited(text));
        self
    }

    /// Adds a hint with a next step.
    #[must_use]
    pub fn help(mut self, text: impl Into<MessageText>) -> Self {
        self.help.push(limited(text));
        self
    }

    /// Adds the hint `did you mean` if one of the candidates is similar to the given name.
    #[must_use]
    pub fn did_you_mean<'c>(self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Self {
        match closest(name, candidates) {
            Some(candidate) => self.help(format_args!("did you mean `{candidate}`?")),
            None => self,
        }
    }

    /// Adds the hint `did you mean` like [`did_you_mean`](Self::did_you_mean), but only when the diagnostic is shown.
    #[must_use]
    pub fn did_you_mean_one_of(mut self, name: &str, candidates: &Arc<[String]>) -> Self {
        self.suggestion = Some(Suggestion { name: name.to_owned(), candidates: Arc::clone(candidates) });
        self
    }

    /// Searches for the suggestion, which becomes the first hint.
    fn complete(&mut self) {
        let Some(Suggestion { name, candidates }) = self.suggestion.take() else { return };
        if let Some(candidate) = closest(&name, candidates.iter().map(String::as_str)) {
            self.help.insert(0, limited(MessageText::new(format_args!("did you mean `{candidate}`?"))));
        }
    }

    /// Returns the diagnostic with the texts that `mask` returns for its own.
    #[must_use]
    pub fn map_texts(mut self, mask: &dyn Fn(&MessageText) -> String) -> Self {
        let labels = self.labels.iter_mut().map(|label| &mut label.text);
        let others = self.span_label.iter_mut().chain(&mut self.detail).chain(&mut self.help).chain(labels);
        for text in [&mut self.summary].into_iter().chain(others) {
            *text = mask(text).into();
        }
        self
    }

    /// Adds a second position with an explanation. The position of the diagnostic itself, which it is where two places of a file
    /// are aliases of one anchor, is not marked twice.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<MessageText>) -> Self {
        if self.span != Some(span) {
            self.labels.push(Label { span, text: limited(text) });
        }
        self
    }
}

/// True if any diagnostic is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Returns the diagnostics to show: the first [`MAX_SHOWN`] errors and as many warnings, in order.
pub fn shown(diagnostics: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    let mut counts = [0; 2];
    diagnostics.iter().filter(move |diagnostic| is_shown(diagnostic, &mut counts))
}

/// Counts a diagnostic. Returns true if it is among the first of its severity.
fn is_shown(diagnostic: &Diagnostic, counts: &mut [usize; 2]) -> bool {
    let count = &mut counts[usize::from(diagnostic.severity == Severity::Warning)];
    *count += 1;
    *count <= MAX_SHOWN
}

/// Sorts by file and position, diagnostics without a position first; removes duplicates; adds the suggestions of the
/// diagnostics to show.
pub fn finish(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.file, span.start)));
    // A block that several stacks inherit is read for each of them and reports its errors each time.
    diagnostics.dedup();
    let mut counts = [0; 2];
    for diagnostic in diagnostics {
        if is_shown(diagnostic, &mut counts) {
            diagnostic.complete();
        }
    }
}

fn limited(text: impl Into<MessageText>) -> MessageText {
    let text = text.into();
    if text.len() <= MAX_CHARACTERS { text } else { shorten_to(&text, MAX_CHARACTERS).into_owned().into() }
}
