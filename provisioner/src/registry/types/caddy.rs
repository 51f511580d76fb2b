//! Types for the `config` of Caddy in a cluster (docs/spec/simple-container.md#7.12).

use std::collections::BTreeMap;
use std::net::IpAddr;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::helm::KUBECONFIG;
use super::unused::unused;

/// Caddy, which serves the sites of all services in a cluster.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CaddyConfig {
    /// Informational, not used.
    pub enable: Option<bool>,
    /// Not used.
    pub caddyfile: Option<TextHandle>,
    /// Lines at the beginning of the Caddyfile, such as global options. Has an effect with `gcp-gke-autopilot-cluster` only.
    pub caddyfile_prefix: Option<TextHandle>,
    /// Namespace of Caddy.
    #[schemars(extend("default" = "caddy"))]
    pub namespace: Option<String>,
    /// Image of Caddy. Defaults to that of the release of Simple Container that `sc` follows.
    pub image: Option<String>,
    /// Number of pods.
    #[schemars(range(min = 0), extend("default" = 1))]
    pub replicas: Option<i64>,
    /// Limits and requests of each pod.
    pub resources: Option<ContainerResources>,
    /// Vertical autoscaler of the pods. Needs its custom resource definition in the cluster.
    pub vpa: Option<VpaConfig>,
    /// Addresses and networks of proxies whose `X-Forwarded-For` is kept. Has an effect with `gcp-gke-autopilot-cluster` only.
    #[schemars(extend("items" = { "type": "string", "pattern": "^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$" }))]
    pub trusted_proxies: Vec<String>,
    /// Serve the services below prefixes of one site, not as sites of their own.
    pub use_prefixes: bool,
    /// Type of the Service of Kubernetes.
    #[schemars(extend("default" = "LoadBalancer"))]
    pub service_type: Option<String>,
    /// Create an Ingress to Caddy.
    pub provision_ingress: bool,
    /// Keep the Ingress from redirecting to HTTPS, which Caddy does itself.
    #[serde(rename = "useSSL")]
    #[schemars(extend("default" = true))]
    pub use_ssl: Option<bool>,
    /// Name of the existing deployment of an adopted cluster.
    pub deployment_name: Option<String>,
    /// Seconds that a pod may take to stop. Should exceed `preStopSleepSeconds`.
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds that a pod serves on before it stops, while the load balancer withdraws it.
    #[schemars(range(min = 0))]
    pub pre_stop_sleep_seconds: Option<i64>,
    /// `Local` keeps the address of the client, `Cluster` does not.
    pub external_traffic_policy: Option<String>,
    /// Value of the header `Strict-Transport-Security` of all sites.
    #[schemars(extend("default" = "max-age=31536000; includeSubDomains; preload"))]
    pub hsts_value: Option<String>,
}

/// Limits and requests of a container.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerResources {
    /// Limits by resource, such as `cpu: 500m`, `memory: 256Mi`.
    pub limits: BTreeMap<String, String>,
    /// Requests by resource.
    pub requests: BTreeMap<String, String>,
    /// Size of the ephemeral storage. Not used.
    pub ephemeral: String,
}

/// Vertical autoscaler of pods.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VpaConfig {
    /// Create the autoscaler.
    pub enabled: bool,
    /// `Off`, `Initial`, `Recreate` or `Auto`.
    pub update_mode: Option<String>,
    /// Least resources of each container.
    pub min_allowed: Option<VpaResources>,
    /// Most resources of each container.
    pub max_allowed: Option<VpaResources>,
    /// Resources that are scaled.
    pub controlled_resources: Vec<String>,
    /// `RequestsAndLimits` or `RequestsOnly`.
    pub controlled_values: Option<String>,
    /// Policies of single containers.
    pub container_policies: Vec<VpaContainerPolicy>,
}

/// Resources in a policy of a vertical autoscaler.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct VpaResources {
    /// Processor time, such as `100m`.
    pub cpu: Option<String>,
    /// Memory, such as `128Mi`.
    pub memory: Option<String>,
    /// Ephemeral storage.
    pub ephemeral_storage: Option<String>,
}

/// Policy of a vertical autoscaler for one container.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["containerName"]))]
pub struct VpaContainerPolicy {
    /// Name of the container.
    pub container_name: String,
    /// `Off` or `Auto`.
    #[schemars(extend("enum" = ["Off", "Auto"]))]
    pub mode: Option<String>,
    /// Least resources.
    pub min_allowed: Option<VpaResources>,
    /// Most resources.
    pub max_allowed: Option<VpaResources>,
    /// Resources that are scaled.
    pub controlled_resources: Vec<String>,
    /// `RequestsAndLimits` or `RequestsOnly`.
    pub controlled_values: Option<String>,
}

