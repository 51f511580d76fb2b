//! Recipes of the operators that Helm charts install, and of what they run (docs/spec/simple-container.md#7.11).

use std::collections::BTreeMap;
use std::time::Duration;

use config::types::FreeValue;
use serde_json::{Map, Value, json};

use super::keys::root_password;
use super::kubernetes::{annotations, cluster, labels, merged, resource_name};
use crate::registry::recipe::{Handle, Hole, Provider, Recipe, ResolvedValue, ResourceNames, decode_base64, secret};
use crate::registry::types::helm::{
    HelmChartConfig, MongodbOperatorConfig, PostgresOperatorConfig, RabbitmqOperatorConfig, RedisOperatorConfig,
};

const REDIS_CHARTS: &str = "https://ot-container-kit.github.io/helm-charts";
/// Time that an operator has to make a secret.
const SECRET_PATIENCE: Duration = Duration::from_secs(60);
/// Keys of the secret with the default user of a cluster of RabbitMQ.
const RABBITMQ_KEYS: [&str; 8] =
    ["connection_string", "default_user.conf", "host", "password", "port", "provider", "type", "username"];

/// `kubernetes-helm-postgres-operator`: the operator, and a database, whose password the operator generates.
pub(super) fn postgres_operator(config: &PostgresOperatorConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let (labels, annotations) = (labels(at.stack, at), annotations(at));
    let chart = Chart {
        chart: "postgres-operator",
        repository: Some("https://opensource.zalando.com/postgres-operator/charts/postgres-operator"),
        version: None,
        values: json!({
            "configLoadBalancer": { "custom_service_annotations": annotations },
            "configKubernetes": { "custom_pod_annotations": annotations },
            "podLabels": labels,
            "podAnnotations": annotations,
        }),
    };
    let operator = Operator::install(&config.chart, chart, at, r);
    let (name, namespace) = (&operator.name, &operator.namespace);
    let patroni = (!config.pg_hba.is_empty()).then(|| json!({ "pg_hba": config.pg_hba }));
    let spec = json!({
        "teamId": name,
        "volume": { "size": config.volume_size.as_deref().unwrap_or("5Gi") },
        "numberOfInstances": config.number_of_instances.unwrap_or(1),
        "users": { "root": ["superuser", "createdb"] },
        "postgresql": { "version": config.version.as_deref().unwrap_or("15") },
    });
    let others = json!({ "spec": spec, "patroni": patroni });
    let database = operator.run("acid.zalan.do/v1", "postgresql", others, &[], at, r);

    let secret_id = format!("{namespace}/root.{name}.credentials.postgresql.acid.zalan.do");
    let [password] = operator.secret_texts(&secret_id, database, ["password"], r);
    let host = format!("{name}.{namespace}.svc.cluster.local");
    let address = format!("{host}:5432");
    let url = r.text([password.clone()], move |[password]| format!("postgresql://root:{password}@{address}"));
    let init_sql = r.text_or(config.init_sql, "").secret();
    let exports = json!({
        "pg-root-username": "root",
        "pg-root-password": password.clone().secret(),
        "pg-root-url": url.secret(),
        "pg-init-sql": init_sql,
    });
    export_once_there(database, name, exports, r);
    r.publish(json!({
        "password": password.secret(),
        "user": "root",
        "database": "postgres",
        "host": host,
        "port": "5432",
    }));
}

