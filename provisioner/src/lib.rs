//! Orchestrates `sc`: reads a `server.yaml`, drives the engine with its resources, and keeps its state.
//!
//! Imports go one way: `operation` → (`program` → `registry`) → the crates `engine`, `state` and `config`. The crate
//! `config` reads the files and knows none of the others. The command line is compiled into the binary and sees this
//! library's public API only.

pub mod operation;
pub mod program;
pub mod registry;
pub mod schema;
