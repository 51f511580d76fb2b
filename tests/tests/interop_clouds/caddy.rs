//! Checks of what the types on Kubernetes send to a cluster: the schemas of Kubernetes accept the resources, and Caddy
//! the Caddyfile that its start script writes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use config::ResourceImplementation;
use provisioner::registry::recipe::{Outline, ResourceNames};
use provisioner::registry::recipes;
use pulumi_proto::property::PropertyValue;
use serde_json::{Value, json};
use tests::commands::run;
use tests::sdks::python_venv;
use tests::stack_files::read_server;

const SERVER: &str = "
provisioner: { type: pulumi, config: { state-storage: { type: fs, config: { path: 'file:///x' } }, secrets-provider: { type: passphrase } } }
resources:
  resources:
    prod:
      resources:
        little: { type: kubernetes-caddy, config: { kubeconfig: k } }
        edge:
          type: kubernetes-caddy
          config:
            kubeconfig: k
            namespace: front_end
            replicas: 2
            resources: { limits: { cpu: '1', memory: 1Gi }, requests: { cpu: 100m } }
            provisionIngress: true
            terminationGracePeriodSeconds: 60
            preStopSleepSeconds: 10
            externalTrafficPolicy: Local
            hstsValue: max-age=5
        store: { type: kubernetes-helm-mongodb-operator, config: { kubeconfig: k, namespace: data } }
";

/// Entries of services, as the Go program writes them for its client stacks.
const ENTRIES: [&str; 2] = [
    "
https://shop.example {
  reverse_proxy http://shop.shop.svc.cluster.local:80 {
    header_down Server nginx
    import handle_server_error
    import remove_hsts_header
    import lb_retries_2
  }
  import gzip
  import handle_static
  import hsts
  import cors_origin https://a.example \"GET, POST\" \"Authorization\" 600
  import cors_origin https://b.example \"GET\" \"*\" 60
}
",
    "
http://files.example {
  reverse_proxy http://files.shop.svc.cluster.local:80 {
    import handle_bucket_error
  }
  import gzip
}
",
];

/// Returns what the core resources of a server.yaml register.
fn outlines(server: &str) -> Vec<Outline> {
    let (stack, diagnostics) = read_server(server, "").unwrap();
    assert_eq!(diagnostics, []);
    let stack = stack.unwrap();
    let recipes = recipes::core_types();
    let outlines = stack.resources().flat_map(|(environment, resource)| {
        let ResourceImplementation::Core { type_name } = &resource.implementation else { panic!("{resource:?}") };
        let (environment, name, key) = (&*environment.name, &*resource.name, &*resource.key);
        let place = ResourceNames { stack: "s", project: "reef", environment, type_name, name, key, registrar: None };
        recipes.get(type_name).unwrap().outline(&resource.config, place)
    });
    outlines.collect()
}

/// Returns a value as JSON. What is known only in a run is a sample.
fn to_json(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Secret(secret) => to_json(secret.expose()),
        PropertyValue::Unknown(_) => "sample".into(),
        PropertyValue::Bool(value) => (*value).into(),
        #[expect(clippy::cast_possible_truncation, reason = "all numbers of the types are small and whole")]
        PropertyValue::Number(value) => json!(*value as i64),
        PropertyValue::String(text) => text.as_str().into(),
        PropertyValue::List(items) => items.iter().map(to_json).collect(),
        PropertyValue::Map(map) => map.iter().map(|(key, value)| (key.clone(), to_json(value))).collect(),
        other => panic!("{other:?}"),
    }
}

/// Returns the manifests of the resources whose kinds Kubernetes itself has.
fn manifests() -> Vec<Value> {
    let manifests = outlines(SERVER).into_iter().filter_map(|outline| {
        let (version, kind) = outline.token.strip_prefix("kubernetes:")?.split_once(':')?;
        if version.contains("helm.sh") || version.contains("mongodb") {
            return None;
        }
        let inputs = to_json(&PropertyValue::Map(outline.inputs));
        let mut manifest = json!({ "apiVersion": version.strip_prefix("core/").unwrap_or(version), "kind": kind });
        for (name, value) in inputs.as_object().unwrap() {
            manifest[name] = value.clone();
        }
        if manifest["metadata"]["name"].is_null() {
            // The package gives such a resource a random name.
            manifest["metadata"]["name"] = "sample".into();
        }
        Some(manifest)
    });
    manifests.collect()
}

