//! Recipe of Caddy in a cluster, and of the resources that a deployment of Simple Container has
//! (docs/spec/simple-container.md#7.12, #7.13).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::kubernetes::{annotations, cluster, labels, merged, resource_name};
use crate::registry::packages::KUBERNETES;
use crate::registry::recipe::{Handle, Hole, Node, Provider, Recipe, ResolvedValue, ResourceNames, go_json};
use crate::registry::types::caddy::{CaddyConfig, KubernetesCaddyConfig, VpaConfig, VpaContainerPolicy, VpaResources};

/// Image of Caddy of the release of Simple Container that `sc` follows.
const IMAGE: &str = "simplecontainer/caddy:2026.7.2";
/// Image with the tools of the start script.
const KUBECTL_IMAGE: &str = "simplecontainer/kubectl:latest";
/// Script of the init container, which writes the Caddyfile.
const START_SCRIPT: &str = include_str!("../texts/caddy/start.sh");
/// Files that Caddy reads: name, path and content.
const FILES: [(&str, &str, &str); 5] = [
    ("404.html", "/etc/caddy/pages/404.html", include_str!("../texts/caddy/404.html")),
    ("500.html", "/etc/caddy/pages/500.html", include_str!("../texts/caddy/500.html")),
    ("502.html", "/etc/caddy/pages/502.html", include_str!("../texts/caddy/502.html")),
    ("503.html", "/etc/caddy/pages/503.html", include_str!("../texts/caddy/503.html")),
    ("Caddyfile", "/etc/caddy/Caddyfile", include_str!("../texts/caddy/Caddyfile")),
];
/// Beginning and rest of the site for requests that no service wants.
const DEFAULT_SITE: [&str; 2] = [
    "http:// {",
    r#"
  import gzip
  handle {
    root * /etc/caddy/pages
    rewrite * /503.html
    header Cache-Control "no-store"
    header Retry-After "60"
    file_server {
      status 503
    }
  }
"#,
];
const CREDENTIALS: &str = "credentials.json";

/// `kubernetes-caddy` (docs/spec/simple-container.md#7.12): Caddy in any cluster.
pub(super) fn kubernetes_caddy<'r>(config: &'r KubernetesCaddyConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    cluster(config.kubeconfig, r);
    let has_environment = at.name.ends_with(&format!("--{}", at.environment));
    let cluster = if has_environment { at.name.to_owned() } else { at.qualified(at.name) };
    let kubeconfig = r.text_or(config.kubeconfig, "");
    // The Go program sends the prefix as unknown, and Pulumi's engine leaves an unknown value out.
    let deployment = CaddyDeployment { kubeconfig, cluster, after: Vec::new(), prefix: None, credentials: None };
    caddy(&config.caddy, deployment, at, r);
}

/// Cluster that Caddy is deployed to.
pub(super) struct CaddyDeployment {
    /// Kubeconfig of the cluster.
    pub kubeconfig: Hole,
    /// Beginning of the names of the stack outputs.
    pub cluster: String,
    /// Resources that the deployment depends on.
    pub after: Vec<Handle>,
    /// Lines at the beginning of the Caddyfile, from [`caddyfile_prefix`]; `None`: they are left out.
    pub prefix: Option<Hole>,
    /// Key of a service account of Google, for the storage of certificates.
    pub credentials: Option<Hole>,
}

/// Returns the lines at the beginning of the Caddyfile: the global options, with a block about the storage of
/// certificates, and the lines of the user.
pub(super) fn caddyfile_prefix<'r>(config: &'r CaddyConfig, storage: Hole, r: &mut Recipe<'r>) -> Hole {
    let lines = r.text_or(config.caddyfile_prefix, "");
    r.text([storage, lines], move |[storage, lines]| {
        let mut options = format!("{{\n{storage}\n");
        if !config.trusted_proxies.is_empty() {
            let proxies = config.trusted_proxies.join(" ");
            options += &format!("  servers {{\n    trusted_proxies static {proxies}\n  }}\n");
        }
        options += "}";
        if lines.is_empty() { options } else { format!("{options}\n\n{lines}") }
    })
}

