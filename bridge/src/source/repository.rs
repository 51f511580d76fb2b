//! Address of the repository of a release, and of its API.

use url::Url;

use super::address::without_credentials;
use super::error::FetchError;
use crate::plugin::{GithubReleaseSource, is_loopback};

/// API of GitHub.
const GITHUB_API: &str = "https://api.github.com";

/// Repository and the address of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Base URL of the API, without a slash at its end.
    pub api: String,
    /// `owner/name`.
    pub name: String,
    /// Host and path of the repository, without a scheme, by which the lock file knows it: `github.com/acme/reef`. If another API is
    /// declared, the address of the API counts.
    pub place: String,
    /// Base URL of the public addresses of assets; `None` if another API is declared.
    pub web: Option<String>,
}

impl Repository {
    /// Returns the repository that a source declares.
    ///
    /// # Errors
    /// [`FetchError::InvalidAddress`].
    pub fn of(source: &GithubReleaseSource) -> Result<Self, FetchError> {
        let refused = |address: &str, reason: &str| FetchError::InvalidAddress {
            address: without_credentials(address),
            reason: reason.to_owned(),
        };
        let written = source.repository.as_str();
        let web = written.starts_with("https://").then(|| Url::parse(written)).transpose();
        let web = web.map_err(|error| refused(written, &error.to_string()))?;
        let name = web.as_ref().map_or(written, |url| url.path().trim_start_matches('/'));
        let api = match (&source.api_url, &web) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, None) => GITHUB_API.to_owned(),
            (None, Some(url)) if holds_credentials(url) => return Err(refused(written, CREDENTIALS)),
            (None, Some(url)) if matches!(url.host_str(), Some("github.com" | "www.github.com")) => {
                GITHUB_API.to_owned()
            }
            (None, Some(url)) => format!("{}/api/v3", url.origin().ascii_serialization()),
        };
        let reason = match Url::parse(&api) {
            Err(error) => error.to_string(),
            Ok(url) if holds_credentials(&url) => CREDENTIALS.to_owned(),
            Ok(url) if !matches!(url.scheme(), "https" | "http") => "it is neither https nor http".to_owned(),
            Ok(url) if url.query().is_some() || url.fragment().is_some() => "it has a query".to_owned(),
            Ok(_) => {
                let name = name.trim_end_matches('/').trim_end_matches(".git").to_owned();
                let host = match (&source.api_url, &web) {
                    (Some(_), _) if !source.is_mirror => api.split_once("://").map_or("", |(_, rest)| rest),
                    (_, Some(url)) => url
                        .as_str()
                        .strip_prefix("https://")
                        .and_then(|rest| rest.split('/').next())
                        .unwrap_or_default(),
                    (_, None) => "github.com",
                };
                let host = if host == "www.github.com" { "github.com" } else { host.trim_end_matches('/') };
                let place = format!("{host}/{name}");
                let web = source.api_url.is_none().then(|| format!("https://{host}"));
                return Ok(Self { api, name, place, web });
            }
        };
        Err(refused(&api, &reason))
    }
}

impl Repository {
    /// Returns the host of the API.
    pub fn host(&self) -> String {
        Url::parse(&self.api).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Returns the host of the API, with its port unless that is the usual one.
    pub fn authority(&self) -> String {
        let port = Url::parse(&self.api).ok().and_then(|url| url.port());
        port.map_or_else(|| self.host(), |port| format!("{}:{port}", self.host()))
    }

    /// Returns whether a token may be sent to the API: whether its address is encrypted, or on this machine.
    pub fn may_receive_token(&self) -> bool {
        self.api.starts_with("https://") || is_loopback(&self.host())
    }
}

/// Reason for the refusal of an address with a user or a password.
const CREDENTIALS: &str = "it contains credentials; set source.token instead";

fn holds_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::WantedVersion;

    fn source(repository: &str, api_url: Option<&str>) -> GithubReleaseSource {
        let release = GithubReleaseSource::new(repository.into(), WantedVersion::Named("v1.0.0".into()));
        GithubReleaseSource { api_url: api_url.map(Into::into), ..release }
    }

    #[test]
    fn api_url_is_derived_from_the_repository() {
        let cases = [
            ("acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef", None, "https://api.github.com", "acme/reef"),
            ("https://github.com/acme/reef.git", None, "https://api.github.com", "acme/reef"),
            ("https://git.reef.example/acme/reef/", None, "https://git.reef.example/api/v3", "acme/reef"),
            ("https://git.reef.example:8443/acme/reef", None, "https://git.reef.example:8443/api/v3", "acme/reef"),
            ("acme/reef", Some("http://127.0.0.1:99/api/"), "http://127.0.0.1:99/api", "acme/reef"),
        ];
        for (repository, api, base, name) in cases {
            let found = Repository::of(&source(repository, api)).unwrap();
            assert_eq!((found.api.as_str(), found.name.as_str()), (base, name));
        }
    }

    #[test]
    fn invalid_api_url_is_refused_without_showing_credentials() {
        for api in [
            "ftp://reef.example",
            "reef.example",
            "https://me:word@reef.example",
            "ftp://me:word@h",
            "https://me:word@h:99999",
            "https://reef.example?a=b",
        ] {
            let error = Repository::of(&source("acme/reef", Some(api))).unwrap_err();
            assert!(matches!(error, FetchError::InvalidAddress { .. }), "{api}: {error}");
            assert!(!error.to_string().contains("word"), "{error}");
        }
        let error = Repository::of(&source("https://me:word@git.reef.example/acme/reef", None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"cannot use the address "https://git.reef.example/acme/reef": it contains credentials; set source.token instead"#
        );
    }

    /// Shows: plugins.md#the-lock-file "An entry belongs to a declaration"
    #[test]
    fn place_is_that_of_the_repository_unless_another_api_is_declared() {
        let mirror = |api: &str| GithubReleaseSource { is_mirror: true, ..source("acme/reef", Some(api)) };
        for (source, place, web) in [
            (source("acme/reef", None), "github.com/acme/reef", Some("https://github.com")),
            (source("https://github.com/acme/reef.git", None), "github.com/acme/reef", Some("https://github.com")),
            (source("https://www.github.com/acme/reef", None), "github.com/acme/reef", Some("https://github.com")),
            (
                source("https://git.reef.example:8443/acme/reef", None),
                "git.reef.example:8443/acme/reef",
                Some("https://git.reef.example:8443"),
            ),
            (source("acme/reef", Some("http://127.0.0.1:9/api/v3/")), "127.0.0.1:9/api/v3/acme/reef", None),
            (mirror("https://mirror.example/api"), "github.com/acme/reef", None),
        ] {
            let found = Repository::of(&source).unwrap();
            assert_eq!((found.place.as_str(), found.web.as_deref()), (place, web));
        }
    }
}
