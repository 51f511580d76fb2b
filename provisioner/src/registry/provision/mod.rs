//! Registrations of each core type, and the values that `${resource:…}` can refer to afterwards.
//!
//! Enters: one resource of a stack, its `config` resolved up to references, with all that it refers to registered.
//! Leaves: registrations, through the same [`Registrar`](engine::Registrar) as those of plugin resources; the values
//! that others can refer to; exports of the stack. Never here: the reading of a `config` ([`super::types`]), the order
//! of resources.

mod aws;
mod core_resource;
mod gcp;
mod inputs;
mod table;

pub use core_resource::{CoreProvider, CoreResource, Package, Provision, ProvisionError, Provisioned, id, output};
pub(crate) use inputs::without_unknowns;
pub use inputs::{Inputs, Resolved};
pub use table::ProvisionTable;
