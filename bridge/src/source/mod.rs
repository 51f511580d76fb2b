//! Clients of package sources: releases on GitHub, git repositories, files behind a URL.
//!
//! Input: address and credentials of a source. Output: a release and the bytes of its assets, a commit and its files,
//! the content of a URL, or a [`FetchError`]. Excluded: verification of the bytes, the cache, decisions about execution.

mod address;
mod credentials;
mod error;
mod git;
mod github;
mod netrc;
mod remote;
mod repository;
mod request;
mod transfer;
mod tree_limits;
mod web;

pub use address::without_credentials;
pub use credentials::{Credential, Credentials};
pub use error::FetchError;
pub use git::{Commit, Git, RevisionKind};
pub use github::{Asset, Github, Release};
pub use remote::Remote;
pub use repository::Repository;
pub use tree_limits::TreeLimits;
pub(crate) use web::download;
