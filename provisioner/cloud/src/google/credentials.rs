//! Sources of credentials, in the order of Pulumi.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, read_named};
use google_cloud_auth::build_errors::Error as BuildError;
use google_cloud_auth::credentials::{
    AccessTokenCredentials, CacheableResource, CredentialsProvider as _, external_account,
    external_account_authorized_user, impersonated, mds, service_account, user_account,
};
use http::{Extensions, HeaderMap};
use zeroize::Zeroizing;

use super::failure::TokenFailure;
use super::token::StaticToken;

/// Limit of the request of an access token, with its repetitions.
const TOKEN_LIMIT: Duration = Duration::from_secs(20);

/// File of the application default credentials below the folder of gcloud.
const DEFAULT_FILE: &str = "application_default_credentials.json";
/// Sources before the metadata server, for the error if there are no credentials.
const CHAIN: &str = "GOOGLE_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN, GOOGLE_APPLICATION_CREDENTIALS and the file of \
                     `gcloud auth application-default login`";

/// Domain of Google's public cloud.
pub(crate) const PUBLIC_CLOUD: &str = "googleapis.com";
/// Variable that names the cloud of the credentials.
const UNIVERSE_DOMAIN: &str = "GOOGLE_CLOUD_UNIVERSE_DOMAIN";

/// Credentials of the configuration: the JSON of a service account, or of another kind of account.
#[derive(Clone)]
pub struct GoogleCredentials(Zeroizing<String>);

impl GoogleCredentials {
    /// Wraps the JSON.
    pub fn new(json: impl Into<String>) -> Self {
        Self(Zeroizing::new(json.into()))
    }
}

impl fmt::Debug for GoogleCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[credentials of Google Cloud]")
    }
}

/// Credentials that were found, with their source. No token was requested yet.
#[derive(Debug)]
pub struct LoadedCredentials {
    /// Provider of access tokens.
    pub credentials: AccessTokenCredentials,
    /// Source for messages; for the metadata server with the sources that were tried before.
    pub source: String,
    /// Domain of the cloud that the JSON of the credentials names (`universe_domain`); `None`: Google's public cloud.
    pub(crate) universe_domain: Option<String>,
}

/// Reason why credentials cannot be used. Contains no part of them.
#[derive(Debug, thiserror::Error)]
pub enum GoogleCredentialsError {
    /// A file with credentials cannot be read.
    #[error("the credentials of {source_name} cannot be read")]
    Unreadable {
        /// Source of the credentials.
        source_name: String,
        /// Error of the file.
        source: FileError,
    },
    /// The credentials are not JSON of a known kind of account.
    #[error("the credentials of {source_name} are invalid: expected the JSON of {KINDS}")]
    Invalid {
        /// Source of the credentials.
        source_name: String,
    },
    /// The credentials belong to another cloud than the URL names, whose hosts are not to see them.
    #[error(
        "the credentials of {source_name} are for the cloud `{found}`, and `universe_domain` of the URL is `{expected}`: use \
         credentials of that cloud; {UNIVERSE_DOMAIN} names the cloud of credentials that do not say it"
    )]
    Universe {
        /// Source of the credentials.
        source_name: String,
        /// Domain of the credentials.
        found: String,
        /// Domain of the URL.
        expected: String,
    },
    /// The credentials lack a part, or one is malformed.
    #[error("the credentials of {source_name} are incomplete or malformed")]
    Incomplete {
        /// Source of the credentials.
        source_name: String,
    },
}

const KINDS: &str = "a service account, a user, an external account or an impersonated service account";

