//! Recipes of the keys that protect the secrets of a stack (docs/spec/simple-container.md#6.4), each of which exports the URL of its
//! key; and passwords that other recipes generate.

use serde_json::{Value, json};

use super::{aws, gcp};
use crate::registry::packages::RANDOM;
use crate::registry::recipe::{Hole, Provider, Recipe, ResolvedValue, ResourceNames};
use crate::registry::types::keys::{AwsKmsConfig, GcpKmsConfig};

/// APIs of Google that a key needs, in the order in which they are switched on.
const APIS: [&str; 2] = ["serviceusage.googleapis.com", "cloudkms.googleapis.com"];
/// Time after which Google replaces the key material, unless the `config` has another one.
const ROTATION_PERIOD: &str = "100000s";

/// `aws-kms`: a key whose key material AWS replaces every year.
pub(super) fn aws_kms(config: &AwsKmsConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let (aws, region) = aws::provider(&config.account, r);
    let inputs = json!({ "enableKeyRotation": true, "tags": at.tags() });
    let key = r.add(aws.resource("aws:kms/key:Key", at.name, inputs));
    let region = public(region, r);
    let url = r.text([key.out("keyId"), region], |[id, region]| format!("awskms://{id}?region={region}"));
    r.export_as(at.name, json!(url));
}

/// `gcp-kms`: a key ring with a symmetric key.
pub(super) fn gcp_kms(config: &GcpKmsConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let provider = gcp::account_provider(&config.account, r);
    for api in APIS {
        gcp::enable_api(api, provider, &config.account, r);
    }
    let inputs = json!({ "name": at.name, "location": config.key_location });
    let ring = r.add(provider.resource("gcp:kms/keyRing:KeyRing", at.name, inputs));
    let inputs = json!({
        "name": at.name,
        "keyRing": ring.id(),
        "rotationPeriod": r.text_or(config.key_rotation_period, ROTATION_PERIOD),
        "versionTemplate": { "algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION", "protectionLevel": "SOFTWARE" },
    });
    let key = r.add(provider.resource("gcp:kms/cryptoKey:CryptoKey", at.name, inputs));
    let (project, location) = (gcp::project(&config.account, r), r.text_or(config.key_location, ""));
    let parts = [public(project, r), public(location, r), ring.out("name"), key.out("name")];
    let url = r.text(parts, |[project, location, ring, key]| {
        format!("gcpkms://projects/{project}/locations/{location}/keyRings/{ring}/cryptoKeys/{key}")
    });
    r.export_as(at.name, json!(url));
}

/// Returns a part of the URL of a key without its secret mark: states and stack files contain the URL in clear, and it is read
/// without a key.
fn public(hole: Hole, r: &mut Recipe<'_>) -> Hole {
    match r.known_text(&hole).map(ResolvedValue::known) {
        Some(text) => r.value(text),
        None => hole,
    }
}

/// Adds a password, and returns it.
pub(super) fn password(name: &str, inputs: Value, r: &mut Recipe<'_>) -> Hole {
    let token = "random:index/randomPassword:RandomPassword";
    r.add(Provider::default_of(RANDOM).resource(token, name, inputs)).out("result")
}

/// Adds the password of an administrator, and returns it.
pub(super) fn root_password(name: &str, r: &mut Recipe<'_>) -> Hole {
    password(name, json!({ "length": 16, "special": true, "overrideSpecial": "-_" }), r)
}
