//! Types for the `config` of databases, caches and queues on Google Cloud.

use std::collections::BTreeMap;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::gcp::{CREDENTIALS, GcpAccountConfig, PROJECT, unused_project};
use super::unused::unused;

/// Reasons why a key has no effect.
const OF_ADOPTED: &str = " with `adopt: true`: the existing instance keeps its own";
const WITHOUT_ADOPT: &str = " without `adopt: true`, which imports an existing instance";
/// Keys about the backups of a database.
const OF_BACKUPS: [&str; 4] =
    ["backupStartTime", "pointInTimeRecoveryEnabled", "transactionLogRetentionDays", "retainedBackups"];

/// `config` of `gcp-redis` (docs/spec/simple-container.md#7.9).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A Redis instance on Memorystore.")]
pub struct GcpRedisConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Memory in GiB. Required unless `adopt` is set.
    #[schemars(range(min = 0))]
    pub memory_size_gb: i64,
    /// Version of Redis of an adopted instance, such as `REDIS_7_0`. Not used for a new one.
    pub version: Option<TextHandle>,
    /// Not used.
    pub project: Option<TextHandle>,
    /// Parameters of Redis.
    pub redis_config: BTreeMap<String, TextHandle>,
    /// Region of the instance. Required if `adopt` is set.
    pub region: Option<TextHandle>,
    /// Network that reaches the instance, such as `projects/P/global/networks/N`.
    pub authorized_network: Option<TextHandle>,
    /// Import the existing instance `instanceId` instead of creating one.
    pub adopt: bool,
    /// Name of the existing instance.
    pub instance_id: String,
}

impl CoreConfig for GcpRedisConfig {
    const TYPE: &'static str = "gcp-redis";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("RedisConfig");
    const PROVIDER: &'static str = "gcp";
    const OUTPUTS: &'static [&'static str] = &["host", "port"];

    const REQUIRED: &'static [RequiredKey] = &[CREDENTIALS, PROJECT];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        let config = &decoded.config;
        match config.adopt {
            true => vec![
                ("instanceId", "add the name of the existing instance: `adopt` imports it"),
                ("region", "add the region of the existing instance"),
            ],
            false => vec![("memorySizeGb", "add the memory in GiB, such as `memorySizeGb: 1`")],
        }
    }

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        let size = node.get_path(["memorySizeGb"]).filter(|size| !size.is_null());
        if let Some(size) = size.filter(|_| !config.adopt && config.memory_size_gb == 0) {
            let error = Diagnostic::error(Code("unknown-value"), size.span, "an instance needs memory");
            diagnostics.push(error.help("write the memory in GiB, such as `memorySizeGb: 1`"));
        }
        diagnostics.extend(unused_project(decoded, config.project, &config.account, node));
        diagnostics.extend(match config.adopt {
            true => unused(node, &["redisConfig", "authorizedNetwork"], OF_ADOPTED),
            false => unused(node, &["instanceId", "version"], WITHOUT_ADOPT),
        });
    }
}

/// `config` of `gcp-cloudsql-postgres` (docs/spec/simple-container.md#7.8).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A PostgreSQL database on Cloud SQL.")]
pub struct GcpCloudSqlPostgresConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Version of PostgreSQL, such as `POSTGRES_14`. Required unless `adopt` is set.
    pub version: Option<TextHandle>,
    /// Not used.
    pub project: Option<TextHandle>,
    /// Type of the machine.
    #[schemars(extend("default" = "db-f1-micro"))]
    pub tier: Option<TextHandle>,
    /// Region of the instance.
    pub region: Option<TextHandle>,
    /// Limit of connections.
    #[schemars(range(min = 0))]
    pub max_connections: Option<i64>,
    /// Refuse to delete the instance.
    #[schemars(extend("default" = false))]
    pub deletion_protection: Option<bool>,
    /// Record statistics of queries.
    #[schemars(extend("default" = true))]
    pub query_insights_enabled: Option<bool>,
    /// Recorded characters of a query.
    #[schemars(range(min = 0), extend("default" = 2048))]
    pub query_string_length: Option<i64>,
    /// Place where the users of client stacks are made. Only client stacks use it.
    pub users_provision_runtime: Option<UsersProvisionRuntime>,
    /// Make backups.
    pub backup_enabled: bool,
    /// Time of the backups in UTC, such as `02:00`.
    pub backup_start_time: Option<TextHandle>,
    /// Keep a log that allows recovery to a point in time.
    pub point_in_time_recovery_enabled: bool,
    /// Days for which the log is kept.
    #[schemars(range(min = 0))]
    pub transaction_log_retention_days: Option<i64>,
    /// Number of backups that are kept.
    #[schemars(range(min = 0))]
    pub retained_backups: Option<i64>,
    /// `ZONAL` or `REGIONAL`.
    #[schemars(extend("enum" = ["ZONAL", "REGIONAL"]))]
    pub availability_type: Option<TextHandle>,
    /// Require TLS for connections, or allow connections without it.
    pub require_ssl: Option<bool>,
    /// Import the existing instance `instanceName` instead of creating one.
    pub adopt: bool,
    /// Name of the existing instance.
    pub instance_name: Option<TextHandle>,
    /// Connection name of the existing instance: `PROJECT:REGION:NAME`.
    pub connection_name: Option<TextHandle>,
    /// Password of the user `postgres` of the existing instance.
    #[schemars(extend("writeOnly" = true))]
    pub root_password: Option<TextHandle>,
}

