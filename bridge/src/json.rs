//! JSON texts: their nesting, and small documents of fixed shape, such as history entries, tags, locks and entries of the
//! cache, whose nesting is limited as in YAML.
//!
//! Excluded: file access, the meaning of a text.

use serde::Deserialize;
use serde::de::Error as _;

use crate::yaml::MAX_DEPTH;

/// Reads a text that holds one document.
///
/// # Errors
/// The parse error; also if arrays and objects are nested deeper than [`MAX_DEPTH`].
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, serde_json::Error> {
    if nesting(text) > MAX_DEPTH {
        return Err(serde_json::Error::custom(format_args!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    serde_json::from_slice(text)
}

/// Returns the nesting of lists and objects in a JSON text. Does not check whether the brackets match.
pub fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn deeply_nested_document_is_refused() {
        let nested = |open: &str, inner: &str, close: &str, depth| open.repeat(depth) + inner + &close.repeat(depth);
        let brackets = "[".repeat(200);
        for inner in ["1", &format!("\"{brackets}\""), &format!("\"\\\"{brackets}\"")] {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                assert!(from_slice::<Value>(nested(open, inner, close, MAX_DEPTH).as_bytes()).is_ok(), "{inner}");
                let error = from_slice::<Value>(nested(open, inner, close, MAX_DEPTH + 1).as_bytes()).unwrap_err();
                assert_eq!(error.to_string(), "it is nested deeper than 64 levels", "{inner}");
            }
        }
        let flat = format!("[{}]", vec!["[]"; 200].join(","));
        assert!(from_slice::<Value>(flat.as_bytes()).is_ok());
    }
}
