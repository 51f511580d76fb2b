//! Recipes of databases, caches and queues on Google Cloud.

use std::collections::BTreeMap;

use config::diagnostics::{Code, Diagnostic};
use config::types::TextHandle;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use serde_json::{Map, Value, json};

use super::gcp::{account_provider, enable_api, project};
use super::keys::root_password;
use crate::registry::recipe::{Handle, Hole, Provider, Recipe, ResolvedValue, ResourceNames};
use crate::registry::types::gcp_data::{GcpCloudSqlPostgresConfig, GcpPubSubConfig, GcpRedisConfig};

/// `gcp-redis` (docs/spec/simple-container.md#7.9): an instance of Redis, created or adopted.
pub(super) fn redis(config: &GcpRedisConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let name = at.qualified(at.name);
    let gcp = account_provider(&config.account, r);
    let token = "gcp:redis/instance:Instance";
    let region = r.given(config.region);
    let instance = if config.adopt {
        let project = project(&config.account, r);
        let arguments = json!({ "name": config.instance_id, "project": project, "region": region });
        let found = r.add(gcp.function("gcp:redis/getInstance:getInstance", arguments));
        let version = r.non_empty(config.version);
        let inputs = json!({
            "name": config.instance_id,
            "memorySizeGb": match config.memory_size_gb {
                0 => json!(found.out("memorySizeGb")),
                size => json!(size),
            },
            "redisVersion": version.map_or_else(|| json!(found.out("redisVersion")), |version| json!(version)),
            "region": region,
        });
        let ignored = "authorizedNetwork connectMode displayName labels redisConfigs reservedIpRange locationId \
                       alternativeLocationId tier";
        let (project, region) = (r.known(config.account.project_id), r.known(config.region));
        let id = format!("projects/{project}/locations/{region}/instances/{}", config.instance_id);
        r.add(gcp.resource(token, &name, inputs).import(&id).protect(true).ignore_changes(ignored.split(' ')))
    } else {
        enable_api("redis.googleapis.com", gcp, &config.account, r);
        let inputs = json!({
            "memorySizeGb": config.memory_size_gb,
            "redisConfigs": texts(&config.redis_config, r),
            "region": region,
            "authorizedNetwork": config.authorized_network,
        });
        r.add(gcp.resource(token, &name, inputs))
    };
    let port = r.text([instance.out("port")], |[port]| port.to_owned());
    r.export(&name, json!({ "port": port, "host": instance.out("host") }));
    r.publish(json!({ "port": port, "host": instance.out("host") }));
}

/// `gcp-cloudsql-postgres` (docs/spec/simple-container.md#7.8): an instance of PostgreSQL, created or adopted.
pub(super) fn cloud_sql_postgres<'r>(
    config: &'r GcpCloudSqlPostgresConfig,
    at: &'r ResourceNames<'r>,
    r: &mut Recipe<'r>,
) {
    let name = at.qualified(at.name);
    let gcp = account_provider(&config.account, r);
    let password = if config.adopt {
        adopt_instance(config, name.clone(), gcp, r);
        r.text_or(config.root_password, "").secret()
    } else {
        enable_api("sqladmin.googleapis.com", gcp, &config.account, r);
        create_instance(config, &name, gcp, r).secret()
    };
    r.export(&name, json!({ "root-password": password }));
    r.publish(json!({ "user": "postgres", "password": password }));
}

/// Adds a new instance, and returns its password.
fn create_instance(config: &GcpCloudSqlPostgresConfig, name: &str, gcp: Provider, r: &mut Recipe<'_>) -> Hole {
    let password = root_password(&format!("{name}-root-password"), r);
    let backups = config.backup_enabled.then(|| {
        let retention = |count| json!({ "retainedBackups": count, "retentionUnit": "COUNT" });
        json!({
            "enabled": true,
            "pointInTimeRecoveryEnabled": config.point_in_time_recovery_enabled,
            "startTime": r.given(config.backup_start_time),
            "transactionLogRetentionDays": config.transaction_log_retention_days,
            "backupRetentionSettings": config.retained_backups.map(retention),
        })
    });
    let ip = config.require_ssl.map(|is_required| {
        let mode = if is_required { "ENCRYPTED_ONLY" } else { "ALLOW_UNENCRYPTED_AND_ENCRYPTED" };
        json!({ "ipv4Enabled": true, "sslMode": mode })
    });
    let inputs = json!({
        "name": name,
        "region": r.given(config.region),
        "databaseVersion": config.version,
        "rootPassword": password,
        "deletionProtection": config.deletion_protection.unwrap_or_default(),
        "settings": {
            "tier": r.given(config.tier).map_or(json!("db-f1-micro"), |tier| json!(tier)),
            "databaseFlags": config.max_connections.map(|limit| [max_connections(limit)]),
            "insightsConfig": {
                "queryInsightsEnabled": config.query_insights_enabled.unwrap_or(true),
                "queryStringLength": config.query_string_length.unwrap_or(2048),
            },
            "backupConfiguration": backups,
            "availabilityType": config.availability_type,
            "ipConfiguration": ip,
        },
    });
    r.add(gcp.resource("gcp:sql/databaseInstance:DatabaseInstance", name, inputs));
    password
}

