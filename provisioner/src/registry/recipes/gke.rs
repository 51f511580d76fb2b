//! Recipe of clusters on Google Kubernetes Engine.

use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::PropertyValue;
use serde_json::json;

use super::caddy::{CaddyDeployment, caddy as deploy_caddy, caddyfile_prefix, exported_config};
use super::gcp::{account_provider, enable_api, project, service_account_id};
use crate::registry::packages::KUBERNETES;
use crate::registry::recipe::{Handle, Hole, Provider, Recipe, ResolvedValue, ResourceNames, decode_base64};
use crate::registry::types::caddy::CaddyConfig;
use crate::registry::types::gke::{EgressIpConfig, GkeAutopilotConfig, GkeTimeouts};

const CLUSTER: &str = "gcp:container/cluster:Cluster";

/// `gcp-gke-autopilot-cluster` (docs/spec/simple-container.md#7.14): a cluster, created or adopted.
pub(super) fn gke_autopilot<'r>(config: &'r GkeAutopilotConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let name = at.qualified(at.name);
    let gcp = account_provider(&config.account, r);
    let cluster = if config.adopt {
        adopt_cluster(config, &name, gcp, r)
    } else {
        enable_api("container.googleapis.com", gcp, &config.account, r);
        create_cluster(config, &name, gcp, at, r)
    };
    let zone = r.text_or(config.zone, "");
    let parts = ["project", "name", "endpoint", "masterAuth.clusterCaCertificate"].map(|output| cluster.out(output));
    let [project, cluster_name, endpoint, certificate] = parts;
    let kubeconfig = r.text([project, zone, cluster_name, endpoint, certificate], kubeconfig);
    r.export(&name, json!({ "kubeconfig": kubeconfig }));
    r.publish(json!({ "kubeconfig": kubeconfig }));
    match &config.caddy {
        Some(caddy) if config.adopt => existing_caddy(caddy, name, kubeconfig, r),
        Some(_) => new_caddy(config, name, (cluster, kubeconfig), gcp, at, r),
        None => {}
    }
}

/// Exports the address of Caddy in an adopted cluster.
fn existing_caddy(caddy: &CaddyConfig, name: String, kubeconfig: Hole, r: &mut Recipe<'_>) {
    let provider = format!("{name}-adoption-kube-provider");
    let kubernetes = r.named_provider(KUBERNETES, &provider, json!({ "kubeconfig": kubeconfig }));
    let [namespace, deployment] =
        [&caddy.namespace, &caddy.deployment_name].map(|name| name.as_deref().unwrap_or("caddy"));
    let id = r.value(ResolvedValue::known(format!("{namespace}/{deployment}")));
    let service = kubernetes.read("kubernetes:core/v1:Service", &format!("{name}-adoption-service-lookup"), id);
    let service = r.add(service);
    let exported = exported_config(caddy, r);
    r.export(&name, json!({ "caddy-config": exported }));
    r.then(service.out("status"), move |status, r| {
        let ingress = status.as_map().and_then(|status| status.get("loadBalancer")?.as_map()?.get("ingress"));
        let first = match ingress {
            Some(PropertyValue::List(items)) => items.first().and_then(PropertyValue::as_map),
            _ => None,
        };
        let address = first.and_then(|first| first.get("ip").or_else(|| first.get("hostname"))?.as_str());
        r.export(&name, json!({ "ingress-ip": address.unwrap_or_default() }));
    });
}

