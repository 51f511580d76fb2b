//! Providers of one simple resource type, one for each Pulumi SDK, and repositories whose stacks have such resources.
//! The interop suites share them.
//!
//! Input: SDKs and resources. Output: output of `sc`, records of the providers, the state. Excluded: expectations.

#![expect(clippy::unwrap_used, reason = "a failure of the harness fails the test")]

mod provider_home;
mod remote_store;
mod repository;

pub use crate::sdks::Sdk;
pub use provider_home::{Call, ProviderHome, SecretForm};
pub use remote_store::RemoteStore;
pub use repository::{ANOTHER_SECRET, DeclaredResource, PASSPHRASE, Repository, SECRET, plain, resource_inputs};
