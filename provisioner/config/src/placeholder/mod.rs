//! Placeholders `${namespace:path:default}` in strings (simple-container §3).
//!
//! Enters: a tree as written and what the namespaces know. Leaves: the tree with every placeholder of the first pass
//! filled in; a reference to another resource stays as a typed [`Reference`](crate::tree::Reference) inside a
//! [`Template`](crate::tree::Template). Never here: the value of a reference, which exists only once the resource is
//! registered.

mod namespaces;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use namespaces::{Namespaces, Used};
pub(crate) use resolve::{References, Resolver};
