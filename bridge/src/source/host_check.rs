//! Health checks of the places of packages: whether they can be reached, and as whom.

use std::path::Path;

use super::credentials::{Credential, Credentials};
use super::error::FetchError;
use super::git::Git;
use super::github::{Github, RateLimit};
use super::remote::Remote;
use super::repository::Repository;
use crate::error::{Hint as _, chain};
use crate::health::HealthCheck;
use crate::plugin::{GitSource, GithubReleaseSource};
use crate::process::{HostEnvironment, Spawner};

/// Number of requests from which on so few are left that a run may be refused.
const FEW_REQUESTS: u64 = 20;

/// Checks that the API of a release can be reached, with the credential that a run sends, and how many requests are left.
pub async fn check_release_host(source: &GithubReleaseSource, credentials: &Credentials) -> HealthCheck {
    let repository = match Repository::of(source) {
        Ok(repository) => repository,
        Err(error) => return failed("host", &error),
    };
    let name = format!("host {}", repository.host());
    let credential = match &source.token {
        Some(token) => Some(Credential { name: "source.token".to_owned(), token: token.clone() }),
        None if repository.may_receive_token() => credentials.find(&repository.authority(), &repository.name).await,
        None => None,
    };
    let sent = match &credential {
        Some(credential) => format!("as {}", credential.name),
        None => "without a credential".to_owned(),
    };
    let limit = match Github::new(repository, credential.as_ref()) {
        Ok(github) => github.rate_limit().await,
        Err(error) => Err(error),
    };
    match limit {
        Ok(None) => HealthCheck::good(name, format_args!("reached {sent}; it has no limit on requests")),
        Ok(Some(RateLimit { remaining, limit })) if remaining < FEW_REQUESTS => {
            let text = format_args!("reached {sent}; {remaining} of {limit} requests are left");
            let advice = match credential {
                Some(_) => "locked packages are downloaded without the limit; wait until the hour is over for others",
                None => "set GITHUB_TOKEN: requests with a token have a higher limit",
            };
            HealthCheck::notable(name, text, advice)
        }
        Ok(Some(RateLimit { remaining, limit })) => {
            HealthCheck::good(name, format_args!("reached {sent}; {remaining} of {limit} requests are left"))
        }
        Err(error @ FetchError::AccessDenied { .. }) if credential.is_some() && source.token.is_none() => {
            let text = format!("{} (sent {sent})", chain(&error));
            HealthCheck::notable(name, text, "a run leaves this credential out; renew it, or remove it")
        }
        Err(error) => failed(&name, &error),
    }
}

/// Checks that a git repository can be reached, with the credentials of git.
pub async fn check_git_repository(
    source: &GitSource,
    root: &Path,
    environment: &HostEnvironment,
    spawner: &Spawner,
) -> HealthCheck {
    let remote = match Remote::new(&source.url, root, source.token.clone()) {
        Ok(remote) => remote,
        Err(error) => return failed("git repository", &error),
    };
    let name = format!("git {}", remote.display_url());
    let listed = match Git::find(environment, spawner) {
        Ok(git) => git.tags(&remote).await,
        Err(error) => Err(error),
    };
    match listed {
        Ok(tags) => {
            let sent = if source.token.is_some() { "as source.token" } else { "with the credentials of git" };
            HealthCheck::good(name, format_args!("reached {sent}; it has {} tags", tags.len()))
        }
        Err(error) => failed(&name, &error),
    }
}

fn failed(name: &str, error: &FetchError) -> HealthCheck {
    HealthCheck::bad(name, chain(error), error.hint().unwrap_or_default())
}
