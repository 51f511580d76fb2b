//! Conventions of the errors of all layers: shared causes, hints, and one function that formats an error with its
//! causes as one line.
//!
//! The text of an error names the attempted action, never its cause: [`std::error::Error::source`] is the cause.
//! Excluded: I/O, errors of a layer, decisions about the consequence of an error for a run.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use crate::message_text::MessageText;

/// Cause of an error that implements `Clone`. Shared, so that clones keep the whole chain of causes.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Returns a cause made from an error, or from a text if there is no error value.
pub fn cause(error: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Arc::from(error.into())
}

/// Advice for the user of an error.
pub trait Hint {
    /// Returns the next step for the user, in one line without a full stop; `None` if there is no advice.
    fn hint(&self) -> Option<MessageText>;
}

/// Number of characters of a foreign text that a message quotes.
const QUOTED_CHARACTERS: usize = 200;
/// Number of characters of each error in a line of causes. Messages of plugins may be long.
const ERROR_CHARACTERS: usize = 4000;

/// Returns a text for a message. Omits the middle of a text of more than 200 characters: parsers quote what they found,
/// however long, and name its position at the end.
pub fn shorten(text: &str) -> Cow<'_, str> {
    shorten_to(text, QUOTED_CHARACTERS)
}

/// Returns a text of at most `limit` characters, and a mark where characters were omitted.
pub fn shorten_to(text: &str, limit: usize) -> Cow<'_, str> {
    // A text of at most so many bytes cannot have more characters.
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (limit - limit / 4, limit / 4);
    let end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let start = text.char_indices().nth_back(tail.saturating_sub(1)).map_or(0, |(at, _)| at);
    if start <= end { Cow::Borrowed(text) } else { Cow::Owned(format!("{} … {}", &text[..end], &text[start..])) }
}

/// Mark at the end of a text whose rest was dropped before secrets in it were masked. A masker takes the text before the
/// mark for the possible beginning of a secret.
pub const CUT: &str = " … (cut)";

/// Returns a text, or its first `limit` bytes and [`CUT`]: for texts of other programs that are masked later.
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}{CUT}", &text[..text.floor_char_boundary(limit)]))
}

