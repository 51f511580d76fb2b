//! Store in a bucket or a table, in the layout of Pulumi's command line.
//!
//! `interface` is what the client of a bucket or a database offers; the other modules build a store on it.

mod catalog;
mod checkpoints;
mod contents;
mod copies;
mod interface;
mod locks;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod renames;
mod store;
#[cfg(test)]
mod tests;

pub use interface::{
    ListedObject, ObjectError, ObjectErrorKind, ObjectVersion, Objects, StoredObject, WriteCondition, WriteError,
};
#[cfg(any(test, feature = "testing"))]
pub use memory::{Fault, MemoryObjects, Request};
pub use store::ObjectStore;
