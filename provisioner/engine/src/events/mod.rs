//! Events of a run, as values.
//!
//! Input: steps, phases and messages of a deployment. Output: events for the display, `--json` and other sinks.
//! Excluded: a decision. A sink must not fail or block, and cannot influence the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bridge::message_text::MessageText;
use bridge::provider::{CheckFailure, ErrorDetails, Method, PropertyDiff, ViewOp};
use pulumi_proto::urn::Urn;

mod activity;

use state::{ResourceState, SegmentStatistics, UnrecordedChange};

pub use activity::{Activity, ActivityKind, ActivityStage};

/// Receiver of events.
pub trait EventSink: Send + Sync {
    /// Receives one event. Must return at once.
    fn emit(&self, event: Event);
}

/// Event of a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// Progress of the download of a plugin.
    Download(Download),
    /// Work that the run waits for beside the steps of a phase has begun or ended.
    Activity(Activity),
    /// A phase of an operation begins (refresh, preview, up, destroy of one stack).
    PhaseStarted(Phase),
    /// Number of resources that the phase is about, as far as it is known. A later event has a number in place of that.
    PhaseTotal(usize),
    /// A registration is being decided: the engine calls Check and Diff.
    RegistrationStarted(Urn),
    /// A registration is decided, or has failed.
    RegistrationDecided(Urn),
    /// A step begins.
    StepStarted(Arc<StepInfo>),
    /// A step succeeded; the info holds the new outputs.
    StepSucceeded(Arc<StepInfo>, Duration),
    /// A step failed.
    StepFailed(Arc<StepInfo>, StepFailure),
    /// A call failed, and is repeated after a delay, because its plugin asks for it.
    RetryScheduled(Box<ScheduledRetry>),
    /// A component (or the stack) registered its outputs.
    OutputsRegistered(Arc<ResourceState>),
    /// A message was emitted.
    Message(Message),
    /// A phase ended.
    PhaseEnded(Summary),
    /// A change of the run is recorded neither in the state nor in a journal. Emitted after the run has ended.
    Unrecorded(UnrecordedChange),
}

/// Progress of the download of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// Name of the plugin.
    pub plugin: String,
    /// Name of the asset or the repository that is downloaded.
    pub name: String,
    /// Number of bytes received.
    pub received: u64,
    /// Size in bytes, if known.
    pub total: Option<u64>,
    /// Stage of the download.
    pub stage: DownloadStage,
}

/// Stage of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadStage {
    /// The download begins.
    Started,
    /// Some bytes have been received.
    Running,
    /// All bytes have been received.
    Done,
    /// The download failed. A message reports the error.
    Failed,
}

/// A phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Operation that the phase belongs to.
    pub operation: Operation,
    /// True if the phase is a preview.
    pub preview: bool,
}

/// Operation on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Changes resources to match the program.
    Update,
    /// Changes the state to match the actual resources.
    Refresh,
    /// Deletes all resources.
    Destroy,
    /// Records existing resources.
    Import,
}

/// Kind of a step (docs/spec/engine-semantics.md#1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "Pulumi's names; the table of the specification explains them")]
pub enum StepOp {
    Same,
    Create,
    Update,
    Delete,
    Replace,
    CreateReplacement,
    DeleteReplaced,
    Read,
    ReadReplacement,
    Discard,
    DiscardReplaced,
    Refresh,
    Import,
    ImportReplacement,
    RemovePendingReplace,
}

impl StepOp {
    /// Returns whether the step is counted in a summary. Parts of another step are not counted.
    pub(crate) fn is_counted(self) -> bool {
        match self {
            Self::Same
            | Self::Create
            | Self::Update
            | Self::Delete
            | Self::Replace
            | Self::Read
            | Self::Discard
            | Self::Import => true,
            Self::CreateReplacement
            | Self::DeleteReplaced
            | Self::ReadReplacement
            | Self::DiscardReplaced
            | Self::Refresh
            | Self::ImportReplacement
            | Self::RemovePendingReplace => false,
        }
    }

    /// Returns the name in events and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::CreateReplacement => "create-replacement",
            Self::DeleteReplaced => "delete-replaced",
            Self::Read => "read",
            Self::ReadReplacement => "read-replacement",
            Self::Discard => "discard",
            Self::DiscardReplaced => "discard-replaced",
            Self::Refresh => "refresh",
            Self::Import => "import",
            Self::ImportReplacement => "import-replacement",
            Self::RemovePendingReplace => "remove-pending-replace",
        }
    }
}

