//! Tests of Caddy in a cluster: its start script, its outputs, mistakes in its `config`
//! (docs/spec/simple-container.md#7.12). Its registrations are compared with recordings in `recorded`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use provisioner::registry::recipes;
use pulumi_proto::property::PropertyValue;

use crate::fake::{FakeDeployment, StackProgram};

fn caddy(keys: &str) -> StackProgram {
    StackProgram::with_secrets(
        &format!(
            "resources: {{ resources: {{ e: {{ resources: {{
               edge: {{ type: kubernetes-caddy, config: {{ kubeconfig: '${{auth:sea}}', {keys} }} }}
             }} }} }} }}"
        ),
        "auth: { sea: { type: kubernetes, config: { kubeconfig: 'kind: Config' } } }\nvalues: { s: hush }",
    )
}

/// Returns the errors and warnings of a `config`, which has an error.
fn mistakes(keys: &str) -> String {
    let server = format!(
        "provisioner: {{ type: pulumi, config: {{ state-storage: {{ type: fs, config: {{ path: 'file:///x' }} }}, secrets-provider: {{ type: passphrase }} }} }}
resources:
  resources:
    e:
      resources:
        edge:
          type: kubernetes-caddy
          config:
{keys}"
    );
    StackProgram::try_complete(&server, recipes::built_in_types(), recipes::core_types()).err().unwrap_or_default()
}

fn member<'v>(value: &'v PropertyValue, path: &str) -> &'v PropertyValue {
    path.split('.').fold(value, |value, name| match value {
        PropertyValue::Map(map) => &map[name],
        PropertyValue::List(items) => &items[name.parse::<usize>().unwrap()],
        other => panic!("{name} of {other:?}"),
    })
}

async fn goal(subject: &StackProgram, kind: &str) -> engine::Goal {
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let goals = deployment.goals.lock().unwrap();
    goals.iter().find(|goal| goal.type_token.as_str().ends_with(kind)).unwrap().clone()
}

#[tokio::test]
async fn address_is_empty_until_the_service_has_one() {
    let status = |status: PropertyValue| FakeDeployment::default().with("caddy-e", "status", status);
    let map = |name: &str, value| PropertyValue::Map([(name.to_owned(), value)].into());
    let list = |items: Vec<PropertyValue>| map("loadBalancer", map("ingress", items.into()));
    for (deployment, address) in [
        (FakeDeployment::default(), ""),
        (status(map("loadBalancer", PropertyValue::Null)), ""),
        (status(list(vec![])), ""),
        (status(list(vec![map("hostname", "edge.example".into())])), ""),
        (status(list(vec![map("ip", "192.0.2.5".into()), map("ip", "192.0.2.6".into())])), "192.0.2.5"),
    ] {
        caddy("").run(&deployment).await;
        assert_eq!(deployment.output("edge--e-ingress-ip"), address.into());
        assert_eq!(deployment.output("edge--e-caddy-config"), "{}".into());
    }
    let preview = FakeDeployment::preview();
    caddy("").run(&preview).await;
    assert_eq!(preview.output("edge--e-ingress-ip"), PropertyValue::UNKNOWN);
}

