//! Type for the `config` of the core type on MongoDB Atlas.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, Span};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, FreeValue, RequiredKey, TextHandle, TypeOrigin};
use pulumi_proto::duration;
use schemars::JsonSchema;
use serde::Deserialize;

use super::aws::{AwsAccountConfig, check_account};
use super::duration::DURATION;
use super::unused::unused;

const MISSING_KEY: Code = Code("missing-key");
const UNKNOWN_VALUE: Code = Code("unknown-value");
const API_KEY: &str = "an API key of Atlas has a public and a private part; keep the private one in secrets.yaml";
/// Units of the retention of backups.
const RETENTION_UNITS: [&str; 4] = ["days", "weeks", "months", "years"];

/// `config` of `mongodb-atlas` (docs/spec/simple-container.md#7.10).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A MongoDB cluster on Atlas, in a project of its own or an existing one, with its users.")]
pub struct AtlasConfig {
    /// Public part of an API key.
    pub public_key: Option<TextHandle>,
    /// Private part of the API key.
    #[schemars(extend("writeOnly" = true))]
    pub private_key: Option<TextHandle>,
    /// Organization of the project that is created. Required without `projectId`.
    pub org_id: Option<TextHandle>,
    /// Existing project. Without it, a project is created.
    pub project_id: Option<TextHandle>,
    /// Name of the project that is created. Defaults to `<stack>--<resource>--<environment>`.
    pub project_name: Option<TextHandle>,
    /// Size of the cluster, such as `M10`. Required unless `adopt` is set.
    pub instance_size: String,
    /// Region in the spelling of Atlas, such as `EU_NORTH_1`. Required unless `adopt` is set.
    pub region: Option<TextHandle>,
    /// Cloud of the cluster, such as `AWS`. Required unless `adopt` is set.
    pub cloud_provider: Option<TextHandle>,
    /// Names of users that may read and write all databases.
    #[schemars(extend("items" = { "type": "string", "minLength": 1 }))]
    pub admins: Vec<String>,
    /// Names of users that may read all databases.
    #[schemars(extend("items" = { "type": "string", "minLength": 1 }))]
    pub developers: Vec<String>,
    /// Backups of the cluster. Without it, there are none.
    pub backup: Option<AtlasBackup>,
    /// Access to the cluster. Without it, all addresses have access.
    pub network_config: Option<AtlasNetwork>,
    /// Accounts of other clouds, by name. A private link uses the one with the name of its `providerName`.
    pub extra_providers: BTreeMap<String, ExtraProvider>,
    /// Size of the disk in GB.
    #[serde(rename = "diskSizeGB")]
    #[schemars(range(min = 0))]
    pub disk_size_gb: Option<f64>,
    /// Number of shards.
    #[schemars(range(min = 0))]
    pub num_shards: Option<i64>,
    /// Protect project, cluster, backups and access lists against deletion.
    pub deletion_protection: bool,
    /// Rule for the name of the cluster, if `clusterName` is not set: 1 (both ends of a long name) or 2 (beginning and hash).
    #[schemars(extend("default" = 2))]
    pub naming_strategy_version: Option<i64>,
    /// Import the existing cluster with exactly this `clusterName` in `projectId` instead of creating one.
    pub adopt: bool,
    /// Name of the cluster. The middle of a name with more than 21 characters is left out, unless the cluster is adopted.
    pub cluster_name: String,
}

/// Backups of a cluster: `every` and `retention`, or `advanced`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("anyOf" = [{ "required": ["every", "retention"] }, { "required": ["advanced"] }]))]
pub struct AtlasBackup {
    /// Time between two backups, such as `6h`. Less than a day means hourly backups, less than a week daily ones, else weekly ones.
    #[schemars(extend("pattern" = DURATION))]
    pub every: String,
    /// Time for which a backup is kept, such as `72h`. Whole days count.
    #[schemars(extend("pattern" = DURATION))]
    pub retention: String,
    /// Backups of several kinds. Overrides `every` and `retention`.
    pub advanced: Option<AtlasAdvancedBackup>,
}

impl AtlasBackup {
    /// Returns `every` and `retention`; `None` if one of them is no duration.
    pub fn durations(&self) -> Option<(Duration, Duration)> {
        Some((duration::parse(&self.every)?, duration::parse(&self.retention)?))
    }
}

