//! Types for the `config` of each template type (docs/spec/simple-container.md#7.1, #7.15). Client stacks are deployed
//! from templates; a template registers no resource.

use config::types::{TemplateConfig, TemplateField, TemplateType, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

/// An account on AWS.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AwsTemplate {
    /// Number of the account.
    account: Option<TextHandle>,
    /// Access key of the account.
    access_key: Option<TextHandle>,
    /// Secret of the access key.
    #[schemars(extend("writeOnly" = true))]
    secret_access_key: Option<TextHandle>,
    /// Region of the deployment.
    region: Option<TextHandle>,
    /// The account as JSON, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    credentials: Option<TextHandle>,
}

/// A project on Google Cloud.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GcpTemplate {
    /// The service account as JSON, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    credentials: Option<TextHandle>,
    /// The project.
    project_id: Option<TextHandle>,
}

/// A cluster on GKE and a registry for its images.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GkeTemplate {
    /// The service account as JSON, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    credentials: Option<TextHandle>,
    /// The project.
    project_id: Option<TextHandle>,
    /// Name of the resource that is the cluster.
    gke_cluster_resource: Option<TextHandle>,
    /// Name of the resource that is the registry.
    artifact_registry_resource: Option<TextHandle>,
}

/// Any cluster of Kubernetes and a registry for its images.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KubernetesTemplate {
    /// Content of the kubeconfig file of the cluster.
    #[schemars(extend("writeOnly" = true))]
    kubeconfig: Option<TextHandle>,
    /// URL of the registry to which images are pushed.
    #[serde(rename = "dockerRegistryURL")]
    docker_registry_url: Option<TextHandle>,
    /// User of the registry.
    docker_registry_username: Option<TextHandle>,
    /// Password of the user.
    #[schemars(extend("writeOnly" = true))]
    docker_registry_password: Option<TextHandle>,
    /// Name of the resource that is the ingress controller (Caddy).
    caddy_resource: Option<TextHandle>,
    /// Require encrypted connections.
    #[serde(rename = "useSSL")]
    #[schemars(extend("default" = true))]
    use_ssl: Option<bool>,
}

impl TemplateConfig for AwsTemplate {
    const PROVIDER: &'static str = "aws";
    const NAME: &'static str = "TemplateConfig";

    fn fields(&self) -> Vec<(&'static str, TemplateField)> {
        vec![
            ("account", TemplateField::Text(self.account)),
            ("accessKey", TemplateField::Text(self.access_key)),
            ("secretAccessKey", TemplateField::Text(self.secret_access_key)),
            ("region", TemplateField::Text(self.region)),
            ("credentials", TemplateField::Text(self.credentials)),
        ]
    }
}

impl TemplateConfig for GcpTemplate {
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "TemplateConfig";

    fn fields(&self) -> Vec<(&'static str, TemplateField)> {
        vec![
            ("credentials", TemplateField::Text(self.credentials)),
            ("projectId", TemplateField::Text(self.project_id)),
        ]
    }
}

impl TemplateConfig for GkeTemplate {
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "GkeAutopilotTemplate";

    fn fields(&self) -> Vec<(&'static str, TemplateField)> {
        vec![
            ("credentials", TemplateField::Text(self.credentials)),
            ("projectId", TemplateField::Text(self.project_id)),
            ("gkeClusterResource", TemplateField::Text(self.gke_cluster_resource)),
            ("artifactRegistryResource", TemplateField::Text(self.artifact_registry_resource)),
        ]
    }
}

impl TemplateConfig for KubernetesTemplate {
    // Simple Container lists this template under this provider and name (docs/spec/simple-container.md#7.1, #9).
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "CloudrunTemplate";

    fn fields(&self) -> Vec<(&'static str, TemplateField)> {
        vec![
            ("kubeconfig", TemplateField::Text(self.kubeconfig)),
            ("dockerRegistryURL", TemplateField::Optional(self.docker_registry_url)),
            ("dockerRegistryUsername", TemplateField::Optional(self.docker_registry_username)),
            ("dockerRegistryPassword", TemplateField::Optional(self.docker_registry_password)),
            ("caddyResource", TemplateField::Optional(self.caddy_resource)),
            ("useSSL", TemplateField::Boolean(self.use_ssl)),
        ]
    }
}

/// Returns all template types (docs/spec/simple-container.md#7.1).
pub(crate) fn all() -> [TemplateType; 7] {
    [
        TemplateType::of::<AwsTemplate>("ecs-fargate"),
        TemplateType::of::<AwsTemplate>("aws-lambda"),
        TemplateType::of::<AwsTemplate>("aws-static-website"),
        TemplateType::of::<GcpTemplate>("cloudrun"),
        TemplateType::of::<GcpTemplate>("gcp-static-website"),
        TemplateType::of::<GkeTemplate>("gcp-gke-autopilot"),
        TemplateType::of::<KubernetesTemplate>("kubernetes-cloudrun"),
    ]
}