/// Adds Caddy with its own provider, its account, and the outputs of the stack.
pub(super) fn caddy<'r>(
    config: &'r CaddyConfig,
    deployment: CaddyDeployment,
    at: &'r ResourceNames<'r>,
    r: &mut Recipe<'r>,
) {
    let name = format!("{}-caddy-kubeprovider", at.qualified(at.name));
    let kubernetes = r.named_provider(KUBERNETES, &name, json!({ "kubeconfig": deployment.kubeconfig }));
    let namespace = resource_name(config.namespace.as_deref().unwrap_or("caddy"));
    let account = service_account(&at.qualified(&format!("{}-caddy-sa", at.name)), &namespace, kubernetes, r);
    let cluster = deployment.cluster.clone();
    let service = Set { config, deployment, kubernetes, account, at }.add(&namespace, r);

    let exported = exported_config(config, r);
    let address = service.out("status.loadBalancer.ingress.0").member("ip");
    r.export(&cluster, json!({ "ingress-ip": address, "caddy-config": exported }));
}

/// Returns the keys of the `config` as JSON, as the Go program exports them.
pub(super) fn exported_config<'r>(config: &CaddyConfig, r: &mut Recipe<'r>) -> Hole {
    let value = config.exported();
    let texts = [config.caddyfile, config.caddyfile_prefix].map(|text| r.text_or(text, ""));
    r.text(texts, move |[caddyfile, prefix]| {
        let mut value = value.clone();
        for (key, text) in [("caddyfile", caddyfile), ("caddyfilePrefix", prefix)] {
            if let Some(handle) = value.get_mut(key) {
                *handle = text.into();
            }
        }
        go_json(&value)
    })
}

/// Adds an account that may read the services of the cluster. Returns its name.
fn service_account(name: &str, namespace: &str, kubernetes: Provider, r: &mut Recipe<'_>) -> Hole {
    let name = &resource_name(name);
    let component = r.add(Node::component("pkg:k8s/extensions:simpleServiceAccount", name).passing(kubernetes));
    let inputs = json!({
        "automountServiceAccountToken": true,
        "metadata": { "name": name, "namespace": namespace },
    });
    let account = r.add(kubernetes.resource("kubernetes:core/v1:ServiceAccount", name, inputs));
    let inputs = json!({
        "metadata": { "name": name, "namespace": account.out("metadata.namespace") },
        "rules": [{ "apiGroups": ["*"], "resources": ["services"], "verbs": ["get", "list"] }],
    });
    let group = "rbac.authorization.k8s.io";
    let role = r.add(kubernetes.resource(&format!("kubernetes:{group}/v1:ClusterRole"), name, inputs));
    let account_name = account.out("metadata.name");
    let inputs = json!({
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role.out("metadata.name") },
        "subjects": [{
            "kind": "ServiceAccount",
            "name": account_name,
            "namespace": account.out("metadata.namespace"),
        }],
    });
    let binding = r.add(kubernetes.resource(&format!("kubernetes:{group}/v1:ClusterRoleBinding"), name, inputs));
    r.component_outputs(
        component,
        json!({
            "name": account_name,
            "roleName": role.out("metadata.name"),
            "roleBindingName": binding.out("metadata.name"),
        }),
    );
    account_name
}

/// Resources that a deployment of Simple Container has, for Caddy.
struct Set<'r> {
    config: &'r CaddyConfig,
    deployment: CaddyDeployment,
    kubernetes: Provider,
    /// Name of the account of the pods.
    account: Hole,
    at: &'r ResourceNames<'r>,
}

