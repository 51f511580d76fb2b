//! Tests of the program as users run it: real processes and files, isolated from the machine.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod assets;
mod attaching;
mod azure;
mod components;
mod config_errors;
mod core_packages;
mod core_types;
mod crash_points;
mod crashes;
mod created_buckets;
mod created_keys;
mod error_details;
mod faulty_plugins;
mod filter;
mod guards;
mod hostile_plugins;
mod imports;
mod interruptions;
mod journals;
mod keyboard;
mod keys;
mod leases;
mod lifecycle;
mod locks;
mod lost_states;
mod mistakes;
mod namespaces;
mod pending_creates;
mod permissions;
mod plugin_debug;
mod plugin_install;
mod plugin_lock;
mod processes;
mod questions;
mod registration;
mod repository;
mod retries;
mod rotated_credentials;
mod sandboxes;
#[path = "../../../provisioner/config/tests/config/schema_agreement.rs"]
mod schema_agreement;
mod schemas;
mod secrets;
mod secrets_providers;
mod secrets_store;
mod signals;
mod slips;
mod stack_file;
mod stack_migrate;
mod stack_rename;
mod state_edits;
mod targets;
mod templates;
mod terminal;
mod traces;
mod unrecorded;
mod unusable_states;
mod validate;
mod vault;
mod waits;
