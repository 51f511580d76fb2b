//! Orchestration of `sc`: reads a `server.yaml`, deploys its resources with the engine, and saves their state.
//!
//! Imports go one way: `operation` → (`program` → `registry`) → the crates `engine`, `state` and `config`. The crate
//! `config` reads the files and imports none of the others. The command line is part of the binary, so it can use only
//! the public API of this library.

pub mod operation;
pub mod plan;
pub mod program;
pub mod registry;
pub mod schema;
