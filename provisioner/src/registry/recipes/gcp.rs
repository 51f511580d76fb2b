//! Recipes of the core types on Google Cloud.

use serde_json::json;

use crate::registry::packages::GCP;
use crate::registry::recipe::{GoogleApi, Hole, Provider, Recipe, ResourceNames, trim_hash, trim_middle};
use crate::registry::types::gcp::{GcpAccountConfig, GcpBucketConfig};

const OBJECT_ADMIN: &str = "roles/storage.objectAdmin";
const BUCKET_WRITER: &str = "roles/storage.legacyBucketWriter";
/// Endpoint of all buckets for S3 clients.
const ENDPOINT: &str = "https://storage.googleapis.com";

/// Adds the provider of an account.
pub(super) fn account_provider(account: &GcpAccountConfig, r: &mut Recipe<'_>) -> Provider {
    let project = project(account, r);
    r.provider(GCP, json!({ "credentials": account.credentials, "project": project }))
}

/// Returns the project of an account; empty if it is not set.
pub(super) fn project(account: &GcpAccountConfig, r: &mut Recipe<'_>) -> Hole {
    r.text_or(account.project_id, "")
}

pub(super) fn service_account_id(text: &str) -> String {
    trim_hash(&text.replace('_', "-"), 28).replace("--", "-")
}

/// Switches on an API in the project of an account.
pub(super) fn enable_api(service: &'static str, gcp: Provider, account: &GcpAccountConfig, r: &mut Recipe<'_>) {
    let (project, credentials) = (project(account, r), r.text_or(account.credentials, ""));
    r.enable_google_api(gcp, GoogleApi { service, project, credentials });
}

/// `gcp-bucket` (docs/spec/simple-container.md#7.6): a bucket, created or adopted, and a service account with an HMAC key
/// for it.
pub(super) fn gcp_bucket(config: &GcpBucketConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let configured_name = config.configured_name();
    let base = at.qualified(configured_name.unwrap_or(at.name));
    let part = |suffix: &str| format!("{base}-{suffix}");
    let adopted = configured_name.filter(|_| config.adopt);
    let gcp = account_provider(&config.account, r);

    let inputs = json!({ "name": adopted.unwrap_or(&base), "location": config.location });
    let bucket = gcp.resource("gcp:storage/bucket:Bucket", &base, inputs);
    let bucket = r.add(match adopted {
        Some(name) => bucket.import(name),
        None => bucket,
    });
    let (account_name, account_id, display_name) = match adopted {
        Some(name) => (part("bucket-sa"), part("bucket-sa"), format!("Service account for bucket {name}")),
        None => {
            let id = trim_middle(&part("sa").replace('_', "-"), 28, "-").replace("--", "-");
            (part("sa"), id, format!("Service Account for {base}"))
        }
    };
    let inputs = json!({ "accountId": account_id, "displayName": display_name });
    let account = r.add(gcp.resource("gcp:serviceaccount/account:Account", &account_name, inputs));

    let grants: &[_] = match adopted {
        Some(_) => &[("bucket-iam", OBJECT_ADMIN)],
        None => &[("iam-object", OBJECT_ADMIN), ("iam-bucket", BUCKET_WRITER)],
    };
    for (suffix, role) in grants {
        let member = r.text([account.out("email")], |[email]| format!("serviceAccount:{email}"));
        let inputs = json!({ "bucket": bucket.out("name"), "role": role, "member": member });
        r.add(gcp.resource("gcp:storage/bucketIAMMember:BucketIAMMember", &part(suffix), inputs));
    }
    let key_suffix = if adopted.is_some() { "hmac-key" } else { "hmac" };
    let inputs = json!({ "serviceAccountEmail": account.out("email") });
    let key = r.add(gcp.resource("gcp:storage/hmacKey:HmacKey", &part(key_suffix), inputs));

    let secret_key = key.out("secret").secret();
    r.export(
        &base,
        json!({
            "bucket-name": bucket.out("name"),
            "bucket-location": bucket.out("location"),
            "hmac-access-key-id": key.out("accessId"),
            "hmac-secret-key": secret_key,
        }),
    );
    r.publish(json!({
        "bucket": bucket.out("name"),
        "location": bucket.out("location"),
        "access-key": key.out("accessId"),
        "secret-key": secret_key,
        "endpoint": ENDPOINT,
    }));
}
