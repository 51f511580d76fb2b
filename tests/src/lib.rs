//! Harness of the suites that need more than one crate: scripted and fake providers, recordings of Pulumi's engine, and
//! their comparison with our engine.
//!
//! Other crates use it as a dev-dependency only.

pub mod azure;
pub mod azurite;
pub mod binaries;
mod bucket;
pub mod channel;
pub mod commands;
pub mod comp;
pub mod compare;
pub mod echo_cloud;
pub mod exceptions;
pub mod export;
pub mod fake_clouds;
pub mod gcs_server;
pub mod google_kms;
pub mod http;
pub mod moto;
pub mod plugin_process;
#[cfg(unix)]
pub mod postgres_server;
pub mod processes;
pub mod program_runner;
pub mod rec;
pub mod releases;
pub mod s3_server;
pub mod scenario;
pub mod sdk_providers;
pub mod sdks;
pub mod service;
pub mod stack_files;
pub mod step_runner;
pub mod store_proxy;
pub mod terraform_registry;
mod tls;
pub mod vault;
pub mod vault_server;
