//! Errors of parsed values.
//!
//! Length: all values of the module have it.

/// Error for a text that is not a valid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginValueError {
    /// Invalid plugin name: it must be a lower-case letter followed by lower-case letters, digits and hyphens.
    #[error("invalid name {0:?} (expected lower-case letters, digits and hyphens, a letter first)")]
    Name(String),
    /// Name that is reserved for the engine.
    #[error("name {0:?} is reserved")]
    ReservedName(String),
    /// Invalid semantic version, with or without a leading `v`.
    #[error("invalid version {0:?} (expected a semantic version such as 1.2.3 or v1.2.3)")]
    Version(String),
    /// Invalid range of versions.
    #[error("invalid version range {0:?} (expected comparators such as >=3.5.0, joined by space or ||)")]
    Range(String),
    /// Invalid range of versions over tags.
    #[error("invalid version range {text:?}: {reason}")]
    TagRange {
        /// The range as it is written.
        text: String,
        /// Reason, in words.
        reason: String,
    },
    /// Invalid pattern of places.
    #[error("invalid place {text:?}: {reason}")]
    Place {
        /// The pattern as it is written.
        text: String,
        /// Reason, in words.
        reason: &'static str,
    },
    /// Invalid address of a Terraform provider.
    #[error("invalid Terraform provider {text:?}: {reason}")]
    TerraformProvider {
        /// The address as it is written.
        text: String,
        /// Reason, in words.
        reason: String,
    },
    /// Parameters that name no Terraform provider.
    #[error("invalid parameters for a Terraform provider: {reason}")]
    TerraformParameters {
        /// Reason, in words.
        reason: String,
    },
    /// Platform for which plugins are not published.
    #[error("unsupported platform {0:?} (expected linux, darwin or windows, and amd64 or arm64: linux-amd64)")]
    Platform(String),
    /// Invalid digest: it must have 64 hexadecimal digits.
    #[error("invalid checksum {0:?} (expected sha256: and 64 hexadecimal digits)")]
    Digest(String),
}
