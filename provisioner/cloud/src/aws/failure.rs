//! Failures of the chain of credentials, as one line each.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use aws_smithy_types::error::ErrorMetadata;

/// Reason why there are no credentials: the sources in the order in which they were tried, and what each lacks. It never
/// contains a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsFailure(String);

/// Name of each source in the chain as the SDK has it, name for users, and what it lacks where the SDK gives no reason.
const SOURCES: [(&str, &str, &str); 5] = [
    ("Environment", "environment", "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set"),
    ("Profile", "profile", "no credentials"),
    ("WebIdentityToken", "web identity", "no token"),
    ("EcsContainer", "container (ECS, EKS)", "not in a container of ECS or EKS"),
    ("Ec2InstanceMetadata", "instance (EC2)", "no metadata"),
];

/// Reasons of the SDK that say less than the ones above.
const VAGUE: [&str; 3] = ["", "environment variable not set", "ECS provider not configured"];

const NOT_ENABLED: &str = "the credential provider was not enabled";

/// Beginnings of a chain of errors that say no more than the message around them.
const EMPTY_WORDS: [&str; 3] =
    ["an error occurred while loading credentials", "an error occurred while loading an access token", NOT_ENABLED];

impl CredentialsFailure {
    /// Describes an error of the chain, given the sources that the configuration and the environment name. A profile of
    /// the URL precedes what is before it in the chain.
    fn of(error: &CredentialsError, configured: &str, profile: Option<&str>) -> Self {
        let text = chain_text(error);
        let Some((_, attempts)) = text.split_once("Attempted:") else {
            let mut rest = text.as_str();
            while let Some(next) = EMPTY_WORDS.iter().find_map(|words| rest.strip_prefix(words)?.strip_prefix(": ")) {
                rest = next;
            }
            let reason = one_line(rest);
            // The last source of the chain: the others have nothing.
            if reason.contains("IMDS") {
                let lines = SOURCES.iter().map(|(source, ..)| match *source {
                    "Ec2InstanceMetadata" => format!("{source}: {reason}"),
                    _ => (*source).to_owned(),
                });
                return Self::of_attempts(lines, profile);
            }
            return Self(format!("cannot load credentials of AWS ({configured}): {reason}{}", hint(&reason)));
        };
        Self::of_attempts(attempts.trim().lines().map(str::to_owned), profile)
    }

    fn of_attempts(lines: impl Iterator<Item = String>, profile: Option<&str>) -> Self {
        let attempts: Vec<String> = lines.filter_map(|line| attempt_text(&line, profile)).collect();
        Self(format!("no credentials of AWS; tried in this order: {}", attempts.join("; ")))
    }

    /// Returns the failure in an error of the provider of a configuration.
    pub(crate) fn in_error(error: &CredentialsError) -> Self {
        Self::find(error).cloned().unwrap_or_else(|| Self(one_line(&chain_text(error))))
    }

    /// Describes a chain that has not ended in time.
    pub(crate) fn timeout(limit: Duration) -> Self {
        Self(format!("the sources of credentials of AWS did not reply within {} s", limit.as_secs()))
    }

    /// Returns the failure in a chain of errors, such as that of a request of the SDK.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut error = Some(error);
        while let Some(current) = error {
            if let Some(failure) = current.downcast_ref() {
                return Some(failure);
            }
            error = current.source();
        }
        None
    }
}

impl fmt::Display for CredentialsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for CredentialsFailure {}

fn attempt_text(line: &str, profile: Option<&str>) -> Option<String> {
    let line = line.trim();
    let (source, reason) = line.split_once(": ").unwrap_or((line, ""));
    let reason = reason.strip_prefix(NOT_ENABLED).map_or(reason, |rest| rest.trim_start_matches(": "));
    let Some((_, name, lack)) = SOURCES.iter().find(|(known, ..)| *known == source) else {
        return Some(line.to_owned());
    };
    let reason = if VAGUE.contains(&reason) { lack } else { reason };
    match (source, profile) {
        ("Environment" | "WebIdentityToken", Some(_)) => None,
        ("Profile", Some(profile)) => Some(format!("profile `{profile}`: {reason}")),
        _ => Some(format!("{name}: {reason}")),
    }
}

/// Joins an error and its causes; of the reply of a service, only its code and its words.
fn chain_text(error: &(dyn Error + 'static)) -> String {
    let mut texts = Vec::new();
    let mut current = Some(error);
    while let Some(cause) = current {
        if let Some(reply) = cause.downcast_ref::<ErrorMetadata>() {
            let parts = [reply.code(), reply.message()];
            return parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        }
        texts.push(cause.to_string());
        current = cause.source();
    }
    texts.join(": ")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what to do about a login that is missing or has ended.
fn hint(reason: &str) -> &'static str {
    if reason.to_ascii_lowercase().contains("sso token") { "; run `aws sso login` for the profile" } else { "" }
}

/// Provider whose errors have a [`CredentialsFailure`] as their cause.
#[derive(Debug)]
pub(super) struct ExplainedCredentials {
    pub(super) provider: SharedCredentialsProvider,
    /// Sources that the configuration and the environment name.
    pub(super) configured: String,
    /// Profile of the URL.
    pub(super) profile: Option<String>,
}

impl ProvideCredentials for ExplainedCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            self.provider.provide_credentials().await.map_err(|error| {
                let failure = CredentialsFailure::of(&error, &self.configured, self.profile.as_deref());
                match error {
                    CredentialsError::CredentialsNotLoaded(_) => CredentialsError::not_loaded(failure),
                    CredentialsError::InvalidConfiguration(_) => CredentialsError::invalid_configuration(failure),
                    _ => CredentialsError::provider_error(failure),
                }
            })
        })
    }
}
