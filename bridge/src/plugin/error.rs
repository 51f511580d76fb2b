//! Texts that are not the values they should be.

/// A text that is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginValueError {
    /// A plugin name is a lower-case letter followed by lower-case letters, digits and hyphens.
    #[error("invalid name {0:?} (expected lower-case letters, digits and hyphens, a letter first)")]
    Name(String),
    /// The name belongs to the engine.
    #[error("name {0:?} is reserved")]
    ReservedName(String),
    /// Neither a semantic version nor one with a leading `v`.
    #[error("invalid version {0:?} (expected a semantic version such as 1.2.3 or v1.2.3)")]
    Version(String),
    /// Not a range of versions.
    #[error("invalid version range {0:?} (expected comparators such as >=3.5.0, joined by space or ||)")]
    Range(String),
    /// No platform that plugins are published for.
    #[error("unsupported platform {0:?} (expected linux, darwin or windows, and amd64 or arm64: linux-amd64)")]
    Platform(String),
    /// Not 64 hexadecimal digits.
    #[error("invalid checksum {0:?} (expected sha256: and 64 hexadecimal digits)")]
    Digest(String),
}
