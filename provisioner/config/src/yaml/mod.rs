//! YAML: the text of a file to a tree, and how a scalar reads.
//!
//! Enters: the text of a file. Leaves: a [`Node`](crate::tree::Node) tree with anchors, aliases and merge keys worked in,
//! the mistakes of its syntax, and the readings of a scalar ([`scalar`]) that the different places of our files call for.
//! Never here: the meaning of a key, and any file access. The only module that names the YAML parser.

mod compose;
pub(crate) mod scalar;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod yaml_text;

pub(crate) use compose::{Document, parse};
