//! The provider over gRPC: own types in, generated types out, and back (provider protocol, sections 3 to 6).
//!
//! Enters: a connection to a plugin, with or without its process. Leaves: a [`Provider`](super::Provider). Never here: how
//! the plugin was started, which call comes next.

mod bags;
mod client;
mod connect;
mod construct;
mod errors;
mod initialize;
mod limits;
mod plugin_init;
mod procedures;
mod replies;
mod service;
mod variables;
mod views;

pub use client::GrpcProvider;
pub use connect::{Announcement, connect};
pub use limits::Limits;
pub use plugin_init::{AuthEntry, PluginInit};
pub use views::ViewDesk;
