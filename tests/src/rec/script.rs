//! What a script may say: how the provider departs from its default rules.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One step's script. The empty one follows the default rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// What concerns the provider itself.
    pub provider: ProviderScript,
    /// What concerns single resources, by name.
    pub resources: BTreeMap<String, Behaviour>,
}

/// Departures of CheckConfig, DiffConfig and Configure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderScript {
    /// Configure says so; absent means yes.
    pub supports_preview: Option<bool>,
    /// Configure says so; absent means yes.
    pub accept_secrets: Option<bool>,
    /// Whether Configure fails.
    pub configure: Option<Failing>,
    /// Configure is answered only after Cancel.
    pub hang: bool,
    /// What GetSchema says instead of the schema.
    pub schema: Option<String>,
    /// Configure says that autonaming options are taken.
    pub autonaming: bool,
    /// Properties that CheckConfig refuses.
    pub check_failures: Vec<String>,
    /// How DiffConfig answers, if not by comparing.
    pub diff: Option<ConfigDiff>,
    /// DiffConfig says so.
    pub delete_before_replace: bool,
}

/// The only way in which a call can be scripted to fail outright.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failing {
    /// It fails.
    Error,
}

/// A scripted DiffConfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigDiff {
    /// DIFF_UNKNOWN.
    Unknown,
}

/// Departures for one resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Behaviour {
    /// Whether Check fails.
    pub check: Option<Failing>,
    /// Properties that Check refuses.
    pub check_failures: Vec<String>,
    /// Inputs that Check adds where they are absent.
    pub defaults: BTreeMap<String, Value>,
    /// How Diff answers, if not by comparing.
    pub diff: Option<ScriptedDiff>,
    /// Diff fills the detailed diff.
    pub detailed: bool,
    /// Kinds that Diff adds to the detailed diff, by path.
    pub detail: BTreeMap<String, String>,
    /// Diff says so.
    pub delete_before_replace: bool,
    /// How Create goes, if not well.
    pub create: Option<ScriptedCreate>,
    /// How Update goes, if not well.
    pub update: Option<ScriptedUpdate>,
    /// Whether Delete fails.
    pub delete: Option<Failing>,
    /// How Read goes, if not well.
    pub read: Option<ScriptedRead>,
    /// Inputs that Read finds changed.
    pub drift: BTreeMap<String, Value>,
    /// Create, Update and Read say so.
    pub refresh_before_update: bool,
    /// The call that is answered only after Cancel.
    pub hang: Option<Hang>,
    /// That call is not answered even then.
    pub deaf: bool,
}

/// A scripted Diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedDiff {
    /// It fails.
    Error,
    /// DIFF_UNKNOWN.
    Unknown,
    /// DIFF_NONE.
    None,
    /// DIFF_SOME without names.
    Some,
    /// `v` changes and replaces.
    Replace,
    /// DIFF_NONE, and yet `v` replaces.
    NoneReplaces,
    /// DIFF_UNKNOWN, and `v` replaces.
    UnknownReplaces,
}

/// A scripted Create. A preview never fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedCreate {
    /// Nothing was created.
    Error,
    /// Created, but did not come up.
    Partial,
    /// As `Partial`, and the id is lost.
    PartialNoid,
    /// Success without an id.
    Noid,
}

/// A scripted Update. A preview never fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedUpdate {
    /// Nothing was updated.
    Error,
    /// Updated, but did not come up.
    Partial,
}

/// A scripted Read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedRead {
    /// It fails.
    Error,
    /// There is nothing.
    Gone,
    /// There is something that did not come up.
    Partial,
    /// The id has become another.
    Newid,
    /// The inputs cannot be told.
    Noinputs,
}

/// A call that can hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hang {
    /// Create, not in a preview.
    Create,
    /// Update, not in a preview.
    Update,
    /// Delete.
    Delete,
    /// Read.
    Read,
}
