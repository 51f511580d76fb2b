//! Script of the scripted provider: its deviations from the default rules.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::status::ScriptedStatus;

/// Script of one step. The empty script follows the default rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Behaviour of the provider itself.
    pub provider: ProviderScript,
    /// Behaviour for single resources, by name, and for functions, by token.
    pub resources: BTreeMap<String, Behaviour>,
}

/// Deviations of CheckConfig, DiffConfig and Configure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderScript {
    /// Value in the reply of Configure; absent means true.
    pub supports_preview: Option<bool>,
    /// Value in the reply of Configure; absent means true.
    pub accept_secrets: Option<bool>,
    /// Failure of Configure.
    pub configure: Option<Failure>,
    /// Values of the configuration with which Configure fails, by property.
    pub refused: BTreeMap<String, String>,
    /// Time that Configure takes, in milliseconds.
    pub configure_delay: u64,
    /// Time that Create takes, in milliseconds.
    pub create_delay: u64,
    /// True if Configure replies only after Cancel.
    pub hang: bool,
    /// True if Parameterize is implemented, with a name and a version as parameters.
    pub parameters: bool,
    /// Reply of GetSchema, instead of the schema.
    pub schema: Option<String>,
    /// Value of `supports_autonaming_configuration` in the reply of Configure.
    pub autonaming: bool,
    /// Properties that CheckConfig refuses.
    pub check_failures: Vec<String>,
    /// Reply of DiffConfig, instead of a comparison.
    pub diff: Option<ConfigDiff>,
    /// Value in the reply of DiffConfig.
    pub delete_before_replace: bool,
}

/// Failure of a call that can only fail in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// The call returns an error.
    Error,
}

/// Scripted reply of DiffConfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigDiff {
    /// DIFF_UNKNOWN.
    Unknown,
}

/// Deviations for one resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Behaviour {
    /// Error of a partial failure; absent means `rec: not ready`.
    pub init_error: Option<String>,
    /// Failure of Check.
    pub check: Option<Failure>,
    /// Properties that Check refuses, or arguments that a function refuses.
    pub check_failures: Vec<String>,
    /// Length of a text that a function returns beside its arguments, in bytes.
    pub padding: usize,
    /// Inputs that Check adds if they are absent.
    pub defaults: BTreeMap<String, Value>,
    /// Reply of Diff, instead of a comparison.
    pub diff: Option<ScriptedDiff>,
    /// True if Diff fills the detailed diff.
    pub detailed: bool,
    /// Kinds that Diff adds to the detailed diff, by path.
    pub detail: BTreeMap<String, String>,
    /// Value in the reply of Diff.
    pub delete_before_replace: bool,
    /// Failure of Create.
    pub create: Option<ScriptedCreate>,
    /// Failure of Update.
    pub update: Option<ScriptedUpdate>,
    /// Failure of Delete.
    pub delete: Option<Failure>,
    /// Deviation of Read.
    pub read: Option<ScriptedRead>,
    /// Inputs that Read finds changed.
    pub drift: BTreeMap<String, Value>,
    /// Value in the replies of Create, Update and Read.
    pub refresh_before_update: bool,
    /// Call that replies only after Cancel.
    pub hang: Option<Hang>,
    /// True if that call does not reply even after Cancel.
    pub deaf: bool,
    /// Statuses that calls fail with, by the name of the RPC. A preview of Create or Update never fails.
    pub statuses: BTreeMap<String, ScriptedStatus>,
}

/// Scripted reply of Diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedDiff {
    /// Error.
    Error,
    /// DIFF_UNKNOWN.
    Unknown,
    /// DIFF_NONE.
    None,
    /// DIFF_SOME without names.
    Some,
    /// Change of `v` that replaces.
    Replace,
    /// DIFF_NONE, although `v` replaces.
    NoneReplaces,
    /// DIFF_UNKNOWN, and `v` replaces.
    UnknownReplaces,
}

/// Scripted failure of Create. A preview never fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedCreate {
    /// Error; nothing was created.
    Error,
    /// The resource was created but failed to initialise.
    Partial,
    /// Like `Partial`, without an id.
    PartialNoid,
    /// Success without an id.
    Noid,
    /// Success with an unknown value among the properties, which no reply outside a preview may have.
    Unusable,
}

/// Scripted failure of Update. A preview never fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedUpdate {
    /// Error; nothing was updated.
    Error,
    /// The resource was updated but failed to initialise.
    Partial,
}

/// Scripted deviation of Read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptedRead {
    /// Error.
    Error,
    /// The resource does not exist.
    Gone,
    /// The resource exists but failed to initialise.
    Partial,
    /// The resource has another id.
    Newid,
    /// The reply has no inputs.
    Noinputs,
}

/// Call that can hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hang {
    /// Check.
    Check,
    /// Create, except in a preview.
    Create,
    /// Update, except in a preview.
    Update,
    /// Delete.
    Delete,
    /// Read.
    Read,
}
