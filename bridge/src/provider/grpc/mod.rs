//! The provider over gRPC: converts requests to generated messages and replies to our own types
//! (docs/spec/provider-protocol.md#3 to #6).
//!
//! Input: a connection to a plugin, with or without its process. Output: a [`Provider`](super::Provider). Excluded:
//! the start of the plugin, the order of calls.

mod bags;
mod client;
mod construct;
mod error_details;
mod errors;
mod handshake;
mod initialize;
mod limits;
mod plugin_init;
mod procedures;
mod replies;
mod service;
mod variables;
mod views;

pub use client::GrpcProvider;
pub use handshake::{HostInfo, handshake, implements_attach};
pub use limits::Limits;
pub use plugin_init::{AuthEntry, PluginInit};
pub use views::ResourceStatusTokens;
