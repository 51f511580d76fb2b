//! Differences between the resources of a stack and the schemas of their packages.

use config::diagnostics::{Code, Diagnostic};
use engine::events::Message;

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Type or value that a schema lacks, but that a provider may accept.
#[derive(Clone, Debug)]
pub struct SchemaWarning {
    /// Stable name of the kind of warning.
    pub code: Code,
    /// The warning, with its position as the source of a registration and a property.
    pub message: Message,
}

/// Differences between the plugin resources of a stack and the schemas of their packages.
#[derive(Debug, Default)]
pub struct SchemaFindings {
    /// Types and properties that the schemas lack.
    pub errors: Vec<Diagnostic>,
    /// Types and values that the schemas lack, but that a provider may accept.
    pub warnings: Vec<SchemaWarning>,
}

/// Returns the first names, separated by commas, and the number of further ones.
pub(super) fn first_names(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let shown = names.take(MAX_NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
