//! Nesting of the JSON of a state.

use super::read_value::MAX_NESTING;

/// Nesting around a property value: file, checkpoint, latest, list of pending operations, operation, resource.
const OUTER_NESTING: usize = 6;
/// Maximum nesting of a state with values that can be read.
pub(super) const MAX_TEXT_NESTING: usize = MAX_NESTING + OUTER_NESTING;

/// Returns the nesting of lists and objects in a JSON text.
pub(super) fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
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
