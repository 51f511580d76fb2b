//! How the `config` of each type of templates reads (simple-container §7.1, §7.15). Nothing registers them: client stacks
//! are deployed by them.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::config::diagnostics::Diagnostic;
use crate::config::yaml::Node;
use crate::config::yaml::de::{Decoded, TextHandle, decode};

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
    /// Region of what is deployed.
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
    /// The configuration of a client of the cluster.
    #[schemars(extend("writeOnly" = true))]
    kubeconfig: Option<TextHandle>,
    /// Where images are pushed to.
    #[serde(rename = "dockerRegistryURL")]
    docker_registry_url: Option<TextHandle>,
    /// User of the registry.
    docker_registry_username: Option<TextHandle>,
    /// Password of the user.
    #[schemars(extend("writeOnly" = true))]
    docker_registry_password: Option<TextHandle>,
    /// Name of the resource that serves what comes from outside.
    caddy_resource: Option<TextHandle>,
    /// Whether connections have to be encrypted.
    #[serde(rename = "useSSL")]
    #[schemars(extend("default" = true))]
    use_ssl: Option<bool>,
}

/// A field of a typed `config`.
enum Field {
    /// A text; nothing at all is an empty one.
    Text(Option<TextHandle>),
    /// A text that is left out where nothing is written.
    Optional(Option<TextHandle>),
    /// A truth value that is left out where nothing is written.
    Truth(Option<bool>),
}

/// What a field of a template holds. Without `Debug`: it may be secret.
pub enum TemplateValue {
    /// A text.
    Text(String),
    /// A truth value.
    Truth(bool),
}

/// The fields of a template in the order in which the Go program writes them.
pub type TemplateFields = Vec<(&'static str, TemplateValue)>;

/// A typed `config`: its fields in the order in which Go writes them.
trait TemplateConfig: DeserializeOwned + JsonSchema {
    /// The provider that Simple Container puts it with.
    const PROVIDER: &'static str;
    /// What Simple Container calls it.
    const NAME: &'static str;

    fn fields(&self) -> Vec<(&'static str, Field)>;
}

impl TemplateConfig for AwsTemplate {
    const PROVIDER: &'static str = "aws";
    const NAME: &'static str = "TemplateConfig";

    fn fields(&self) -> Vec<(&'static str, Field)> {
        vec![
            ("account", Field::Text(self.account)),
            ("accessKey", Field::Text(self.access_key)),
            ("secretAccessKey", Field::Text(self.secret_access_key)),
            ("region", Field::Text(self.region)),
            ("credentials", Field::Text(self.credentials)),
        ]
    }
}

impl TemplateConfig for GcpTemplate {
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "TemplateConfig";

    fn fields(&self) -> Vec<(&'static str, Field)> {
        vec![("credentials", Field::Text(self.credentials)), ("projectId", Field::Text(self.project_id))]
    }
}

impl TemplateConfig for GkeTemplate {
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "GkeAutopilotTemplate";

    fn fields(&self) -> Vec<(&'static str, Field)> {
        vec![
            ("credentials", Field::Text(self.credentials)),
            ("projectId", Field::Text(self.project_id)),
            ("gkeClusterResource", Field::Text(self.gke_cluster_resource)),
            ("artifactRegistryResource", Field::Text(self.artifact_registry_resource)),
        ]
    }
}

impl TemplateConfig for KubernetesTemplate {
    const PROVIDER: &'static str = "gcp";
    const NAME: &'static str = "CloudrunTemplate";

    fn fields(&self) -> Vec<(&'static str, Field)> {
        vec![
            ("kubeconfig", Field::Text(self.kubeconfig)),
            ("dockerRegistryURL", Field::Optional(self.docker_registry_url)),
            ("dockerRegistryUsername", Field::Optional(self.docker_registry_username)),
            ("dockerRegistryPassword", Field::Optional(self.docker_registry_password)),
            ("caddyResource", Field::Optional(self.caddy_resource)),
            ("useSSL", Field::Truth(self.use_ssl)),
        ]
    }
}

/// What Simple Container calls a kind of `config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateConfigName {
    /// The provider that it stands with.
    pub provider: &'static str,
    /// Its name there.
    pub name: &'static str,
}

/// A type of templates.
pub struct TemplateType {
    name: &'static str,
    config: TemplateConfigName,
    schema: fn() -> Schema,
    fields: fn(&Node, &mut Vec<Diagnostic>) -> Option<TemplateFields>,
}

impl TemplateType {
    const fn of<C: TemplateConfig>(name: &'static str) -> Self {
        Self {
            name,
            config: TemplateConfigName { provider: C::PROVIDER, name: C::NAME },
            schema: || schema_for!(C),
            fields: |node, found| decode::<C>(node, found).map(|decoded| values(&decoded)),
        }
    }

    /// All of them (simple-container §7.1).
    pub fn all() -> &'static [Self] {
        &TYPES
    }

    /// The `type` in server.yaml.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Which kind of `config` it has: several types may have one.
    pub fn config(&self) -> TemplateConfigName {
        self.config
    }

    /// The JSON Schema of its `config`.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// What a `config` says; `None` after a mistake, which has been told.
    pub fn fields(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<TemplateFields> {
        (self.fields)(config, diagnostics)
    }
}

fn values<C: TemplateConfig>(decoded: &Decoded<C>) -> TemplateFields {
    let text = |handle| TemplateValue::Text(decoded.text(handle).0.known().unwrap_or_default());
    let value = |field| match field {
        Field::Text(None) => Some(TemplateValue::Text(String::new())),
        Field::Text(Some(handle)) | Field::Optional(Some(handle)) => Some(text(handle)),
        Field::Truth(value) => value.map(TemplateValue::Truth),
        Field::Optional(None) => None,
    };
    let fields = decoded.config.fields().into_iter();
    fields.filter_map(|(key, field)| Some((key, value(field)?))).collect()
}

static TYPES: [TemplateType; 7] = [
    TemplateType::of::<AwsTemplate>("ecs-fargate"),
    TemplateType::of::<AwsTemplate>("aws-lambda"),
    TemplateType::of::<AwsTemplate>("aws-static-website"),
    TemplateType::of::<GcpTemplate>("cloudrun"),
    TemplateType::of::<GcpTemplate>("gcp-static-website"),
    TemplateType::of::<GkeTemplate>("gcp-gke-autopilot"),
    TemplateType::of::<KubernetesTemplate>("kubernetes-cloudrun"),
];
