//! Tokens of the identity of a machine or a container
//! (<https://learn.microsoft.com/en-us/entra/identity/managed-identities-azure-resources/how-to-use-vm-token>).

use std::collections::BTreeMap;
use std::time::Duration;

use bridge::error::chain;
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use url::Url;

use super::entra::{FORM, form};
use super::failure::{SourceFailure, words};
use super::settings::value;
use super::token::AccessToken;
use crate::json_client::{Authentication, JsonClient, JsonError};

/// Host of the metadata service of a machine, and its variable.
const METADATA_HOST: &str = "http://169.254.169.254";
const METADATA_VARIABLE: &str = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
/// Limit of the request that finds out whether there is a metadata service: elsewhere, its address may not reply at all.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Service that has the token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Service<'e> {
    /// App Service, Container Apps, Functions.
    App { endpoint: &'e str, header: &'e str },
    /// Cloud Shell.
    CloudShell { endpoint: &'e str },
    /// Metadata service of a machine.
    Metadata { host: &'e str },
}

impl<'e> Service<'e> {
    fn of(environment: &'e BTreeMap<String, String>) -> Result<Self, SourceFailure> {
        let variable = |name: &str| value(environment, name);
        let refuse = |name: &str, what: &str| {
            Err(SourceFailure::Failed(format!("{name} is set, and the identities of {what} are not supported")))
        };
        if let (Some(endpoint), Some(header)) = (variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER")) {
            return match variable("IDENTITY_SERVER_THUMBPRINT") {
                Some(_) => refuse("IDENTITY_SERVER_THUMBPRINT", "Service Fabric"),
                None => Ok(Self::App { endpoint, header }),
            };
        }
        if let Some(endpoint) = variable("MSI_ENDPOINT") {
            return match variable("MSI_SECRET") {
                Some(_) => refuse("MSI_SECRET", "Azure Machine Learning"),
                None => Ok(Self::CloudShell { endpoint }),
            };
        }
        if variable("IDENTITY_ENDPOINT").is_some() && variable("IMDS_ENDPOINT").is_some() {
            return refuse("IMDS_ENDPOINT", "Azure Arc");
        }
        Ok(Self::Metadata { host: variable(METADATA_VARIABLE).unwrap_or(METADATA_HOST).trim_end_matches('/') })
    }
}

/// Requests a token of the identity, or of the one that `AZURE_CLIENT_ID` selects.
pub(super) async fn managed_identity_token(
    environment: &BTreeMap<String, String>,
    scope: &str,
) -> Result<AccessToken, SourceFailure> {
    let service = Service::of(environment)?;
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    let client_id = value(environment, "AZURE_CLIENT_ID");
    // The address of a metadata service belongs to the machine, so no proxy can reach it.
    let client = JsonClient::of_service("the service of managed identities", Authentication::None, |builder| {
        builder.redirect(Policy::none()).no_proxy()
    });
    let client = client.map_err(|error| SourceFailure::Failed(error.to_string()))?;
    let query = |endpoint: &str, version: &str| {
        let mut url = Url::parse(endpoint).map_err(|_| invalid_endpoint())?;
        url.query_pairs_mut().append_pair("api-version", version).append_pair("resource", resource);
        url.query_pairs_mut().extend_pairs(client_id.map(|id| ("client_id", id)));
        Ok::<_, SourceFailure>(url)
    };
    let reply = match service {
        Service::App { endpoint, header } => {
            let url = query(endpoint, "2019-08-01")?;
            client.send(|client| client.get(url.clone()).header("X-IDENTITY-HEADER", header)).await
        }
        Service::CloudShell { endpoint } => {
            let url = Url::parse(endpoint).map_err(|_| invalid_endpoint())?;
            let form = form([("resource", resource)]);
            let post = |client: &Client| {
                let request = client.post(url.clone()).header("Metadata", "true").header(CONTENT_TYPE, FORM);
                request.body(form.to_string())
            };
            client.send(post).await
        }
        Service::Metadata { host } => {
            let endpoint = format!("{host}/metadata/identity/oauth2/token");
            probe(&endpoint).await?;
            let url = query(&endpoint, "2018-02-01")?;
            let sent = client.send(|client| client.get(url.clone()).header("Metadata", "true")).await;
            match sent {
                Err(error) if is_elsewhere(&error, client_id.is_some()) => {
                    return Err(SourceFailure::Unavailable(words(&error)));
                }
                sent => sent,
            }
        }
    };
    let reply = reply.map_err(|error| SourceFailure::Failed(words(&error)))?;
    AccessToken::of_reply(&reply).ok_or_else(|| SourceFailure::Failed("the reply has no access token".to_owned()))
}

/// Checks that there is a metadata service, by a request that it refuses: any reply will do.
async fn probe(endpoint: &str) -> Result<(), SourceFailure> {
    let unavailable = |error: reqwest::Error| {
        SourceFailure::Unavailable(match error.is_timeout() {
            true => format!("no metadata service has replied within {} s", PROBE_LIMIT.as_secs()),
            false => format!("there is no metadata service: {}", chain(&error.without_url())),
        })
    };
    let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(PROBE_LIMIT).build();
    client.map_err(unavailable)?.get(endpoint).send().await.map(drop).map_err(unavailable)
}

/// Returns whether a reply says that the machine has no identity, or comes from another program than a metadata service.
fn is_elsewhere(error: &JsonError, is_selected: bool) -> bool {
    match error {
        JsonError::Refused { status: StatusCode::BAD_REQUEST, .. } => !is_selected,
        JsonError::Refused { status: StatusCode::FORBIDDEN, text, .. } => text.contains("unreachable"),
        JsonError::Unexpected { .. } => true,
        JsonError::Refused { .. } | JsonError::Unreachable(_) => false,
    }
}

fn invalid_endpoint() -> SourceFailure {
    SourceFailure::Failed("the address of the service of managed identities is not a URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_host_select_the_service() {
        let service = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            format!("{:?}", Service::of(&environment))
        };
        let (endpoint, header) = (("IDENTITY_ENDPOINT", "http://e"), ("IDENTITY_HEADER", "h"));
        assert_eq!(service(&[]), r#"Ok(Metadata { host: "http://169.254.169.254" })"#);
        assert_eq!(service(&[(METADATA_VARIABLE, "http://pod/")]), r#"Ok(Metadata { host: "http://pod" })"#);
        assert_eq!(service(&[endpoint, header]), r#"Ok(App { endpoint: "http://e", header: "h" })"#);
        assert_eq!(service(&[("MSI_ENDPOINT", "http://m")]), r#"Ok(CloudShell { endpoint: "http://m" })"#);
        let refused = [
            service(&[endpoint, header, ("IDENTITY_SERVER_THUMBPRINT", "t")]),
            service(&[("MSI_ENDPOINT", "http://m"), ("MSI_SECRET", "s")]),
            service(&[endpoint, ("IMDS_ENDPOINT", "http://i")]),
        ];
        insta::assert_snapshot!(refused.join("\n"), @r#"
        Err(Failed("IDENTITY_SERVER_THUMBPRINT is set, and the identities of Service Fabric are not supported"))
        Err(Failed("MSI_SECRET is set, and the identities of Azure Machine Learning are not supported"))
        Err(Failed("IMDS_ENDPOINT is set, and the identities of Azure Arc are not supported"))
        "#);
    }
}
