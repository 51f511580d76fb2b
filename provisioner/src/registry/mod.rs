//! The static map of core types: what `type: s3-bucket` means.
//!
//! Two halves under one name each: [`types`] builds the table that `config` reads stacks against; [`provision`] says what
//! a type registers and is known to `program`. Never here: a type that a plugin serves.

pub mod provision;
pub mod types;
