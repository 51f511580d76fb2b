//! Types for the `config` of the core types on AWS.

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, Span};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::unused::unused;

const CREDENTIALS: Code = Code("credentials");

/// Account of the resources of a type on AWS (docs/spec/simple-container.md#7.2).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsAccountConfig {
    /// The account as JSON, usually `${auth:NAME}`. Overrides `accessKey`, `secretAccessKey` and `region`.
    #[schemars(extend("writeOnly" = true))]
    pub credentials: Option<TextHandle>,
    /// Number of the account. Informational, not used.
    pub account: Option<TextHandle>,
    /// Access key of the account, if `credentials` is not set.
    pub access_key: Option<TextHandle>,
    /// Secret of the access key.
    #[schemars(extend("writeOnly" = true))]
    pub secret_access_key: Option<TextHandle>,
    /// Region of the resources, if `credentials` is not set.
    pub region: Option<TextHandle>,
}

/// `config` of `s3-bucket` (docs/spec/simple-container.md#7.3).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A bucket on S3, private or a static website, and a user of its own with an access key.")]
pub struct S3BucketConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: AwsAccountConfig,
    /// Name of the bucket without the environment suffix, which is added. Defaults to the name of the resource.
    pub name: String,
    /// Deny requests that do not use HTTPS.
    pub allow_only_https: bool,
    /// Domain of a static website, which makes the bucket public. Needs a registrar.
    pub domain: String,
    /// First page of a static website.
    #[schemars(extend("default" = "index.html"))]
    pub index_document: Option<TextHandle>,
    /// Error page of a static website.
    #[schemars(extend("default" = "error.html"))]
    pub error_document: Option<TextHandle>,
    /// Rules for cross-origin requests of browsers.
    pub cors_config: CorsConfig,
    /// DNS zone of the domain. Not used.
    pub base_dns_zone: Option<TextHandle>,
    /// Serve the `www` subdomain as well. Not used.
    pub provision_www_domain: bool,
}

/// Rules for cross-origin requests of browsers to a bucket.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsConfig {
    /// Allowed origin, such as `https://example.org`. Without it, no rule is created.
    pub allowed_origins: Option<TextHandle>,
    /// Allowed HTTP methods.
    #[schemars(extend("default" = ["GET", "HEAD"]))]
    pub allowed_methods: Vec<TextHandle>,
}

impl CoreConfig for S3BucketConfig {
    const TYPE: &'static str = "s3-bucket";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("S3Bucket");
    const PROVIDER: &'static str = "aws";
    const OUTPUTS: &'static [&'static str] = &["bucket", "region", "access-key", "secret-key"];
    const DOMAIN: Option<&'static str> = Some("domain");

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(check_account(decoded, &decoded.config.account, node));
        diagnostics.extend(unused(node, &["baseDnsZone", "provisionWwwDomain"], ", as in Simple Container"));
        if decoded.config.domain.is_empty() {
            diagnostics.extend(unused(node, &["indexDocument", "errorDocument"], " without `domain`"));
        }
        if decoded.non_empty_text(decoded.config.cors_config.allowed_origins).is_none() {
            diagnostics.extend(unused(node, &["corsConfig.allowedMethods"], " without `allowedOrigins`"));
        }
    }
}

/// `config` of `ecr-repository` (docs/spec/simple-container.md#7.4).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A repository for container images on ECR.")]
pub struct EcrRepositoryConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: AwsAccountConfig,
    /// Name of the repository, without the name of the stack, which is added in front.
    pub name: String,
    /// Rules that delete images. By default, the newest three stay.
    pub lifecycle_policy: Option<LifecyclePolicy>,
}

/// Rules that delete images of a repository. They serialize as in the Go program.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecyclePolicy {
    /// Rules, in any order.
    pub rules: Vec<LifecycleRule>,
}

