//! Clients of package sources: releases on GitHub, git repositories, registries of Terraform providers, files behind a URL.
//!
//! Input: address and credentials of a source. Output: a release and the bytes of its assets, a commit and its files,
//! a Terraform provider and its archive, the content of a URL, or a [`FetchError`]. Excluded: verification of the bytes, the cache, decisions about execution.

mod address;
mod credentials;
mod error;
mod file_server;
mod git;
mod github;
mod host_check;
mod netrc;
mod proxy_check;
mod remote;
mod repository;
mod request;
mod terraform_registry;
mod transfer;
mod tree_limits;
mod web;

pub use address::without_credentials;
pub use credentials::{Credential, Credentials, registry_variable};
pub use error::FetchError;
pub use file_server::FileServer;
pub use git::{Commit, Git, RevisionKind};
pub use github::{Asset, Github, RateLimit, Release};
pub use host_check::{check_git_repository, check_release_host};
pub use proxy_check::check_proxies;
pub use remote::Remote;
pub use repository::Repository;
pub use terraform_registry::{ProviderArchive, ProviderVersion, TerraformRegistry};
pub use tree_limits::TreeLimits;
pub(crate) use web::download;
