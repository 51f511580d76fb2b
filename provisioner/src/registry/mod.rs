//! Registry of core types, such as `type: s3-bucket`.
//!
//! [`types`] has the typed `config` of each type. [`recipes`] has a function of each, which makes a [`recipe`] of a `config`: what
//! the type registers. The interpreter of recipes adds what Pulumi's SDKs add. [`packages`] has the Pulumi packages that they
//! use. `templates` has the types of templates. Excluded: resource types of plugins.

pub mod packages;
pub mod recipe;
pub mod recipes;
mod sdk;
mod templates;
pub mod types;
