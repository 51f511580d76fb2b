//! The entry that an update leaves in the history of a stack (spec of the state, section 7).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::json::{Escaping, Members, write_json, write_named, write_string};

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
        let mut text = String::new();
        let mut members = Members::open(&mut text);
        members.text("kind", self.kind.as_str());
        members.name("startTime").push_str(&self.start_time.to_string());
        members.text("message", &self.message);
        write_named(members.name("environment"), &self.environment, |out, value| {
            write_string(out, value, Escaping::Plain);
        });
        write_named(members.name("config"), &self.config, |out, value| write_json(out, &value.0, Escaping::Html));
        members.name("version").push('0');
        members.text("result", self.result.as_str());
        members.name("endTime").push_str(&self.end_time.to_string());
        if !self.resource_changes.is_empty() {
            write_named(members.name("resourceChanges"), &self.resource_changes, |out, count| {
                out.push_str(&count.to_string());
            });
        }
        members.close();
        text
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
