//! Conventions of the errors of all layers: shared causes, hints, and one function that formats an error with its
//! causes as one line.
//!
//! The text of an error names the attempted action, never its cause: [`std::error::Error::source`] is the cause.
//! Excluded: I/O, errors of a layer, decisions about the consequence of an error for a run.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

/// Cause of an error that implements `Clone`. Shared, so that clones keep the whole chain of causes.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Returns a cause made from an error, or from a text if there is no error value.
pub fn cause(error: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Arc::from(error.into())
}

/// Advice for the user of an error.
pub trait Hint {
    /// Returns the next step for the user, in one line without a full stop; `None` if there is no advice.
    fn hint(&self) -> Option<Cow<'_, str>>;
}

/// Returns an error and its causes in one line, joined by `: `. Skips a cause if the line already ends with its text.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    chain_with(error, |error| Some(error.to_string()))
}

/// Returns the line of [`chain`] with `text` as the text of each error, so that secrets can be hidden. Skips an error
/// for which `text` returns `None`, but not its causes.
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
    struct ChainedError {
        text: &'static str,
        #[source]
        source: Option<Cause>,
    }

    fn chain_of(texts: &[&'static str]) -> ChainedError {
        let (text, rest) = texts.split_first().unwrap();
        ChainedError { text, source: (!rest.is_empty()).then(|| cause(chain_of(rest))) }
    }

    #[test]
    fn chain_contains_each_cause_once() {
        for (texts, line) in [
            (&["a"][..], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b", "b", "c"], "a: b: c"),
            (&["a", "", "c"], "a: c"),
            (&["", "b"], "b"),
        ] {
            assert_eq!(chain(&chain_of(texts)), line);
        }
    }

    #[test]
    fn causes_of_an_error_without_text_are_kept() {
        let visible_text = |error: &(dyn Error + 'static)| Some(error.to_string()).filter(|text| text != "hidden");
        assert_eq!(chain_with(&chain_of(&["a", "hidden", "c"]), visible_text), "a: c");
    }

    #[test]
    fn text_can_be_a_cause() {
        let error = ChainedError { text: "a", source: Some(cause("no space")) };
        assert_eq!(chain(&error), "a: no space");
    }
}
