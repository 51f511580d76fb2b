//! Registrations of the core types on Google Cloud.

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use super::core_resource::{CoreResource, Package, Provision, ProvisionError, ProvisionResult, combine, output};
use super::inputs::{Inputs, ResolvedValue};
use crate::registry::types::GcpBucketConfig;
use config::types::{Decoded, TextHandle};

const OBJECT_ADMIN: &str = "roles/storage.objectAdmin";
/// Endpoint of all buckets for S3 clients.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// Core type `gcp-bucket` (docs/spec/simple-container.md#7.6): a bucket, created or adopted, and a service account with
/// an HMAC key for it.
pub(super) struct GcpBucket;

/// Differences between a created bucket and an adopted one.
struct BucketVariant {
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

impl BucketVariant {
    fn created(base: &str) -> Self {
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

    fn adopted(base: &str, bucket: &str) -> Self {
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
        Package::of_sdk("gcp")
    }

    async fn provision(&self, resource: CoreResource<'_>) -> Result<ProvisionResult, ProvisionError> {
        let config = resource.decode::<GcpBucketConfig>()?;
        let configured_name = config.config.configured_name();
        let base = resource.qualified_name(configured_name.unwrap_or(resource.name));
        let variant = match configured_name.filter(|_| config.config.adopt) {
            Some(bucket) => BucketVariant::adopted(&base, bucket),
            None => BucketVariant::created(&base),
        };
        let location = optional_text(&resource, &config, config.config.location)?;
        let account = Inputs::default()
            .set("credentials", optional_text(&resource, &config, config.config.credentials)?)
            .set("project", optional_text(&resource, &config, config.config.project_id)?);

        let provider = resource.register_provider::<GcpBucketConfig>(self.package(), account).await?;
        let part = |suffix: &str| format!("{base}-{suffix}");

        let inputs = Inputs::default().plain("name", variant.bucket).set("location", location);
        let mut bucket = provider.goal("gcp:storage/bucket:Bucket", &base, inputs, &[]);
        bucket.import_id = variant.import_id;
        let inputs =
            Inputs::default().plain("accountId", variant.account_id).plain("displayName", variant.display_name);
        let account = provider.goal("gcp:serviceaccount/account:Account", &part(variant.account_suffix), inputs, &[]);
        let (bucket, account) = join(resource.register(bucket), resource.register(account)).await;
        let (bucket, account) = combine(bucket, account)?;

        let email = output(&account, "email");
        let grants = variant.grants.into_iter().map(|(suffix, role)| {
            let member = ResolvedValue::from_texts([&email], |[email]| format!("serviceAccount:{email}"));
            let inputs =
                Inputs::default().set("bucket", output(&bucket, "name")).plain("role", role).set("member", member);
            resource.register(provider.goal("gcp:storage/bucketIAMMember:BucketIAMMember", &part(suffix), inputs, &[]))
        });
        let inputs = Inputs::default().set("serviceAccountEmail", email.clone());
        let key = provider.goal("gcp:storage/hmacKey:HmacKey", &part(variant.key_suffix), inputs, &[]);
        let (grants, key) = join(join_all(grants), resource.register(key)).await;
        let mut granted = Ok(Vec::new());
        for grant in grants {
            granted = combine(granted, grant).map(|(granted, grant)| [granted, vec![grant]].concat());
        }
        let (grants, key) = combine(granted, key)?;

        let secret_key = output(&key, "secret").secret();
        let exports = [
            ("bucket-name", output(&bucket, "name")),
            ("bucket-location", output(&bucket, "location")),
            ("hmac-access-key-id", output(&key, "accessId")),
            ("hmac-secret-key", secret_key.clone()),
        ];
        Ok(ProvisionResult {
            stack_outputs: exports.into_iter().map(|(suffix, resolved)| (part(suffix), resolved.value)).collect(),
            outputs: [
                ("bucket", output(&bucket, "name")),
                ("location", output(&bucket, "location")),
                ("access-key", output(&key, "accessId")),
                ("secret-key", secret_key),
                ("endpoint", ResolvedValue::known(ENDPOINT)),
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

/// Returns a text of the `config`; null if it is not set.
fn optional_text(
    resource: &CoreResource<'_>,
    config: &Decoded<GcpBucketConfig>,
    handle: Option<TextHandle>,
) -> Result<ResolvedValue, ProvisionError> {
    match handle.filter(|_| config.non_empty_text(handle).is_some()) {
        Some(handle) => resource.text(config, handle),
        None => Ok(ResolvedValue::known(PropertyValue::Null)),
    }
}

/// Shortens a text that has more than `length` characters to its two ends with a separator between them
/// (docs/spec/simple-container.md#7.2). The ends have `length` characters together, so the separator makes the result
/// longer.
fn trim_middle(text: &str, length: usize, separator: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= length {
        return text.to_owned();
    }
    let (head, tail) = (&characters[..length / 2], &characters[characters.len() - length / 2..]);
    head.iter().chain(&separator.chars().collect::<Vec<_>>()).chain(tail).collect()
}
