//! Registrations of the core types on AWS.

use async_trait::async_trait;
use futures_util::future::{join, join3};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use serde::Serialize;
use serde_json::{Value, json};

use super::core_resource::{CoreResource, Package, Provision, ProvisionError, ProvisionResult, combine, id, output};
use super::inputs::{self, Inputs, ResolvedValue};
use crate::registry::types::{AwsAccount, S3BucketConfig};
use config::diagnostics::{Code, Diagnostic};
use config::types::{Decoded, TextHandle};

/// Core type `s3-bucket` (docs/spec/simple-container.md#7.3): a private bucket, and a user with an access key for it.
pub(super) struct S3Bucket;

#[async_trait]
impl Provision for S3Bucket {
    fn package(&self) -> Package {
        Package::of_sdk("aws")
    }

    async fn provision(&self, resource: CoreResource<'_>) -> Result<ProvisionResult, ProvisionError> {
        let config = resource.decode::<S3BucketConfig>()?;
        let S3BucketConfig { name, allow_only_https, .. } = &config.config;
        let base = resource.qualified_name(if name.is_empty() { resource.name } else { name });
        let cors_rules = cors_rules(&resource, &config)?;
        let account = provider_inputs(&resource, &config)?;

        let provider = resource.register_provider::<S3BucketConfig>(self.package(), account).await?;
        let part = |suffix: &str| format!("{base}-{suffix}");
        let tags = resource_tags(&resource);

        let inputs =
            Inputs::default().plain("bucket", base.as_str()).plain("acl", "private").plain("tags", tags.clone());
        let bucket = resource.register(provider.goal("aws:s3/bucket:Bucket", &base, inputs, &[])).await?;
        let bucket_inputs = || Inputs::default().set("bucket", id(&bucket));

        let cors = async {
            let Some(rules) = cors_rules else { return Ok(None) };
            let token = "aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2";
            let goal = provider.goal(token, &part("cors"), bucket_inputs().set("corsRules", rules), &[]);
            resource.register(goal).await.map(Some)
        };
        let access_block = {
            let inputs = ["blockPublicAcls", "ignorePublicAcls", "blockPublicPolicy", "restrictPublicBuckets"]
                .into_iter()
                .fold(bucket_inputs(), |inputs, name| inputs.plain(name, true));
            let token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock";
            resource.register(provider.goal(token, &part("access-block"), inputs, &[]))
        };
        let access = async {
            let rule = PropertyMap::from([("objectOwnership".to_owned(), "ObjectWriter".into())]);
            let token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls";
            let goal = provider.goal(token, &part("ownership-controls"), bucket_inputs().plain("rule", rule), &[]);
            let ownership = resource.register(goal).await?;

            let inputs = Inputs::default().plain("forceDestroy", true).plain("tags", tags);
            let goal = provider.goal("aws:iam/user:User", &part("user"), inputs, &[&ownership]);
            let user = resource.register(goal).await?;

            let inputs = Inputs::default().set("user", id(&user));
            let key = provider.goal("aws:iam/accessKey:AccessKey", &part("access-key"), inputs, &[&ownership]);

            let sources = [&output(&user, "arn"), &output(&bucket, "arn"), &id(&bucket)];
            let policy = ResolvedValue::from_texts(sources, |[user, bucket, id]| {
                bucket_policy(user, bucket, id, *allow_only_https)
            });
            let inputs = bucket_inputs().set("policy", policy);
            let policy = provider.goal("aws:s3/bucketPolicy:BucketPolicy", &part("policy"), inputs, &[&ownership]);

            let (key, policy) = join(resource.register(key), resource.register(policy)).await;
            let (key, policy) = combine(key, policy)?;
            Ok((ownership, user, key, policy))
        };
        let (cors, access_block, access) = join3(cors, access_block, access).await;
        let ((cors, access_block), (ownership, user, key, policy)) = combine(combine(cors, access_block), access)?;

        let secret_key = output(&key, "secret").secret();
        let exports = [
            ("bucket-name", output(&bucket, "bucket")),
            ("bucket-region", output(&bucket, "region")),
            ("bucket-user", output(&user, "name")),
            ("access-key-secret", secret_key.clone()),
            ("access-key-name", id(&key)),
        ];
        Ok(ProvisionResult {
            stack_outputs: exports.into_iter().map(|(suffix, resolved)| (part(suffix), resolved.value)).collect(),
            outputs: [
                ("bucket", output(&bucket, "bucket")),
                ("region", output(&bucket, "region")),
                ("access-key", id(&key)),
                ("secret-key", secret_key),
            ]
            .into(),
            registered: [bucket]
                .into_iter()
                .chain(cors)
                .chain([access_block, ownership, user, key, policy])
                .map(|registered| registered.urn)
                .collect(),
        })
    }
}

