//! Errors of saved plans.

use bridge::error::Hint;
use bridge::fs::FileError;
use bridge::message_text::MessageText;

use crate::plan::PlanFileError;

/// Number of differences that one message names.
const MAX_DIFFERENCES: usize = 20;

/// Error because of which a plan is not saved, or cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read or written.
    #[error("the plan cannot be read or written")]
    File(#[source] FileError),
    /// The text of the plan is not valid.
    #[error(transparent)]
    Text(PlanFileError),
    /// Another version of the program has made the plan.
    #[error("the plan was made by sc {planned}, and this is sc {now}")]
    OtherVersion {
        /// Version that has made the plan.
        planned: String,
        /// Version of this program.
        now: String,
    },
    /// The plan has expired.
    #[error("the plan has expired at {0}")]
    Expired(String),
    /// The plan was made with another profile.
    #[error("the plan was made with the profile {planned}, and the command has the profile {now}")]
    OtherProfile {
        /// Profile of the plan.
        planned: String,
        /// Profile of the command.
        now: String,
    },
    /// The stack of the plan is another one than that of the repository.
    #[error("the plan is for {planned}, and the repository has {now}")]
    OtherStack {
        /// Stack of the plan, with project and store.
        planned: String,
        /// Stack of the repository, with project and store.
        now: String,
    },
    /// The plan was used.
    #[error("the plan was used at {time} by {by}")]
    Used {
        /// Time of use.
        time: String,
        /// User and machine.
        by: String,
    },
    /// Files, assets, plugins or the state have changed since the plan was made.
    #[error("the plan of stack {stack} no longer fits: {}; nothing was changed", listed(.differences))]
    Stale {
        /// Name of the stack.
        stack: String,
        /// Differences, a sentence each.
        differences: Vec<String>,
    },
    /// The refresh of the preview has found changes, which the recorded state lacks.
    #[error("no plan was saved: outside of sc, {} of stack {stack} changed, which the recorded state lacks", listed(.names))]
    Drift {
        /// Name of the stack.
        stack: String,
        /// Names of the resources.
        names: Vec<String>,
    },
    /// The key of the stack was not created yet.
    #[error("no plan was saved: the key of stack {stack}, with which the plan is encrypted, does not exist yet")]
    NoKey {
        /// Name of the stack.
        stack: String,
        /// Name of the stack of the key.
        key_stack: String,
    },
}

impl Hint for PlanError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::File(_) => None,
            Self::Text(PlanFileError::Secrets(error)) => error.hint(),
            Self::Text(PlanFileError::Malformed | PlanFileError::NoStack(_)) => {
                Some("give a file that `sc preview --save-plan FILE` has written".into())
            }
            Self::OtherProfile { planned, .. } => {
                Some(MessageText::new(format_args!("add {}", bridge::shell::option("--profile", planned))))
            }
            Self::Text(PlanFileError::Format(_) | PlanFileError::Changed(_) | PlanFileError::OtherKey(_))
            | Self::OtherVersion { .. }
            | Self::Expired(_)
            | Self::OtherStack { .. }
            | Self::Used { .. }
            | Self::Stale { .. } => Some("make a new plan with `sc preview --save-plan FILE`, and review it".into()),
            Self::Drift { stack, .. } => Some(MessageText::new(format_args!(
                "record the changes with `sc refresh {}`, or plan against the recorded state with --skip-refresh",
                bridge::shell::option("-s", stack)
            ))),
            Self::NoKey { key_stack, .. } => Some(MessageText::new(format_args!(
                "create it first: `sc provision {}`",
                bridge::shell::option("-s", key_stack)
            ))),
        }
    }
}

fn listed(texts: &[String]) -> String {
    let shown = texts.iter().take(MAX_DIFFERENCES).map(String::as_str).collect::<Vec<_>>().join("; ");
    match texts.len().saturating_sub(MAX_DIFFERENCES) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