#[test]
fn manifests_of_types_on_kubernetes_are_valid() {
    let manifests = manifests();
    let kinds: Vec<&str> = manifests.iter().map(|manifest| manifest["kind"].as_str().unwrap()).collect();
    for kind in
        ["Deployment", "Service", "Ingress", "PodDisruptionBudget", "ConfigMap", "Secret", "Role", "ClusterRole"]
    {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: String, manifest: &Value| {
        let path = folder.path().join(name);
        fs::write(&path, manifest.to_string()).unwrap();
        path
    };
    let venv = python_venv("kubernetes-validate", &["kubernetes-validate==1.37.0"]).unwrap();
    let validate = |files: Vec<PathBuf>| {
        let mut command = Command::new(venv.python().with_file_name("kubernetes-validate"));
        let output = command.arg("--strict").args(files).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let files = manifests.iter().enumerate().map(|(index, manifest)| write(format!("{index}.yaml"), manifest));
    let (is_valid, printed) = validate(files.collect());
    let passed = printed.lines().filter(|line| line.contains("passed for resource"));
    assert!(is_valid && passed.count() == kinds.len(), "{printed}");

    let mut wrong = manifests.into_iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Always".into();
    let (is_valid, printed) = validate(vec![write("wrong.yaml".into(), &wrong)]);
    assert!(!is_valid && printed.contains("imagePolicy"), "{printed}");
}

/// Returns the program `caddy`, which is installed if it is missing.
fn caddy() -> Command {
    if Command::new("caddy").arg("version").output().is_err() {
        run(Command::new("apt-get").arg("update")).unwrap();
        let mut install = Command::new("apt-get");
        install.args(["install", "--yes", "--no-install-recommends", "caddy"]);
        run(install.env("DEBIAN_FRONTEND", "noninteractive")).unwrap();
    }
    Command::new("caddy")
}

/// Writes the Caddyfile into a folder, as the init container does in a cluster with two services.
fn assemble(folder: &Path, prefix: &str, manifests: &[Value]) {
    let of_kind = |kind: &str| manifests.iter().find(|manifest| manifest["kind"] == kind).unwrap();
    let init = &of_kind("Deployment")["spec"]["template"]["spec"]["initContainers"][0];
    let script = init["command"][2].as_str().unwrap();
    let inside = |name: &str| folder.join(name).display().to_string();
    let script =
        script.replace("/etc/caddy/Caddyfile", &inside("base")).replace("/tmp/Caddyfile", &inside("Caddyfile"));
    let base = of_kind("ConfigMap")["binaryData"]["Caddyfile"].as_str().unwrap();
    fs::write(folder.join("base"), BASE64.decode(base).unwrap()).unwrap();
    for (index, entry) in ENTRIES.iter().enumerate() {
        fs::write(folder.join(index.to_string()), entry).unwrap();
    }
    let list = "2024-01-01T00:00:00Z shop 0\\n2024-01-02T00:00:00Z shop 1\\n";
    let kubectl = format!(
        "#!/bin/bash\nif [ \"$2\" = services ]; then printf '{list}'; else cat '{}/'\"$3\"; fi\n",
        folder.display()
    );
    fs::write(folder.join("kubectl"), kubectl).unwrap();
    fs::set_permissions(folder.join("kubectl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut start = Command::new("bash");
    start.args(["-c", &script]).env("PATH", path);
    for variable in init["env"].as_array().unwrap() {
        start.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap_or(prefix));
    }
    run(&mut start).unwrap();
}

/// Shows: server-yaml.md#core-types "A pod starts with a script that writes the Caddyfile"
#[test]
fn caddy_adapts_the_assembled_caddyfile() {
    let manifests = manifests();
    for prefix in ["", "{\n  email ops@reef.example\n}\n\n(mine) {\n  respond mine\n}"] {
        let folder = tempfile::tempdir().unwrap();
        assemble(folder.path(), prefix, &manifests);
        let path = folder.path().join("Caddyfile");
        let adapted = run(caddy().args(["adapt", "--adapter", "caddyfile", "--config"]).arg(&path)).unwrap();
        let adapted = String::from_utf8(adapted).unwrap();
        for part in ["shop.example", "files.example", "/etc/caddy/pages", "Strict-Transport-Security", "encode"] {
            assert!(adapted.contains(part), "{part}: {adapted}");
        }
        assert_eq!(adapted.contains("ops@reef.example"), !prefix.is_empty());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("(hsts)", "(hstz)")).unwrap();
        run(caddy().args(["adapt", "--adapter", "caddyfile", "--config"]).arg(&path)).unwrap_err();
    }
}