/// Adds Caddy to a new cluster, with a bucket for its certificates and an account for the bucket.
fn new_caddy<'r>(
    config: &'r GkeAutopilotConfig,
    name: String,
    (cluster, kubeconfig): (Handle, Hole),
    gcp: Provider,
    at: &'r ResourceNames<'r>,
    r: &mut Recipe<'r>,
) {
    let Some(caddy) = &config.caddy else { return };
    enable_api("cloudresourcemanager.googleapis.com", gcp, &config.account, r);
    let bucket = format!("{name}-caddy-acme");
    let location = r.text_or(config.location, "");
    let inputs = json!({
        "name": bucket,
        "location": r.text([location], |[location]| region_of(location).to_owned()),
        "uniformBucketLevelAccess": true,
        "lifecycleRules": [{ "action": { "type": "Delete" }, "condition": { "age": 90 } }],
    });
    r.add(gcp.resource("gcp:storage/bucket:Bucket", &bucket, inputs));
    let account = format!("{name}-caddy-sa");
    let (id, project) = (service_account_id(&account), project(&config.account, r));
    let inputs = json!({
        "accountId": id,
        "project": project,
        "description": "Service account for Caddy to access GCS bucket for ACME certificate storage",
        "displayName": format!("{account}-service-account"),
    });
    let account = r.add(gcp.resource("gcp:serviceaccount/account:Account", &id, inputs));
    let inputs = json!({ "serviceAccountId": account.out("accountId") });
    let key = gcp.resource("gcp:serviceaccount/key:Key", &format!("{id}-key"), inputs);
    let key = r.add(key.parent(account));
    let role = "roles/storage.objectAdmin";
    let inputs = json!({ "project": project, "member": account.out("member"), "role": role });
    r.add(gcp.resource("gcp:projects/iAMMember:IAMMember", &format!("{id}-{role}-iam"), inputs).parent(account));
    let credentials = r.try_text([key.out("privateKey")], |[key]| {
        let decoded = decode_base64(key);
        decoded.ok_or_else(|| "the key of the account of Caddy is not base64".to_owned())
    });
    // The name is known before the bucket exists, so nothing has to wait for the bucket.
    let storage = r.value(ResolvedValue::known(format!("  storage gcs {{\n    bucket-name {bucket}\n  }}")));
    let prefix = caddyfile_prefix(caddy, storage, r);
    let deployment = CaddyDeployment {
        kubeconfig,
        cluster: name,
        after: vec![cluster],
        prefix: Some(prefix),
        credentials: Some(credentials),
    };
    deploy_caddy(caddy, deployment, at, r);
}

/// Imports an existing cluster.
fn adopt_cluster(config: &GkeAutopilotConfig, name: &str, gcp: Provider, r: &mut Recipe<'_>) -> Handle {
    let arguments =
        json!({ "name": config.cluster_name, "location": config.location, "project": project(&config.account, r) });
    let found = r.add(gcp.function("gcp:container/getCluster:getCluster", arguments));
    let inputs = json!({
        "name": config.cluster_name,
        "location": config.location,
        "enableAutopilot": found.out("enableAutopilot"),
    });
    let ignored = "nodePools nodePool defaultMaxPodsPerNode ipAllocationPolicy networkPolicy enableIntranodeVisibility \
                   loggingService monitoringService verticalPodAutoscaling clusterTelemetry nodeConfig";
    let parts = [config.account.project_id, config.location, config.cluster_name];
    let [project, location, cluster] = parts.map(|handle| r.known(handle));
    let id = format!("projects/{project}/locations/{location}/clusters/{cluster}");
    r.add(gcp.resource(CLUSTER, name, inputs).import(&id).protect(true).ignore_changes(ignored.split(' ')))
}

/// Adds a new cluster, with its network and the address from which traffic leaves it.
fn create_cluster(
    config: &GkeAutopilotConfig,
    name: &str,
    gcp: Provider,
    at: &ResourceNames<'_>,
    r: &mut Recipe<'_>,
) -> Handle {
    let network = config.private_vpc.then(|| private_network(config, name, gcp, at, r));
    let (network, subnet) = network.map(|(network, subnet)| (network.out("name"), subnet.out("name"))).unzip();
    let has_egress = config.external_egress_ip.enabled;
    let inputs = json!({
        "enableAutopilot": true,
        "location": config.location,
        "name": name,
        "minMasterVersion": r.text_or(config.gke_min_version, ""),
        "releaseChannel": { "channel": "STABLE" },
        "ipAllocationPolicy": {},
        "resourceLabels": at.labels(),
        "network": network,
        "subnetwork": subnet,
        "privateClusterConfig": has_egress.then(|| json!({ "enablePrivateNodes": true, "enablePrivateEndpoint": false })),
    });
    let GkeTimeouts { create, update, delete } = config.timeouts;
    let mut timeout = |handle, default| duration::parse(&r.known(handle)).or_else(|| duration::parse(default));
    let timeouts = Timeouts {
        create: timeout(create, "10m"),
        update: timeout(update, "5m"),
        delete: timeout(delete, "10m"),
        read: None,
    };
    let cluster = gcp.resource(CLUSTER, name, inputs).ignore_changes(["verticalPodAutoscaling"]).timeouts(timeouts);
    let cluster = r.add(cluster);
    if has_egress {
        egress(config, name, (cluster, subnet), gcp, r);
    }
    cluster
}

