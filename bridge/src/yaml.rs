//! Small YAML documents of fixed shape: manifests, settings, metadata. Their nesting and their aliases are limited.
//!
//! Excluded: file access, `server.yaml`.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Marker, Parser, options};
use serde::de::DeserializeOwned;

use crate::error::shorten;

/// Maximum nesting depth of collections, counted after expansion of aliases.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of values, counted after expansion of aliases.
pub const MAX_VALUES: usize = 500_000;

/// Reason why a text is not read. No message quotes more than a short piece of the text.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// Collections are nested too deeply.
    #[error("it is nested deeper than {MAX_DEPTH} levels at line {line} column {column}")]
    TooDeep {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The text has too many values.
    #[error("it has more than {MAX_VALUES} values; aliases count as often as they are used")]
    TooManyValues,
    /// The text is not YAML, or does not have the expected shape.
    #[error("{0}")]
    Malformed(String),
}

/// Reads a text that holds one document.
///
/// The text is checked with another parser first: the time that the deserializer takes grows with the square of the
/// nesting depth, and with the number of values after expansion of aliases.
///
/// # Errors
/// [`YamlError`].
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    check_limits(text)?;
    serde_yaml::from_str(text).map_err(|error| YamlError::Malformed(shorten(&error.to_string()).into_owned()))
}

/// Number of values and nesting depth of a collection or of an anchored value.
#[derive(Clone, Copy, Default)]
struct Extent {
    values: usize,
    depth: usize,
}

/// Checks the limits, in time and memory that grow with the length of the text only.
fn check_limits(text: &str) -> Result<(), YamlError> {
    let limits = options! { emit_comments: false, flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut events = Parser::new_from_str_with_options(text, limits);
    let mut anchors: HashMap<usize, Extent> = HashMap::new();
    // The open collections with their anchors; the first one stands for the whole text.
    let mut open: Vec<(usize, Extent)> = vec![(0, Extent::default())];
    while let Some(next) = events.next_event() {
        let (event, span) = next.map_err(|error| match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(error.marker()),
            _ => {
                let (line, column) = position(error.marker());
                YamlError::Malformed(format!("{} at line {line} column {column}", shorten(&error.info())))
            }
        })?;
        let (anchor, value) = match event {
            Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) => {
                open.push((anchor, Extent { values: 1, depth: 1 }));
                if open.len() - 1 > MAX_DEPTH {
                    return Err(too_deep(&span.start));
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().unwrap_or_default(),
            Event::Scalar(_, _, anchor, _) => (anchor, Extent { values: 1, depth: 0 }),
            Event::Alias(id) => match anchors.get(&id) {
                Some(extent) => (0, *extent),
                None => return Err(YamlError::Malformed("an anchor contains itself".to_owned())),
            },
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, value);
        }
        let level = open.len();
        if let Some((_, parent)) = open.last_mut() {
            parent.values += value.values;
            parent.depth = parent.depth.max(value.depth + 1);
            if parent.values > MAX_VALUES {
                return Err(YamlError::TooManyValues);
            }
        }
        if level - 1 + value.depth > MAX_DEPTH {
            return Err(too_deep(&span.start));
        }
    }
    Ok(())
}

fn too_deep(at: &Marker) -> YamlError {
    let (line, column) = position(at);
    YamlError::TooDeep { line, column }
}

fn position(at: &Marker) -> (usize, usize) {
    (at.line(), at.col() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = from_str::<serde_yaml::Value>(text).unwrap_err().to_string();
        assert!(error.len() < 600, "{} bytes", error.len());
        error
    }

    #[test]
    fn nesting_is_limited_in_each_notation() {
        let open = "[".repeat(5_000_000);
        assert_eq!(error(&open), "it is nested deeper than 64 levels at line 1 column 65");
        for deep in ["{a: ".repeat(150_000), "- ".repeat(150_000), "? ".repeat(150_000), "[{".repeat(150_000)] {
            assert!(error(&deep).contains("nested deeper than 64 levels"), "{}", &deep[..4]);
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(from_str::<serde_yaml::Value>(&nested(MAX_DEPTH)).is_ok());
        assert!(error(&nested(MAX_DEPTH + 1)).contains("nested deeper than 64 levels"));
    }

    #[test]
    fn nesting_through_aliases_is_limited() {
        let chain = |length: usize| -> String {
            let links = (1..length).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1));
            std::iter::once("a0: &a0 []\n".to_owned()).chain(links).collect()
        };
        assert!(from_str::<serde_yaml::Value>(&chain(MAX_DEPTH - 1)).is_ok());
        assert!(error(&chain(MAX_DEPTH)).contains("nested deeper than 64 levels"));
        assert_eq!(error("a: &a [*a]"), "an anchor contains itself");
    }

    #[test]
    fn values_are_counted_after_expansion_of_aliases() {
        let mut bomb = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1]\n");
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 9].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(error(&bomb).contains("more than 500000 values"));
        let wide = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(1000), "*a,".repeat(1000));
        assert!(error(&wide).contains("more than 500000 values"));
    }

    #[test]
    fn error_quotes_a_short_piece_of_the_text() {
        let long = "x".repeat(4_000_000);
        for text in [format!("a: {{{long}"), format!("&{long} *{long}"), format!("!{long} [\"")] {
            error(&text);
        }
        let error = from_str::<u8>(&long).unwrap_err().to_string();
        assert!(error.starts_with("invalid type: string \"xxx") && error.len() < 600, "{error}");
    }
}
