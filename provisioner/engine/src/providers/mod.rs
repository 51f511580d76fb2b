//! Providers: start, configuration, lookup by provider reference, and end of their plugins
//! (docs/spec/engine-semantics.md#2.13).

mod instance;
mod launch;
mod registry;
mod retrying;

pub(crate) use instance::Instance;
pub use launch::base_package;
pub(crate) use launch::internal_inputs;
pub(crate) use registry::{ProviderRegistry, not_started};
pub(crate) use retrying::{CallLimits, Retries};
