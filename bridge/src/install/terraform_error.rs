//! Errors of Terraform providers, and hints for the user.

use super::SignatureError;
use crate::error::Hint;
use crate::message_text::MessageText;
use crate::source::FetchError;

/// Error of a Terraform provider.
#[derive(Debug, thiserror::Error)]
pub enum TerraformError {
    /// The registry does not have it, or does not show it without a token.
    #[error("{error}")]
    NotShown {
        /// Answer of the registry.
        error: FetchError,
        /// Variable of the environment that would have a token for its host.
        variable: String,
    },
    /// The registry answers with something else than what it was asked for.
    #[error("{host} answers with something else than {provider}: {reason}")]
    OtherAnswer {
        /// Host of the registry.
        host: String,
        /// Version and provider.
        provider: String,
        /// Reason, in words.
        reason: String,
    },
    /// The signature of the checksum file is not valid.
    #[error("cannot use the signature of the checksums of {provider} at {host}")]
    Signature {
        /// Version and provider.
        provider: String,
        /// Host of the registry.
        host: String,
        /// Reason.
        #[source]
        source: SignatureError,
    },
    /// Another key than the recorded one has signed it, or none.
    #[error("{name} is signed {}, but the lock file records the signer {recorded}", by(found.as_deref()))]
    OtherSigner {
        /// Version and source.
        name: String,
        /// Recorded fingerprint.
        recorded: String,
        /// Fingerprint of the key that has signed it, if one has.
        found: Option<String>,
    },
    /// The archive has no program of the provider.
    #[error("{archive} holds no program {executable}; it holds {}", list(files))]
    NoProgram {
        /// Name of the archive.
        archive: String,
        /// Name of the program, without what an author may add.
        executable: String,
        /// Paths of the files that the archive has, sorted.
        files: Vec<String>,
    },
    /// The recorded version is not one of a registry.
    #[error("the lock file records {version:?} for {provider}, which is no version of a registry")]
    Version {
        /// Recorded tag.
        version: String,
        /// Provider.
        provider: String,
    },
}

fn by(signer: Option<&str>) -> String {
    signer.map_or_else(|| "by nobody".to_owned(), |signer| format!("by {signer}"))
}

/// Lists the first of several names.
fn list(names: &[String]) -> String {
    const MAX_LISTED: usize = 8;
    match names.len() {
        0 => "no files".to_owned(),
        count if count > MAX_LISTED => format!("{} and {} more", names[..MAX_LISTED].join(", "), count - MAX_LISTED),
        _ => names.join(", "),
    }
}

impl TerraformError {
    /// Returns true if the registry cannot be reached now.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, Self::NotShown { error, .. } if error.is_unreachable())
    }
}

impl Hint for TerraformError {
    fn hint(&self) -> Option<MessageText> {
        let hint = match self {
            Self::NotShown { variable, .. } => {
                return Some(format!("check the spelling; a private registry needs a token in {variable}").into());
            }
            Self::OtherAnswer { .. } => "nothing of it was kept: report it to whoever runs the registry",
            Self::Signature { source: SignatureError::OtherKey(_), .. } => {
                "nothing of it was kept: its author signs with another key than the registry names, or it was changed on its way; \
                 report it to the author"
            }
            Self::Signature { .. } => "nothing of it was kept: report it to the author",
            Self::OtherSigner { .. } => {
                "ask its author which key is right; `sc plugin update NAME` with the name of the plugin accepts this one"
            }
            Self::NoProgram { .. } => "nothing of it was kept: declare another version, and report it to the author",
            Self::Version { .. } => "`sc plugin update NAME` with the name of the plugin resolves it again",
        };
        Some(hint.into())
    }
}