/// Adds a network with a subnet, peered with the default network, and returns both.
fn private_network(
    config: &GkeAutopilotConfig,
    name: &str,
    gcp: Provider,
    at: &ResourceNames<'_>,
    r: &mut Recipe<'_>,
) -> (Handle, Handle) {
    let vpc = format!("{name}-vpc");
    let inputs = json!({ "name": vpc, "autoCreateSubnetworks": false });
    let network = r.add(gcp.resource("gcp:compute/network:Network", &vpc, inputs));
    let second_byte = match at.environment {
        "production" => 1,
        "staging" => 2,
        // As in the Go program, environments with names of one length have one range.
        other => other.len() % 200 + 10,
    };
    let subnet = format!("{name}-subnet");
    let inputs = json!({
        "name": subnet,
        "ipCidrRange": format!("10.{second_byte}.0.0/16"),
        "network": network.id(),
        "region": config.location,
    });
    let subnet = r.add(gcp.resource("gcp:compute/subnetwork:Subnetwork", &subnet, inputs));
    let project = project(&config.account, r);
    let default = r.text([project], |[project]| format!("projects/{project}/global/networks/default"));
    let peerings = [
        (format!("{vpc}-to-default"), network.out("selfLink"), default.clone()),
        (format!("default-to-{name}"), default, network.out("selfLink")),
    ];
    for (name, from, to) in peerings {
        let inputs = json!({ "name": name, "network": from, "peerNetwork": to });
        r.add(gcp.resource("gcp:compute/networkPeering:NetworkPeering", &name, inputs));
    }
    (network, subnet)
}

/// Lets the traffic of a cluster leave from one address.
fn egress(
    config: &GkeAutopilotConfig,
    name: &str,
    (cluster, subnet): (Handle, Option<Hole>),
    gcp: Provider,
    r: &mut Recipe<'_>,
) {
    let location = r.text_or(config.location, "");
    let region = r.text([location], |[location]| region_of(location).to_owned());
    let EgressIpConfig { existing, .. } = config.external_egress_ip;
    let token = "gcp:compute/address:Address";
    let address = match r.non_empty(existing) {
        Some(handle) => {
            let path = r.known(existing);
            let id = r.text_or(Some(handle), "");
            r.add(gcp.read(token, path.rsplit('/').next().unwrap_or_default(), id))
        }
        None => {
            let address = format!("{name}-egress-ip");
            let inputs = json!({
                "name": address,
                "region": region,
                "addressType": "EXTERNAL",
                "description": format!("Static egress IP for GKE cluster {name}"),
            });
            r.add(gcp.resource(token, &address, inputs))
        }
    };
    let router = format!("{name}-router");
    let inputs = json!({
        "name": router,
        "region": region,
        "network": cluster.out("network"),
        "bgp": { "asn": 64512 },
        "description": format!("Cloud Router for GKE cluster {name} NAT"),
    });
    let router = r.add(gcp.resource("gcp:compute/router:Router", &router, inputs));
    let nat = format!("{name}-nat");
    let subnet = subnet.map_or_else(|| json!("default"), |subnet| json!(subnet));
    let inputs = json!({
        "name": nat,
        "router": router.out("name"),
        "region": region,
        "natIpAllocateOption": "MANUAL_ONLY",
        "natIps": [address.out("selfLink")],
        "minPortsPerVm": 64,
        "maxPortsPerVm": 65536,
        "logConfig": { "enable": true, "filter": "ERRORS_ONLY" },
        "enableEndpointIndependentMapping": true,
        "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
        "subnetworks": [{ "name": subnet, "sourceIpRangesToNats": ["ALL_IP_RANGES"] }],
    });
    r.add(gcp.resource("gcp:compute/routerNat:RouterNat", &nat, inputs));
    r.export(name, json!({ "egress-ip-address": address.out("address"), "egress-ip-name": address.out("name") }));
}

/// Returns the region of a zone, such as `us-central1-a`; a region as it is.
fn region_of(location: &str) -> &str {
    match location.rsplit_once('-') {
        Some((region, zone)) if region.contains('-') && zone.len() == 1 && zone.as_bytes()[0].is_ascii_lowercase() => {
            region
        }
        _ => location,
    }
}

/// Returns the kubeconfig of a cluster: the text that the Go program exports, whose users sign in by a plugin of gcloud.
fn kubeconfig([project, zone, name, endpoint, certificate]: [&str; 5]) -> String {
    let context = format!("{project}_{zone}_{name}");
    format!(
        "
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {certificate}
    server: https://{endpoint}
  name: {context}
contexts:
- context:
    cluster: {context}
    user: {context}
  name: {context}
current-context: {context}
kind: Config
preferences: {{}}
users:
- name: {context}
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: gke-gcloud-auth-plugin
      installHint: Install gke-gcloud-auth-plugin for use with kubectl by following
        https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke
      provideClusterInfo: true
"
    )
}
