//! Access token that the user has obtained.

use std::fmt;

use google_cloud_auth::credentials::{
    AccessToken, AccessTokenCredentialsProvider, CacheableResource, CredentialsProvider, EntityTag,
};
use google_cloud_auth::errors::CredentialsError;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderValue};
use zeroize::Zeroizing;

/// Access token of the environment. It is never renewed.
pub(super) struct StaticToken {
    token: Zeroizing<String>,
    tag: EntityTag,
}

impl StaticToken {
    pub(super) fn new(token: &str) -> Self {
        Self { token: Zeroizing::new(token.to_owned()), tag: EntityTag::new() }
    }
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[access token]")
    }
}

impl CredentialsProvider for StaticToken {
    async fn headers(&self, extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        if extensions.get::<EntityTag>() == Some(&self.tag) {
            return Ok(CacheableResource::NotModified);
        }
        let text = Zeroizing::new(format!("Bearer {}", *self.token));
        let malformed =
            |_| CredentialsError::from_msg(false, "the access token has characters that a header cannot have");
        let mut value = HeaderValue::from_str(&text).map_err(malformed)?;
        value.set_sensitive(true);
        let data = [(AUTHORIZATION, value)].into_iter().collect();
        Ok(CacheableResource::New { entity_tag: self.tag.clone(), data })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}

impl AccessTokenCredentialsProvider for StaticToken {
    async fn access_token(&self) -> Result<AccessToken, CredentialsError> {
        Ok(AccessToken { token: self.token.to_string() })
    }
}
