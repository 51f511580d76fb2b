//! The plugin host: where a plugin comes from, how it is started, what it can be asked, how it ends.
//!
//! Never here: server.yaml, stacks, states, decisions about what to do with a resource. Imports go downwards only:
//! `host → provider → launch → install → source → plugin → process → fs → error`.

#![warn(missing_docs)]

pub mod error;
pub mod fs;
pub mod host;
pub mod install;
pub mod launch;
pub mod plugin;
pub mod process;
pub mod provider;
pub mod source;
