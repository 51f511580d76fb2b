//! Conventions that the errors of all layers share: causes that are kept, advice, and one way to print both.
//!
//! An error's own text says what was attempted, never its cause: that is [`std::error::Error::source`]. Never here: I/O,
//! particular errors, decisions about what an error means for a run.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

/// The cause of an error that is cloned: shared, so that it is kept down to the first cause.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Makes a cause of an error, or of a text where nothing else is known.
pub fn cause(error: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Arc::from(error.into())
}

/// Advice that goes with an error.
pub trait Hint {
    /// Returns what the user can do next, in one line without a full stop; `None` where there is nothing to advise.
    fn hint(&self) -> Option<Cow<'_, str>>;
}

/// Returns an error and its causes in one line, joined by `: `. A cause whose text the line ends with already is left out.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    chain_with(error, |error| Some(error.to_string()))
}

/// Returns what [`chain`] does, of the texts that `text` gives: for errors that hold what must not be shown. An error
/// without a text is left out, and its causes are not.
pub(crate) fn chain_with(
    error: &(dyn Error + 'static),
    text: impl Fn(&(dyn Error + 'static)) -> Option<String>,
) -> String {
    let mut line = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = text(error).unwrap_or_default();
        if line.is_empty() {
            line = text;
        } else if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        #[source]
        source: Option<Cause>,
    }

    fn linked(texts: &[&'static str]) -> Link {
        let (text, rest) = texts.split_first().unwrap();
        Link { text, source: (!rest.is_empty()).then(|| cause(linked(rest))) }
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        for (texts, line) in [
            (&["a"][..], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b", "b", "c"], "a: b: c"),
            (&["a", "", "c"], "a: c"),
            (&["", "b"], "b"),
        ] {
            assert_eq!(chain(&linked(texts)), line);
        }
    }

    #[test]
    fn an_error_without_a_text_leaves_its_causes() {
        let shown = |error: &(dyn Error + 'static)| Some(error.to_string()).filter(|text| text != "hidden");
        assert_eq!(chain_with(&linked(&["a", "hidden", "c"]), shown), "a: c");
    }

    #[test]
    fn a_text_can_be_a_cause() {
        let error = Link { text: "a", source: Some(cause("it was so")) };
        assert_eq!(chain(&error), "a: it was so");
    }
}
