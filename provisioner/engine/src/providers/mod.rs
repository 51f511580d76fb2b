//! Providers: how their plugins are started, configured, found by the references that resources carry, and ended (engine
//! semantics, section 2.13).

mod instance;
mod launch;
mod registry;

pub(crate) use instance::Instance;
pub(crate) use registry::ProviderRegistry;
