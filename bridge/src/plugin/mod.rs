//! What a declared plugin is: its name, where it comes from, which bytes are expected, what it is told.
//!
//! Enters: texts and values that somebody else parsed. Leaves: values that hold what they promise. Never here: I/O,
//! positions in files, decisions about whether a plugin is started.

mod config;
mod digest;
mod error;
mod manifest;
mod name;
mod platform;
mod range;
mod version;

pub use config::{
    Checksum, GitSource, GithubReleaseSource, InitSecrets, LocalSource, PluginConfig, PluginSource, SourceToken,
};
pub use digest::Sha256Digest;
pub use error::PluginValueError;
pub use manifest::{ManifestError, PluginManifest, PluginRuntime};
pub use name::PluginName;
pub use platform::{Arch, Os, Platform};
pub use range::VersionRange;
pub use version::PluginVersion;