impl From<ViewOp> for StepOp {
    fn from(op: ViewOp) -> Self {
        match op {
            ViewOp::Same => Self::Same,
            ViewOp::Create => Self::Create,
            ViewOp::Update => Self::Update,
            ViewOp::Delete => Self::Delete,
            ViewOp::Replace => Self::Replace,
            ViewOp::CreateReplacement => Self::CreateReplacement,
            ViewOp::DeleteReplaced => Self::DeleteReplaced,
            ViewOp::Read => Self::Read,
            ViewOp::ReadReplacement => Self::ReadReplacement,
            ViewOp::Refresh => Self::Refresh,
            ViewOp::ReadDiscard => Self::Discard,
            ViewOp::DiscardReplaced => Self::DiscardReplaced,
            ViewOp::RemovePendingReplace => Self::RemovePendingReplace,
            ViewOp::Import => Self::Import,
            ViewOp::ImportReplacement => Self::ImportReplacement,
        }
    }
}

/// Description of a step.
#[derive(Clone, Debug)]
pub struct StepInfo {
    /// Kind of the step. For a refresh that succeeded, see `result`.
    pub op: StepOp,
    /// Result of a refresh: same, update or delete.
    pub result: Option<StepOp>,
    /// URN of the resource.
    pub urn: Urn,
    /// Place of the resource in the user's files, as the program passed it with the goal; `None` without a goal.
    pub source: Option<SourceRef>,
    /// Entry before the step.
    pub old: Option<Arc<ResourceState>>,
    /// Entry after the step. Until the step ends, the entry lacks the outputs that the provider will return.
    pub new: Option<Arc<ResourceState>>,
    /// Names of properties that replace the resource.
    pub replace_keys: Vec<String>,
    /// Top-level names of changed properties.
    pub diffs: Vec<String>,
    /// Changes by property path, if known.
    pub detailed_diff: BTreeMap<String, PropertyDiff>,
    /// True for a step of the engine itself, which is not displayed.
    pub internal: bool,
    /// True for a creation of a resource that an earlier run may have created: its Create has begun, and no id is known.
    pub may_exist: bool,
}

impl StepInfo {
    /// Creates the description of a step with its entries before and after, and nothing else.
    pub fn new(op: StepOp, urn: Urn, old: Option<Arc<ResourceState>>, new: Option<Arc<ResourceState>>) -> Self {
        Self {
            op,
            result: None,
            urn,
            source: None,
            old,
            new,
            replace_keys: Vec::new(),
            diffs: Vec::new(),
            detailed_diff: BTreeMap::new(),
            internal: false,
            may_exist: false,
        }
    }

    /// Returns whether the step removes an entry and leaves its resource alone, because of `retainOnDelete`.
    pub fn is_retained(&self) -> bool {
        let is_deletion = matches!(self.op, StepOp::Delete | StepOp::DeleteReplaced);
        is_deletion && self.old.as_ref().is_some_and(|old| old.retain_on_delete && is_managed(old))
    }

    /// Returns the URN under which the resource was recorded, if an alias has found it under another one.
    pub fn former_urn(&self) -> Option<&Urn> {
        self.old.as_ref().map(|old| &old.urn).filter(|urn| **urn != self.urn)
    }
}

/// Returns whether an entry has a resource that its deletion deletes. The resource of a pending replacement is deleted already.
pub(crate) fn is_managed(entry: &ResourceState) -> bool {
    entry.custom && !entry.is_provider() && !entry.external && !entry.pending_replacement
}

/// Failure of a step.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// Error message of the provider or the engine. Receivers mask secrets in it.
    pub message: MessageText,
    /// True if the resource may have been changed nevertheless.
    pub indeterminate: bool,
    /// True if the resource exists but failed to initialize. Its state is recorded.
    pub partial: bool,
    /// Class and details of the error of a provider; `None` for another error.
    pub details: Option<Box<ErrorDetails>>,
}

