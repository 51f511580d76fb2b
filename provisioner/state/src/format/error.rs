//! Errors of reading a checkpoint.

use bridge::error::Hint;
use bridge::message_text::MessageText;
use pulumi_proto::urn::NameError;

use super::read_value::{MAX_TEXT_NESTING, ValueError};
use crate::secrets::SecretsError;
use crate::store::NEWER;

/// Reason why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The text is not JSON, or does not have the shape of a checkpoint.
    #[error("it is not a checkpoint")]
    Malformed(#[source] serde_json::Error),
    /// The text has no resources, and no program writes a state in this form.
    #[error("it is not a state: expected {expected}, found {found}")]
    NotAState {
        /// Expected content, and its place.
        expected: String,
        /// Content that was found.
        found: String,
    },
    /// The values are nested deeper than any that can be read.
    #[error("values nest deeper than {MAX_TEXT_NESTING} levels")]
    TooDeep,
    /// The format is older than the supported versions.
    #[error("its format has version {0}, which is too old (use `pulumi up` once to bring it up to date)")]
    TooOld(u32),
    /// The format is newer than the supported versions.
    #[error("its format has version {0}, which is newer than the supported ones (3 and 4)")]
    TooNew(u32),
    /// The checkpoint uses an unsupported feature.
    #[error("it uses the feature {0:?}, which this program does not support")]
    UnknownFeature(String),
    /// A URN or provider reference is malformed.
    #[error("{resource}: {member} is malformed")]
    Name {
        /// URN of the resource, or its index.
        resource: String,
        /// Member with the name.
        member: &'static str,
        /// Reason why it is malformed.
        source: NameError,
    },
    /// A time is malformed.
    #[error("{resource}: {member} is not a valid time: {text:?}")]
    Time {
        /// The URN of the resource.
        resource: String,
        /// Member with the time.
        member: &'static str,
        /// Malformed text.
        text: String,
        /// Error of the parser.
        source: jiff::Error,
    },
    /// A property value could not be read.
    #[error("{resource}: {member} cannot be read")]
    Value {
        /// The URN of the resource.
        resource: String,
        /// Member with the value.
        member: &'static str,
        /// Reason why it could not be read.
        source: ValueError,
    },
    /// A pending operation has an unknown kind.
    #[error("{resource}: has a pending operation of the unknown kind {kind:?}")]
    OperationKind {
        /// The URN of the resource.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// A secret could not be encrypted or decrypted.
    #[error(transparent)]
    Secret(#[from] SecretsError),
}

impl Hint for FormatError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::TooNew(_) | Self::UnknownFeature(_) => {
                Some(MessageText::new(format_args!("{NEWER}; the file is intact")))
            }
            Self::Secret(error) => error.hint(),
            // The hint of the error of the file says what to do.
            Self::Malformed(_)
            | Self::NotAState { .. }
            | Self::TooDeep
            | Self::TooOld(_)
            | Self::Name { .. }
            | Self::Time { .. }
            | Self::Value { .. }
            | Self::OperationKind { .. } => None,
        }
    }
}

impl FormatError {
    /// Returns `true` if the text can be read with the key of the stack.
    pub(crate) fn needs_key(&self) -> bool {
        matches!(
            self,
            Self::Secret(SecretsError::KeyNeeded)
                | Self::Value { source: ValueError::Secret(SecretsError::KeyNeeded), .. }
        )
    }
}
