//! Types for the `config` of the core types on AWS.

use config::diagnostics::{Code, Diagnostic, Span};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

const CREDENTIALS: Code = Code("credentials");

/// `config` of `s3-bucket` (simple-container §7.3).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A private bucket on S3, and a user of its own with an access key.")]
pub struct S3BucketConfig {
    /// The account as JSON, usually `${auth:NAME}`. Its keys and its region count, not those beside it.
    #[schemars(extend("writeOnly" = true))]
    pub credentials: Option<TextHandle>,
    /// Number of the account. Told for readers; nothing depends on it.
    pub account: Option<TextHandle>,
    /// Access key of the account, where there are no `credentials`.
    pub access_key: Option<TextHandle>,
    /// Secret of the access key.
    #[schemars(extend("writeOnly" = true))]
    pub secret_access_key: Option<TextHandle>,
    /// Region of the bucket, where there are no `credentials`.
    pub region: Option<TextHandle>,
    /// Name of the bucket without the environment, which is added; by default that of the resource.
    pub name: String,
    /// Refuse what does not come over HTTPS.
    pub allow_only_https: bool,
    /// Domain of a static website. Needs a registrar, which is not supported yet.
    pub domain: Option<TextHandle>,
    /// First page of a static website.
    #[schemars(extend("default" = "index.html"))]
    pub index_document: Option<TextHandle>,
    /// Error page of a static website.
    #[schemars(extend("default" = "error.html"))]
    pub error_document: Option<TextHandle>,
    /// Which other sites may read the bucket in a browser.
    pub cors_config: CorsConfig,
    /// Zone of the domain. Read, and not used.
    pub base_dns_zone: Option<TextHandle>,
    /// Whether `www` is served, too. Read, and not used.
    pub provision_www_domain: bool,
}

/// Which other sites may read a bucket in a browser.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("additionalProperties" = false))]
pub struct CorsConfig {
    /// The site, such as `https://example.org`; without one there is no rule.
    pub allowed_origins: Option<TextHandle>,
    /// Its methods.
    #[schemars(extend("default" = ["GET", "HEAD"]))]
    pub allowed_methods: Vec<TextHandle>,
}

impl CoreConfig for S3BucketConfig {
    const TYPE: &'static str = "s3-bucket";
    const OUTPUTS: &'static [&'static str] = &["bucket", "region", "access-key", "secret-key"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        if decoded.written(decoded.config.domain).is_some() {
            let span = node.at(["domain"]).map(|domain| domain.span);
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

/// Returns the mistakes in the account of a bucket, and warnings about ignored keys.
fn check_account(decoded: &Decoded<S3BucketConfig>, node: &Node) -> Vec<Diagnostic> {
    let config = &decoded.config;
    let at = |key: &str| node.at([key]).map(|value| value.span);
    let fields =
        [("accessKey", config.access_key), ("secretAccessKey", config.secret_access_key), ("region", config.region)];
    let written = |(_, handle): &&(&'static str, Option<TextHandle>)| decoded.written(*handle).is_some();
    if let Some(credentials) = decoded.written(config.credentials) {
        let ignored = fields.iter().filter(written).map(|(key, _)| {
            Diagnostic::warning(Code("unused"), at(key), format!("`{key}` is ignored: that of `credentials` counts"))
        });
        let wrong = credentials.known().and_then(|text| check_credentials(&text, at("credentials")));
        return ignored.chain(wrong).collect();
    }
    match (written(&&fields[0]), written(&&fields[1]), written(&&fields[2])) {
        (key, secret, _) if key != secret => {
            let (there, missing) =
                if key { ("accessKey", "secretAccessKey") } else { ("secretAccessKey", "accessKey") };
            let summary = format!("`{there}` is of no use without `{missing}`");
            vec![Diagnostic::error(CREDENTIALS, at(there), summary)]
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
            error("the credentials lack the access key, or its secret")
                .help("an `aws-token` has `accessKey` and `secretAccessKey`"),
        );
    }
    account.region.is_empty().then(|| error("the credentials name no region").help("add `region` to the `aws-token`"))
}

/// Account in the JSON of an `aws-token` (simple-container §3.2). It is secret, so it has no `Debug`.
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
