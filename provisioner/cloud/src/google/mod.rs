//! Credentials of Google Cloud, which all its clients share.
//!
//! Input: credentials of the configuration, and the environment of the program. Output: a provider of access tokens,
//! and APIs that are switched on. Excluded: what a single service does with the tokens.

mod apis;
mod credentials;
mod failure;
mod token;

pub use apis::{ApiError, enable_api};
pub use credentials::{GoogleCredentials, GoogleCredentialsError, LoadedCredentials, load_credentials};
pub(crate) use credentials::{PUBLIC_CLOUD, access_headers, access_token};
pub use failure::TokenFailure;
