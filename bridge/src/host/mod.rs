//! Which plugin runs: boots instances for the engine, and serves to them what they call: the Engine service with
//! ResourceStatus beside it, and to component plugins the ResourceMonitor.
//!
//! Enters: declared plugins, and the engine's question for an instance of a package. Leaves: providers, not yet
//! configured, what the plugins say ([`HostEvents`]), and what components ask for, their assets hashed. Never here: when an
//! instance is configured and with what, what the deletion of a resource needs, stacks and states.

mod assets;
mod endpoint;
mod engine_service;
mod events;
mod monitor;
mod monitor_messages;
mod monitor_service;
mod plugin_host;
mod provider_host;
mod status_service;
mod type_facts;

pub use events::{HostEvent, HostEvents, LogMessage, Severity};
pub use monitor::{
    FunctionCall, MethodCall, Monitor, MonitorRefusal, PackageChoice, ResourceAnswer, ResourceOutcome, ResourceRead,
    ResourceRegistration,
};
pub use monitor_service::MonitorEndpoint;
pub use plugin_host::{DeclaredPlugin, HostSettings, PluginHost, Sources};
pub use provider_host::{BootRequest, HostError, ProviderHost};
pub use type_facts::{PackageTypes, TypeFacts};
