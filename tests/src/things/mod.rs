//! Providers of one simple type, each written with another SDK of Pulumi's, and repositories whose stacks hold such
//! things: what the suites with real peers share.
//!
//! Enters: which peers, which resources. Leaves: what `sc`, the providers and the state say. Never here: what is right.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

mod peer;
mod repository;

pub use crate::peers::Peer;
pub use peer::{Call, Home, Secrecy};
pub use repository::{ANOTHER_SECRET, PASSPHRASE, Repository, SECRET, Wanted, plain, thing};
