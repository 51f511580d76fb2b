//! Which plugin runs: boots instances for the engine, and serves the Engine service to them.

mod provider_host;

pub use provider_host::{BootRequest, HostError, ProviderHost};