impl CaddyConfig {
    /// Returns the keys as the Go program exports them: without those that are not set. Texts with references and secrets are
    /// handles.
    pub fn exported(&self) -> Value {
        let mut exported = json!(self);
        if let Value::Object(members) = &mut exported {
            let is_false =
                |key: &str, value: &Value| *value == false && ["usePrefixes", "provisionIngress"].contains(&key);
            members.retain(|key, value| !value.is_null() && *value != json!([]) && !is_false(key, value));
        }
        exported
    }

    /// Returns the mistakes in the keys of Caddy, which are those of `node`.
    pub fn mistakes(&self, node: &Node) -> Vec<Diagnostic> {
        let Some(vpa) = self.vpa.as_ref().filter(|vpa| vpa.enabled) else { return Vec::new() };
        let mut mistakes = Vec::new();
        for (index, policy) in vpa.container_policies.iter().enumerate() {
            let path = ["vpa", "containerPolicies", &index.to_string()];
            let span = node.get_path(path).map(|policy| policy.span);
            let mut mistake = |summary: MessageText| mistakes.push(Diagnostic::error(Code("vpa"), span, summary));
            let name = &policy.container_name;
            match name.as_str() {
                "" => mistake("a policy has no `containerName`".into()),
                "*" => mistake("`containerName: \"*\"` stands for the keys of `vpa` itself".into()),
                _ if vpa.container_policies[..index].iter().any(|other| other.container_name == *name) => {
                    mistake(MessageText::new(format_args!("two policies are for the container {name:?}")));
                }
                _ => {}
            }
            if let Some(mode) = policy.mode.as_deref().filter(|mode| !["Off", "Auto"].contains(mode)) {
                mistake(MessageText::new(format_args!("`mode` is {mode:?}, expected `Off` or `Auto`")));
            }
        }
        mistakes
    }

    /// Returns warnings of keys without effect.
    pub fn unused_keys(&self, node: &Node) -> Vec<Diagnostic> {
        let mut warnings: Vec<_> =
            unused(node, &["caddyfile", "resources.ephemeral"], ", as in Simple Container").collect();
        if let Some(enable) = node.get_path(["enable"]).filter(|_| self.enable == Some(false)) {
            let summary = "`enable: false` has no effect, as in Simple Container: Caddy is registered";
            let warning = Diagnostic::warning(Code("unused"), enable.span, summary);
            warnings.push(warning.help("without Caddy, leave its keys out"));
        }
        warnings
    }

    /// Returns the mistakes in `trustedProxies`, for a type with which it has an effect.
    pub fn proxy_mistakes(&self, node: &Node) -> Vec<Diagnostic> {
        let span = node.get_path(["trustedProxies"]).map(|proxies| proxies.span);
        let wrong = self.trusted_proxies.iter().filter(|proxy| !is_network(proxy));
        let mistakes = wrong.map(|proxy| {
            let summary = MessageText::new(format_args!("the trusted proxy {proxy:?} is no address and no network"));
            Diagnostic::error(Code("trusted-proxies"), span, summary).help("write it as `192.0.2.1` or `192.0.2.0/24`")
        });
        mistakes.collect()
    }
}

/// Returns whether a text is an address, or a network in the notation with a slash.
fn is_network(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= most))
}

/// `config` of `kubernetes-caddy`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "Caddy in a cluster of Kubernetes, which serves the sites of all services.")]
pub struct KubernetesCaddyConfig {
    /// Content of the kubeconfig file of the cluster, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    pub kubeconfig: Option<TextHandle>,
    /// Caddy.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub caddy: CaddyConfig,
}

impl CoreConfig for KubernetesCaddyConfig {
    const TYPE: &'static str = "kubernetes-caddy";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("CaddyResource");
    const PROVIDER: &'static str = "kubernetes";
    const REQUIRED: &'static [RequiredKey] = &[KUBECONFIG];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.extend(decoded.config.caddy.mistakes(node));
        diagnostics.extend(decoded.config.caddy.unused_keys(node));
        let CaddyConfig { caddyfile_prefix, trusted_proxies, .. } = &decoded.config.caddy;
        let has_prefix = decoded.non_empty_text(*caddyfile_prefix).is_some();
        for (key, is_set) in [("caddyfilePrefix", has_prefix), ("trustedProxies", !trusted_proxies.is_empty())] {
            if let Some(value) = node.get_path([key]).filter(|_| is_set) {
                let summary = MessageText::new(format_args!(
                    "`{key}` has no effect with `kubernetes-caddy`, as in Simple Container"
                ));
                diagnostics.push(Diagnostic::warning(Code("unused"), value.span, summary));
            }
        }
    }
}
