//! Values of a file as a tree, in which every key and value has its position in the file.
//!
//! Output: [`Node`], the input of all readers. A string may be an [`InterpolatedString`], which holds references
//! to outputs of resources. Excluded: YAML, the meaning of keys, resolution of placeholders.

mod interpolated_string;
mod node;

pub use interpolated_string::{InterpolatedString, Part, Reference, ReferenceKind, ReferencedInstances};
pub use node::{Entry, Mapping, Node, Scalar, Value};