/// Returns the credentials of the configuration, else of the environment (`GOOGLE_CREDENTIALS` with JSON,
/// `GOOGLE_OAUTH_ACCESS_TOKEN`), else the application default: the file of `GOOGLE_APPLICATION_CREDENTIALS`, the file that
/// gcloud has written, the metadata server. No other variables are read, and `home` replaces `HOME`.
///
/// # Errors
/// [`GoogleCredentialsError`] if credentials are there and cannot be used. That no source has any is reported by the
/// first request.
pub fn load_credentials(
    configured: Option<&GoogleCredentials>,
    scope: &str,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<LoadedCredentials, GoogleCredentialsError> {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    if let Some(GoogleCredentials(json)) = configured {
        return from_json(json, scope, "the configuration".to_owned());
    }
    if let Some(json) = variable("GOOGLE_CREDENTIALS") {
        return from_json(json, scope, "GOOGLE_CREDENTIALS".to_owned());
    }
    if let Some(token) = variable("GOOGLE_OAUTH_ACCESS_TOKEN") {
        let credentials = StaticToken::new(token).into();
        let source = "GOOGLE_OAUTH_ACCESS_TOKEN".to_owned();
        return Ok(LoadedCredentials { credentials, source, universe_domain: None });
    }
    if let Some(path) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
        let source = format!("GOOGLE_APPLICATION_CREDENTIALS ({path})");
        return from_file(Path::new(path), scope, source);
    }
    let folder = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(home?.join(".config/gcloud")));
    let file = folder.map(|folder| folder.join(DEFAULT_FILE)).filter(|file| file.exists());
    if let Some(file) = file {
        return from_file(&file, scope, file.display().to_string());
    }
    let builder = mds::Builder::default().with_scopes([scope]);
    let builder = match variable("GCE_METADATA_HOST") {
        Some(host) => builder.with_endpoint(format!("http://{host}")),
        None => builder,
    };
    let source = format!("the metadata server (no credentials in {CHAIN})");
    built(builder.build_access_token_credentials(), source)
}

