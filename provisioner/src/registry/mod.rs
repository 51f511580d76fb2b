//! Static map of core types: the meaning of `type: s3-bucket`.
//!
//! The map has two halves with the same names: [`types`] builds the table that `config` reads stacks against;
//! [`provision`] registers the resources of a type, for `program`. Never here: types that a plugin serves.

pub mod provision;
pub mod types;