/// Next attempt of a call that failed.
#[derive(Clone, Debug)]
pub struct ScheduledRetry {
    /// Package of the plugin.
    pub plugin: String,
    /// Method that failed: Check, Diff, Read, Invoke, Configure, Create, Update or Delete.
    pub method: Method,
    /// URN of the resource; of the provider resource for Configure; `None` for Invoke.
    pub urn: Option<Urn>,
    /// Token of the function; Invoke only.
    pub function: Option<String>,
    /// Number of the next attempt: 2 for the first repetition.
    pub attempt: u32,
    /// Delay until the next attempt.
    pub delay: Duration,
    /// Error message of the provider. Receivers mask secrets in it.
    pub message: MessageText,
    /// Class and details of the error.
    pub details: ErrorDetails,
}

/// Message to the user.
#[derive(Clone, Debug)]
pub struct Message {
    /// Severity of the message.
    pub severity: Severity,
    /// URN of the resource that the message is about.
    pub urn: Option<Urn>,
    /// Place of the resource in the user's files, as the program passed it with the goal.
    pub source: Option<SourceRef>,
    /// Path of the property that the message is about; `None`: the whole resource.
    pub property: Option<String>,
    /// Name of the plugin that caused the message; `None`: the engine.
    pub plugin: Option<String>,
    /// Text. It may quote what a provider wrote, so a receiver masks secrets in it
    /// ([`crate::masking::SecretMasker::mask_message`]).
    pub text: MessageText,
    /// Hint at the next action of the user.
    pub hint: Option<MessageText>,
    /// Class and details of the error of a provider; `None` for another message.
    pub details: Option<Box<ErrorDetails>>,
    /// True if the message is displayed only during the run, and not kept.
    pub ephemeral: bool,
    /// True if several phases of a run report the same fact, such as a pending operation of an earlier run. A
    /// receiver shows equal messages of a stack once.
    pub repeated: bool,
    /// True if a plugin logged or printed the text. A receiver may drop such messages if too many of them wait.
    pub logged: bool,
}

impl Message {
    /// Creates a message that is not about a resource.
    pub fn new(severity: Severity, text: impl Into<MessageText>) -> Self {
        Self {
            severity,
            urn: None,
            source: None,
            property: None,
            plugin: None,
            text: text.into(),
            hint: None,
            details: None,
            ephemeral: false,
            repeated: false,
            logged: false,
        }
    }

    /// Creates the error message about an input that a provider rejects.
    pub(crate) fn rejected_input(failure: &CheckFailure) -> Self {
        let text = match &failure.property {
            None => failure.reason.clone().into(),
            Some(property) => MessageText::new(format_args!("property {property}: {}", failure.reason)),
        };
        Self { property: failure.property.clone(), ..Self::new(Severity::Error, text) }
    }
}

/// Place where a program wrote a resource: a later place is greater. Opaque to the engine, which returns it with steps and
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceRef(pub u64);

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Details for debugging.
    Debug,
    /// Information.
    Info,
    /// Possible mistake of the user.
    Warning,
    /// Error, with which the run fails.
    Error,
}

/// Summary of a phase.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Phase that has ended.
    pub phase: Phase,
    /// Number of successful steps of each kind, as in docs/spec/engine-semantics.md#9.3.
    pub changes: BTreeMap<StepOp, usize>,
    /// Number of resources that were deleted; in a preview, of those that would be.
    pub deletions: Deletions,
    /// Outcome of the phase.
    pub outcome: Outcome,
    /// Duration of the phase.
    pub duration: Duration,
    /// Statistics about what the phase has written of its journal to the store, before the end of the run; `None` if nothing.
    pub journal: Option<SegmentStatistics>,
}

/// Number of deleted resources, with pending deletes of earlier runs and without retained resources. A resource counts, too, if
/// no provider is called because the resource of `deletedWith` is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletions {
    /// Resources that the run replaces.
    pub replaced: usize,
    /// All others.
    pub removed: usize,
}

impl Deletions {
    /// Returns the number of all deleted resources.
    pub fn total(self) -> usize {
        self.replaced + self.removed
    }
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps succeeded.
    Succeeded,
    /// A step failed, or another error was reported. The recorded state is valid.
    Failed,
    /// The user stopped the run before all work was done.
    Canceled,
}

/// Mode of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// Preview: providers report the changes that they would make, and none is made.
    Preview,
    /// Steps are carried out and recorded.
    Apply,
}
