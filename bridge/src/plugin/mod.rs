//! Declared plugins: name, source, expected digests, configuration.
//!
//! Input: texts and values of a parsed file. Output: validated values. Excluded: I/O, positions in files, decisions
//! about the start of a plugin.

mod config;
mod dialect;
mod digest;
mod error;
mod manifest;
mod name;
mod platform;
mod range;
mod resolved;
mod sandbox;
mod source;
mod transport;
mod version;
mod wanted_version;

pub use config::{InitSecrets, Keep, PluginConfig, PluginNames, Retry};
pub use dialect::{Dialect, GoPlugin, GoPluginTls, Register};
pub use digest::Sha256Digest;
pub use error::PluginValueError;
pub use manifest::{ManifestError, PluginManifest, PluginRuntime};
pub use name::PluginName;
pub use platform::{Arch, Os, Platform};
pub use range::VersionRange;
pub use resolved::{DigestOrigin, ResolvedAsset, ResolvedCommit, ResolvedPackage, ResolvedRelease};
pub use sandbox::{Sandbox, StrictSandbox};
pub use source::{Checksum, GitSource, GithubReleaseSource, LocalSource, PluginSource, SourceKind, SourceToken};
pub use transport::{Transport, is_loopback, is_plain_text};
pub use version::PluginVersion;
pub use wanted_version::{TagRange, WantedVersion, tag_version};
