//! The places that packages come from: releases on GitHub, git repositories. Asks them and brings what they have.
//!
//! Enters: where a package is, what authenticates us there. Leaves: a release and the bytes of its assets; a commit and
//! its files; or a [`FetchError`] that says who refused what. And what a URL has, for whoever needs it. Never here: what is
//! expected of the bytes, where they are kept, whether they run.

mod address;
mod error;
mod git;
mod github;
mod remote;
mod tree;
mod web;

pub use address::without_credentials;
pub use error::FetchError;
pub use git::{Commit, Git};
pub use github::{Asset, Github, Release, Repository};
pub use remote::Remote;
pub use tree::TreeLimits;
pub(crate) use web::download;
