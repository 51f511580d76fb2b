//! Keys in the `config` of core types that have no effect: each is a warning at its value.

use crate::sections;

/// Returns the headings of the diagnostics of a resource, a line each.
fn headings(type_name: &str, config: &str) -> Vec<String> {
    let resource = format!("it: {{ type: {type_name}, config: {{ {config} }} }}");
    let messages =
        sections(&format!("resources: {{ resources: {{ e: {{ resources: {{ {resource} }} }} }} }}\n")).messages();
    messages.lines().filter(|line| line.contains("]: ")).map(str::to_owned).collect()
}

#[test]
fn memory_of_a_redis_is_positive() {
    let negative = "`memorySizeGb` must be a number of at least 0";
    for (memory, keys, error) in [
        ("-1", "", negative),
        ("0", "", "an instance needs memory"),
        ("-1", ", adopt: true, instanceId: i, region: r", negative),
    ] {
        let found = headings("gcp-redis", &format!("credentials: '{{}}', projectId: p, memorySizeGb: {memory}{keys}"));
        assert_eq!(found, [format!("error[unknown-value]: {error}")], "{memory}{keys}");
    }
}

/// Shows: server-yaml.md#core-types "a key that has no effect beside the others is a warning"
#[test]
fn keys_without_effect_are_warnings() {
    let google = "credentials: '{}', projectId: p";
    let adopted = " with `adopt: true`: the existing instance keeps its own";
    let without_adopt = " without `adopt: true`, which imports an existing instance";
    let table = [
        (
            "gcp-cloudsql-postgres",
            format!("{google}, version: POSTGRES_16, rootPassword: low, instanceName: i, connectionName: ''"),
            vec![
                format!("`instanceName` has no effect{without_adopt}"),
                "`rootPassword` has no effect without `adopt: true`: a new instance gets a generated password, which is an \
                 output of the stack"
                    .to_owned(),
            ],
        ),
        (
            "gcp-cloudsql-postgres",
            format!("{google}, version: POSTGRES_16, project: other, retainedBackups: 7, requireSsl: true"),
            vec![
                "`project` has no effect: `projectId` names the project".to_owned(),
                "`retainedBackups` has no effect without `backupEnabled: true`".to_owned(),
            ],
        ),
        (
            "gcp-cloudsql-postgres",
            format!("{google}, adopt: true, instanceName: i, connectionName: c, rootPassword: low, requireSsl: true"),
            vec![format!("`requireSsl` has no effect{adopted}")],
        ),
        (
            "gcp-redis",
            format!("{google}, project: p, memorySizeGb: 1, version: REDIS_7_0, instanceId: i"),
            vec![
                format!("`version` has no effect{without_adopt}"),
                format!("`instanceId` has no effect{without_adopt}"),
            ],
        ),
        (
            "gcp-redis",
            format!("{google}, adopt: true, instanceId: i, region: r, redisConfig: {{ a: b }}"),
            vec![format!("`redisConfig` has no effect{adopted}")],
        ),
        (
            "gcp-bucket",
            format!("{google}, location: EU, name: a, bucketName: b"),
            vec!["`name` has no effect: `bucketName` overrides it".to_owned()],
        ),
        (
            "s3-bucket",
            "region: sea, provisionWwwDomain: true, errorDocument: e.html, corsConfig: { allowedMethods: [PUT] }".to_owned(),
            vec![
                "`provisionWwwDomain` has no effect, as in Simple Container".to_owned(),
                "`errorDocument` has no effect without `domain`".to_owned(),
                "`corsConfig.allowedMethods` has no effect without `allowedOrigins`".to_owned(),
            ],
        ),
        (
            "gcp-gke-autopilot-cluster",
            format!("{google}, location: l, clusterName: c, externalEgressIp: {{ existing: projects/p/regions/r/addresses/a }}"),
            vec![
                "`clusterName` has no effect without `adopt: true`, which imports an existing cluster".to_owned(),
                "`externalEgressIp.existing` has no effect without `enabled: true`".to_owned(),
            ],
        ),
        (
            "gcp-gke-autopilot-cluster",
            format!("{google}, location: l, adopt: true, clusterName: c, privateVpc: true, caddy: {{ enable: false }}"),
            vec![
                "`privateVpc` has no effect with `adopt: true`: the existing cluster keeps its own".to_owned(),
                "`enable: false` has no effect, as in Simple Container: Caddy is registered".to_owned(),
            ],
        ),
        (
            "kubernetes-caddy",
            "kubeconfig: k, caddyfile: x, resources: { ephemeral: 1Gi }".to_owned(),
            vec![
                "`caddyfile` has no effect, as in Simple Container".to_owned(),
                "`resources.ephemeral` has no effect, as in Simple Container".to_owned(),
            ],
        ),
        (
            "mongodb-atlas",
            "publicKey: a, privateKey: b, projectId: p, adopt: true, clusterName: c, admins: [joe]".to_owned(),
            vec!["`admins` has no effect with `adopt: true`: the existing cluster keeps its own".to_owned()],
        ),
        (
            "mongodb-atlas",
            "publicKey: a, privateKey: b, projectId: p, instanceSize: M10, region: R, cloudProvider: AWS, projectName: n, \
             clusterName: c, namingStrategyVersion: 1"
                .to_owned(),
            vec![
                "`projectName` has no effect with `projectId`: the existing project keeps its name".to_owned(),
                "`namingStrategyVersion` has no effect with `clusterName`".to_owned(),
            ],
        ),
        // A key that the type does not have.
        ("gcp-redis", format!("{google}, memorySizeGb: 1, password: low"), vec!["password".to_owned()]),
    ];
    for (type_name, config, expected) in table {
        let mut expected: Vec<String> = expected
            .into_iter()
            .map(|text| match text.as_str() {
                "password" => "warning[unknown-key]: the key `password` is ignored".to_owned(),
                _ => format!("warning[unused]: {text}"),
            })
            .collect();
        let mut found = headings(type_name, &config);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{type_name}: {config}");
    }
}
