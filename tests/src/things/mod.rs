//! Providers of one simple type, each written with another SDK of Pulumi's, and repositories with stacks of such
//! things. The suites with real peers share them.
//!
//! Enters: peers and resources. Leaves: output of `sc`, records of the providers, the state. Never here: expectations.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

mod peer;
mod repository;

pub use crate::peers::Peer;
pub use peer::{Call, Home, Secrecy};
pub use repository::{ANOTHER_SECRET, PASSPHRASE, Repository, SECRET, Wanted, plain, thing};
