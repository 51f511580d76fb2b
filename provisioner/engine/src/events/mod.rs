//! Everything that happens in a run, as values.
//!
//! Enters: what the deployment does. Leaves: to the display, to `--json`, to whoever wants to know. Never here: a
//! decision. A sink may not fail, block or steer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bridge::provider::{PropertyDiff, ViewOp};
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use state::ResourceState;

/// Takes events.
pub trait EventSink: Send + Sync {
    /// Takes one event. Must return at once.
    fn emit(&self, event: Event);
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A plugin is being downloaded: how far that is.
    Download(Download),
    /// A phase of an operation begins (refresh, preview, up, destroy of one stack).
    PhaseStarted(Phase),
    /// A provider is about to be told these values, which hold secrets: who passes on what it says has to keep them out of
    /// that. Nothing to show.
    SecretsTold(Arc<PropertyMap>),
    /// A step begins.
    StepStarted(Arc<StepInfo>),
    /// A step succeeded; the info holds the new outputs.
    StepSucceeded(Arc<StepInfo>, Duration),
    /// A step failed.
    StepFailed(Arc<StepInfo>, StepFailure),
    /// A component (or the stack) registered its outputs.
    OutputsRegistered(Arc<ResourceState>),
    /// Something to tell.
    Message(Message),
    /// A phase ended.
    PhaseEnded(Summary),
}

/// A plugin on its way to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// Name of the plugin.
    pub plugin: String,
    /// Name of what is downloaded: an asset, or a repository.
    pub what: String,
    /// Bytes that have arrived.
    pub received: u64,
    /// Bytes that it has, if that is known.
    pub total: Option<u64>,
    /// How far it is.
    pub stage: DownloadStage,
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadStage {
    /// It begins.
    Started,
    /// Some of it has arrived.
    Running,
    /// All of it has arrived.
    Done,
    /// It came to nothing; why is told elsewhere.
    Failed,
}

/// A phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What is done.
    pub operation: Operation,
    /// Only shown, not done.
    pub preview: bool,
}

/// What is done to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Make the world match the program.
    Update,
    /// Make the state match the world.
    Refresh,
    /// Delete everything.
    Destroy,
    /// Take existing resources over.
    Import,
}

/// What a step does (engine semantics, section 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the field; the specification table explains them")]
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
    /// Whether it counts in a summary: not as a mere part of another step.
    pub(crate) fn is_logical(self) -> bool {
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

    /// The word in events and history.
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

/// What is known of a step.
#[derive(Clone, Debug)]
pub struct StepInfo {
    /// What it does. Of a refresh that succeeded: see `result`.
    pub op: StepOp,
    /// What a refresh found: same, update or delete.
    pub result: Option<StepOp>,
    /// The resource.
    pub urn: Urn,
    /// The entry before.
    pub old: Option<Arc<ResourceState>>,
    /// The entry after; in a step that has not ended yet, without what the provider will answer.
    pub new: Option<Arc<ResourceState>>,
    /// Why it is replaced: property names.
    pub replace_keys: Vec<String>,
    /// Changed properties: top-level names.
    pub diffs: Vec<String>,
    /// Changes by property path, where known.
    pub detailed_diff: BTreeMap<String, PropertyDiff>,
    /// Bookkeeping that users need not see.
    pub internal: bool,
}

/// How a step failed.
#[derive(Clone, Debug)]
pub struct StepFailure {
    /// The provider's words, or ours.
    pub message: String,
    /// Whether the resource may have been touched all the same.
    pub indeterminate: bool,
    /// The resource exists but did not come up; its state is recorded.
    pub partial: bool,
}

/// Something to tell the user.
#[derive(Clone, Debug)]
pub struct Message {
    /// How bad it is.
    pub severity: Severity,
    /// The resource it is about.
    pub urn: Option<Urn>,
    /// Where in the user's files the resource was written, as the program said with its goal.
    pub source: Option<SourceRef>,
    /// Property path the message is about; `None`: the whole resource.
    pub property: Option<String>,
    /// Who said it, where it was a plugin.
    pub plugin: Option<String>,
    /// The text. Never holds a secret.
    pub text: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Worth showing while it happens, not worth keeping.
    pub ephemeral: bool,
}

impl Message {
    /// A message about nothing in particular.
    pub fn new(severity: Severity, text: impl Into<String>) -> Self {
        Self {
            severity,
            urn: None,
            source: None,
            property: None,
            plugin: None,
            text: text.into(),
            hint: None,
            ephemeral: false,
        }
    }
}

/// Where a program wrote a resource: opaque to the engine, handed back with messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceRef(pub u64);

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For those who look for a fault.
    Debug,
    /// Good to know.
    Info,
    /// Perhaps not what was meant.
    Warning,
    /// The run fails.
    Error,
}

/// How a phase ended.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The phase.
    pub phase: Phase,
    /// Steps that succeeded, counted as in engine semantics, section 9.3.
    pub changes: BTreeMap<StepOp, usize>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All went well.
    Succeeded,
    /// Something failed; what is recorded is true.
    Failed,
    /// The user stopped it with work left undone.
    Canceled,
}
