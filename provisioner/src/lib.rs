//! Orchestration of `sc`: reads a `server.yaml`, drives the engine with its resources, and keeps their state.
//!
//! Imports go one way: `operation` → (`program` → `registry`) → the crates `engine`, `state` and `config`. The crate
//! `config` reads the files and imports none of the others. The command line is compiled into the binary, so it can use
//! this library's public API only.

pub mod operation;
pub mod program;
pub mod registry;
pub mod schema;