/// Place where users of a database are made.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsersProvisionRuntime {
    /// Kind of the place, such as `gke`.
    pub r#type: Option<TextHandle>,
    /// Key of its resource.
    pub resource_name: Option<TextHandle>,
}

impl CoreConfig for GcpCloudSqlPostgresConfig {
    const TYPE: &'static str = "gcp-cloudsql-postgres";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("PostgresGcpCloudsqlConfig");
    const PROVIDER: &'static str = "gcp";
    const OUTPUTS: &'static [&'static str] = &["user", "password"];

    const REQUIRED: &'static [RequiredKey] = &[CREDENTIALS, PROJECT];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        let config = &decoded.config;
        match config.adopt {
            true => vec![
                ("instanceName", "add the name of the existing instance: `adopt` imports it"),
                ("connectionName", "add the connection name of the existing instance: `PROJECT:REGION:NAME`"),
            ],
            false => vec![("version", "add the version, such as `version: POSTGRES_14`")],
        }
    }

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        diagnostics.extend(unused_project(decoded, config.project, &config.account, node));
        if config.adopt {
            let own = ["backupEnabled", "availabilityType", "requireSsl"];
            diagnostics.extend(unused(node, &[&own[..], &OF_BACKUPS].concat(), OF_ADOPTED));
        } else {
            diagnostics.extend(unused(node, &["instanceName", "connectionName"], WITHOUT_ADOPT));
            let password =
                " without `adopt: true`: a new instance gets a generated password, which is an output of the stack";
            diagnostics.extend(unused(node, &["rootPassword"], password));
            if !config.backup_enabled {
                diagnostics.extend(unused(node, &OF_BACKUPS, " without `backupEnabled: true`"));
            }
        }
        if let Some((text, span)) = decoded.config.availability_type.map(|handle| decoded.text(handle))
            && let Some(text) = text.known()
            && !["ZONAL", "REGIONAL"].contains(&&*text)
        {
            let unknown = Diagnostic::error(Code("unknown-value"), span, format_args!("{text:?} is not a valid value"));
            diagnostics.push(unknown.help("the values are ZONAL, REGIONAL"));
        }
    }
}

/// `config` of `gcp-pubsub` (docs/spec/simple-container.md#7.9).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "Topics and subscriptions of Pub/Sub.")]
pub struct GcpPubSubConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: GcpAccountConfig,
    /// Labels of all topics and subscriptions.
    pub labels: BTreeMap<String, TextHandle>,
    /// Topics.
    pub topics: Vec<Topic>,
    /// Subscriptions to these topics.
    pub subscriptions: Vec<Subscription>,
}

/// Topic of Pub/Sub.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name"]))]
pub struct Topic {
    /// Name of the topic. No environment is added.
    pub name: String,
    /// Further labels, which later topics and subscriptions have, too.
    pub labels: BTreeMap<String, TextHandle>,
    /// Time for which messages are kept, such as `600s`.
    pub message_retention_duration: Option<TextHandle>,
}

/// Subscription of Pub/Sub.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "topic"]))]
pub struct Subscription {
    /// Name of the subscription. No environment is added.
    pub name: String,
    /// Name of one of the topics.
    pub topic: Option<TextHandle>,
    /// Further labels, which later subscriptions have, too.
    pub labels: BTreeMap<String, TextHandle>,
    /// Treatment of messages that cannot be delivered.
    pub dead_letter_policy: Option<DeadLetterPolicy>,
    /// Deliver each message once.
    pub exactly_once_delivery: bool,
    /// Seconds that a receiver has to acknowledge a message.
    #[schemars(range(min = 0))]
    pub ack_deadline_sec: i64,
    /// Time for which messages are kept, such as `600s`.
    pub message_retention_duration: Option<TextHandle>,
}

/// Treatment of messages that cannot be delivered.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeadLetterPolicy {
    /// Topic that receives these messages.
    pub dead_letter_topic: Option<TextHandle>,
    /// Attempts before that.
    #[schemars(range(min = 0))]
    pub max_delivery_attempts: Option<i64>,
}

impl CoreConfig for GcpPubSubConfig {
    const TYPE: &'static str = "gcp-pubsub";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("PubSubConfig");
    const PROVIDER: &'static str = "gcp";

    const REQUIRED: &'static [RequiredKey] = &[CREDENTIALS];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        let names = config.topics.iter().map(|topic| &topic.name);
        let nameless = names.chain(config.subscriptions.iter().map(|subscription| &subscription.name));
        let summary = "a topic or a subscription has no `name`";
        let nameless =
            nameless.filter(|name| name.is_empty()).map(|_| Diagnostic::error(Code("missing-key"), node.span, summary));
        diagnostics.extend(nameless.take(1));
        for subscription in &config.subscriptions {
            let (text, span) = match subscription.topic {
                Some(handle) => {
                    let (text, span) = decoded.text(handle);
                    (text.known().unwrap_or_default(), span)
                }
                None => ("".into(), node.span),
            };
            if !config.topics.iter().any(|topic| topic.name == *text) {
                let summary = MessageText::new(format_args!(
                    "the subscription {:?} names no topic of this resource",
                    subscription.name
                ));
                let error = Diagnostic::error(Code("unknown-topic"), span, summary);
                let topics = config.topics.iter().map(|topic| topic.name.as_str());
                diagnostics.push(error.did_you_mean(&text, topics).help("add the topic to `topics`"));
            }
        }
    }
}