fn max_connections(limit: i64) -> Value {
    json!({ "name": "max_connections", "value": limit.to_string() })
}

/// Imports an existing instance with the settings that it has, except those of the `config`.
fn adopt_instance<'r>(config: &'r GcpCloudSqlPostgresConfig, name: String, gcp: Provider, r: &mut Recipe<'r>) {
    let (project, instance) = (project(&config.account, r), r.text_or(config.instance_name, ""));
    let arguments = json!({ "name": instance, "project": project });
    let found = r.add(gcp.function("gcp:sql/getDatabaseInstance:getDatabaseInstance", arguments));
    r.then(found.out("settings"), move |settings, r| {
        let PropertyValue::List(settings) = settings else { return };
        let Some(PropertyValue::Map(existing)) = settings.first() else {
            if let Some(handle) = config.instance_name {
                let summary = "the existing instance has no settings, so it cannot be adopted";
                r.reject(handle, |span| Diagnostic::error(Code("core-type"), span, summary));
            }
            return;
        };
        let mut settings = copy(SETTINGS, existing, r);
        override_settings(config, &mut settings, r);
        let or_found = |handle, output| match r.non_empty(handle) {
            Some(handle) => json!(handle),
            None => json!(found.out(output)),
        };
        let inputs = json!({
            "name": instance,
            "region": or_found(config.region, "region"),
            "databaseVersion": or_found(config.version, "databaseVersion"),
            "deletionProtection": config.deletion_protection,
            "settings": settings,
        });
        let ignored = "settings.insightsConfig settings.databaseFlags settings.maintenanceWindow \
                       settings.backupConfiguration settings.ipConfiguration masterInstanceName replicaConfiguration \
                       restoreBackupContext settings.userLabels settings.availabilityType settings.diskAutoresize";
        let id = format!("projects/{}/instances/{}", r.known(config.account.project_id), r.known(config.instance_name));
        let node = gcp.resource("gcp:sql/databaseInstance:DatabaseInstance", &name, inputs);
        r.add(node.import(&id).protect(true).ignore_changes(ignored.split(' ')));
    });
}

/// Replaces settings of an existing instance by those of the `config`.
fn override_settings(config: &GcpCloudSqlPostgresConfig, settings: &mut Map<String, Value>, r: &Recipe<'_>) {
    if let Some(tier) = r.non_empty(config.tier) {
        settings.insert("tier".to_owned(), json!(tier));
    }
    if let Some(limit) = config.max_connections {
        let flags = settings.entry("databaseFlags").or_insert_with(|| json!([]));
        if let Some(flags) = flags.as_array_mut() {
            flags.retain(|flag| flag["name"] != "max_connections");
            flags.push(max_connections(limit));
        }
    }
    if let Some(insights) = settings.get_mut("insightsConfig").and_then(Value::as_object_mut) {
        let enabled = config.query_insights_enabled.map(|enabled| ("queryInsightsEnabled", json!(enabled)));
        let length = config.query_string_length.map(|length| ("queryStringLength", json!(length)));
        insights.extend(enabled.into_iter().chain(length).map(|(key, value)| (key.to_owned(), value)));
    }
    // Day 0 means that there is no such window.
    let has_day = |window: &Value| window["day"].as_f64().is_some_and(|day| (1.0..=7.0).contains(&day));
    if settings.get("maintenanceWindow").is_some_and(|window| !has_day(window)) {
        settings.remove("maintenanceWindow");
    }
}

/// Part of the result of a function that is copied to the inputs of a resource. A missing part has the empty value of its kind.
enum Part {
    Text,
    Flag,
    Number,
    /// Labels.
    Texts,
    /// Object that the result has as the first item of a list, whose name is the plural. It is left out if the list is empty.
    First(Parts),
    /// List of objects. It is left out if it is empty.
    Each(Parts),
}

type Parts = &'static [(&'static str, Part)];