impl Set<'_> {
    /// Adds the resources. Returns the Service.
    fn add(&self, namespace: &str, r: &mut Recipe<'_>) -> Handle {
        let Self { config, deployment, kubernetes, at, .. } = self;
        let container = format!("caddy-{}", at.environment);
        let name = &resource_name(&container);
        let labels = labels(name, at);
        let own = json!({
            "simple-container.com/domain": "",
            "simple-container.com/port": "80",
            "simple-container.com/prefix": "",
        });
        let annotations = merged(annotations(at), own);
        let metadata = json!({ "name": namespace, "labels": labels, "annotations": annotations });
        let token = "kubernetes:core/v1:Namespace";
        let node = kubernetes.resource(token, &format!("{name}-ns"), json!({ "metadata": metadata }));
        let node = node.retain_on_delete().ignore_changes(["metadata.name"]);
        let namespace = r.add(node.after(deployment.after.iter().copied())).out("metadata.name");

        let metadata =
            |name: &str| json!({ "name": name, "namespace": namespace, "labels": labels, "annotations": annotations });
        let resource = |token: &str, name: &str, own: Value| {
            let inputs = merged(json!({ "metadata": metadata(name) }), own);
            kubernetes.resource(&format!("kubernetes:{token}"), name, inputs).after(deployment.after.iter().copied())
        };
        let files = FILES.map(|(name, _, content)| (name.to_owned(), BASE64.encode(content).into()));
        let files: Map<String, Value> = files.into_iter().collect();
        r.add(resource("core/v1:ConfigMap", &format!("{name}-cfg-volumes"), json!({ "binaryData": files })));
        let variable = "GOOGLE_APPLICATION_CREDENTIALS";
        let path = deployment.credentials.as_ref().map(|_| credentials_path());
        let variables = json!({ "stringData": { variable: path } });
        r.add(resource("core/v1:Secret", &format!("{name}-secrets"), variables));
        let volumes = json!({ "stringData": { CREDENTIALS: deployment.credentials } });
        r.add(resource("core/v1:Secret", &format!("{name}-secret-volumes"), volumes));

        let template =
            json!({ "metadata": { "labels": labels, "annotations": annotations }, "spec": self.pod(&container, name) });
        let spec = json!({
            "replicas": config.replicas.unwrap_or(1),
            "selector": { "matchLabels": labels },
            "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            "template": template,
        });
        let pods = r.add(resource("apps/v1:Deployment", name, json!({ "spec": spec })));
        let spec = json!({
            "type": config.service_type.as_deref().unwrap_or("LoadBalancer"),
            "selector": labels,
            "ports": [{ "name": "http-443", "port": 443 }, { "name": "http-80", "port": 80 }],
            "externalTrafficPolicy": config.external_traffic_policy,
        });
        let service = r.add(resource("core/v1:Service", name, json!({ "spec": spec })));
        if config.provision_ingress {
            let mut metadata = metadata(name);
            if config.use_ssl != Some(false) {
                metadata["annotations"]["ingress.kubernetes.io/ssl-redirect"] = "false".into();
            }
            let backend = json!({ "service": { "name": name, "port": { "number": 80 } } });
            let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
            let spec = json!({ "rules": [{ "http": { "paths": [path] } }] });
            let own = json!({ "metadata": metadata, "spec": spec });
            r.add(resource("networking.k8s.io/v1:Ingress", name, own));
        }
        let mut budget_metadata = metadata("");
        budget_metadata["name"] = Value::Null;
        let own = json!({
            "metadata": budget_metadata,
            "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } },
        });
        r.add(resource("policy/v1:PodDisruptionBudget", &format!("{name}-pdb"), own));

        let node = Node::component("simple-container.com:k8s:SimpleContainer", name).passing(*kubernetes);
        let component = r.add(node.after(deployment.after.iter().copied()));
        // The Go program overwrites these outputs with empty ones before it registers them.
        let [text, none] = match r.is_preview() {
            true => [(); 2].map(|()| json!(r.value(ResolvedValue::unknown()))),
            false => ["".into(), Value::Null],
        };
        let outputs = json!({
            "servicePublicIP": text,
            "serviceName": none,
            "namespace": text,
            "port": none,
            "caddyfileEntry": "",
            "deployment": pods.reference(),
        });
        r.component_outputs(component, outputs);

        if let Some(vpa) = config.vpa.as_ref().filter(|vpa| vpa.enabled) {
            let mut metadata = metadata(&format!("{name}-vpa"));
            metadata["labels"]["app.kubernetes.io/component"] = "vpa".into();
            metadata["labels"]["app.kubernetes.io/managed-by"] = "simple-container".into();
            let (group, kind) = ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler");
            let spec = vpa_spec(vpa, name);
            let own = json!({ "apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec });
            r.add(resource(&format!("{group}:{kind}"), &format!("{name}-vpa"), own));
        }
        service
    }

    /// Returns the specification of a pod.
    fn pod(&self, container: &str, name: &str) -> Value {
        let Self { config, deployment, account, .. } = self;
        let (files, secrets) = (format!("{name}-cfg-volumes"), format!("{name}-secret-volumes"));
        let file = |name: &str, path: &str| json!({ "mountPath": path, "name": files, "subPath": name });
        let (caddyfile, pages) = (&FILES[4], &FILES[..4]);
        let temporary = json!({ "mountPath": "/tmp", "name": "tmp" });
        let caddyfile = file(caddyfile.0, caddyfile.1);
        let pages = pages.iter().map(|(name, path, _)| file(name, path));
        let credentials = deployment
            .credentials
            .as_ref()
            .map(|_| json!({ "mountPath": credentials_path(), "name": secrets, "subPath": CREDENTIALS }));
        let mounts: Vec<Value> =
            [caddyfile.clone()].into_iter().chain(pages).chain(credentials).chain([temporary.clone()]).collect();
        let probe = json!({ "tcpSocket": { "port": "http-80" }, "initialDelaySeconds": 5, "periodSeconds": 10 });
        let resources = match &config.resources {
            Some(resources) => json!({ "limits": resources.limits, "requests": resources.requests }),
            None => json!({}),
        };
        let hsts = config.hsts_value.as_ref().filter(|value| !value.is_empty());
        let pause = config.pre_stop_sleep_seconds.filter(|seconds| *seconds > 0);
        let caddy = json!({
            "name": container,
            "image": config.image.as_deref().unwrap_or(IMAGE),
            "imagePullPolicy": "IfNotPresent",
            "command": ["caddy", "run", "--config", "/tmp/Caddyfile", "--adapter", "caddyfile"],
            "args": [],
            "env": hsts.map(|value| json!([{ "name": "HSTS_VALUE", "value": value }])),
            "envFrom": [{ "secretRef": { "name": format!("{name}-secrets") } }],
            "ports": [{ "containerPort": 443, "name": "http-443" }, { "containerPort": 80, "name": "http-80" }],
            "readinessProbe": probe,
            "startupProbe": probe,
            "lifecycle": pause.map(|seconds| json!({ "preStop": { "exec": { "command": ["sleep", seconds.to_string()] } } })),
            "resources": resources,
            "volumeMounts": mounts,
        });
        let [start, rest] = DEFAULT_SITE;
        let variables = json!([
            { "name": "DEFAULT_ENTRY_START", "value": start },
            { "name": "DEFAULT_ENTRY", "value": rest },
            { "name": "USE_PREFIXES", "value": config.use_prefixes.to_string() },
            { "name": "CADDYFILE_PREFIX", "value": deployment.prefix },
        ]);
        let init = json!({
            "name": "generate-caddyfile",
            "image": KUBECTL_IMAGE,
            "command": ["bash", "-c", START_SCRIPT],
            "env": variables,
            "volumeMounts": [temporary, caddyfile],
        });
        json!({
            "initContainers": [init],
            "containers": [caddy],
            "serviceAccountName": account,
            "nodeSelector": {},
            "terminationGracePeriodSeconds": config.termination_grace_period_seconds,
            "volumes": [
                { "name": files, "configMap": { "name": files } },
                { "name": secrets, "secret": { "secretName": secrets } },
                { "name": "tmp", "emptyDir": {} },
            ],
        })
    }
}

fn credentials_path() -> String {
    format!("/etc/gcp-credentials/{CREDENTIALS}")
}

/// Returns the specification of a vertical autoscaler of the pods of a deployment. The keys of the type itself are the
/// policy of all containers.
fn vpa_spec(vpa: &VpaConfig, deployment: &str) -> Value {
    let policy = |name: &str, least: &Option<_>, most: &Option<_>, resources: &[String], values: &Option<String>| {
        json!({
            "containerName": name,
            "controlledResources": (!resources.is_empty()).then_some(resources),
            "controlledValues": values,
            "minAllowed": least.as_ref().and_then(vpa_resources),
            "maxAllowed": most.as_ref().and_then(vpa_resources),
        })
    };
    let VpaConfig { min_allowed, max_allowed, controlled_resources, controlled_values, .. } = vpa;
    let has_own = min_allowed.is_some()
        || max_allowed.is_some()
        || !controlled_resources.is_empty()
        || controlled_values.is_some();
    let own = policy("*", min_allowed, max_allowed, controlled_resources, controlled_values);
    let others = vpa.container_policies.iter().map(|other: &VpaContainerPolicy| {
        let (least, most) = (&other.min_allowed, &other.max_allowed);
        let policy = policy(&other.container_name, least, most, &other.controlled_resources, &other.controlled_values);
        merged(policy, json!({ "mode": other.mode }))
    });
    let policies: Vec<Value> = has_own.then_some(own).into_iter().chain(others).collect();
    json!({
        "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment },
        "updatePolicy": vpa.update_mode.as_ref().map(|mode| json!({ "updateMode": mode })),
        "resourcePolicy": (!policies.is_empty()).then(|| json!({ "containerPolicies": policies })),
    })
}

/// Returns the resources that are set; `None` if none is.
fn vpa_resources(resources: &VpaResources) -> Option<Value> {
    let VpaResources { cpu, memory, ephemeral_storage } = resources;
    let is_set = [cpu, memory, ephemeral_storage].iter().any(|resource| resource.is_some());
    is_set.then(|| json!({ "cpu": cpu, "memory": memory, "ephemeral-storage": ephemeral_storage }))
}
