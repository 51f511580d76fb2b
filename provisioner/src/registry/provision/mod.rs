//! Implementations of the core types: registrations, and the values that `${resource:…}` can reference afterwards.
//!
//! Input: one resource of a stack, whose dependencies are registered. Output: registrations, through the same
//! [`Registrar`](engine::Registrar) as those of plugin resources; values that other resources can reference; stack
//! outputs. Excluded: validation of a `config` ([`super::types`]), order of resources.

mod aws;
mod core_resource;
mod gcp;
mod inputs;
mod table;

pub use core_resource::{CoreProvider, CoreResource, Package, Provision, ProvisionError, ProvisionResult, id, output};
pub(crate) use inputs::without_unknowns;
pub use inputs::{Inputs, ResolvedValue};
pub use table::ProvisionTable;
