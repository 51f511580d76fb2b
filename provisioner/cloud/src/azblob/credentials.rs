//! Signing of requests, as the client asks for it.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::azure::AzureCredential;

use super::account::Signing;
use crate::azure::AzureCredentials;

/// Source of what signs requests.
#[derive(Debug)]
pub(super) enum Signer {
    /// Key of the account, or a shared access signature.
    Fixed(Arc<AzureCredential>),
    /// Access tokens, which the credentials keep until shortly before they expire.
    Tokens(AzureCredentials),
}

/// Kind of a signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignerKind {
    /// Key of the account.
    Key,
    /// Shared access signature.
    Signature,
    /// Access tokens.
    Token,
}

impl Signer {
    /// Creates a signer; `tokens` are used if nothing else signs.
    pub(super) fn new(signing: Signing, tokens: AzureCredentials) -> Self {
        match signing {
            Signing::Key(key) => Self::Fixed(Arc::new(AzureCredential::AccessKey(key))),
            Signing::Signature(pairs) => Self::Fixed(Arc::new(AzureCredential::SASToken(pairs))),
            Signing::Token => Self::Tokens(tokens),
        }
    }

    /// Returns the kind.
    pub(super) fn kind(&self) -> SignerKind {
        match self {
            Self::Fixed(credential) => match **credential {
                AzureCredential::AccessKey(_) => SignerKind::Key,
                AzureCredential::SASToken(_) => SignerKind::Signature,
                AzureCredential::BearerToken(_) => SignerKind::Token,
            },
            Self::Tokens(_) => SignerKind::Token,
        }
    }

    /// Returns the source of the tokens, once there was one.
    pub(super) fn source(&self) -> Option<&'static str> {
        match self {
            Self::Fixed(_) => None,
            Self::Tokens(tokens) => tokens.source(),
        }
    }
}

#[async_trait]
impl CredentialProvider for Signer {
    type Credential = AzureCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        match self {
            Self::Fixed(credential) => Ok(Arc::clone(credential)),
            Self::Tokens(tokens) => match tokens.token().await {
                Ok(token) => Ok(Arc::new(AzureCredential::BearerToken(token.to_string()))),
                Err(failure) => Err(object_store::Error::Generic { store: "Azure", source: failure.into() }),
            },
        }
    }
}
