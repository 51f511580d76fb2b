//! YAML: parses the text of a file to a tree, and types scalars.
//!
//! Input: the text of a file. Output: a [`Node`](crate::tree::Node) tree with expanded anchors, aliases and merge keys;
//! syntax errors; and the typing rules of scalars ([`scalar`]) for the different parts of a file. Excluded: the meaning
//! of keys, and file access. No other module uses the YAML parser.

mod compose;
pub(crate) mod scalar;
mod syntax_hint;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_text;

pub(crate) use compose::{Document, parse};
