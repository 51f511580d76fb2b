//! `files`, an example provider plugin that depends only on the published protocol, not on an engine.
//!
//! ```text
//! main            the process
//! program         arguments, port, signals
//! server          the services on one listener
//!  ├─ provider    pulumirpc.ResourceProvider               decodes, calls the types, encodes
//!  │   ├─ check, diff, schema                              common to all types, driven by tables of `property`
//!  │   ├─ resources/   one file per resource type
//!  │   ├─ functions/   one file per function
//!  │   └─ context      root folder and cancellation of a call
//!  ├─ plugin_service  simplecontainer.plugin.v1          optional; other Pulumi providers do not have it
//!  ├─ registration    simplecontainer.host.v1, as a client   only with `protocol: register`
//!  └─ engine      pulumirpc.Engine, as a client            logs
//! root, disk      paths that cannot leave the root folder; atomic writes
//! ```
//! To write another provider, copy this crate and replace `resources`, `functions` and `config`.

mod check;
mod config;
mod diff;
mod disk;
mod engine;
mod functions;
mod plugin_service;
mod program;
mod property;
mod provider;
mod registration;
mod resources;
mod root;
mod schema;
mod server;
mod value;

pub use program::run;
pub use registration::Registration;
pub use server::{Plugin, serve};

/// Name of the package, the prefix of its types and the last part of the executable's name.
pub const PACKAGE: &str = "files";
/// Semantic version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
