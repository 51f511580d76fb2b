//! The entry that an update leaves in the history of a stack (spec of the state, section 7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::go_json::{self, Escaping};

/// What an update did, and with which configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateInfo {
    /// What kind of update it was.
    pub kind: UpdateKind,
    /// When it began, in seconds since 1970.
    pub start_time: i64,
    /// What the user said about it.
    pub message: String,
    /// Where it ran: free words such as `exec.kind`; never values of environment variables.
    pub environment: BTreeMap<String, String>,
    /// The configuration by key (`namespace:name`).
    pub config: BTreeMap<String, ConfigValue>,
    /// How it went.
    pub result: UpdateResult,
    /// When it ended, in seconds since 1970.
    pub end_time: i64,
    /// How many resources were created, updated, left alone…, by the name of the step.
    pub resource_changes: BTreeMap<String, u64>,
}

/// An entry as it is stored; what is empty may be null.
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

/// An entry as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateDto<'u> {
    kind: &'static str,
    start_time: i64,
    message: &'u str,
    environment: &'u BTreeMap<String, String>,
    config: BTreeMap<&'u str, Box<RawValue>>,
    /// Always 0 in this kind of backend.
    version: u32,
    result: &'static str,
    end_time: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resource_changes: &'u BTreeMap<String, u64>,
}

/// A configuration value in JSON; a secret one is `{"secure": <sealed text>}`, at any depth.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue(pub serde_json::Value);

/// What kind of update an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateKind {
    /// Make the world match the program.
    Update,
    /// Make the state match the world.
    Refresh,
    /// Delete everything.
    Destroy,
    /// Take existing resources over.
    #[serde(rename = "resource-import")]
    Import,
}

/// How an update went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateResult {
    /// Well.
    Succeeded,
    /// Not well, or it was cancelled.
    Failed,
}

impl UpdateInfo {
    /// Reads the text of an entry.
    ///
    /// # Errors
    /// It is none.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let stored: StoredUpdate = serde_json::from_str(text)?;
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

    /// The text of the entry. Texts of the configuration are escaped for HTML, everything else is not.
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
    /// Its name in the entry.
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
    /// Its name in the entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}
