//! Tests of the data about SDKs, and its part that only tests read.

pub(in crate::registry) mod shapes;

use super::*;

fn added(token: &str) -> &'static SdkResource {
    resource(token).unwrap_or_else(|| panic!("no SDK has {token}"))
}

fn constants<'c>(pairs: impl IntoIterator<Item = (&'c str, &'c str)>) -> BTreeMap<String, Constant> {
    pairs.into_iter().map(|(name, text)| (name.to_owned(), Constant::Text(text.to_owned()))).collect()
}

#[test]
fn sdks_keep_outputs_and_inputs_secret() {
    assert_eq!(added("aws:iam/accessKey:AccessKey").secret_outputs, ["secret", "sesSmtpPasswordV4"]);
    assert_eq!(added("gcp:redis/instance:Instance").secret_outputs, ["authString", "effectiveLabels", "pulumiLabels"]);
    let database = added("aws:rds/instance:Instance");
    assert_eq!(
        (&database.secret_outputs, &database.secret_inputs),
        (&vec!["password".to_owned()], &vec!["password".to_owned()])
    );
    assert_eq!(added("kubernetes:core/v1:Secret").secret_inputs, ["data", "stringData"]);
    assert_eq!(added("pulumi:providers:mongodbatlas").secret_inputs, ["privateKey"]);
    assert!(added("pulumi:providers:gcp").secret_inputs.iter().all(|name| name != "credentials"));
}

#[test]
fn sdks_send_former_types() {
    assert_eq!(added("gcp:serviceaccount/account:Account").aliases, ["gcp:serviceAccount/account:Account"]);
    assert_eq!(added("cloudflare:index/record:Record").aliases, ["cloudflare:index/record:Record"]);
    assert_eq!(
        added("kubernetes:apps/v1:Deployment").aliases,
        ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"].map(|group| format!("kubernetes:{group}:Deployment"))
    );
    assert!(added("aws:s3/bucket:Bucket").aliases.is_empty());
}

#[test]
fn sdks_set_constant_inputs() {
    let description = constants([("description", "Managed by Pulumi")]);
    assert_eq!(added("aws:ec2/securityGroup:SecurityGroup").defaults, description);
    assert_eq!(added("aws:rds/subnetGroup:SubnetGroup").defaults, description);
    assert_eq!(
        added("kubernetes:rbac.authorization.k8s.io/v1:Role").defaults,
        constants([("apiVersion", "rbac.authorization.k8s.io/v1"), ("kind", "Role")])
    );
    assert_eq!(added("kubernetes:helm.sh/v3:Release").defaults, constants([("compat", "true")]));
    let validation = [("skipCredentialsValidation", false), ("skipRegionValidation", true)];
    let validation = validation.map(|(name, value)| (name.to_owned(), Constant::Boolean(value)));
    assert_eq!(added("pulumi:providers:aws").defaults, validation.into());
    assert!(added("aws:iam/user:User").defaults.is_empty());
}

#[test]
fn types_without_a_class_have_no_sdk() {
    for token in ["kubernetes:acid.zalan.do/v1:postgresql", "aws:s3/bucket:Buckets", "none:index:Thing", "", "aws"] {
        assert!(resource(token).is_none(), "{token}");
    }
    assert!(package("none").is_none());
}