#[tokio::test]
async fn exported_config_is_that_of_the_go_program_and_keeps_secrets() {
    let subject = caddy(
        "caddyfile: '${secret:s}', hstsValue: '', enable: false, usePrefixes: false, trustedProxies: [],
         resources: { limits: { memory: 1Gi, cpu: '1' } },
         vpa: { minAllowed: { ephemeral-storage: 1Gi }, containerPolicies: [{ containerName: side, mode: 'Off' }] }",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let expected = r#"{"enable":false,"caddyfile":"hush","resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{},"ephemeral":""},"vpa":{"enabled":false,"updateMode":null,"minAllowed":{"cpu":null,"memory":null,"ephemeral-storage":"1Gi"},"maxAllowed":null,"controlledResources":[],"controlledValues":null,"containerPolicies":[{"containerName":"side","mode":"Off","minAllowed":null,"maxAllowed":null,"controlledResources":[],"controlledValues":null}]},"hstsValue":""}"#;
    assert_eq!(deployment.output("edge--e-caddy-config"), PropertyValue::secret(expected.into()));
    let goals = deployment.goals.lock().unwrap();
    assert!(goals.iter().all(|goal| !goal.type_token.as_str().ends_with("VerticalPodAutoscaler")), "it is not enabled");
    let pods = goals.iter().find(|goal| goal.type_token.as_str().ends_with(":Deployment")).unwrap();
    let container = member(&pods.inputs["spec"], "template.spec.containers.0");
    assert!(container.as_map().unwrap().get("env").is_none(), "an empty value is no value");
    assert_eq!(member(container, "resources.requests"), &PropertyValue::Map([].into()));
}

#[tokio::test]
async fn autoscaler_has_a_policy_of_all_containers_only_if_a_key_is_set() {
    let vpa = |keys: &str| caddy(&format!("vpa: {{ enabled: true, {keys} }}"));
    let spec = goal(&vpa(""), "VerticalPodAutoscaler").await.inputs["spec"].clone();
    assert_eq!(spec.as_map().unwrap().keys().collect::<Vec<_>>(), ["targetRef"]);
    let keys = "containerPolicies: [{ containerName: side, mode: 'Off', maxAllowed: { cpu: '2' }, minAllowed: {} }]";
    let spec = goal(&vpa(keys), "VerticalPodAutoscaler").await.inputs["spec"].clone();
    let policies = member(&spec, "resourcePolicy.containerPolicies");
    let PropertyValue::List(policies) = policies else { panic!("{policies:?}") };
    assert_eq!(policies.len(), 1);
    assert_eq!(policies[0].as_map().unwrap().keys().collect::<Vec<_>>(), ["containerName", "maxAllowed", "mode"]);
}

/// Shows: comparison.md#where-the-go-tool-reports-nothing "`caddyfilePrefix`, `trustedProxies` of `kubernetes-caddy` |
///   ignored | the same, with a warning"
#[test]
fn mistakes_in_the_config_of_caddy_are_reported_at_their_line() {
    let keys = "            replicas: many
            caddyfilePrefix: '# mine'
            trustedProxies: [10.0.0.0/8]
";
    insta::assert_snapshot!(mistakes(keys), @r#"
    error[wrong-kind]: expected a whole number, found a text
     --> .sc/stacks/s/server.yaml:9:23
      |
    9 |             replicas: many
      |                       ^^^^
    "#);
    let keys = "            kubeconfig: k
            caddyfilePrefix: '# mine'
            trustedProxies: [me]
            vpa:
              enabled: true
              containerPolicies:
                - { mode: Never }
                - { containerName: '*' }
                - { containerName: a }
                - { containerName: a }
";
    insta::assert_snapshot!(mistakes(keys), @r#"
    warning[unused]: `caddyfilePrefix` has no effect with `kubernetes-caddy`, as in Simple Container
      --> .sc/stacks/s/server.yaml:10:30
       |
    10 |             caddyfilePrefix: '# mine'
       |                              ^^^^^^^^

    warning[unused]: `trustedProxies` has no effect with `kubernetes-caddy`, as in Simple Container
      --> .sc/stacks/s/server.yaml:11:29
       |
    11 |             trustedProxies: [me]
       |                             ^^^^

    error[vpa]: a policy has no `containerName`
      --> .sc/stacks/s/server.yaml:15:19
       |
    15 |                 - { mode: Never }
       |                   ^^^^^^^^^^^^^^^

    error[vpa]: `mode` is "Never", expected `Off` or `Auto`
      --> .sc/stacks/s/server.yaml:15:19
       |
    15 |                 - { mode: Never }
       |                   ^^^^^^^^^^^^^^^

    error[vpa]: `containerName: "*"` stands for the keys of `vpa` itself
      --> .sc/stacks/s/server.yaml:16:19
       |
    16 |                 - { containerName: '*' }
       |                   ^^^^^^^^^^^^^^^^^^^^^^

    error[vpa]: two policies are for the container "a"
      --> .sc/stacks/s/server.yaml:18:19
       |
    18 |                 - { containerName: a }
       |                   ^^^^^^^^^^^^^^^^^^^^
    "#);
}

/// Runs the start script of Caddy in a folder, with a cluster that has these services: time of creation, namespace, name,
/// entry. An entry of `None` is gone when it is read.
async fn start(
    folder: &Path,
    prefix: Option<&str>,
    keys: &str,
    services: &[(&str, &str, &str, Option<&str>)],
) -> Output {
    let deployment = goal(&caddy(keys), ":Deployment").await;
    let pod = member(&deployment.inputs["spec"], "template.spec.initContainers.0").clone();
    let script = member(&pod, "command.2").as_str().unwrap();
    // The paths of the container are those of the folder.
    let inside = |path: &str| folder.join(path).display().to_string();
    let script =
        script.replace("/etc/caddy/Caddyfile", &inside("base")).replace("/tmp/Caddyfile", &inside("Caddyfile"));
    fs::write(folder.join("base"), "# base\n").unwrap();
    let list: String = services.iter().map(|(time, space, name, _)| format!("{time} {space} {name}\n")).collect();
    fs::write(folder.join("list"), list).unwrap();
    for (_, space, name, entry) in services {
        fs::write(folder.join(format!("{space}.{name}")), entry.unwrap_or_default()).unwrap();
    }
    let kubectl = format!(
        "#!/bin/bash
[ -e '{list}' ] || {{ echo 'the server is away' >&2; exit 1; }}
case \"$*\" in
  'get services --all-namespaces --output go-template='*) cat '{list}' ;;
  'get service '*' --namespace '*' --ignore-not-found --output go-template='*) cat '{folder}/'\"$5.$3\" ;;
  *) echo \"unexpected: $*\" >&2; exit 2 ;;
esac
",
        list = inside("list"),
        folder = folder.display(),
    );
    if services.is_empty() {
        fs::remove_file(folder.join("list")).unwrap();
    }
    fs::write(folder.join("kubectl"), kubectl).unwrap();
    fs::set_permissions(folder.join("kubectl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env_clear().env("PATH", path);
    let PropertyValue::List(variables) = member(&pod, "env") else { panic!("{pod:?}") };
    for variable in variables {
        let name = member(variable, "name").as_str().unwrap().to_owned();
        let value = variable.as_map().unwrap().get("value").and_then(PropertyValue::as_str).or(prefix);
        command.env(name, value.unwrap_or_default());
    }
    command.output().unwrap()
}

const SERVICES: [(&str, &str, &str, Option<&str>); 5] = [
    ("2024-01-01T00:00:00Z", "shop", "old", Some("\nhttp://shop.example {\n  respond old\n}\n")),
    ("2024-03-01T00:00:00Z", "next", "new", Some("\nhttp://shop.example {\n  respond \"a \\ 'b' $HOME `c`\"\n}\n")),
    (
        "2024-02-01T00:00:00Z",
        "blog",
        "blog",
        Some("https://blog.example, https://www.blog.example {\n  respond blog\n}"),
    ),
    ("2024-02-02T00:00:00Z", "gone", "gone", None),
    ("2024-02-03T00:00:00Z", "all", "all", Some("http:// {\n  respond everything\n}")),
];

/// Shows: server-yaml.md#core-types "Of two services with one address, the newer one is served"
#[tokio::test]
async fn start_script_joins_prefix_snippets_default_site_and_entries() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(folder.path(), Some("{\n  email a@b.example\n}"), "", &SERVICES).await;
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r#"
    next/new: http://shop.example
    all/all: left out, another site has the address http://
    gone/gone: no entry any more
    blog/blog: https://blog.example, https://www.blog.example
    shop/old: left out, another site has the address http://shop.example
    "#);
    insta::assert_snapshot!(fs::read_to_string(folder.path().join("Caddyfile")).unwrap(), @r#"
    {
      email a@b.example
    }
    # base
    http:// {

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

    }

    http://shop.example {
      respond "a \ 'b' $HOME `c`"
    }
    https://blog.example, https://www.blog.example {
      respond blog
    }
    "#);
}

#[tokio::test]
async fn start_script_puts_entries_into_the_default_site_with_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let entry = "\n  handle_path /shop* {\n    respond shop\n  }\n";
    let services = [("2024-01-01T00:00:00Z", "shop", "shop", Some(entry))];
    let output = start(folder.path(), None, "usePrefixes: true", &services).await;
    assert!(output.status.success(), "{output:?}");
    let caddyfile = fs::read_to_string(folder.path().join("Caddyfile")).unwrap();
    assert!(caddyfile.starts_with("\n# base\nhttp:// {\n\n  handle_path /shop* {"), "{caddyfile}");
    assert!(caddyfile.ends_with("      status 503\n    }\n  }\n\n}\n"), "{caddyfile}");
}

#[tokio::test]
async fn start_script_fails_and_writes_nothing_without_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(folder.path(), None, "", &[]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "the server is away\n");
    assert!(!folder.path().join("Caddyfile").exists());
}
