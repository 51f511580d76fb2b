//! Pulumi packages that recipes use, and the environment variables that the tools of their clouds read.
//!
//! A package has the version of its SDK, for which the inputs of recipes are written. It is that of Simple Container, as its
//! registrations name it (docs/spec/simple-container.md#7.2). Excluded: which recipe uses a package
//! ([`super::recipes`]), and where a package is installed.

use super::sdk;

/// Variables that all packages inherit: those for connections through proxies and with own certificates.
const NETWORK: [&str; 8] =
    ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

pub(super) const AWS: Package = Package { name: "aws", variables: &["AWS_*"] };
pub(super) const GCP: Package = Package {
    name: "gcp",
    variables: &["GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "GCE_METADATA_*", "USER_PROJECT_OVERRIDE"],
};
pub(super) const KUBERNETES: Package = Package {
    name: "kubernetes",
    // A kubeconfig may name a program that logs in at a cloud: `aws`, `gke-gcloud-auth-plugin`, `kubelogin`.
    variables: &[
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
};
pub(super) const RANDOM: Package = Package { name: "random", variables: &[] };
pub(super) const CLOUDFLARE: Package = Package { name: "cloudflare", variables: &["CLOUDFLARE_*"] };
pub(super) const ATLAS: Package =
    Package { name: "mongodbatlas", variables: &["MONGODB_ATLAS_*", "MCLI_*", "MONGODB_REALM_BASE_URL"] };

/// Pulumi package that a recipe uses. A plugin of the stack serves it, or the package itself, which needs no declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name of the package.
    pub name: &'static str,
    /// Names of the environment variables for the tools of its cloud. `NAME_*` stands for all variables whose name begins with
    /// `NAME_`.
    pub variables: &'static [&'static str],
}

impl Package {
    /// Returns the semantic version of the package's SDK, which the inputs of its resources are written for; `None` if the
    /// program has no data about the SDK.
    pub fn version(self) -> Option<&'static str> {
        sdk::package(self.name).map(|sdk| sdk.version.as_str())
    }
}

/// All packages that recipes use.
const ALL: [Package; 6] = [AWS, GCP, KUBERNETES, RANDOM, CLOUDFLARE, ATLAS];

/// Returns the repositories on GitHub of all packages that are used without a declaration.
pub fn repositories() -> impl Iterator<Item = String> {
    ALL.into_iter().map(|package| repository(package.name))
}

fn repository(name: &str) -> String {
    format!("pulumi/pulumi-{name}")
}

/// Package that is used without a declaration, in its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePackage {
    /// Name of the package.
    pub name: &'static str,
    /// Semantic version.
    pub version: &'static str,
    variables: &'static [&'static str],
}

impl CorePackage {
    /// Returns a package in the version of its SDK; `None` if the program has no data about the SDK.
    pub fn of(package: Package) -> Option<Self> {
        let Package { name, variables } = package;
        Some(Self { name, version: package.version()?, variables })
    }

    /// Returns the repository on GitHub whose release `v<version>` has the package for each platform.
    pub fn repository(self) -> String {
        repository(self.name)
    }

    /// Returns the names of the environment variables that the package inherits if they are set, as [`Package::variables`].
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        self.variables.iter().chain(&NETWORK).copied()
    }
}
