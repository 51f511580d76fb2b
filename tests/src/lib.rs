//! Harness of the suites that need more than one crate: the scripted provider, recordings, players, comparators.
//!
//! Other crates use it as a dev-dependency only.

pub mod channel;
pub mod clouds;
pub mod comp;
pub mod compare;
pub mod drive;
pub mod exceptions;
pub mod export;
pub mod http;
pub mod peers;
pub mod player;
pub mod plugin;
pub mod program;
pub mod rec;
pub mod releases;
pub mod scenario;
pub mod service;
pub mod things;