/// Settings of an existing instance.
const SETTINGS: Parts = {
    use Part::{Each, First, Flag, Number, Text, Texts};
    &[
        ("tier", Text),
        ("databaseFlags", Each(&[("name", Text), ("value", Text)])),
        (
            "insightsConfig",
            First(&[
                ("queryInsightsEnabled", Flag),
                ("queryStringLength", Number),
                ("recordApplicationTags", Flag),
                ("recordClientAddress", Flag),
            ]),
        ),
        (
            "backupConfiguration",
            First(&[
                ("enabled", Flag),
                ("startTime", Text),
                ("location", Text),
                ("binaryLogEnabled", Flag),
                ("pointInTimeRecoveryEnabled", Flag),
                ("transactionLogRetentionDays", Number),
                ("backupRetentionSettings", First(&[("retainedBackups", Number), ("retentionUnit", Text)])),
            ]),
        ),
        (
            "ipConfiguration",
            First(&[
                ("ipv4Enabled", Flag),
                ("privateNetwork", Text),
                ("allocatedIpRange", Text),
                ("authorizedNetworks", Each(&[("name", Text), ("value", Text), ("expirationTime", Text)])),
                ("enablePrivatePathForGoogleCloudServices", Flag),
            ]),
        ),
        ("maintenanceWindow", First(&[("day", Number), ("hour", Number), ("updateTrack", Text)])),
        ("locationPreference", First(&[("followGaeApplication", Text), ("zone", Text), ("secondaryZone", Text)])),
        ("activationPolicy", Text),
        ("availabilityType", Text),
        ("collation", Text),
        ("connectorEnforcement", Text),
        ("deletionProtectionEnabled", Flag),
        ("diskAutoresize", Flag),
        ("diskAutoresizeLimit", Number),
        ("diskSize", Number),
        ("diskType", Text),
        ("edition", Text),
        ("enableDataplexIntegration", Flag),
        ("enableGoogleMlIntegration", Flag),
        ("pricingPlan", Text),
        ("timeZone", Text),
        ("userLabels", Texts),
    ]
};

fn copy(parts: Parts, from: &PropertyMap, r: &mut Recipe<'_>) -> Map<String, Value> {
    let mut copied = Map::new();
    for (name, part) in parts {
        let objects = |key: &str| match from.get(key) {
            Some(PropertyValue::List(items)) => items.as_slice(),
            _ => &[],
        };
        let value = from.get(*name);
        let value = match part {
            Part::Text => json!(value.and_then(PropertyValue::as_str).unwrap_or_default()),
            Part::Flag => json!(value == Some(&PropertyValue::Bool(true))),
            Part::Number => match value {
                Some(PropertyValue::Number(number)) => json!(number),
                _ => json!(0),
            },
            Part::Texts => {
                json!(r.value(ResolvedValue::known(value.cloned().unwrap_or_else(|| PropertyMap::new().into()))))
            }
            Part::First(parts) => match objects(&format!("{}s", name.trim_end_matches('s'))).first() {
                Some(PropertyValue::Map(first)) => copy(parts, first, r).into(),
                _ => continue,
            },
            Part::Each(parts) => {
                let items = objects(name).iter().filter_map(|item| match item {
                    PropertyValue::Map(item) => Some(Value::from(copy(parts, item, r))),
                    _ => None,
                });
                let items: Vec<Value> = items.collect();
                if items.is_empty() {
                    continue;
                }
                items.into()
            }
        };
        copied.insert((*name).to_owned(), value);
    }
    copied
}

/// `gcp-pubsub` (docs/spec/simple-container.md#7.9): topics, and subscriptions to them.
pub(super) fn pubsub(config: &GcpPubSubConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let gcp = account_provider(&config.account, r);
    // As in the Go program, labels of a topic or a subscription stay for those after it.
    let mut labels = texts(&config.labels, r);
    labels.extend(
        [("stack-name", at.stack), ("stack-env", at.environment)].map(|(key, text)| (key.to_owned(), text.into())),
    );
    let mut topics: BTreeMap<&str, Handle> = BTreeMap::new();
    for topic in &config.topics {
        labels.extend(texts(&topic.labels, r));
        let inputs = json!({
            "name": topic.name,
            "labels": labels,
            "messageRetentionDuration": r.text_or(topic.message_retention_duration, ""),
        });
        let handle = r.add(gcp.resource("gcp:pubsub/topic:Topic", &topic.name, inputs));
        topics.insert(&topic.name, handle);
    }
    for subscription in &config.subscriptions {
        labels.extend(texts(&subscription.labels, r));
        let policy = subscription.dead_letter_policy.as_ref().map(|policy| {
            json!({ "deadLetterTopic": r.given(policy.dead_letter_topic), "maxDeliveryAttempts": policy.max_delivery_attempts })
        });
        let inputs = json!({
            "name": subscription.name,
            "labels": labels,
            "deadLetterPolicy": policy,
            "topic": topics.get(&*r.known(subscription.topic)).map(|topic| topic.id()),
            "enableExactlyOnceDelivery": subscription.exactly_once_delivery,
            "ackDeadlineSeconds": subscription.ack_deadline_sec,
            "messageRetentionDuration": r.text_or(subscription.message_retention_duration, ""),
        });
        r.add(gcp.resource("gcp:pubsub/subscription:Subscription", &subscription.name, inputs));
    }
    let project = project(&config.account, r);
    r.export_as(&at.qualified(at.name), json!(project));
}

/// Returns texts of the `config` as inputs, in which empty ones stay.
fn texts(texts: &BTreeMap<String, TextHandle>, r: &mut Recipe<'_>) -> Map<String, Value> {
    texts.iter().map(|(key, handle)| (key.clone(), json!(r.text_or(Some(*handle), "")))).collect()
}
