//! Colours and words for operations and severities. The caller decides whether colours are printed.

use anstyle::{AnsiColor, Style};
use engine::events::{Operation, Phase, Severity, StepInfo, StepOp};

/// Styles in use.
pub(crate) struct Palette;

impl Palette {
    pub(crate) const PLAIN: Style = Style::new();
    pub(crate) const BOLD: Style = Style::new().bold();
    pub(crate) const DIM: Style = Style::new().dimmed();
    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
    pub(crate) const CREATE: Style = AnsiColor::Green.on_default();
    pub(crate) const UPDATE: Style = AnsiColor::Yellow.on_default();
    pub(crate) const DELETE: Style = AnsiColor::Red.on_default();
    pub(crate) const REPLACE: Style = AnsiColor::Magenta.on_default();
    pub(crate) const READ: Style = AnsiColor::Cyan.on_default();
}

/// Display of a step: a symbol, a colour, and its verb in three tenses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepStyle {
    pub(crate) symbol: &'static str,
    pub(crate) style: Style,
    /// Verb in a preview.
    pub(crate) plan: &'static str,
    /// Verb while the step runs.
    pub(crate) present: &'static str,
    /// Verb when the step is done.
    pub(crate) past: &'static str,
}

/// Returns the display of a step.
pub(crate) fn step_style(op: StepOp) -> StepStyle {
    let new = |symbol, style, plan, present, past| StepStyle { symbol, style, plan, present, past };
    match op {
        StepOp::Same => new(" ", Palette::DIM, "unchanged", "checking", "unchanged"),
        StepOp::Create => new("+", Palette::CREATE, "create", "creating", "created"),
        StepOp::Update => new("~", Palette::UPDATE, "update", "updating", "updated"),
        StepOp::Delete => new("-", Palette::DELETE, "delete", "deleting", "deleted"),
        StepOp::Replace => new("±", Palette::REPLACE, "replace", "replacing", "replaced"),
        StepOp::CreateReplacement => new("±", Palette::REPLACE, "replace", "creating", "replaced"),
        StepOp::DeleteReplaced => new("±", Palette::REPLACE, "replace", "deleting old", "replaced"),
        StepOp::Read => new(">", Palette::READ, "read", "reading", "read"),
        StepOp::ReadReplacement => new("±", Palette::REPLACE, "replace", "reading", "replaced"),
        StepOp::Discard => new("<", Palette::DELETE, "discard", "discarding", "discarded"),
        StepOp::DiscardReplaced => new("±", Palette::REPLACE, "replace", "discarding", "replaced"),
        StepOp::Refresh => new("↻", Palette::READ, "drifted", "reading", "drifted"),
        StepOp::Import => new("=", Palette::CREATE, "import", "importing", "imported"),
        StepOp::ImportReplacement => new("±", Palette::REPLACE, "replace", "importing", "replaced"),
        StepOp::RemovePendingReplace => new("-", Palette::DELETE, "remove", "removing", "removed"),
    }
}

/// Returns the display of the step of an event: that of its operation, of a deletion whose resource stays, or of a missing
/// resource.
pub(crate) fn info_style(info: &StepInfo) -> StepStyle {
    match info.op {
        StepOp::Delete if info.is_retained() => retained_style(),
        StepOp::DeleteReplaced if info.is_retained() => StepStyle { present: "retaining old", ..step_style(info.op) },
        StepOp::Refresh if info.result == Some(StepOp::Delete) => missing_style(),
        op => step_style(op),
    }
}

/// Returns the display of a resource that a refresh did not find.
pub(crate) fn missing_style() -> StepStyle {
    StepStyle { plan: "missing", present: "reading", past: "missing", ..step_style(StepOp::Delete) }
}

/// Returns the display of a resource that a destroy need not delete.
pub(crate) fn gone_style() -> StepStyle {
    StepStyle { plan: "gone", present: "reading", past: "gone already", ..step_style(StepOp::Delete) }
}

/// Returns the display of a resource whose entry gets another URN, and that is not changed otherwise.
pub(crate) fn renamed_style() -> StepStyle {
    StepStyle { symbol: "→", style: Palette::UPDATE, plan: "rename", present: "renaming", past: "renamed" }
}

/// Returns the display of a deletion that leaves the resource alone.
pub(crate) fn retained_style() -> StepStyle {
    StepStyle { plan: "retain", present: "retaining", past: "retained", ..step_style(StepOp::Delete) }
}

/// Returns the operation that a resource's row shows: the steps of a replacement are one operation.
pub(crate) fn row_op(op: StepOp) -> StepOp {
    match op {
        StepOp::Replace
        | StepOp::CreateReplacement
        | StepOp::DeleteReplaced
        | StepOp::ReadReplacement
        | StepOp::DiscardReplaced
        | StepOp::ImportReplacement => StepOp::Replace,
        StepOp::Same
        | StepOp::Create
        | StepOp::Update
        | StepOp::Delete
        | StepOp::Read
        | StepOp::Discard
        | StepOp::Refresh
        | StepOp::Import
        | StepOp::RemovePendingReplace => op,
    }
}

/// Returns the title of a phase, which the name of the stack follows.
pub(crate) fn phase_title(phase: Phase) -> &'static str {
    match (phase.operation, phase.preview) {
        (Operation::Update, true) => "Previewing update of",
        (Operation::Update, false) => "Updating",
        (Operation::Refresh, true) => "Previewing refresh of",
        (Operation::Refresh, false) => "Refreshing",
        (Operation::Destroy, true) => "Previewing destroy of",
        (Operation::Destroy, false) => "Destroying",
        (Operation::Import, true) => "Previewing import of",
        (Operation::Import, false) => "Importing",
    }
}

/// Returns the noun of a phase, for its summary.
pub(crate) fn phase_noun(phase: Phase) -> &'static str {
    match (phase.operation, phase.preview) {
        (_, true) => "Preview",
        (Operation::Update, false) => "Update",
        (Operation::Refresh, false) => "Refresh",
        (Operation::Destroy, false) => "Destroy",
        (Operation::Import, false) => "Import",
    }
}

/// Returns the word and the colour of a severity.
pub(crate) fn severity(severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Debug => ("debug", Palette::DIM),
        Severity::Info => ("info", Palette::BOLD),
        Severity::Warning => ("warning", Palette::WARNING),
        Severity::Error => ("error", Palette::ERROR),
    }
}