/// Rule of a lifecycle policy.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleRule {
    /// Rank of the rule: rules with lower ranks apply first.
    #[schemars(range(min = 0))]
    pub rule_priority: i64,
    /// Purpose of the rule.
    pub description: String,
    /// Images that the rule applies to.
    pub selection: LifecycleSelection,
    /// Action on these images.
    pub action: LifecycleAction,
}

/// Images that a rule of a lifecycle policy applies to.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleSelection {
    /// `tagged`, `untagged` or `any`.
    pub tag_status: String,
    /// Patterns of tags, with `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag_pattern_list: Vec<String>,
    /// Beginnings of tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag_prefix_list: Vec<String>,
    /// `imageCountMoreThan` or `sinceImagePushed`.
    pub count_type: String,
    /// Number of images, or of `countUnit`.
    #[schemars(range(min = 0))]
    pub count_number: i64,
    /// `days`, with `sinceImagePushed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub count_unit: String,
}

/// Action of a rule of a lifecycle policy.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleAction {
    /// `expire`.
    #[serde(rename = "type")]
    pub kind: String,
}

impl CoreConfig for EcrRepositoryConfig {
    const TYPE: &'static str = "ecr-repository";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("EcrRepository");
    const PROVIDER: &'static str = "aws";
    const REQUIRED: &'static [RequiredKey] = &[("name", "add the name of the repository, such as `name: apps`")];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(check_account(decoded, &decoded.config.account, node));
    }
}

/// Database on RDS: fields of `aws-rds-postgres` and `aws-rds-mysql` (docs/spec/simple-container.md#7.5).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RdsConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: AwsAccountConfig,
    /// Name of the instance without the environment suffix, which is added. Defaults to the name of the resource.
    pub name: String,
    /// Class of the instance.
    #[schemars(extend("default" = "db.t3.micro"))]
    pub instance_class: Option<TextHandle>,
    /// Size of the disk in GiB.
    #[schemars(range(min = 1), extend("default" = 20))]
    pub allocate_storage: Option<i64>,
    /// Version of the database.
    pub engine_version: Option<TextHandle>,
    /// Name of the administrator.
    pub username: Option<TextHandle>,
    /// Password of the administrator.
    #[schemars(extend("writeOnly" = true))]
    pub password: Option<TextHandle>,
    /// Name of a database that is created with the instance.
    pub database_name: Option<TextHandle>,
    /// Encrypt the disk. A change of this key has no effect on an existing instance.
    #[schemars(extend("default" = true))]
    pub storage_encrypted: Option<bool>,
}

/// Outputs of the types on RDS.
const RDS_OUTPUTS: &[&str] = &["url", "host", "port", "user", "database", "password"];

/// `config` of `aws-rds-postgres`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A PostgreSQL database on RDS, in the default network of the account.")]
pub struct RdsPostgresConfig {
    /// The database.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub database: RdsConfig,
    /// Statements that client stacks run in their databases.
    #[serde(rename = "initSQL")]
    pub init_sql: Option<TextHandle>,
}

impl CoreConfig for RdsPostgresConfig {
    const TYPE: &'static str = "aws-rds-postgres";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("PostgresConfig");
    const PROVIDER: &'static str = "aws";
    const OUTPUTS: &'static [&'static str] = RDS_OUTPUTS;

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(check_account(decoded, &decoded.config.database.account, node));
    }
}

/// `config` of `aws-rds-mysql`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A MySQL or MariaDB database on RDS, in the default network of the account.")]
pub struct RdsMysqlConfig {
    /// The database.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub database: RdsConfig,
    /// `mysql` or `mariadb`.
    #[schemars(extend("default" = "mysql"))]
    pub engine_name: Option<TextHandle>,
}

impl CoreConfig for RdsMysqlConfig {
    const TYPE: &'static str = "aws-rds-mysql";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("MysqlConfig");
    const PROVIDER: &'static str = "aws";
    const OUTPUTS: &'static [&'static str] = RDS_OUTPUTS;

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(check_account(decoded, &decoded.config.database.account, node));
    }
}

