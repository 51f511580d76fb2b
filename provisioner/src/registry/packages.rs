//! Pulumi packages that core types use without a declaration: their versions, and the environment variables that the tools
//! of their clouds read.
//!
//! The versions are those of Simple Container, as its registrations name them (docs/spec/simple-container.md#7.2). Excluded:
//! where a package is installed.

use super::sdk;

/// Variables that all packages inherit: those for connections through proxies and with own certificates.
const NETWORK: [&str; 8] =
    ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Packages with their fixed versions, and the names of variables. `*` stands for any rest of a name. A package without a
/// fixed version has that of its SDK, for which the inputs of recipes are written.
const PACKAGES: [(&str, Option<&str>, &[&str]); 9] = [
    ("aws", None, &["AWS_*"]),
    ("awsx", Some("2.22.0"), &["AWS_*"]),
    ("cloudflare", None, &["CLOUDFLARE_*"]),
    ("command", Some("1.2.1"), &["SSH_AUTH_SOCK"]),
    ("docker", Some("4.11.2"), &["DOCKER_*", "BUILDKIT_*", "BUILDX_*", "XDG_RUNTIME_DIR"]),
    ("gcp", None, &["GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "GCE_METADATA_*", "USER_PROJECT_OVERRIDE"]),
    (
        "kubernetes",
        None,
        // A kubeconfig may name a program that logs in at a cloud: `aws`, `gke-gcloud-auth-plugin`, `kubelogin`.
        &[
            "KUBECONFIG",
            "KUBERNETES_*",
            "PULUMI_K8S_*",
            "HELM_*",
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "AWS_*",
            "GOOGLE_*",
            "CLOUDSDK_*",
            "USE_GKE_GCLOUD_AUTH_PLUGIN",
            "AZURE_*",
            "AAD_*",
        ],
    ),
    ("mongodbatlas", None, &["MONGODB_ATLAS_*", "MCLI_*", "MONGODB_REALM_BASE_URL"]),
    ("random", None, &[]),
];

/// Package that core types use without a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePackage {
    /// Name of the package.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    variables: &'static [&'static str],
}

impl CorePackage {
    /// Returns the repository on GitHub whose release `v<version>` has the package for each platform.
    pub fn repository(self) -> String {
        format!("pulumi/pulumi-{}", self.name)
    }

    /// Returns the names of the environment variables that the package inherits if they are set. `NAME_*` stands for all
    /// variables whose name begins with `NAME_`.
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        self.variables.iter().chain(&NETWORK).copied()
    }
}

/// Returns the package with a name; `None` if no core type uses it.
pub fn find(name: &str) -> Option<CorePackage> {
    let (name, fixed, variables) = *PACKAGES.iter().find(|(known, ..)| *known == name)?;
    let version = fixed.or_else(|| sdk::package(name).map(|sdk| sdk.version.as_str()))?;
    Some(CorePackage { name, version, variables })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::registry::recipes::core_types;

    #[test]
    fn packages_of_all_core_types_need_no_declaration() {
        let recipes = core_types();
        let used = recipes.names().flat_map(|name| recipes.get(name).unwrap().all_packages());
        for package in used {
            let found = find(package.name).unwrap_or_else(|| panic!("{} is missing", package.name));
            assert_eq!(Some(found.version), package.version());
        }
    }

    #[test]
    fn versions_are_those_of_the_sdks_and_of_simple_container() {
        let found: Vec<_> = PACKAGES.iter().map(|(name, ..)| find(name).unwrap()).collect();
        let versions = found.iter().map(|package| format!("{} {}", package.repository(), package.version));
        let versions: Vec<_> = versions.collect();
        insta::assert_debug_snapshot!(versions, @r#"
        [
            "pulumi/pulumi-aws 6.83.4",
            "pulumi/pulumi-awsx 2.22.0",
            "pulumi/pulumi-cloudflare 6.17.0",
            "pulumi/pulumi-command 1.2.1",
            "pulumi/pulumi-docker 4.11.2",
            "pulumi/pulumi-gcp 8.41.1",
            "pulumi/pulumi-kubernetes 4.32.0",
            "pulumi/pulumi-mongodbatlas 3.38.0",
            "pulumi/pulumi-random 4.21.0",
        ]
        "#);
        let fixed: Vec<_> = PACKAGES.iter().filter(|(_, fixed, _)| fixed.is_some()).map(|(name, ..)| *name).collect();
        assert!(fixed.iter().all(|name| sdk::package(name).is_none()), "{fixed:?}");
        assert_eq!(find("datadog"), None);
    }

    #[test]
    fn recorded_registrations_have_the_versions_of_the_packages() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations");
        let mut seen = BTreeSet::new();
        for file in ["buckets.json", "cases.json"] {
            let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap();
            let registrations = cases.iter().flat_map(|case| case["registrations"].as_array().into_iter().flatten());
            for registration in registrations {
                let token = registration["type"].as_str().unwrap();
                let token = token.strip_prefix("pulumi:providers:").unwrap_or(token);
                let Some(package) = find(token.split(':').next().unwrap()) else { continue };
                if let Some(version) = registration["version"].as_str().filter(|version| !version.is_empty()) {
                    assert_eq!(version, package.version, "{token}");
                    seen.insert(package.name);
                }
            }
        }
        let expected = ["aws", "cloudflare", "docker", "gcp", "kubernetes", "mongodbatlas", "random"];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }
}
