//! Additions of Pulumi's SDKs to the resources of core types: versions of packages, secrets, former types, constants.
//!
//! Each package has a JSON file about the resources and functions that core types use, made from its SDK on PyPI by
//! `tests/tests/interop_clouds/sdk_data.py`. The files also have the kinds of all inputs and outputs, which only tests
//! read (`shapes`). Excluded: types that no SDK has, such as custom resources of Kubernetes.

#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pulumi_proto::property::PropertyValue;
use serde::Deserialize;

/// Files of all packages.
static FILES: [SdkFile; 6] = [
    SdkFile::new("aws", include_str!("aws.json")),
    SdkFile::new("cloudflare", include_str!("cloudflare.json")),
    SdkFile::new("gcp", include_str!("gcp.json")),
    SdkFile::new("kubernetes", include_str!("kubernetes.json")),
    SdkFile::new("mongodbatlas", include_str!("mongodbatlas.json")),
    SdkFile::new("random", include_str!("random.json")),
];

/// File of a package, parsed at its first use.
struct SdkFile {
    package: &'static str,
    json: &'static str,
    /// `None` if the JSON is malformed. A test parses all files, so this is never so in a build that passed it.
    parsed: OnceLock<Option<SdkPackage>>,
}

impl SdkFile {
    const fn new(package: &'static str, json: &'static str) -> Self {
        Self { package, json, parsed: OnceLock::new() }
    }
}

/// SDK of a package.
#[derive(Debug, Deserialize)]
pub(super) struct SdkPackage {
    /// Version of the package, which registrations and calls of functions name.
    pub version: String,
    /// Resources by their type token. The provider of the package is `pulumi:providers:PACKAGE`.
    resources: BTreeMap<String, SdkResource>,
}

/// Additions of an SDK to each resource of a type.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SdkResource {
    /// Outputs that the engine keeps secret.
    pub secret_outputs: Vec<String>,
    /// Inputs that are marked as secret.
    pub secret_inputs: Vec<String>,
    /// Former type tokens.
    pub aliases: Vec<String>,
    /// Inputs that are set unless the program sets them.
    pub defaults: BTreeMap<String, Constant>,
}

/// Value of an input that an SDK sets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Constant {
    /// `true` or `false`.
    Boolean(bool),
    /// Text.
    Text(String),
}

impl From<&Constant> for PropertyValue {
    fn from(constant: &Constant) -> Self {
        match constant {
            Constant::Boolean(value) => (*value).into(),
            Constant::Text(text) => text.as_str().into(),
        }
    }
}

/// Returns the SDK of a package, if core types use the package.
pub(super) fn package(name: &str) -> Option<&'static SdkPackage> {
    let file = FILES.iter().find(|file| file.package == name)?;
    file.parsed.get_or_init(|| serde_json::from_str(file.json).ok()).as_ref()
}

/// Returns what the SDK adds to a resource, by its type token (`aws:iam/user:User`, `pulumi:providers:aws`); `None` if
/// the SDK has no class for it, or no core type uses it.
pub(super) fn resource(token: &str) -> Option<&'static SdkResource> {
    package(package_name(token))?.resources.get(token)
}

/// Returns the name of the package that a token belongs to.
fn package_name(token: &str) -> &str {
    let token = token.strip_prefix("pulumi:providers:").unwrap_or(token);
    token.split_once(':').map_or(token, |(package, _)| package)
}
