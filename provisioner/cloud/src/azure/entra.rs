//! Tokens of applications, from Microsoft Entra ID
//! (<https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow>).

use std::collections::BTreeMap;
use std::path::Path;

use bridge::error::chain;
use bridge::fs::{MAX_DOCUMENT_BYTES, read_named};
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use url::form_urlencoded::Serializer;
use zeroize::Zeroizing;

use super::failure::{SourceFailure, words};
use super::settings::{authority, value};
use super::token::AccessToken;
use crate::json_client::{Authentication, JsonClient};

const TENANT: &str = "AZURE_TENANT_ID";
const CLIENT: &str = "AZURE_CLIENT_ID";
const SECRET: &str = "AZURE_CLIENT_SECRET";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
/// Kind of a token that replaces a secret.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Type of the content of a request.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";
/// Variables of credentials that are not supported, with their description.
const UNSUPPORTED: [(&str, &str); 2] =
    [("AZURE_CLIENT_CERTIFICATE_PATH", "a client certificate"), ("AZURE_USERNAME", "a user name with a password")];

/// Requests a token of the application whose secret is in the environment.
pub(super) async fn environment_token(
    environment: &BTreeMap<String, String>,
    scope: &str,
) -> Result<AccessToken, SourceFailure> {
    let (tenant, client) = (variable(environment, TENANT)?, variable(environment, CLIENT)?);
    if let Some(secret) = value(environment, SECRET) {
        return request(environment, tenant, scope, &[("client_id", client), ("client_secret", secret)]).await;
    }
    let unsupported = UNSUPPORTED.iter().find(|(name, _)| value(environment, name).is_some());
    Err(match unsupported {
        Some((name, what)) => {
            SourceFailure::Failed(format!("{name} is set, and {what} is not supported: set {SECRET}"))
        }
        None => SourceFailure::Unavailable(format!("{SECRET} is not set")),
    })
}

/// Requests a token of the application that a cluster vouches for.
pub(super) async fn workload_identity_token(
    environment: &BTreeMap<String, String>,
    scope: &str,
) -> Result<AccessToken, SourceFailure> {
    let file = variable(environment, TOKEN_FILE)?;
    let (tenant, client) = (variable(environment, TENANT)?, variable(environment, CLIENT)?);
    let failed = |reason: String| SourceFailure::Failed(format!("{TOKEN_FILE}: {reason}"));
    let content = read_named(Path::new(file), MAX_DOCUMENT_BYTES).map_err(|error| failed(chain(&error)))?;
    let assertion = String::from_utf8(content).map_err(|_| failed(format!("{file} is not UTF-8")))?;
    let assertion = Zeroizing::new(assertion);
    let members = [("client_id", client), ("client_assertion_type", ASSERTION), ("client_assertion", assertion.trim())];
    request(environment, tenant, scope, &members).await
}

async fn request(
    environment: &BTreeMap<String, String>,
    tenant: &str,
    scope: &str,
    members: &[(&str, &str)],
) -> Result<AccessToken, SourceFailure> {
    if !tenant.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')) {
        return Err(SourceFailure::Failed(format!("{TENANT} is no id of a tenant")));
    }
    let url = format!("{}/{tenant}/oauth2/v2.0/token", authority(environment).map_err(SourceFailure::Failed)?);
    let form = form(members.iter().copied().chain([("scope", scope), ("grant_type", "client_credentials")]));
    let client =
        JsonClient::of_service("Microsoft Entra ID", Authentication::None, |builder| builder.redirect(Policy::none()));
    let client = client.map_err(|error| SourceFailure::Failed(error.to_string()))?;
    let reply = client.send(|client| client.post(&url).header(CONTENT_TYPE, FORM).body(form.to_string())).await;
    let reply = reply.map_err(|error| SourceFailure::Failed(words(&error)))?;
    AccessToken::of_reply(&reply).ok_or_else(|| SourceFailure::Failed("the reply has no access token".to_owned()))
}

/// Encodes the members of a request.
pub(super) fn form<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> Zeroizing<String> {
    Zeroizing::new(Serializer::new(String::new()).extend_pairs(members).finish())
}

/// Returns the value of a variable without which the source is not set up.
fn variable<'e>(environment: &'e BTreeMap<String, String>, name: &str) -> Result<&'e str, SourceFailure> {
    value(environment, name).ok_or_else(|| SourceFailure::Unavailable(format!("{name} is not set")))
}
