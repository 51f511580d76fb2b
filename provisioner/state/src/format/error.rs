//! Errors of reading and writing a checkpoint.

use pulumi_proto::urn::NameError;

use super::read_value::ValueError;
use crate::secrets::SecretsError;

/// Why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The text is no JSON, or not of the shape of a checkpoint.
    #[error("it is not a checkpoint")]
    Malformed(#[source] serde_json::Error),
    /// Written by something older than we read.
    #[error("its format has version {0}, which is too old (use `pulumi up` once to bring it up to date)")]
    TooOld(u32),
    /// Written by something newer than we read.
    #[error("its format has version {0}, which is newer than this program knows (3 and 4)")]
    TooNew(u32),
    /// It needs something that this program cannot do.
    #[error("it uses the feature {0:?}, which this program does not know")]
    UnknownFeature(String),
    /// A resource has a name that is none.
    #[error("{resource}: {member} is malformed")]
    Name {
        /// The URN of the resource, or its number.
        resource: String,
        /// Where the name stands.
        member: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// A time is none.
    #[error("{resource}: {member} is no time: {text:?}")]
    Time {
        /// The URN of the resource.
        resource: String,
        /// Where the time stands.
        member: &'static str,
        /// What stands there.
        text: String,
        /// Why it is no time.
        source: jiff::Error,
    },
    /// A property value could not be read.
    #[error("{resource}: {member} cannot be read")]
    Value {
        /// The URN of the resource.
        resource: String,
        /// Where the value stands.
        member: &'static str,
        /// Why not.
        source: ValueError,
    },
    /// A pending operation of a kind that we do not know.
    #[error("{resource}: has a pending operation of the unknown kind {kind:?}")]
    OperationKind {
        /// The URN of the resource.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Secret(#[from] SecretsError),
}

impl FormatError {
    /// Whether the key of the stack would have helped.
    pub(crate) fn needs_key(&self) -> bool {
        matches!(
            self,
            Self::Secret(SecretsError::KeyNeeded)
                | Self::Value { source: ValueError::Secret(SecretsError::KeyNeeded), .. }
        )
    }
}