/// Backups of several kinds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AtlasAdvancedBackup {
    /// Backups every few hours. `unit` defaults to `days`.
    pub hourly: Option<AtlasBackupPolicy>,
    /// Backups every few days. `unit` defaults to `days`.
    pub daily: Option<AtlasBackupPolicy>,
    /// Backups every few weeks. `unit` defaults to `weeks`.
    pub weekly: Option<AtlasBackupPolicy>,
    /// Backups every few months. `unit` defaults to `months`.
    pub monthly: Option<AtlasBackupPolicy>,
    /// Recovery of any moment. Not used.
    pub point_in_time_recovery: Option<FreeValue>,
    /// Copies of backups in a bucket. Not used.
    pub export: Option<FreeValue>,
}

/// Backups of one kind.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["every", "retainFor"]))]
pub struct AtlasBackupPolicy {
    /// Hours, days, weeks or months between two backups.
    #[schemars(range(min = 0))]
    pub every: i64,
    /// Number of `unit`s for which a backup is kept.
    #[schemars(range(min = 0))]
    pub retain_for: i64,
    /// `days`, `weeks`, `months` or `years`.
    #[schemars(extend("enum" = ["", "days", "weeks", "months", "years"]))]
    pub unit: String,
    /// Day of weekly backups. Not used.
    pub day_of_week: Option<i64>,
    /// Day of monthly backups. Not used.
    pub day_of_month: Option<i64>,
}

/// Access to a cluster.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("anyOf" = [{ "required": ["privateLinkEndpoint"] }, { "required": ["allowCidrs"] }]))]
pub struct AtlasNetwork {
    /// Private link from the default network of an account on AWS.
    pub private_link_endpoint: Option<PrivateLinkEndpoint>,
    /// Let all addresses have access. Needs `allowCidrs` or `privateLinkEndpoint` beside it.
    pub allow_all_ips: bool,
    /// Blocks of addresses that have access, such as `192.0.2.0/24`.
    pub allow_cidrs: Option<Vec<String>>,
}

/// Private link to a cluster.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["providerName"]))]
pub struct PrivateLinkEndpoint {
    /// Cloud of the private link, in the spelling of Atlas: `AWS`. `extraProviders` has an account of this name.
    pub provider_name: String,
}

/// Account of another cloud.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["type", "config"]))]
pub struct ExtraProvider {
    /// `aws-token`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["aws-token"]))]
    pub kind: String,
    /// The account.
    pub config: AwsAccountConfig,
}

impl CoreConfig for AtlasConfig {
    const TYPE: &'static str = "mongodb-atlas";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("AtlasConfig");
    const PROVIDER: &'static str = "mongodb";
    const OUTPUTS: &'static [&'static str] = &["uri", "dbName", "password", "user", "oplogUri"];
    const REQUIRED: &'static [RequiredKey] = &[("publicKey", API_KEY), ("privateKey", API_KEY)];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        let config = &decoded.config;
        if config.adopt {
            return vec![
                ("projectId", "add the project of the existing cluster: `adopt` imports it"),
                ("clusterName", "add the name of the existing cluster: `adopt` imports it"),
            ];
        }
        let has_project = decoded.non_empty_text(config.project_id).is_some();
        let organization = (!has_project).then_some(("orgId", "add it, or the `projectId` of an existing project"));
        let of_cluster = [
            ("instanceSize", "add a size, such as `instanceSize: M10`"),
            ("region", "add a region of Atlas, such as `region: EU_NORTH_1`"),
            ("cloudProvider", "add a cloud, such as `cloudProvider: AWS`"),
        ];
        organization.into_iter().chain(of_cluster).collect()
    }

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let check = Check { decoded, node };
        check.users(diagnostics);
        check.backup(diagnostics);
        check.network(diagnostics);
        check.unused_keys(diagnostics);
        let version = decoded.config.naming_strategy_version.unwrap_or(2);
        if ![1, 2].contains(&version) {
            let summary =
                MessageText::new(format_args!("there is no naming strategy {version}: the strategy 2 applies"));
            let span = check.span(&["namingStrategyVersion"]);
            diagnostics.push(Diagnostic::warning(UNKNOWN_VALUE, span, summary));
        }
    }
}

