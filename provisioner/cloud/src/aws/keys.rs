//! Credentials that stand in the configuration.

use std::fmt;

use aws_credential_types::Credentials;
use zeroize::Zeroizing;

/// Access key of the configuration, which precedes the chain of credentials.
#[derive(Clone)]
pub struct AwsKeys {
    access_key: Zeroizing<String>,
    secret_key: Zeroizing<String>,
    session_token: Option<Zeroizing<String>>,
    region: Option<String>,
}

impl AwsKeys {
    /// Wraps an access key and its secret.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self {
            access_key: Zeroizing::new(access_key.into()),
            secret_key: Zeroizing::new(secret_key.into()),
            session_token: None,
            region: None,
        }
    }

    /// Adds the token of a temporary access key.
    #[must_use]
    pub fn with_session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(Zeroizing::new(token.into()));
        self
    }

    /// Adds a region. It precedes that of the environment and of profiles.
    #[must_use]
    pub fn with_region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    pub(super) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    pub(super) fn credentials(&self) -> Credentials {
        let token = self.session_token.as_ref().map(|token| token.to_string());
        Credentials::new(self.access_key.as_str(), self.secret_key.as_str(), token, None, "configuration")
    }
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[keys of AWS]")
    }
}
