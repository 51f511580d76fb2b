//! Registry of core types, such as `type: s3-bucket`.
//!
//! [`types`] builds the table of types that `config` validates stacks with. [`provision`] registers the resources of a
//! type, for `program`. Both have the same core types. `sdk` has what Pulumi's SDKs add to each resource. Excluded:
//! resource types of plugins.

pub mod provision;
mod sdk;
pub mod types;
