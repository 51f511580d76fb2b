//! History entry of an update (docs/spec/state-and-secrets.md#7).

use std::collections::BTreeMap;

use bridge::json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::go_json::{self, Escaping};

/// Kind, configuration and result of an update.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateInfo {
    /// Kind of the update.
    pub kind: UpdateKind,
    /// Start, in seconds since 1970.
    pub start_time: i64,
    /// Message of the user.
    pub message: String,
    /// Details of the environment, such as `exec.kind`; never values of environment variables.
    pub environment: BTreeMap<String, String>,
    /// Configuration by key (`namespace:name`).
    pub config: BTreeMap<String, ConfigValue>,
    /// Result of the update.
    pub result: UpdateResult,
    /// End, in seconds since 1970.
    pub end_time: i64,
    /// Number of resources by the name of their step (`create`, `update`, `same`, …).
    pub resource_changes: BTreeMap<String, u64>,
}

/// Origin of an update, for its history entry: who has run it where, on which commit, and why. Secrets are masked in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateOrigin {
    /// Message of the user, or the title of the commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Details of the environment, as [`UpdateInfo::environment`] has them.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// History entry as it is read; empty members may be null.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredUpdate {
    kind: UpdateKind,
    start_time: i64,
    #[serde(default)]
    message: String,
    environment: Option<BTreeMap<String, String>>,
    config: Option<BTreeMap<String, serde_json::Value>>,
    result: UpdateResult,
    end_time: i64,
    resource_changes: Option<BTreeMap<String, u64>>,
}

/// History entry as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateDto<'u> {
    kind: &'static str,
    start_time: i64,
    message: &'u str,
    environment: &'u BTreeMap<String, String>,
    config: BTreeMap<&'u str, Box<RawValue>>,
    /// Always 0 in a self-managed backend.
    version: u32,
    result: &'static str,
    end_time: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resource_changes: &'u BTreeMap<String, u64>,
}

/// Configuration value in JSON; a secret is `{"secure": <ciphertext>}`, at any depth.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue(pub serde_json::Value);

/// Kind of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateKind {
    /// Changes resources to match the program (`pulumi up`).
    Update,
    /// Changes the state to match the resources.
    Refresh,
    /// Deletes all resources.
    Destroy,
    /// Imports existing resources.
    #[serde(rename = "resource-import")]
    Import,
}

/// Result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateResult {
    /// The update succeeded.
    Succeeded,
    /// The update failed or was cancelled.
    Failed,
}

impl UpdateInfo {
    /// Parses the text of an entry.
    ///
    /// # Errors
    /// The parse error if the text is not a history entry.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let stored: StoredUpdate = json::from_slice(text.as_bytes())?;
        Ok(Self {
            kind: stored.kind,
            start_time: stored.start_time,
            message: stored.message,
            environment: stored.environment.unwrap_or_default(),
            config: stored.config.into_iter().flatten().map(|(key, value)| (key, ConfigValue(value))).collect(),
            result: stored.result,
            end_time: stored.end_time,
            resource_changes: stored.resource_changes.unwrap_or_default(),
        })
    }

    /// Returns the text of the entry. Only the values of the configuration are escaped for HTML.
    pub fn to_json(&self) -> String {
        let escaped = |value: &ConfigValue| go_json::to_raw(&value.0, Escaping::Html);
        let dto = UpdateDto {
            kind: self.kind.as_str(),
            start_time: self.start_time,
            message: &self.message,
            environment: &self.environment,
            config: self.config.iter().map(|(key, value)| (key.as_str(), escaped(value))).collect(),
            version: 0,
            result: self.result.as_str(),
            end_time: self.end_time,
            resource_changes: &self.resource_changes,
        };
        go_json::to_string(&dto, Escaping::Plain).expect("texts and numbers are always JSON")
    }
}

impl UpdateKind {
    const ALL: [Self; 4] = [Self::Update, Self::Refresh, Self::Destroy, Self::Import];

    /// Returns the kind with a name; `None` for other names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the name in a history entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Refresh => "refresh",
            Self::Destroy => "destroy",
            Self::Import => "resource-import",
        }
    }
}

impl UpdateResult {
    /// Returns the name in a history entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}
