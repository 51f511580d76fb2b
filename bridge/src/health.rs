//! Health checks: what was found out about the surroundings of a command, such as its cache and its network. `sc doctor` shows them.
//!
//! Each check stands beside the part that it checks. It writes nothing and starts no plugin, and it cannot fail: what prevents it is its
//! result.

use crate::message_text::MessageText;

/// Result of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Part that was checked, such as `cache`.
    pub name: String,
    /// State of the part.
    pub state: HealthState,
    /// Finding, in words.
    pub text: MessageText,
    /// Next step for the user, if one is needed.
    pub advice: Option<MessageText>,
}

/// State of a part that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// The part works.
    Good,
    /// The part works, or is not needed, and something about it is worth to know.
    Notable,
    /// The part does not work.
    Bad,
}

impl HealthState {
    /// Returns the word for it in output for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Notable => "notable",
            Self::Bad => "bad",
        }
    }
}

impl HealthCheck {
    /// Returns the result of a part that works.
    pub fn good(name: impl Into<String>, text: impl Into<MessageText>) -> Self {
        Self { name: name.into(), state: HealthState::Good, text: text.into(), advice: None }
    }

    /// Returns the result of a part that works, or is not needed, and about which something is worth to know.
    pub fn notable(name: impl Into<String>, text: impl Into<MessageText>, advice: impl Into<MessageText>) -> Self {
        Self { state: HealthState::Notable, advice: Some(advice.into()), ..Self::good(name, text) }
    }

    /// Returns the result of a part that does not work. An empty advice is none.
    pub fn bad(name: impl Into<String>, text: impl Into<MessageText>, advice: impl Into<MessageText>) -> Self {
        let advice = Some(advice.into()).filter(|advice| !advice.is_empty());
        Self { state: HealthState::Bad, advice, ..Self::good(name, text) }
    }
}