impl LoadedCredentials {
    /// Refuses to show the credentials to the hosts of another cloud than theirs, which anybody could name in a URL. The variable
    /// `GOOGLE_CLOUD_UNIVERSE_DOMAIN` names the cloud of credentials that do not name it themselves.
    ///
    /// # Errors
    /// [`GoogleCredentialsError::Universe`].
    pub(crate) fn check_universe(
        &self,
        expected: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<(), GoogleCredentialsError> {
        let declared = environment.get(UNIVERSE_DOMAIN).filter(|domain| !domain.is_empty());
        let found = self.universe_domain.as_ref().or(declared).map_or(PUBLIC_CLOUD, String::as_str);
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        let (source_name, found) = (self.source.clone(), found.to_owned());
        Err(GoogleCredentialsError::Universe { source_name, found, expected: expected.to_owned() })
    }
}

fn from_file(path: &Path, scope: &str, source: String) -> Result<LoadedCredentials, GoogleCredentialsError> {
    match read_named(path, MAX_DOCUMENT_BYTES) {
        Ok(content) => from_json(&Zeroizing::new(String::from_utf8_lossy(&content).into_owned()), scope, source),
        Err(error) => Err(GoogleCredentialsError::Unreadable { source_name: source, source: error }),
    }
}

fn from_json(json: &str, scope: &str, source: String) -> Result<LoadedCredentials, GoogleCredentialsError> {
    let invalid = |source_name| GoogleCredentialsError::Invalid { source_name };
    let Ok(json) = serde_json::from_str::<serde_json::Value>(json) else { return Err(invalid(source)) };
    let text = |name: &str| json.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    let (kind, universe_domain) = (text("type").unwrap_or_default(), text("universe_domain"));
    let credentials = match kind.as_str() {
        "service_account" => {
            let access = service_account::AccessSpecifier::from_scopes([scope]);
            service_account::Builder::new(json).with_access_specifier(access).build_access_token_credentials()
        }
        "authorized_user" => user_account::Builder::new(json).with_scopes([scope]).build_access_token_credentials(),
        "external_account" => {
            external_account::Builder::new(json).with_scopes([scope]).build_access_token_credentials()
        }
        "external_account_authorized_user" => {
            external_account_authorized_user::Builder::new(json).build_access_token_credentials()
        }
        "impersonated_service_account" => {
            impersonated::Builder::new(json).with_scopes([scope]).build_access_token_credentials()
        }
        _ => return Err(invalid(source)),
    };
    Ok(LoadedCredentials { universe_domain, ..built(credentials, source)? })
}

/// Adds the source. The error of a builder is dropped: it may quote a part of the credentials.
fn built(
    credentials: Result<AccessTokenCredentials, BuildError>,
    source: String,
) -> Result<LoadedCredentials, GoogleCredentialsError> {
    match credentials {
        Ok(credentials) => Ok(LoadedCredentials { credentials, source, universe_domain: None }),
        Err(_) => Err(GoogleCredentialsError::Incomplete { source_name: source }),
    }
}

/// Requests an access token, as the headers of a request to a service that bills the project of the account.
///
/// # Errors
/// [`TokenFailure`].
pub(crate) async fn access_headers(loaded: &LoadedCredentials) -> Result<HeaderMap, TokenFailure> {
    let LoadedCredentials { credentials, source, .. } = loaded;
    match tokio::time::timeout(TOKEN_LIMIT, credentials.headers(Extensions::new())).await {
        Ok(Ok(CacheableResource::New { data, .. })) => Ok(data),
        Ok(Ok(CacheableResource::NotModified)) => Ok(HeaderMap::new()),
        Ok(Err(error)) => Err(TokenFailure::of(source, &error)),
        Err(_) => Err(TokenFailure::timeout(source, TOKEN_LIMIT)),
    }
}

/// Requests an access token.
///
/// # Errors
/// [`TokenFailure`].
pub(crate) async fn access_token(loaded: &LoadedCredentials) -> Result<String, TokenFailure> {
    let LoadedCredentials { credentials, source, .. } = loaded;
    match tokio::time::timeout(TOKEN_LIMIT, credentials.access_token()).await {
        Ok(Ok(token)) => Ok(token.token),
        Ok(Err(error)) => Err(TokenFailure::of(source, &error)),
        Err(_) => Err(TokenFailure::timeout(source, TOKEN_LIMIT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str =
        r#"{"type":"authorized_user","client_id":"i","client_secret":"hidden","refresh_token":"hidden"}"#;

    fn source(
        configured: Option<&str>,
        home: Option<&Path>,
        variables: &[(&str, &str)],
    ) -> Result<String, GoogleCredentialsError> {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let configured = configured.map(GoogleCredentials::new);
        Ok(load_credentials(configured.as_ref(), "scope", &environment, home)?.source)
    }

    /// Shows: server-yaml.md#secrets-provider "Credentials: `credentials`, the JSON of an account; else
    ///   `GOOGLE_CREDENTIALS` (JSON), `GOOGLE_OAUTH_ACCESS_TOKEN`, the application default credentials, the metadata
    ///   server."
    /// Shows: state.md#in-google-cloud-storage "Credentials are the first of: those of `server.yaml`"
    /// Shows: state.md#in-google-cloud-storage "An emulator, whose address is `STORAGE_EMULATOR_HOST`, gets only the
    ///   first three."
    #[tokio::test]
    async fn sources_have_the_order_of_pulumi() {
        let home = tempfile::tempdir().unwrap();
        let gcloud = home.path().join(".config/gcloud");
        bridge::fs::create_folders(&gcloud).unwrap();
        let file = gcloud.join(DEFAULT_FILE);
        let other = home.path().join("other.json");
        for path in [&file, &other] {
            bridge::fs::write_atomically(path, USER.as_bytes(), bridge::fs::Access::Private).unwrap();
        }
        let (default, other) = (file.to_str().unwrap(), other.to_str().unwrap());
        let of_application = format!("GOOGLE_APPLICATION_CREDENTIALS ({other})");
        let all = [
            ("GOOGLE_CREDENTIALS", USER),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "token"),
            ("GOOGLE_APPLICATION_CREDENTIALS", other),
            ("CLOUDSDK_CONFIG", "/missing"),
        ];
        type Case<'c> = (Option<&'c str>, &'c [(&'c str, &'c str)], &'c str);
        let cases: [Case<'_>; 6] = [
            (Some(USER), &all, "the configuration"),
            (None, &all, "GOOGLE_CREDENTIALS"),
            (None, &all[1..], "GOOGLE_OAUTH_ACCESS_TOKEN"),
            (None, &all[2..], &of_application),
            (
                None,
                &all[3..],
                "the metadata server (no credentials in GOOGLE_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN, \
                 GOOGLE_APPLICATION_CREDENTIALS and the file of `gcloud auth application-default login`)",
            ),
            (None, &[], default),
        ];
        for (configured, variables, expected) in cases {
            assert_eq!(source(configured, Some(home.path()), variables).unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn unusable_credentials_are_refused_without_quoting_them() {
        let message = |json| source(Some(json), None, &[]).unwrap_err().to_string();
        let invalid = format!("the credentials of the configuration are invalid: expected the JSON of {KINDS}");
        for json in ["hidden", "[]", r#"{"type":"hidden"}"#] {
            assert_eq!(message(json), invalid);
        }
        let incomplete = "the credentials of the configuration are incomplete or malformed";
        assert_eq!(message(r#"{"type":"authorized_user","client_secret":"hidden"}"#), incomplete);
        let missing = source(None, None, &[("GOOGLE_APPLICATION_CREDENTIALS", "/missing.json")]).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "the credentials of GOOGLE_APPLICATION_CREDENTIALS (/missing.json) cannot be read"
        );
        assert_eq!(format!("{:?}", GoogleCredentials::new("hidden")), "[credentials of Google Cloud]");
    }
    /// Shows: state.md#in-google-cloud-storage "Credentials are sent to the cloud that they belong to"
    #[tokio::test]
    async fn credentials_are_not_shown_to_the_hosts_of_another_cloud() {
        const OTHER: &str = "apis.example.goog";
        let declared = |domain: &str| BTreeMap::from([(UNIVERSE_DOMAIN.to_owned(), domain.to_owned())]);
        let check = |of_json: Option<&str>, expected: &str, environment: &BTreeMap<String, String>| {
            let (credentials, source) = (StaticToken::new("token").into(), "the configuration".to_owned());
            let loaded = LoadedCredentials { credentials, source, universe_domain: of_json.map(str::to_owned) };
            loaded.check_universe(expected, environment).map_err(|error| error.to_string())
        };
        let named = USER.replace('}', r#","universe_domain":"googleapis.com"}"#);
        let named = load_credentials(Some(&GoogleCredentials::new(named)), "scope", &BTreeMap::new(), None).unwrap();
        assert_eq!(named.universe_domain.as_deref(), Some(PUBLIC_CLOUD));
        assert_eq!(check(None, PUBLIC_CLOUD, &BTreeMap::new()), Ok(()));
        assert_eq!(check(None, OTHER, &declared(OTHER)), Ok(()));
        assert_eq!(check(Some(OTHER), OTHER, &BTreeMap::new()), Ok(()));
        assert!(
            check(Some(OTHER), PUBLIC_CLOUD, &declared(PUBLIC_CLOUD))
                .unwrap_err()
                .contains("for the cloud `apis.example.goog`")
        );
        assert_eq!(
            check(None, OTHER, &declared("")).unwrap_err(),
            "the credentials of the configuration are for the cloud `googleapis.com`, and `universe_domain` of the URL is \
             `apis.example.goog`: use credentials of that cloud; GOOGLE_CLOUD_UNIVERSE_DOMAIN names the cloud of credentials that do \
             not say it"
        );
    }
}