/// `kubernetes-helm-mongodb-operator`: the operator, and a replica set with an account that it uses in the cluster.
pub(super) fn mongodb_operator(config: &MongodbOperatorConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let chart = Chart {
        chart: "community-operator",
        repository: Some("https://mongodb.github.io/helm-charts"),
        version: None,
        values: json!({ "operator": { "watchNamespace": "*" } }),
    };
    let mut operator = Operator::install(&config.chart, chart, at, r);
    operator.namespace = resource_name(&operator.namespace);
    let (kubernetes, name, namespace) = (operator.kubernetes, &operator.name, &operator.namespace);
    let secret_name = format!("{name}-root-password");

    let password = root_password(&format!("{secret_name}-root-generated-password"), r);
    let inputs = json!({
        "metadata": operator.metadata(&secret_name, at),
        "type": "Opaque",
        "stringData": { "password": password },
    });
    let mut after = vec![operator.chart];
    after.push(r.add(kubernetes.resource("kubernetes:core/v1:Secret", &secret_name, inputs).after([operator.chart])));

    let account = "mongodb-database";
    let account_name = at.qualified(account);
    let roles = "kubernetes:rbac.authorization.k8s.io/v1";
    for (token, own) in [
        ("kubernetes:core/v1:ServiceAccount".to_owned(), json!({ "automountServiceAccountToken": true })),
        (
            format!("{roles}:Role"),
            json!({ "rules": [
                { "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] },
                { "apiGroups": [""], "resources": ["pods"], "verbs": ["patch", "delete", "get"] },
            ] }),
        ),
        (
            format!("{roles}:RoleBinding"),
            json!({
                "roleRef": { "kind": "Role", "name": account },
                "subjects": [{ "kind": "ServiceAccount", "name": account }],
            }),
        ),
    ] {
        let inputs = merged(json!({ "metadata": operator.metadata(account, at) }), own);
        after.push(r.add(kubernetes.resource(&token, &account_name, inputs).after(after.iter().copied())));
    }

    let role = |role: &str| json!({ "name": role, "db": "admin" });
    let spec = json!({
        "type": "ReplicaSet",
        "version": config.version.as_deref().unwrap_or("6.0.5"),
        "members": config.replicas.unwrap_or(3),
        "security": { "authentication": { "ignoreUnknownUsers": true, "modes": ["SCRAM", "SCRAM-SHA-1"] } },
        "users": [{
            "name": "root",
            "db": "admin",
            "passwordSecretRef": { "name": secret_name },
            "roles": [role("readWriteAnyDatabase"), role("clusterAdmin"), role("userAdminAnyDatabase")],
            "scramCredentialsSecretName": format!("{secret_name}-scram"),
        }],
        "additionalMongodConfig": { "storage.wiredTiger.engineConfig.journalCompressor": "zlib" },
    });
    let others = json!({ "spec": spec });
    operator.run("mongodbcommunity.mongodb.com/v1", "MongoDBCommunity", others, &after, at, r);

    let host = format!("{name}-svc.{namespace}.svc.cluster.local");
    let connection = json!({
        "instanceName": name,
        "host": host,
        "port": "27017",
        "password": password,
        "username": "root",
        "database": "admin",
    });
    r.export(name, json!({ "mongodb-connection": secret(connection) }));
    let uri = |database: &str, options: &str| {
        let end = format!("{host}:27017/{database}?{options}readPreference=primary&replicaSet={name}");
        move |[password]: [&str; 1]| format!("mongodb://root:{password}@{end}")
    };
    let outputs = json!({
        "password": password.clone().secret(),
        "user": "root",
        "host": host,
        "port": "27017",
        "uri": r.text([password.clone()], uri("admin", "")).secret(),
        "dbName": "admin",
        "oplogUri": r.text([password], uri("local", "authSource=admin&")).secret(),
    });
    r.publish(outputs);
}

/// `kubernetes-helm-rabbitmq-operator`: the operator, and a cluster, whose default user the operator generates.
pub(super) fn rabbitmq_operator(config: &RabbitmqOperatorConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let image = |name: &str| json!({ "repository": format!("bitnamilegacy/{name}") });
    let chart = Chart {
        chart: "oci://registry-1.docker.io/bitnamicharts/rabbitmq-cluster-operator",
        repository: None,
        version: Some("4.4.1"),
        values: json!({
            "commonAnnotations": annotations(at),
            "commonLabels": labels(at.stack, at),
            // The chart refuses images of another repository without it.
            "global": { "security": { "allowInsecureImages": true } },
            "clusterOperator": { "image": image("rabbitmq-cluster-operator") },
            "msgTopologyOperator": { "image": image("rmq-messaging-topology-operator") },
            "rabbitmqImage": image("rabbitmq"),
            "credentialUpdaterImage": image("rmq-default-credential-updater"),
        }),
    };
    let operator = Operator::install(&config.chart, chart, at, r);
    let (name, namespace) = (&operator.name, &operator.namespace);
    let others = json!({ "spec": { "replicas": config.replicas.unwrap_or(1) } });
    let brokers = operator.run("rabbitmq.com/v1beta1", "RabbitmqCluster", others, &[], at, r);
    let secret_id = format!("{namespace}/{name}-default-user");
    let texts = operator.secret_texts(&secret_id, brokers, RABBITMQ_KEYS, r);
    let connection: Map<String, Value> =
        RABBITMQ_KEYS.iter().zip(&texts).map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    export_once_there(brokers, name, json!({ "rabbitmq-connection": secret(connection.into()) }), r);
    let [uri, _, host, password, port, _, _, user] = texts;
    let (password, uri) = (password.secret(), uri.secret());
    r.publish(json!({ "password": password, "user": user, "host": host, "port": port, "uri": uri }));
}

/// `kubernetes-helm-redis-operator`: the operator, and a Redis, which another chart describes.
pub(super) fn redis_operator(config: &RedisOperatorConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let values = json!({ "redisOperator": { "podAnnotations": annotations(at), "podLabels": labels(at.stack, at) } });
    let chart = Chart { chart: "redis-operator", repository: Some(REDIS_CHARTS), version: None, values };
    let operator = Operator::install(&config.chart, chart, at, r);
    let (name, namespace) = (&operator.name, &operator.namespace);
    let own = json!({ "redisStandalone": { "name": name }, "labels": labels(at.stack, at) });
    let inputs = json!({
        "atomic": true,
        "name": name,
        "chart": "redis",
        "namespace": namespace,
        "repositoryOpts": { "repo": REDIS_CHARTS },
        "values": chart_values(&config.chart.values, own, r),
    });
    let release = operator.kubernetes.resource("kubernetes:helm.sh/v3:Release", name, inputs);
    r.add(release.after([operator.chart]));
    let address = json!({ "host": format!("{name}.{namespace}.svc.cluster.local"), "port": "6379" });
    r.export(name, json!({ "redis-connection": address }));
    r.publish(address);
}

/// Chart of an operator, with the values that the type sets.
struct Chart {
    chart: &'static str,
    repository: Option<&'static str>,
    version: Option<&'static str>,
    values: Value,
}

/// Installed operator, with the name and the namespace of what it runs.
struct Operator {
    kubernetes: Provider,
    chart: Handle,
    name: String,
    namespace: String,
}

impl Operator {
    /// Adds the namespace and the chart of an operator. The chart goes to the namespace as it is written.
    fn install(config: &HelmChartConfig, chart: Chart, at: &ResourceNames<'_>, r: &mut Recipe<'_>) -> Self {
        let kubernetes = cluster(config.kubeconfig, r);
        let name = at.qualified(at.name);
        let namespace = config.operator_namespace.clone().unwrap_or_else(|| at.qualified("operators"));
        let created = resource_name(&namespace);
        let inputs = json!({ "metadata": { "name": created } });
        let node = kubernetes.resource("kubernetes:core/v1:Namespace", &format!("create-ns-{created}-{name}"), inputs);
        let created = r.add(node.retain_on_delete().ignore_changes(["metadata.name"]));
        let inputs = json!({
            "chart": chart.chart,
            "name": name,
            "version": chart.version,
            "repositoryOpts": { "repo": chart.repository },
            "namespace": namespace,
            "values": chart_values(&config.values, chart.values, r),
        });
        let chart = kubernetes.remote_component("kubernetes:helm.sh/v4:Chart", &name, inputs);
        let chart = r.add(chart.after([created]));
        let namespace = config.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Self { kubernetes, chart, name, namespace }
    }

    fn metadata(&self, name: &str, at: &ResourceNames<'_>) -> Value {
        json!({
            "name": name,
            "namespace": self.namespace,
            "annotations": annotations(at),
            "labels": labels(at.stack, at),
        })
    }

    /// Adds the custom resource that the operator acts on. It depends on the chart and on `after`.
    fn run(
        &self,
        api_version: &str,
        kind: &str,
        others: Value,
        after: &[Handle],
        at: &ResourceNames<'_>,
        r: &mut Recipe<'_>,
    ) -> Handle {
        let own = json!({ "apiVersion": api_version, "kind": kind, "metadata": self.metadata(&self.name, at) });
        let token = format!("kubernetes:{api_version}:{kind}");
        let node = self.kubernetes.resource(&token, &self.name, merged(own, others));
        r.add(node.after([self.chart]).after(after.iter().copied()))
    }

    /// Returns texts of the secret with an id (`NAMESPACE/NAME`) that the operator makes for a custom resource; a missing one
    /// is empty.
    fn secret_texts<const N: usize>(
        &self,
        secret_id: &str,
        resource: Handle,
        keys: [&'static str; N],
        r: &mut Recipe<'_>,
    ) -> [Hole; N] {
        let id = r.value(ResolvedValue::known(secret_id));
        let read = self.kubernetes.read("kubernetes:core/v1:Secret", &format!("{secret_id}-get-0"), id);
        let data = r.add(read.after([self.chart, resource]).patience(SECRET_PATIENCE)).out("data");
        keys.map(|key| {
            let error = format!("{key:?} of the secret {secret_id} is not the base64 of a text");
            r.try_text([data.member(key)], move |[text]| {
                let decoded = decode_base64(text);
                decoded.ok_or_else(|| error.clone())
            })
        })
    }
}

/// Exports what comes from the secret of a custom resource. A preview leaves it out as long as the resource does not exist.
fn export_once_there(resource: Handle, name: &str, exports: Value, r: &mut Recipe<'_>) {
    let name = name.to_owned();
    r.then(resource.id(), move |_, r| r.export(&name, exports));
}

/// Returns the values of the user, overridden by those that a type sets.
fn chart_values(values: &BTreeMap<String, FreeValue>, own: Value, r: &mut Recipe<'_>) -> Value {
    let values = values.iter().map(|(key, value)| (key.clone(), json!(r.free_value(value))));
    merged(Value::Object(values.collect()), own)
}
