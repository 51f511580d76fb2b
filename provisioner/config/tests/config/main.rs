//! Integration tests of the crate: stacks and diagnostics that are read from repositories.

#![expect(clippy::unwrap_used, reason = "a test panics at the first failure")]

mod repository;

mod assets;
mod compat;
mod config_errors;
mod core_types;
mod cross_environments;
mod deciding_functions;
mod documented_stacks;
mod for_each;
mod functions;
mod inheritance;
mod limits;
mod malformed_placeholders;
mod misplaced_keys;
mod missing_values;
mod moved;
mod other_stacks;
mod placeholders;
mod plugin_parameters;
mod plugin_policy;
mod plugin_retries;
mod plugin_sandbox;
mod plugin_sources;
mod plugins;
mod recorded_reading;
mod robustness;
mod schema_agreement;
mod secrets_providers;
mod stacks;
mod state_storage;
mod switches;
mod web;
#[path = "../../src/yaml/yaml_text.rs"]
mod yaml_text;
