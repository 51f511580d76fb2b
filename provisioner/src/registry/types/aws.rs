//! Types for the `config` of the core types on AWS.

use config::diagnostics::{Code, Diagnostic, Span};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

const CREDENTIALS: Code = Code("credentials");

/// `config` of `s3-bucket` (docs/spec/simple-container.md#7.3).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A private bucket on S3, and a user of its own with an access key.")]
pub struct S3BucketConfig {
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
    /// Region of the bucket, if `credentials` is not set.
    pub region: Option<TextHandle>,
    /// Name of the bucket without the environment suffix, which is added. Defaults to the name of the resource.
    pub name: String,
    /// Deny requests that do not use HTTPS.
    pub allow_only_https: bool,
    /// Domain of a static website. Needs a registrar, which is not supported yet.
    pub domain: Option<TextHandle>,
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
#[schemars(extend("additionalProperties" = false))]
pub struct CorsConfig {
    /// Allowed origin, such as `https://example.org`. Without it, no rule is created.
    pub allowed_origins: Option<TextHandle>,
    /// Allowed HTTP methods.
    #[schemars(extend("default" = ["GET", "HEAD"]))]
    pub allowed_methods: Vec<TextHandle>,
}

impl CoreConfig for S3BucketConfig {
    const TYPE: &'static str = "s3-bucket";
    const OUTPUTS: &'static [&'static str] = &["bucket", "region", "access-key", "secret-key"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        if decoded.non_empty_text(decoded.config.domain).is_some() {
            let span = node.get_path(["domain"]).map(|domain| domain.span);
            diagnostics.push(
                Diagnostic::error(
                    Code("not-supported"),
                    span,
                    "`domain` needs a registrar, which is not supported yet",
                )
                .help("leave `domain` out: the bucket is then private"),
            );
        }
        diagnostics.extend(check_account(decoded, node));
    }
}

/// Returns errors in the account of a bucket, and warnings about ignored keys.
fn check_account(decoded: &Decoded<S3BucketConfig>, node: &Node) -> Vec<Diagnostic> {
    let config = &decoded.config;
    let span_of = |key: &str| node.get_path([key]).map(|value| value.span);
    let fields =
        [("accessKey", config.access_key), ("secretAccessKey", config.secret_access_key), ("region", config.region)];
    let is_set = |(_, handle): &&(&'static str, Option<TextHandle>)| decoded.non_empty_text(*handle).is_some();
    if let Some(credentials) = decoded.non_empty_text(config.credentials) {
        let ignored = fields.iter().filter(is_set).map(|(key, _)| {
            Diagnostic::warning(Code("unused"), span_of(key), format!("`{key}` is ignored: `credentials` overrides it"))
        });
        let invalid = credentials.known().and_then(|text| check_credentials(&text, span_of("credentials")));
        return ignored.chain(invalid).collect();
    }
    match (is_set(&&fields[0]), is_set(&&fields[1]), is_set(&&fields[2])) {
        (key, secret, _) if key != secret => {
            let (present, missing) =
                if key { ("accessKey", "secretAccessKey") } else { ("secretAccessKey", "accessKey") };
            let summary = format!("`{present}` requires `{missing}`");
            vec![Diagnostic::error(CREDENTIALS, span_of(present), summary)]
        }
        (_, _, false) => vec![
            Diagnostic::error(CREDENTIALS, node.span, "the credentials of an AWS account are missing")
                .help("add `credentials: \"${auth:NAME}\"`, where NAME is an `aws-token` in the stack's secrets.yaml"),
        ],
        _ => Vec::new(),
    }
}

fn check_credentials(text: &str, span: Option<Span>) -> Option<Diagnostic> {
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
    account.region.is_empty().then(|| error("the credentials have no region").help("add `region` to the `aws-token`"))
}

/// Account in the JSON of an `aws-token` (docs/spec/simple-container.md#3.2). It is secret, so it has no `Debug`.
#[derive(Default)]
pub struct AwsAccount {
    /// Access key; may be empty.
    pub access_key: String,
    /// Secret of the access key; may be empty.
    pub secret_access_key: String,
    /// Region; may be empty.
    pub region: String,
}

impl AwsAccount {
    /// Parses the JSON; `None` if that fails. The reason is not returned, as it would show parts of the secret.
    pub fn parse(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Account {
            access_key: Option<String>,
            secret_access_key: Option<String>,
            region: Option<String>,
        }
        let Account { access_key, secret_access_key, region } = serde_json::from_str(text).ok()?;
        Some(Self {
            access_key: access_key.unwrap_or_default(),
            secret_access_key: secret_access_key.unwrap_or_default(),
            region: region.unwrap_or_default(),
        })
    }
}
