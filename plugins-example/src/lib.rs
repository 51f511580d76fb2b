//! `files`, a provider plugin as a stranger would write it: from the published protocol, knowing nothing of any engine.
//!
//! ```text
//! main            arguments, port, signals                 the process
//! server          the services on one listener
//!  ├─ provider    pulumirpc.ResourceProvider               decodes, asks below, encodes
//!  │   ├─ check, diff, schema                              the same for every type, driven by tables of `property`
//!  │   ├─ resources/   one file per resource type          what a type does
//!  │   ├─ functions/   one file per function
//!  │   └─ context      root folder and cancellation of a call
//!  ├─ companion   simplecontainer.plugin.v1                optional; a plain Pulumi provider has none
//!  └─ engine      pulumirpc.Engine, as a client            logs
//! root, disk      paths that cannot leave their folder; files that are written whole or not at all
//! ```
//! To write a provider of one's own: copy it, replace `resources`, `functions` and `config`.

mod check;
mod companion;
mod config;
mod context;
mod diff;
mod disk;
mod engine;
mod functions;
mod property;
mod provider;
mod resources;
mod root;
mod schema;
mod server;
mod value;

pub use server::{Plugin, serve};

/// Name of the package: the prefix of its types, and the last part of the executable's name.
pub const PACKAGE: &str = "files";
/// Version of the package, a semantic version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
