//! Store in a bucket or a table, in the layout of Pulumi's command line.

mod interface;

pub use interface::{
    ListedObject, ObjectError, ObjectErrorKind, ObjectVersion, Objects, StoredObject, WriteCondition, WriteError,
};
