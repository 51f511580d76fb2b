//! Starts plugin instances for the engine, and serves the services that plugins call: Engine, ResourceStatus and, for
//! component plugins, ResourceMonitor.
//!
//! Input: declared plugins, and requests of the engine for a provider of a package. Output: unconfigured providers,
//! events of plugins ([`HostEvents`]), and requests of component plugins ([`Monitor`]), with hashed assets. Excluded:
//! the configuration of an instance, decisions about steps, stacks and states.

mod assets;
mod attached_plugin;
mod attaching;
mod attachment;
mod brokered;
mod connection_guard;
mod endpoint;
mod engine_service;
mod events;
mod host_settings;
mod instance;
mod instance_lease;
mod json_object;
mod load_error;
mod monitor;
mod monitor_messages;
mod monitor_relay;
mod monitor_service;
mod package_schema;
mod package_types;
mod parameterization;
mod plugin_host;
mod plugin_pool;
mod pool;
mod provider_host;
mod registered_packages;
mod registration_service;
mod run;
mod sandbox_hint;
mod sharing;
mod standalone;
mod status_service;
mod subpackage;
mod terraform_bridge;
mod type_cache;

pub use assets::AssetHashes;
pub use attached_plugin::AttachedPlugin;
pub use brokered::{BrokeredServer, OfferError};
pub use connection_guard::{ConnectionGuard, EndpointLimits};
pub use events::{HostEvent, HostEvents, LogMessage, PluginWork, Severity};
pub use host_settings::{CheckedPlugin, DeclaredPlugin, HostSettings, LockUpdate, Sources, UndeclaredPackages};
pub use monitor::{
    FunctionCall, MethodCall, Monitor, MonitorError, ProviderSelection, ResourceOutcome, ResourceRead,
    ResourceRegistration, ResourceReply,
};
pub use monitor_service::MonitorEndpoint;
pub use package_types::{InputInfo, NestedObjects, ObjectInfo, PackageTypes, TypeInfo, ValueKind, expand_index_module};
pub use plugin_host::PluginHost;
pub use plugin_pool::PluginPool;
pub use provider_host::{HostError, ProviderHost, ProviderRequest};
pub use standalone::{AwaitedRegistration, StandalonePlugin};
pub use subpackage::Subpackage;
