//! Placeholders `${namespace:path:default}` in strings (docs/spec/simple-container.md#3).
//!
//! Input: a parsed tree and the values of the namespaces. Output: the tree with resolved placeholders. A reference to
//! another resource stays as a typed [`Reference`](crate::tree::Reference) inside a
//! [`InterpolatedString`](crate::tree::InterpolatedString). Excluded: the value of a reference, which exists only once
//! the resource is registered.

mod each;
mod keys;
mod namespaces;
mod outputs;
mod paths;
mod positions;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use each::Each;
pub(crate) use keys::check_keys;
pub(crate) use namespaces::{MissingValues, Namespaces, UsedSecrets};
pub(crate) use paths::split_entry;
pub(crate) use resolve::{ReferenceRule, Resolver};
