//! Region, endpoint and credentials of the SDK's clients.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::sts::AssumeRoleProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::origin::Origin;
use bridge::fs::FileError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::failure::ExplainedCredentials;
use super::keys::AwsKeys;
use super::limited::LimitedClient;
use super::parameters::AwsParameters;

/// Limits of a request to a service that issues credentials, and defaults of the SDK's clients.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);
const OPERATION_LIMIT: Duration = Duration::from_secs(60);

/// Maximum size of a file with certificates.
const MAX_BUNDLE: u64 = 16 << 20;

/// Variables that precede the profiles in the chain of the SDK.
const BEFORE_PROFILES: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
];

/// Reason why there is no configuration for a client.
#[derive(Debug, thiserror::Error)]
pub enum AwsConfigError {
    /// The profile of the URL is in none of the files.
    #[error("the profile `{0}` of AWS is not defined in `~/.aws/config` or `~/.aws/credentials`")]
    MissingProfile(String),
    /// The files of the profiles cannot be read or are malformed.
    #[error("the profile `{profile}` of AWS cannot be read")]
    Profile {
        /// Name of the profile.
        profile: String,
        /// Error of the SDK.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A role is to be assumed, and there is no region.
    #[error("a role can be assumed only in a region: add the parameter `region`, or set AWS_REGION")]
    RoleWithoutRegion,
    /// The file that `AWS_CA_BUNDLE` names cannot be read.
    #[error("the certificates that AWS_CA_BUNDLE names cannot be loaded")]
    Bundle(#[source] FileError),
    /// The file that `AWS_CA_BUNDLE` names has no certificate.
    #[error("the file that AWS_CA_BUNDLE names, {}, has no certificate in the form PEM", .0.display())]
    EmptyBundle(PathBuf),
    /// The certificates cannot be used.
    #[error("the certificates that AWS_CA_BUNDLE names cannot be used")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Loads region, endpoint, limits and credentials for the SDK's clients.
///
/// The region is that of the parameters, else of the keys, else of the chain of the SDK. The credentials are the keys,
/// else those of the profile of the parameters, else of the chain: environment, profile (static keys, SSO, role, process),
/// web identity, container, instance. They are not requested yet: a failure is reported by the first request, and
/// [`CredentialsFailure::find`](super::CredentialsFailure::find) returns it.
///
/// `environment` is the only source of variables, and `home` replaces its `HOME`.
///
/// # Errors
/// [`AwsConfigError`].
pub async fn load_config(
    parameters: &AwsParameters,
    keys: Option<&AwsKeys>,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<SdkConfig, AwsConfigError> {
    let variables = variables(parameters, environment, home);
    let configured = configured_sources(parameters, keys, &variables);
    if let Some(profile) = &parameters.profile {
        check_profile(profile, &variables).await?;
    }
    let limits = TimeoutConfig::builder()
        .connect_timeout(CONNECT_LIMIT)
        .operation_attempt_timeout(ATTEMPT_LIMIT)
        .operation_timeout(OPERATION_LIMIT)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).env(variables.into()).timeout_config(limits);
    let client = LimitedClient::trusting(ca_bundle(environment)?.as_deref());
    loader = loader.http_client(client.map_err(|error| AwsConfigError::Tls(error.into()))?);
    if let Some(region) = parameters.region.as_deref().or_else(|| keys.and_then(AwsKeys::region)) {
        loader = loader.region(Region::new(region.to_owned()));
    }
    if let Some(profile) = &parameters.profile {
        loader = loader.profile_name(profile);
    }
    if parameters.dualstack {
        loader = loader.use_dual_stack(true);
    }
    if parameters.fips {
        loader = loader.use_fips(true);
    }
    if parameters.anonymous {
        loader = loader.no_credentials();
    } else if let Some(keys) = keys {
        loader = loader.credentials_provider(keys.credentials());
    }
    let mut config = loader.load().await;
    if let Some(role) = &parameters.role {
        if config.region().is_none() {
            return Err(AwsConfigError::RoleWithoutRegion);
        }
        let provider = AssumeRoleProvider::builder(role).session_name("sc").configure(&config).build().await;
        config = config.into_builder().credentials_provider(SharedCredentialsProvider::new(provider)).build();
    }
    let mut builder = config.to_builder();
    if let Some(provider) = config.credentials_provider() {
        let explained = ExplainedCredentials { provider, configured, profile: parameters.profile.clone() };
        builder.set_credentials_provider(Some(SharedCredentialsProvider::new(explained)));
    }
    // Set last: a role is assumed at the endpoint of STS.
    if let Some(endpoint) = &parameters.endpoint {
        builder.insert_origin("endpoint_url", Origin::shared_config());
        builder.set_endpoint_url(Some(endpoint.clone()));
    }
    Ok(builder.build())
}

/// Names the sources of credentials that are configured, for messages: `profile `team``.
pub fn credential_sources(
    parameters: &AwsParameters,
    keys: Option<&AwsKeys>,
    environment: &BTreeMap<String, String>,
) -> String {
    configured_sources(parameters, keys, &variables(parameters, environment, None))
}

/// Returns the certificates (PEM) that `AWS_CA_BUNDLE` names; they are trusted beside those of the platform.
///
/// # Errors
/// [`AwsConfigError::Bundle`] and [`AwsConfigError::EmptyBundle`].
pub fn ca_bundle(environment: &BTreeMap<String, String>) -> Result<Option<Vec<u8>>, AwsConfigError> {
    let Some(path) = environment.get("AWS_CA_BUNDLE").filter(|path| !path.is_empty()) else { return Ok(None) };
    let path = Path::new(path);
    let content = bridge::fs::read_named(path, MAX_BUNDLE).map_err(AwsConfigError::Bundle)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(content)),
        Ok(_) | Err(_) => Err(AwsConfigError::EmptyBundle(path.to_owned())),
    }
}

fn variables(
    parameters: &AwsParameters,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> HashMap<String, String> {
    let mut variables: HashMap<String, String> = environment.clone().into_iter().collect();
    if let Some(home) = home {
        variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    }
    if parameters.profile.is_some() {
        for name in BEFORE_PROFILES {
            variables.remove(name);
        }
    }
    variables
}

fn configured_sources(
    parameters: &AwsParameters,
    keys: Option<&AwsKeys>,
    variables: &HashMap<String, String>,
) -> String {
    let profile = parameters.profile.as_ref().or_else(|| variables.get("AWS_PROFILE"));
    let container = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
    let mut sources = Vec::new();
    if keys.is_some() {
        sources.push("keys of the configuration".to_owned());
    } else {
        if variables.contains_key("AWS_ACCESS_KEY_ID") {
            sources.push("environment".to_owned());
        }
        sources.push(format!("profile `{}`", profile.map_or("default", String::as_str)));
        if let Some(file) = variables.get("AWS_WEB_IDENTITY_TOKEN_FILE") {
            sources.push(format!("web identity in `{file}`"));
        }
        if container.iter().any(|name| variables.contains_key(*name)) {
            sources.push("container".to_owned());
        }
    }
    let sources = sources.join(", ");
    parameters.role.as_ref().map_or(sources.clone(), |role| format!("role `{role}`, assumed with: {sources}"))
}

async fn check_profile(profile: &str, variables: &HashMap<String, String>) -> Result<(), AwsConfigError> {
    let selected = Some(profile.to_owned().into());
    let loaded =
        aws_config::profile::load(&Default::default(), &variables.clone().into(), &Default::default(), selected).await;
    match loaded {
        Ok(profiles) if profiles.get_profile(profile).is_some() => Ok(()),
        Ok(_) => Err(AwsConfigError::MissingProfile(profile.to_owned())),
        Err(error) => Err(AwsConfigError::Profile { profile: profile.to_owned(), source: Box::new(error) }),
    }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::provider::ProvideCredentials as _;

    use super::super::failure::CredentialsFailure;
    use super::*;

    const PROFILES: &str = "[default]\nregion = eu-west-3\n[profile team]\nregion = eu-north-1\n\
         aws_access_key_id = AKIATEAM\naws_secret_access_key = hidden\n\
         [profile login]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev\nregion = eu-west-1\n\
         [sso-session corp]\nsso_start_url = https://corp.awsapps.com/start\nsso_region = eu-west-1\n\
         [profile empty]\nregion = eu-west-1\n";

    type Variables<'a> = &'a [(&'a str, &'a str)];

    struct Loaded {
        region: Option<String>,
        credentials: Result<String, String>,
    }

    /// Loads with the metadata service of instances switched off: it would be requested over the network.
    async fn load(query: &str, keys: Option<&AwsKeys>, variables: Variables<'_>) -> Result<Loaded, AwsConfigError> {
        let home = tempfile::tempdir().unwrap();
        bridge::fs::create_folders(&home.path().join(".aws")).unwrap();
        bridge::fs::write_atomically(
            &home.path().join(".aws/config"),
            PROFILES.as_bytes(),
            bridge::fs::Access::Private,
        )
        .unwrap();
        load_in(home.path(), query, keys, variables).await
    }

    async fn load_in(
        home: &Path,
        query: &str,
        keys: Option<&AwsKeys>,
        variables: Variables<'_>,
    ) -> Result<Loaded, AwsConfigError> {
        let mut parameters = AwsParameters::default();
        for (name, value) in super::super::first_values(query) {
            assert!(parameters.set(&name, &value).unwrap(), "{name}");
        }
        let mut environment = BTreeMap::from([("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned())]);
        environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = load_config(&parameters, keys, &environment, Some(home)).await?;
        let credentials = match config.credentials_provider() {
            None => Ok("none".to_owned()),
            Some(provider) => match provider.provide_credentials().await {
                Ok(credentials) => Ok(credentials.access_key_id().to_owned()),
                Err(error) => Err(CredentialsFailure::find(&error).unwrap().to_string()),
            },
        };
        Ok(Loaded { region: config.region().map(ToString::to_string), credentials })
    }

    #[tokio::test]
    async fn sources_of_region_and_credentials_have_their_order() {
        let keys = AwsKeys::new("AKIAFILE", "hidden");
        let regional = keys.clone().with_region("us-east-2").with_session_token("hidden");
        let variables =
            [("AWS_ACCESS_KEY_ID", "AKIAENV"), ("AWS_SECRET_ACCESS_KEY", "hidden"), ("AWS_REGION", "sa-east-1")];
        let cases: [(&str, Option<&AwsKeys>, Variables<'_>, &str, &str); 9] = [
            ("", None, &variables, "sa-east-1", "AKIAENV"),
            ("", None, &variables[..2], "eu-west-3", "AKIAENV"),
            ("region=us-west-1", None, &variables, "us-west-1", "AKIAENV"),
            ("profile=team", None, &variables[..2], "eu-north-1", "AKIATEAM"),
            ("", None, &[("AWS_PROFILE", "team")], "eu-north-1", "AKIATEAM"),
            ("", Some(&keys), &variables, "sa-east-1", "AKIAFILE"),
            ("", Some(&regional), &variables, "us-east-2", "AKIAFILE"),
            ("region=us-west-1", Some(&regional), &variables, "us-west-1", "AKIAFILE"),
            ("anonymous=true", None, &variables, "sa-east-1", "none"),
        ];
        for (query, keys, variables, region, credentials) in cases {
            let loaded = load(query, keys, variables).await.unwrap();
            assert_eq!(loaded.region.as_deref(), Some(region), "{query} {variables:?}");
            assert_eq!(loaded.credentials, Ok(credentials.to_owned()), "{query} {variables:?}");
        }
    }

    #[tokio::test]
    async fn missing_credentials_name_the_chain_in_order() {
        let home = tempfile::tempdir().unwrap();
        let failure = load_in(home.path(), "region=eu-west-1", None, &[]).await.unwrap().credentials.unwrap_err();
        assert_eq!(
            failure,
            "no credentials of AWS; tried in this order: environment: AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set; \
             profile: no credentials; web identity: $AWS_WEB_IDENTITY_TOKEN_FILE was not set; container (ECS, EKS): not in \
             a container of ECS or EKS; instance (EC2): IMDS disabled by AWS_EC2_METADATA_DISABLED env var set to `true`"
        );
        let failure = load("profile=empty", None, &[]).await.unwrap().credentials.unwrap_err();
        assert_eq!(
            failure,
            "no credentials of AWS; tried in this order: profile `empty`: no credentials; container (ECS, EKS): not in a \
             container of ECS or EKS; instance (EC2): IMDS disabled by AWS_EC2_METADATA_DISABLED env var set to `true`"
        );
        let failure = load("profile=login", None, &[]).await.unwrap().credentials.unwrap_err();
        assert_eq!(
            failure,
            "cannot load credentials of AWS (profile `login`): failed to load the cached SSO token; run `aws sso login` for \
             the profile"
        );
        let token = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/missing/token"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/ci")];
        let failure = load_in(home.path(), "region=eu-west-1", None, &token).await.unwrap().credentials.unwrap_err();
        assert_eq!(
            failure,
            "cannot load credentials of AWS (profile `default`, web identity in `/missing/token`): No such file or \
             directory (os error 2)"
        );
    }

    #[tokio::test]
    async fn invalid_settings_are_refused() {
        let refusal = |result: Result<Loaded, AwsConfigError>| result.err().unwrap().to_string();
        assert_eq!(
            refusal(load("profile=absent", None, &[]).await),
            "the profile `absent` of AWS is not defined in `~/.aws/config` or `~/.aws/credentials`"
        );
        let home = tempfile::tempdir().unwrap();
        let role = load_in(home.path(), "role=arn:aws:iam::1:role/ci", None, &[]).await;
        assert_eq!(
            refusal(role),
            "a role can be assumed only in a region: add the parameter `region`, or set AWS_REGION"
        );
        let bundle = home.path().join("empty.pem");
        bridge::fs::write_atomically(&bundle, b"text", bridge::fs::Access::Private).unwrap();
        let variables = [("AWS_CA_BUNDLE", bundle.to_str().unwrap())];
        assert!(matches!(load("", None, &variables).await, Err(AwsConfigError::EmptyBundle(_))));
        let variables = [("AWS_CA_BUNDLE", "/missing/bundle.pem")];
        assert!(matches!(load("", None, &variables).await, Err(AwsConfigError::Bundle(_))));
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = AwsKeys::new("AKIAFILE", "hidden").with_session_token("hidden").with_region("eu-west-1");
        assert_eq!(format!("{keys:?}"), "[keys of AWS]");
    }
}
