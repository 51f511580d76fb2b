//! Small JSON documents of fixed shape: history entries, tags, locks, entries of the cache. Their nesting is limited as in
//! YAML.
//!
//! Excluded: file access, states.

use serde::Deserialize;
use serde::de::Error as _;

use crate::yaml::MAX_DEPTH;

/// Reads a text that holds one document.
///
/// # Errors
/// The parse error; also if arrays and objects are nested deeper than [`MAX_DEPTH`].
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, serde_json::Error> {
    if is_too_deep(text) {
        return Err(serde_json::Error::custom(format_args!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    serde_json::from_slice(text)
}

/// Returns `true` if brackets outside of strings are nested too deep. The parser checks whether they match.
fn is_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
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
