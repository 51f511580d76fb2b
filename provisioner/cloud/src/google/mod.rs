//! Credentials of Google Cloud, which all its clients share.
//!
//! Input: credentials of the configuration, and the environment of the program. Output: a provider of access tokens.
//! Excluded: what a single service does with them.

mod credentials;
mod failure;
mod token;

pub use credentials::{GoogleCredentials, GoogleCredentialsError, LoadedCredentials, load_credentials};
pub use failure::TokenFailure;
