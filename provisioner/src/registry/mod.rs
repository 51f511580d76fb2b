//! The static map of core types: what `type: s3-bucket` means.
//!
//! Two halves under one name each: [`types`] says how its `config` reads and is known to `config`; [`provision`] says
//! what it registers and is known to `program`. Never here: a type that a plugin serves.

pub mod provision;
pub mod types;
