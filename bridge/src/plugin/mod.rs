//! Declared plugins: name, source, expected digests, configuration; the policy that decides which of them may be used.
//!
//! Input: texts and values of a parsed file. Output: validated values. Excluded: I/O, positions in files, decisions
//! about the start of a plugin.

mod config;
mod dialect;
mod digest;
mod error;
mod manifest;
mod name;
mod parameters;
mod place;
mod platform;
mod policy;
mod range;
mod release_age;
mod resolved;
mod sandbox;
mod source;
mod terraform_parameters;
mod terraform_provider;
mod transport;
mod version;
mod wanted_version;

pub use config::{DeclaredBy, InitSecrets, Keep, PluginConfig, PluginNames, Retry};
pub use dialect::{Dialect, GoPlugin, GoPluginTls, Register};
pub use digest::Sha256Digest;
pub use error::PluginValueError;
pub use manifest::{ManifestError, PluginManifest, PluginRuntime};
pub use name::PluginName;
pub use parameters::Parameters;
pub use place::{PlacePattern, PluginPlace};
pub use platform::{Arch, Os, Platform};
pub use policy::{PluginPolicy, PluginUse, PolicyRefusal, PolicyRule, PolicySetting};
pub use range::VersionRange;
pub use release_age::{AgeRule, PolicyAge};
pub use resolved::{DigestOrigin, ResolvedAsset, ResolvedCommit, ResolvedPackage, ResolvedRelease};
pub use sandbox::{Sandbox, StrictSandbox};
pub use source::{
    Build, Checksum, GitSource, GithubReleaseSource, InstalledSource, LocalSource, PluginSource, SourceKind,
    SourceToken,
};
pub use terraform_parameters::{TerraformParameters, terraform_provider_of_value};
pub use terraform_provider::{TerraformProvider, TerraformProviderSource};
pub use transport::{Transport, is_loopback, is_plain_text};
pub use version::PluginVersion;
pub use wanted_version::{TagRange, WantedVersion, tag_version};
