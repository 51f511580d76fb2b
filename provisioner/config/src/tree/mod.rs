//! Values of a file as a tree, in which every key and value has the place where it was written.
//!
//! Leaves: [`Node`], what every reader of a file works with; its strings may be [`Template`]s, which hold references to
//! outputs of resources. Never here: YAML, the meaning of a key, how a placeholder is resolved.

mod node;
mod template;

pub use node::{Entry, Mapping, Node, Scalar, Value};
pub use template::{Part, Reference, Template};
