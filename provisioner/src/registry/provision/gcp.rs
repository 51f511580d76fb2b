//! Registrations of the core types on Google Cloud.

use async_trait::async_trait;
use bridge::provider::{Alias, AliasParent};
use futures_util::future::{join, join_all};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use super::core_resource::{CoreResource, Package, Provision, ProvisionError, Provisioned, both, output};
use super::inputs::{Inputs, Resolved};
use crate::registry::types::GcpBucketConfig;
use config::types::{Decoded, TextHandle};

const GCP: Package = Package { name: "gcp", version: "8.41.1" };
const OBJECT_ADMIN: &str = "roles/storage.objectAdmin";
/// URL at which S3 clients reach every bucket.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// Core type `gcp-bucket` (simple-container §7.6): a bucket, created or adopted, and a service account with an HMAC key
/// for it.
pub(super) struct GcpBucket;

/// Differences between a created bucket and an adopted one.
struct Shape {
    /// Physical name of the bucket.
    bucket: String,
    import_id: Option<ResourceId>,
    account_suffix: &'static str,
    account_id: String,
    display_name: String,
    /// Suffix of the resource name and role of each grant to the account.
    grants: Vec<(&'static str, &'static str)>,
    key_suffix: &'static str,
}

impl Shape {
    fn made(base: &str) -> Self {
        let account_id = trim_middle(&format!("{base}-sa").replace('_', "-"), 28, "-").replace("--", "-");
        Self {
            bucket: base.to_owned(),
            import_id: None,
            account_suffix: "sa",
            account_id,
            display_name: format!("Service Account for {base}"),
            grants: vec![("iam-object", OBJECT_ADMIN), ("iam-bucket", "roles/storage.legacyBucketWriter")],
            key_suffix: "hmac",
        }
    }

    fn taken_over(base: &str, bucket: &str) -> Self {
        Self {
            bucket: bucket.to_owned(),
            import_id: ResourceId::new(bucket),
            account_suffix: "bucket-sa",
            account_id: format!("{base}-bucket-sa"),
            display_name: format!("Service account for bucket {bucket}"),
            grants: vec![("bucket-iam", OBJECT_ADMIN)],
            key_suffix: "hmac-key",
        }
    }
}

#[async_trait]
impl Provision for GcpBucket {
    fn package(&self) -> Package {
        GCP
    }

    async fn provision(&self, resource: CoreResource<'_>) -> Result<Provisioned, ProvisionError> {
        let config = resource.decode::<GcpBucketConfig>()?;
        let given = config.config.given_name();
        let base = resource.qualified(given.unwrap_or(resource.name));
        let shape = match given.filter(|_| config.config.adopt) {
            Some(bucket) => Shape::taken_over(&base, bucket),
            None => Shape::made(&base),
        };
        let location = written(&resource, &config, config.config.location)?;
        let account = Inputs::default()
            .set("credentials", written(&resource, &config, config.config.credentials)?)
            .set("project", written(&resource, &config, config.config.project_id)?);

        let provider = resource.register_provider::<GcpBucketConfig>(GCP, account).await?;
        let part = |suffix: &str| format!("{base}-{suffix}");

        let inputs = Inputs::default().plain("name", shape.bucket).set("location", location);
        let mut bucket = provider.goal("gcp:storage/bucket:Bucket", &base, inputs, &[]);
        bucket.import_id = shape.import_id;
        bucket.additional_secret_outputs = vec!["effectiveLabels".to_owned(), "pulumiLabels".to_owned()];
        let inputs = Inputs::default().plain("accountId", shape.account_id).plain("displayName", shape.display_name);
        let mut account = provider.goal("gcp:serviceaccount/account:Account", &part(shape.account_suffix), inputs, &[]);
        account.aliases = vec![former_type("gcp:serviceAccount/account:Account")];
        let (bucket, account) = join(resource.register(bucket), resource.register(account)).await;
        let (bucket, account) = both(bucket, account)?;

        let email = output(&account, "email");
        let grants = shape.grants.into_iter().map(|(suffix, role)| {
            let member = Resolved::made_of([&email], |[email]| format!("serviceAccount:{email}"));
            let inputs =
                Inputs::default().set("bucket", output(&bucket, "name")).plain("role", role).set("member", member);
            resource.register(provider.goal("gcp:storage/bucketIAMMember:BucketIAMMember", &part(suffix), inputs, &[]))
        });
        let inputs = Inputs::default().set("serviceAccountEmail", email.clone());
        let mut key = provider.goal("gcp:storage/hmacKey:HmacKey", &part(shape.key_suffix), inputs, &[]);
        key.additional_secret_outputs = vec!["secret".to_owned()];
        let (grants, key) = join(join_all(grants), resource.register(key)).await;
        let mut granted = Ok(Vec::new());
        for grant in grants {
            granted = both(granted, grant).map(|(granted, grant)| [granted, vec![grant]].concat());
        }
        let (grants, key) = both(granted, key)?;

        let secret_key = output(&key, "secret").secret();
        let exports = [
            ("bucket-name", output(&bucket, "name")),
            ("bucket-location", output(&bucket, "location")),
            ("hmac-access-key-id", output(&key, "accessId")),
            ("hmac-secret-key", secret_key.clone()),
        ];
        Ok(Provisioned {
            exports: exports.into_iter().map(|(suffix, resolved)| (part(suffix), resolved.value)).collect(),
            values: [
                ("bucket", output(&bucket, "name")),
                ("location", output(&bucket, "location")),
                ("access-key", output(&key, "accessId")),
                ("secret-key", secret_key),
                ("endpoint", Resolved::known(ENDPOINT)),
            ]
            .into(),
            registered: [bucket, account]
                .into_iter()
                .chain(grants)
                .chain([key])
                .map(|registered| registered.urn)
                .collect(),
        })
    }
}

/// Returns a text of the `config`; null if it is not written.
fn written(
    resource: &CoreResource<'_>,
    config: &Decoded<GcpBucketConfig>,
    handle: Option<TextHandle>,
) -> Result<Resolved, ProvisionError> {
    match handle.filter(|_| config.written(handle).is_some()) {
        Some(handle) => resource.text(config, handle),
        None => Ok(Resolved::known(PropertyValue::Null)),
    }
}

/// Returns the alias that an SDK sends for a type that was renamed.
fn former_type(type_token: &str) -> Alias {
    Alias::Spec {
        name: None,
        type_token: Some(type_token.to_owned()),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    }
}

/// Shortens a text that has more than `length` characters to its two ends with a separator between them
/// (simple-container §7.2). The ends have `length` characters together, so the separator makes the result longer.
fn trim_middle(text: &str, length: usize, separator: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= length {
        return text.to_owned();
    }
    let (head, tail) = (&characters[..length / 2], &characters[characters.len() - length / 2..]);
    head.iter().chain(&separator.chars().collect::<Vec<_>>()).chain(tail).collect()
}
