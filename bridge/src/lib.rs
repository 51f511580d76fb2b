//! The plugin host: installs plugins, starts them, calls them over gRPC and stops them.
//!
//! Excluded: server.yaml, stacks, states, decisions about the steps of a resource. Modules import downwards only:
//! `host → provider → launch → install → source → plugin → json → yaml → process → peer → fs → speed →
//! terminal → shell → error → message_text → zstd`.

#![warn(missing_docs)]

pub mod error;
pub mod fs;
pub mod health;
pub mod host;
pub mod install;
pub mod json;
pub mod launch;
pub mod message_text;
mod peer;
pub mod plugin;
pub mod process;
pub mod provider;
pub mod shell;
pub mod source;
pub mod speed;
pub mod terminal;
pub mod yaml;
pub mod zstd;
