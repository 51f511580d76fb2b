//! Type for the `config` of clusters on Google Kubernetes Engine.

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use pulumi_proto::duration;
use schemars::JsonSchema;
use serde::Deserialize;

use super::caddy::CaddyConfig;
use super::duration::DURATION;
use super::gcp::{CREDENTIALS, GcpAccountConfig, PROJECT};
use super::unused::unused;

/// `config` of `gcp-gke-autopilot-cluster` (docs/spec/simple-container.md#7.14).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A cluster of Google Kubernetes Engine in the mode Autopilot.")]
pub struct GkeAutopilotConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Oldest version of Kubernetes of the control plane.
    pub gke_min_version: Option<TextHandle>,
    /// Region or zone of the cluster, such as `europe-north1`.
    pub location: Option<TextHandle>,
    /// Zone in the name of the kubeconfig's context.
    pub zone: Option<TextHandle>,
    /// Timeouts of the operations on the cluster.
    pub timeouts: GkeTimeouts,
    /// Caddy in the cluster, with a bucket for its certificates. In an adopted cluster it must exist.
    pub caddy: Option<CaddyConfig>,
    /// Address from which traffic leaves the cluster.
    pub external_egress_ip: EgressIpConfig,
    /// Put the cluster into a network of its own, which is peered with the default network.
    pub private_vpc: bool,
    /// Import the existing cluster `clusterName` instead of creating one.
    pub adopt: bool,
    /// Name of the existing cluster.
    pub cluster_name: Option<TextHandle>,
}

/// Timeouts of the operations on a cluster, such as `10m`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GkeTimeouts {
    /// Timeout of the creation.
    #[schemars(extend("default" = "10m", "pattern" = DURATION))]
    pub create: Option<TextHandle>,
    /// Timeout of an update.
    #[schemars(extend("default" = "5m", "pattern" = DURATION))]
    pub update: Option<TextHandle>,
    /// Timeout of the deletion.
    #[schemars(extend("default" = "10m", "pattern" = DURATION))]
    pub delete: Option<TextHandle>,
}

/// Address from which traffic leaves a cluster.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EgressIpConfig {
    /// Let traffic leave from one address. The nodes have no addresses of their own then.
    pub enabled: bool,
    /// Existing address: `projects/P/regions/R/addresses/NAME`. By default, one is created.
    #[schemars(extend("pattern" = "^(projects/[^/]*/regions/[^/]*/addresses/[^/]*)?$"))]
    pub existing: Option<TextHandle>,
}

impl CoreConfig for GkeAutopilotConfig {
    const TYPE: &'static str = "gcp-gke-autopilot-cluster";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("GkeAutopilotResource");
    const PROVIDER: &'static str = "gcp";
    const OUTPUTS: &'static [&'static str] = &["kubeconfig"];
    const REQUIRED: &'static [RequiredKey] =
        &[CREDENTIALS, PROJECT, ("location", "add the region, such as `location: europe-north1`")];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        let config = &decoded.config;
        let name = ("clusterName", "add the name of the existing cluster: `adopt` imports it");
        config.adopt.then_some(name).into_iter().collect()
    }

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        let GkeTimeouts { create, update, delete } = config.timeouts;
        for handle in [create, update, delete].into_iter().flatten() {
            let (text, span) = decoded.text(handle);
            if text.known().is_some_and(|text| !text.is_empty() && duration::parse(&text).is_none()) {
                let error = Diagnostic::error(Code("invalid-duration"), span, "this is not a duration");
                diagnostics.push(error.help("write a number and a unit, such as `30m`"));
            }
        }
        if let Some((caddy, node)) = config.caddy.as_ref().zip(node.get_path(["caddy"])) {
            diagnostics.extend(caddy.mistakes(node));
            diagnostics.extend(caddy.unused_keys(node));
            diagnostics.extend(caddy.proxy_mistakes(node));
        }
        let EgressIpConfig { enabled, existing } = config.external_egress_ip;
        if config.adopt {
            let keys = ["gkeMinVersion", "timeouts", "privateVpc", "externalEgressIp.enabled"];
            diagnostics.extend(unused(node, &keys, " with `adopt: true`: the existing cluster keeps its own"));
        } else {
            let reason = " without `adopt: true`, which imports an existing cluster";
            diagnostics.extend(unused(node, &["clusterName"], reason));
        }
        if !enabled {
            diagnostics.extend(unused(node, &["externalEgressIp.existing"], " without `enabled: true`"));
        }
        if enabled && let Some(handle) = existing {
            let (text, span) = decoded.text(handle);
            if text.known().is_some_and(|text| !text.is_empty() && !is_address(&text)) {
                let error = Diagnostic::error(Code("invalid-address"), span, "this is not the path of an address");
                diagnostics.push(error.help("write `projects/PROJECT/regions/REGION/addresses/NAME`"));
            }
        }
    }
}

fn is_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    matches!(parts[..], ["projects", _, "regions", _, "addresses", _])
}