/// Returns the text of an error, without its causes, with secrets masked by `mask`. A very long one is shortened, and that
/// of a parser to a short quote of what it found, but only after it is masked: a masker does not find a secret that is cut
/// in its middle.
pub fn text_of_masked(error: &(dyn Error + 'static), mask: impl FnOnce(&MessageText) -> String) -> String {
    let shared = error.downcast_ref::<Cause>();
    let is_of_parser = error.is::<serde_json::Error>() || shared.is_some_and(|cause| cause.is::<serde_json::Error>());
    let limit = if is_of_parser { QUOTED_CHARACTERS } else { ERROR_CHARACTERS };
    shorten_to(&mask(&MessageText::of(error)), limit).into_owned()
}

/// Returns an error and its causes in one line, joined by `: `. Skips a cause whose text the line contains already.
/// Shortens no text, because the line is masked later: see [`text_of_masked`].
pub fn chain(error: &(dyn Error + 'static)) -> String {
    chain_with(error, |error| Some(error.to_string()))
}

/// Returns the line of [`chain`] with secrets masked by `mask`, and each error shortened as [`text_of_masked`] does.
pub fn chain_masked(error: &(dyn Error + 'static), mask: impl Fn(&MessageText) -> String) -> String {
    chain_with(error, |error| Some(text_of_masked(error, &mask)))
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
        } else if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = error.source();
    }
    line
}

/// Maximum length of a name that is compared, in bytes: the distance takes time that grows with the square of it.
const MAX_LENGTH: usize = 200;

/// Returns the candidate with the smallest edit distance to the given name; `None` if all differ too much.
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let normalized = normalize(name);
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() <= MAX_LENGTH)
        .map(|candidate| (strsim::damerau_levenshtein(&normalized, &normalize(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the name of a resource, `KEY--ENV`, that is close to a name, or whose key is.
pub fn closest_resource<'c>(name: &str, names: &[&'c str]) -> Option<&'c str> {
    let key = |name: &'c str| name.rsplit_once("--").map_or(name, |(key, _)| key);
    closest(name, names.iter().copied()).or_else(|| {
        let similar = closest(name, names.iter().map(|known| key(known)))?;
        names.iter().copied().find(|known| key(known) == similar)
    })
}

/// Removes case and word separators, so that they do not count as differences.
fn normalize(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
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
            (&["no access, ask the owner", "no access"], "no access, ask the owner"),
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
    fn long_text_keeps_its_start_and_its_end() {
        assert_eq!(shorten(&"ä".repeat(200)), "ä".repeat(200));
        let shortened = shorten_to("äbcdefghijklmnöp", 8);
        assert_eq!(shortened, "äbcdef … öp");
        assert!(shorten(&"x".repeat(1000)).len() < 250);
    }

    #[test]
    fn cut_text_has_a_mark_at_its_end() {
        assert_eq!((cut("äb", 3), cut("äbc", 2)), ("äb".into(), "ä … (cut)".into()));
        assert_eq!(cut("ä", 1), CUT);
    }

    /// Shows: events.md#secrets-in-texts "A text is shortened only after it is masked"
    #[test]
    fn secret_is_masked_before_its_error_is_shortened() {
        const SECRET: &str = "swordfish-7f3a";
        let mask = |text: &MessageText| text.replace(SECRET, "[secret]");
        let long: &'static str = format!("{}{SECRET}{}", "x".repeat(2_994), "y".repeat(4_000)).leak();
        let error = chain_of(&["a", long]);
        assert!(mask(&chain(&error).into()).contains("x[secret]y"));
        let line = chain_masked(&error, mask);
        assert!(line.len() < 4_100 && line.contains(" … "), "{} bytes", line.len());
        assert!(!line.contains("sword"), "{line}");
        let quoted = serde_json::from_str::<u8>(&format!("\"{}{SECRET}{long}\"", "x".repeat(115))).unwrap_err();
        let text = text_of_masked(&quoted, mask);
        assert!(text.len() < 300 && !text.contains("sword"), "{text}");
    }

    #[test]
    fn quotes_of_parsers_are_shortened_in_a_masked_chain() {
        let found = format!("\n\"{}\"", "x".repeat(50_000_000));
        let error = serde_json::from_str::<u8>(&found).unwrap_err();
        let line = chain_masked(&ChainedError { text: "a", source: Some(cause(error)) }, ToString::to_string);
        assert!(line.starts_with("a: invalid type: string \"xxx") && line.contains("at line 2 column"), "{line}");
        assert!(line.len() < 300, "{} bytes", line.len());
    }

    #[test]
    fn text_can_be_a_cause() {
        let error = ChainedError { text: "a", source: Some(cause("no space")) };
        assert_eq!(chain(&error), "a: no space");
    }

    #[test]
    fn misspelled_word_is_found_and_different_word_is_not() {
        let keys = ["provisioner", "plugins", "state-storage", "config"];
        assert_eq!(closest("provisoner", keys), Some("provisioner"));
        assert_eq!(closest("stateStorage", keys), Some("state-storage"));
        assert_eq!(closest("Config", keys), Some("config"));
        assert_eq!(closest("x-common", keys), None);
        assert_eq!(closest("a", ["b"]), None);
        let names = ["index--prod", "index--staging", "about--prod"];
        assert_eq!(closest_resource("indx", &names), Some("index--prod"));
        assert_eq!(closest_resource("index--stagin", &names), Some("index--staging"));
        assert_eq!(closest_resource("abot", &names), Some("about--prod"));
        assert_eq!(closest_resource("cart", &names), None);
        let long = "x".repeat(4_000_000);
        assert_eq!(closest(&long, [&long[1..]]), None);
    }
}
