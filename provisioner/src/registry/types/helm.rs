//! Types for the `config` of the operators that Helm charts install (docs/spec/simple-container.md#7.11).

use std::collections::BTreeMap;

use config::types::{CoreConfig, FreeValue, RequiredKey, TextHandle, TypeOrigin};
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

/// Kubeconfig of a type on Kubernetes.
pub(super) const KUBECONFIG: RequiredKey = (
    "kubeconfig",
    "add `kubeconfig: \"${auth:NAME}\"`, where NAME is an entry of type `kubernetes` in the stack's secrets.yaml",
);

/// `config` of `kubernetes-helm-postgres-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The PostgreSQL operator of Zalando, and a database that it runs.")]
pub struct PostgresOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Size of the volume of each instance.
    #[schemars(extend("default" = "5Gi"))]
    pub volume_size: Option<String>,
    /// Number of instances.
    #[schemars(range(min = 0), extend("default" = 1))]
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
pub struct MongodbOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Version of the database. Write it in quotes.
    #[schemars(extend("default" = "6.0.5"))]
    pub version: Option<String>,
    /// Number of members of the replica set.
    #[schemars(range(min = 0), extend("default" = 3))]
    pub replicas: Option<i64>,
}

/// `config` of `kubernetes-helm-rabbitmq-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The cluster operator of RabbitMQ, and a cluster that it runs.")]
pub struct RabbitmqOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
    /// Number of brokers.
    #[schemars(range(min = 0), extend("default" = 1))]
    pub replicas: Option<i64>,
}

/// `config` of `kubernetes-helm-redis-operator`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "The Redis operator of Opstree, and a Redis that it runs.")]
pub struct RedisOperatorConfig {
    /// The chart.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub chart: HelmChartConfig,
}

impl CoreConfig for PostgresOperatorConfig {
    const TYPE: &'static str = "kubernetes-helm-postgres-operator";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("HelmPostgresOperator");
    const PROVIDER: &'static str = "kubernetes";
    const OUTPUTS: &'static [&'static str] = &["password", "user", "database", "host", "port"];
    const REQUIRED: &'static [RequiredKey] = &[KUBECONFIG];
}

impl CoreConfig for MongodbOperatorConfig {
    const TYPE: &'static str = "kubernetes-helm-mongodb-operator";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("HelmMongodbOperator");
    const PROVIDER: &'static str = "kubernetes";
    const OUTPUTS: &'static [&'static str] = &["password", "user", "host", "port", "uri", "dbName", "oplogUri"];
    const REQUIRED: &'static [RequiredKey] = &[KUBECONFIG];
}

impl CoreConfig for RabbitmqOperatorConfig {
    const TYPE: &'static str = "kubernetes-helm-rabbitmq-operator";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("HelmRabbitmqOperator");
    const PROVIDER: &'static str = "kubernetes";
    const OUTPUTS: &'static [&'static str] = &["password", "user", "host", "port", "uri"];
    const REQUIRED: &'static [RequiredKey] = &[KUBECONFIG];
}

impl CoreConfig for RedisOperatorConfig {
    const TYPE: &'static str = "kubernetes-helm-redis-operator";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("HelmRedisOperator");
    const PROVIDER: &'static str = "kubernetes";
    const OUTPUTS: &'static [&'static str] = &["host", "port"];
    const REQUIRED: &'static [RequiredKey] = &[KUBECONFIG];
}
