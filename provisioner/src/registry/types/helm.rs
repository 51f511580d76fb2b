//! Types for the `config` of the operators that Helm charts install (docs/spec/simple-container.md#7.11).

use std::collections::BTreeMap;

use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, FreeValue, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

/// Cluster of a type on Kubernetes, and the chart that is installed in it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HelmChartConfig {
    /// Content of the kubeconfig file of the cluster, usually `${auth:NAME}`.
    #[schemars(extend("writeOnly" = true))]
    pub kubeconfig: Option<TextHandle>,
    /// Values of the chart. Those that the type sets override keys of the same name.
    pub values: BTreeMap<String, FreeValue>,
    /// Namespace of the operator. Defaults to `operators--<environment>`.
    pub operator_namespace: Option<String>,
    /// Namespace of what the operator runs.
    #[schemars(extend("default" = "default"))]
    pub namespace: Option<String>,
}

/// Returns the error for a missing kubeconfig.
pub(super) fn check_kubeconfig<T>(
    decoded: &Decoded<T>,
    kubeconfig: Option<TextHandle>,
    node: &Node,
) -> Option<Diagnostic> {
    decoded.non_empty_text(kubeconfig).is_none().then(|| {
        let span = node.get_path(["kubeconfig"]).map_or(node.span, |kubeconfig| kubeconfig.span);
        Diagnostic::error(Code("credentials"), span, "the kubeconfig of the cluster is missing").help(
            "add `kubeconfig: \"${auth:NAME}\"`, where NAME is an entry of type `kubernetes` in the stack's secrets.yaml",
        )
    })
}

/// `config` of `kubernetes-helm-postgres-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The PostgreSQL operator of Zalando, and a database that it runs.")]
#[schemars(extend("required" = ["kubeconfig"]))]
pub struct PostgresOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Size of the volume of each instance.
    #[schemars(extend("default" = "5Gi"))]
    pub volume_size: Option<String>,
    /// Number of instances.
    #[schemars(extend("default" = 1))]
    pub number_of_instances: Option<i64>,
    /// Version of the database. Write it in quotes.
    #[schemars(extend("default" = "15"))]
    pub version: Option<String>,
    /// Lines of `pg_hba.conf`.
    #[serde(rename = "pg_hba")]
    pub pg_hba: Vec<String>,
    /// Statements that client stacks run in their databases.
    #[serde(rename = "initSQL")]
    pub init_sql: Option<TextHandle>,
}

/// `config` of `kubernetes-helm-mongodb-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The community operator of MongoDB, and a replica set that it runs.")]
#[schemars(extend("required" = ["kubeconfig"]))]
pub struct MongodbOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Version of the database. Write it in quotes.
    #[schemars(extend("default" = "6.0.5"))]
    pub version: Option<String>,
    /// Number of members of the replica set.
    #[schemars(extend("default" = 3))]
    pub replicas: Option<i64>,
}

/// `config` of `kubernetes-helm-rabbitmq-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The cluster operator of RabbitMQ, and a cluster that it runs.")]
#[schemars(extend("required" = ["kubeconfig"]))]
pub struct RabbitmqOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Number of brokers.
    #[schemars(extend("default" = 1))]
    pub replicas: Option<i64>,
}

/// `config` of `kubernetes-helm-redis-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The Redis operator of Opstree, and a Redis that it runs.")]
#[schemars(extend("required" = ["kubeconfig"]))]
pub struct RedisOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
}

macro_rules! operators {
    ($($config:ident $type_name:literal $outputs:expr;)*) => {
        $(impl CoreConfig for $config {
            const TYPE: &'static str = $type_name;
            const OUTPUTS: &'static [&'static str] = &$outputs;

            fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
                diagnostics.extend(check_kubeconfig(decoded, decoded.config.chart.kubeconfig, node));
            }
        })*
    };
}

operators! {
    PostgresOperatorConfig "kubernetes-helm-postgres-operator" ["password", "user", "database", "host", "port"];
    MongodbOperatorConfig "kubernetes-helm-mongodb-operator"
        ["password", "user", "host", "port", "uri", "dbName", "oplogUri"];
    RabbitmqOperatorConfig "kubernetes-helm-rabbitmq-operator" ["password", "user", "host", "port", "uri"];
    RedisOperatorConfig "kubernetes-helm-redis-operator" ["host", "port"];
}
