//! Header of a plan: what can be read without a key. A copy of it is sealed with each stack, so a changed one is noticed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Header of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanHeader {
    /// Random id of the plan.
    pub id: String,
    /// Version of the program.
    pub version: String,
    /// Time at which the plan was made; `${date:…}` has the values of this time in the run.
    #[serde(with = "time_text")]
    pub created: Timestamp,
    /// Time from which on the plan cannot be used.
    #[serde(with = "time_text")]
    pub expires: Timestamp,
    /// User and machine.
    pub by: String,
    /// Name of the profile.
    pub profile: String,
    /// Options of the command that change what is planned.
    pub options: PlanOptions,
    /// Stacks, in the order in which they are provisioned.
    pub stacks: Vec<PlannedStackName>,
}

/// Options of the command that change what is planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanOptions {
    /// Names of `--target`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Names of `--exclude`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// `--target-dependents`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub target_dependents: bool,
    /// `--exclude-dependents`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude_dependents: bool,
    /// Names of `--replace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<String>,
    /// Names of `--target-replace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_replace: Vec<String>,
    /// Folder of the stacks, if it is not that of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks_dir: Option<String>,
}

/// Form of a time in a plan: RFC 3339.
mod time_text {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Name of a planned stack, and the place of its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedStackName {
    /// Project.
    pub project: String,
    /// Name of the stack.
    pub stack: String,
    /// Location of the store.
    pub store: String,
}

impl PlanHeader {
    /// Returns whether the plan has expired, and for how long.
    pub fn expired_for(&self, now: Timestamp) -> Option<SignedDuration> {
        (now >= self.expires).then(|| now.duration_since(self.expires))
    }
}