/// Returns the inputs of the provider, from the account in `credentials`, else from the separate keys. Inputs other
/// than strings are sent as JSON texts, as by most SDKs (except Go's) and as returned by the provider.
fn provider_inputs(resource: &CoreResource<'_>, config: &Decoded<S3BucketConfig>) -> Result<Inputs, ProvisionError> {
    let S3BucketConfig { credentials, access_key, secret_access_key, region, .. } = &config.config;
    let (access_key, secret_key, region) = match credentials.filter(|_| config.non_empty_text(*credentials).is_some()) {
        Some(handle) => {
            let credentials = resource.text(config, handle)?;
            let part = |value: PropertyValue| ResolvedValue { value, dependencies: credentials.dependencies.clone() };
            match credentials.exposed_text().map(AwsAccount::parse) {
                Some(Some(AwsAccount { access_key, secret_access_key, region })) => {
                    (part(access_key.into()), part(secret_access_key.into()), part(region.into()))
                }
                Some(None) => {
                    let (_, span) = config.text(handle);
                    let summary = "these are not the credentials of an AWS account";
                    return Err(Box::new(Diagnostic::error(Code("credentials"), span, summary)).into());
                }
                None => {
                    let unknown = || part(PropertyValue::UNKNOWN);
                    (unknown(), unknown(), unknown())
                }
            }
        }
        None => {
            let text = |handle: Option<TextHandle>| match handle {
                Some(handle) => resource.text(config, handle),
                None => Ok(ResolvedValue::known("")),
            };
            (text(*access_key)?, text(*secret_access_key)?, text(*region)?)
        }
    };
    let inputs = Inputs::default().set("region", region).plain("skipRegionValidation", "true");
    Ok(match access_key.exposed_text() {
        // Without keys, the provider finds credentials itself, for example in its environment.
        Some("") => inputs.plain("skipCredentialsValidation", "true"),
        _ => inputs
            .set("accessKey", access_key.secret())
            .set("secretKey", secret_key.secret())
            .plain("skipCredentialsValidation", "false"),
    })
}

/// Returns the tags of every resource that has tags.
fn resource_tags(resource: &CoreResource<'_>) -> PropertyMap {
    [("stack", resource.stack), ("env", resource.environment)]
        .into_iter()
        .map(|(key, value)| (format!("simple-container.com/{key}"), value.into()))
        .collect()
}

/// Returns the rules of `corsConfig`; `None` without an allowed origin.
fn cors_rules(
    resource: &CoreResource<'_>,
    config: &Decoded<S3BucketConfig>,
) -> Result<Option<ResolvedValue>, ProvisionError> {
    let cors = &config.config.cors_config;
    let Some(origin) = cors.allowed_origins.filter(|_| config.non_empty_text(cors.allowed_origins).is_some()) else {
        return Ok(None);
    };
    let origin = resource.text(config, origin)?;
    let methods = cors.allowed_methods.iter().map(|method| resource.text(config, *method));
    let mut methods = methods.collect::<Result<Vec<_>, _>>()?;
    if methods.is_empty() {
        methods = ["GET", "HEAD"].map(ResolvedValue::known).to_vec();
    }
    let dependencies = [&origin].into_iter().chain(&methods).flat_map(|resolved| resolved.dependencies.clone());
    let dependencies = inputs::distinct(dependencies.collect());
    let rule = PropertyMap::from([
        ("allowedOrigins".to_owned(), vec![origin.value].into()),
        ("allowedMethods".to_owned(), methods.into_iter().map(|method| method.value).collect::<Vec<_>>().into()),
        ("allowedHeaders".to_owned(), vec!["*".into()].into()),
    ]);
    Ok(Some(ResolvedValue { value: vec![rule.into()].into(), dependencies }))
}

/// Returns the policy of a bucket in the format of Go's JSON encoder: compact, with sorted keys.
fn bucket_policy(user: &str, bucket: &str, id: &str, only_https: bool) -> String {
    /// Statement of a policy, with its fields in alphabetical order.
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Statement {
        action: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<Value>,
        effect: &'static str,
        principal: Value,
        resource: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sid: Option<&'static str>,
    }
    let allow = Statement {
        action: "s3:*",
        condition: None,
        effect: "Allow",
        principal: json!({ "AWS": user }),
        resource: vec![format!("arn:aws:s3:::{id}"), format!("arn:aws:s3:::{id}/*")],
        sid: None,
    };
    let deny = Statement {
        action: "s3:*",
        condition: Some(json!({ "Bool": { "aws:SecureTransport": "false" } })),
        effect: "Deny",
        principal: json!("*"),
        resource: vec![format!("{bucket}/*")],
        sid: Some("DenyNonSecureTransport"),
    };
    let statements: Vec<Statement> = [allow].into_iter().chain(only_https.then_some(deny)).collect();
    json!({ "Statement": statements, "Version": "2012-10-17" }).to_string()
}