/// Returns errors in an account, and warnings about ignored keys.
pub(super) fn check_account<T>(decoded: &Decoded<T>, config: &AwsAccountConfig, node: &Node) -> Vec<Diagnostic> {
    let span_of = |key: &str| node.get_path([key]).map(|value| value.span);
    let fields =
        [("accessKey", config.access_key), ("secretAccessKey", config.secret_access_key), ("region", config.region)];
    let is_set = |(_, handle): &&(&'static str, Option<TextHandle>)| decoded.non_empty_text(*handle).is_some();
    if let Some(credentials) = decoded.non_empty_text(config.credentials) {
        let ignored = fields.iter().filter(is_set).map(|(key, _)| {
            Diagnostic::warning(
                Code("unused"),
                span_of(key),
                format_args!("`{key}` is ignored: `credentials` overrides it"),
            )
        });
        let invalid = credentials.known().and_then(|text| check_credentials(&text, span_of("credentials")));
        return ignored.chain(invalid).collect();
    }
    match (is_set(&&fields[0]), is_set(&&fields[1]), is_set(&&fields[2])) {
        (key, secret, _) if key != secret => {
            let (present, missing) =
                if key { ("accessKey", "secretAccessKey") } else { ("secretAccessKey", "accessKey") };
            let summary = MessageText::new(format_args!("`{present}` requires `{missing}`"));
            vec![Diagnostic::error(CREDENTIALS, span_of(present), summary)]
        }
        (_, _, false) => vec![
            Diagnostic::warning(CREDENTIALS, node.span, "no region: the plugin looks for one in its environment")
                .help("add `credentials: \"${auth:NAME}\"`, where NAME is an `aws-token` in the stack's secrets.yaml"),
        ],
        _ => Vec::new(),
    }
}

fn check_credentials(text: &str, span: Option<Span>) -> Option<Diagnostic> {
    if text.contains("${") {
        // The placeholder that could not be resolved is reported where it stands.
        return None;
    }
    let error = |summary: &str| Diagnostic::error(CREDENTIALS, span, summary);
    let Some(account) = AwsAccount::parse(text) else {
        return Some(
            error("these are not the credentials of an AWS account")
                .help("write `${auth:NAME}`, where NAME is an `aws-token` in the stack's secrets.yaml"),
        );
    };
    if account.access_key.is_empty() != account.secret_access_key.is_empty() {
        return Some(
            error("the credentials lack `accessKey` or `secretAccessKey`")
                .help("an `aws-token` has `accessKey` and `secretAccessKey`"),
        );
    }
    account.region.is_empty().then(|| {
        let summary = "the credentials have no region: the plugin looks for one in its environment";
        Diagnostic::warning(CREDENTIALS, span, summary).help("add `region` to the `aws-token`")
    })
}

/// Account in the JSON of an `aws-token` (docs/spec/simple-container.md#3.2). It is secret, so it has no `Debug`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsAccount {
    /// Access key; may be empty.
    #[serde(deserialize_with = "null_as_empty")]
    pub access_key: String,
    /// Secret of the access key; may be empty.
    #[serde(deserialize_with = "null_as_empty")]
    pub secret_access_key: String,
    /// Region; may be empty.
    #[serde(deserialize_with = "null_as_empty")]
    pub region: String,
}

fn null_as_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl AwsAccount {
    /// Parses the JSON; `None` if that fails, or if it has no member of an account. The reason is not returned, as it would show parts
    /// of the secret.
    pub fn parse(text: &str) -> Option<Self> {
        let json: serde_json::Value = serde_json::from_str(text).ok()?;
        let is_account =
            ["account", "accessKey", "secretAccessKey", "region"].iter().any(|key| json.get(key).is_some());
        if is_account { serde_json::from_value(json).ok() } else { None }
    }
}
