//! Maximum nesting of the JSON of a state.

use super::read_value::MAX_NESTING;

/// Nesting around a property value: file, checkpoint, latest, list of pending operations, operation, resource.
const OUTER_NESTING: usize = 6;
/// Maximum nesting of a state with values that can be read.
pub(super) const MAX_TEXT_NESTING: usize = MAX_NESTING + OUTER_NESTING;