/// Check of a `config`.
struct Check<'c> {
    decoded: &'c Decoded<AtlasConfig>,
    node: &'c Node,
}

impl Check<'_> {
    /// Returns the position of the value at a path, or of the deepest element of the path that the file has.
    fn span(&self, path: &[&str]) -> Span {
        let found = (0..path.len()).rev().find_map(|end| self.node.get_path(path[..=end].iter().copied()));
        found.unwrap_or(self.node).span
    }

    fn missing(&self, path: &[&str], key: &str, help: &str) -> Diagnostic {
        Diagnostic::error(MISSING_KEY, self.span(path), format_args!("`{key}` is missing")).help(help)
    }

    fn unused_keys(&self, diagnostics: &mut Vec<Diagnostic>) {
        let config = &self.decoded.config;
        if config.adopt {
            let keys = [
                "admins",
                "developers",
                "backup",
                "networkConfig",
                "diskSizeGB",
                "numShards",
                "projectName",
                "namingStrategyVersion",
            ];
            diagnostics.extend(unused(self.node, &keys, " with `adopt: true`: the existing cluster keeps its own"));
            return;
        }
        if self.decoded.non_empty_text(config.project_id).is_some() {
            diagnostics.extend(unused(
                self.node,
                &["projectName"],
                " with `projectId`: the existing project keeps its name",
            ));
        }
        if !config.cluster_name.is_empty() {
            diagnostics.extend(unused(self.node, &["namingStrategyVersion"], " with `clusterName`"));
        }
    }

    fn users(&self, diagnostics: &mut Vec<Diagnostic>) {
        let config = &self.decoded.config;
        for (key, users) in [("admins", &config.admins), ("developers", &config.developers)] {
            if users.iter().any(String::is_empty) {
                diagnostics.push(Diagnostic::error(UNKNOWN_VALUE, self.span(&[key]), "a user has an empty name"));
            }
        }
        let admins: BTreeSet<&String> = config.admins.iter().collect();
        for (index, user) in config.developers.iter().enumerate().filter(|(_, user)| admins.contains(user)) {
            let summary = MessageText::new(format_args!("{user:?} is an admin and a developer"));
            let error =
                Diagnostic::error(Code("duplicate-user"), self.span(&["developers", &index.to_string()]), summary);
            diagnostics.push(
                error.label(self.span(&["admins"]), "the admins").help("an admin can do all that a developer can"),
            );
        }
    }

    fn backup(&self, diagnostics: &mut Vec<Diagnostic>) {
        let Some(backup) = &self.decoded.config.backup else { return };
        if let Some(advanced) = &backup.advanced {
            for key in ["every", "retention"].into_iter().filter(|key| self.node.get_path(["backup", key]).is_some()) {
                let summary = MessageText::new(format_args!("`{key}` is ignored: `advanced` overrides it"));
                diagnostics.push(Diagnostic::warning(Code("unused"), self.span(&["backup", key]), summary));
            }
            return self.advanced_backup(advanced, diagnostics);
        }
        for (key, text) in [("every", &backup.every), ("retention", &backup.retention)] {
            if text.is_empty() {
                let help = "a backup has `every` and `retention`, such as `6h` and `72h`, or `advanced`";
                diagnostics.push(self.missing(&["backup"], key, help));
            } else if duration::parse(text).is_none() {
                let summary = MessageText::new(format_args!("{text:?} is not a duration"));
                let error = Diagnostic::error(UNKNOWN_VALUE, self.span(&["backup", key]), summary);
                diagnostics
                    .push(error.help("write hours, such as `24h`: `h`, `m` and `s` are the units, there are no days"));
            }
        }
        let Some((every, retention)) = backup.durations() else { return };
        let rounded = [("every", every, 3600, "hours"), ("retention", retention, 24 * 3600, "days")];
        for (key, value, unit, name) in rounded.into_iter().filter(|(_, value, unit, _)| value.as_secs() % unit != 0) {
            let summary =
                MessageText::new(format_args!("only whole {name} count: this is taken as {}", value.as_secs() / unit));
            diagnostics.push(Diagnostic::warning(Code("rounded"), self.span(&["backup", key]), summary));
        }
    }

    fn advanced_backup(&self, advanced: &AtlasAdvancedBackup, diagnostics: &mut Vec<Diagnostic>) {
        let unused = |path: &[&str]| {
            let summary =
                MessageText::new(format_args!("`{}` is not used, as in the Go program", path.last().unwrap_or(&"")));
            Diagnostic::warning(Code("unused"), self.span(path), summary)
        };
        let ignored = [(&advanced.point_in_time_recovery, "pointInTimeRecovery"), (&advanced.export, "export")];
        let ignored = ignored.into_iter().filter(|(value, _)| value.is_some());
        diagnostics.extend(ignored.map(|(_, key)| unused(&["backup", "advanced", key])));
        let kinds = [
            ("hourly", &advanced.hourly),
            ("daily", &advanced.daily),
            ("weekly", &advanced.weekly),
            ("monthly", &advanced.monthly),
        ];
        for (kind, policy) in kinds.into_iter().filter_map(|(kind, policy)| Some((kind, policy.as_ref()?))) {
            let path = |key| ["backup", "advanced", kind, key];
            for key in
                ["every", "retainFor"].into_iter().filter(|key| self.node.get_path(path(key)).is_none_or(Node::is_null))
            {
                let help = "add a number, such as `every: 1` and `retainFor: 7`";
                diagnostics.push(self.missing(&path(key)[..3], key, help));
            }
            if !policy.unit.is_empty() && !RETENTION_UNITS.contains(&policy.unit.as_str()) {
                let summary = MessageText::new(format_args!("{:?} is not a unit of a retention", policy.unit));
                let error = Diagnostic::error(UNKNOWN_VALUE, self.span(&path("unit")), summary);
                let units = format!("the units are {}", RETENTION_UNITS.join(", "));
                diagnostics.push(error.did_you_mean(&policy.unit, RETENTION_UNITS).help(units));
            }
            let days = [(policy.day_of_week, "dayOfWeek"), (policy.day_of_month, "dayOfMonth")];
            let days = days.into_iter().filter(|(day, _)| day.is_some());
            diagnostics.extend(days.map(|(_, key)| unused(&path(key))));
        }
    }

    fn network(&self, diagnostics: &mut Vec<Diagnostic>) {
        let config = &self.decoded.config;
        for (name, provider) in &config.extra_providers {
            let path = |key| ["extraProviders", name.as_str(), key];
            if provider.kind != "aws-token" {
                let summary = MessageText::new(format_args!(
                    "{:?} is not a type of account that a cluster can use",
                    provider.kind
                ));
                let error = Diagnostic::error(Code("unknown-type"), self.span(&path("type")), summary);
                diagnostics.push(error.help("the type is aws-token"));
            } else if let Some(account) = self.node.get_path(path("config")) {
                diagnostics.extend(check_account(self.decoded, &provider.config, account));
            } else {
                let help = "add the account, such as `credentials`";
                diagnostics.push(self.missing(&path("config")[..2], "config", help));
            }
        }
        let Some(network) = &config.network_config else { return };
        if let Some(link) = &network.private_link_endpoint {
            let path = ["networkConfig", "privateLinkEndpoint", "providerName"];
            if link.provider_name.is_empty() {
                diagnostics.push(self.missing(&path, "providerName", "add the cloud: `providerName: AWS`"));
            } else if !config.extra_providers.contains_key(&link.provider_name) {
                let summary =
                    MessageText::new(format_args!("`extraProviders` has no account {:?}", link.provider_name));
                let error = Diagnostic::error(Code("unknown-provider"), self.span(&path), summary);
                diagnostics.push(
                    error.did_you_mean(&link.provider_name, config.extra_providers.keys().map(String::as_str)).help(
                        format_args!(
                            "add `extraProviders: {{ {}: {{ type: aws-token, config: … }} }}`",
                            link.provider_name
                        ),
                    ),
                );
            }
        } else if network.allow_cidrs.is_none() {
            let summary = "`networkConfig` has neither `privateLinkEndpoint` nor `allowCidrs`";
            let error = Diagnostic::error(MISSING_KEY, self.span(&["networkConfig"]), summary);
            diagnostics.push(error.help("leave `networkConfig` out to let all addresses have access"));
        }
    }
}
