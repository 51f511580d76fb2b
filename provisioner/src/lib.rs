//! The engine: server.yaml to registrations, registrations to steps, steps to state.
//!
//! Imports go one way: `operation` → (`program` → `registry`) → `deployment` → `state`, `events`; `config` feeds `program` and
//! imports none of the engine. The command line is compiled into the binary and sees this library's public API only.

pub mod config;
pub mod deployment;
pub mod events;
pub mod operation;
pub mod program;
pub mod registry;
pub mod schema;
pub mod state;
