//! Report of a phase that ended: changes, messages, outputs and summary.

use std::time::Duration;

use bridge::provider::ErrorDetails;
use engine::events::{Download, Message, Operation, Outcome, Phase, ScheduledRetry, Severity, Summary};
use pulumi_proto::urn::Urn;

use super::diff::{DiffOptions, bag_diff, step_diff};
use super::palette::{Palette, phase_title, severity};
use super::rows::{Row, Rows};
use super::text::{Line, bytes, duration};
use super::tree::{Columns, Names, Tense, row_line, short_type, tree};
use super::{EventSubject, FilePosition};

/// Returns the words for a download: `tls: pulumi-resource-tls-v5.2.2-linux-amd64.tar.gz (4.1 MB)`.
pub(crate) fn download(download: &Download) -> Line {
    let line = Line::new().styled(Palette::BOLD, &download.plugin).text(format!(": {}", download.name));
    match download.total {
        Some(total) => line.styled(Palette::DIM, format!(" ({})", bytes(total))),
        None => line,
    }
}

/// Returns the tense of a phase's rows.
pub(crate) fn tense(phase: Phase) -> Tense {
    if phase.preview { Tense::Plan } else { Tense::Run }
}

/// Returns the title of a phase: `Updating aquarium`.
pub(crate) fn title(phase: Phase, stack: &str) -> Line {
    Line::new().styled(Palette::BOLD, phase_title(phase)).text(" ").styled(Palette::BOLD, stack)
}

/// Returns the lines of the changed resources, each with its changed properties. Empty if nothing changes.
pub(crate) fn changes(rows: &Rows, phase: Phase, diff: Option<DiffOptions>, width: Option<usize>) -> Vec<Line> {
    let shown = tree(rows, Row::should_show);
    let columns = Columns::fit(&shown, width, if phase.preview { 9 } else { 14 }, tense(phase));
    let mut lines = Vec::new();
    for tree_row in &shown {
        let changed = match diff {
            Some(options) if tree_row.row.should_show() => step_diff(&tree_row.row.diff_step, options),
            _ => Vec::new(),
        };
        // The names of the properties are redundant if their values follow.
        let names = if changed.is_empty() { Names::Shown } else { Names::Hidden };
        lines.push(row_line(tree_row, columns, tense(phase), names, Duration::ZERO));
        let bars = Line::plain("  ").styled(Palette::DIM, &tree_row.below).text("  ");
        lines.extend(changed.into_iter().map(|line| bars.clone().join(line)));
    }
    lines
}

/// Returns the lines of the stack's outputs, with changes marked. Empty if it has no outputs, and after a preview that has failed:
/// they would be those of a part of the stack.
pub(crate) fn outputs(rows: &Rows, summary: &Summary, options: DiffOptions) -> Vec<Line> {
    let Summary { phase, outcome, .. } = summary;
    if phase.operation == Operation::Destroy || (phase.preview && *outcome != Outcome::Succeeded) {
        return Vec::new();
    }
    let Some(outputs) = rows.outputs() else { return Vec::new() };
    let old = outputs.old.as_ref().map(|state| &*state.outputs);
    let lines = bag_diff(old, &outputs.new.outputs, options);
    if lines.is_empty() {
        return Vec::new();
    }
    let heading = Line::new().styled(Palette::BOLD, "Outputs:");
    std::iter::once(heading).chain(lines.into_iter().map(|line| Line::plain("  ").join(line))).collect()
}

/// Returns the line about the journal in the store, if the phase has written to it.
pub(crate) fn journal(summary: &Summary) -> Option<Line> {
    let statistics = summary.journal.as_ref()?;
    let (median, longest) = statistics.lags()?;
    let segments = match statistics.segments() {
        1 => "1 segment".to_owned(),
        count => format!("{count} segments"),
    };
    let (median, longest) = (median.as_millis(), longest.as_millis());
    let waited = duration(statistics.waited());
    Some(Line::plain(format!(
        "  journal in the store: {segments}, each written within {median} ms (median), {longest} ms at most; calls waited {waited} \
         in all"
    )))
}

/// Message with its position in the user's files.
#[derive(Clone, Debug)]
pub(crate) struct LocatedMessage {
    pub(crate) message: Message,
    pub(crate) place: Option<FilePosition>,
}

impl LocatedMessage {
    pub(crate) fn new(message: &Message, subject: EventSubject<'_>) -> Self {
        Self { message: message.clone(), place: subject.place.cloned() }
    }
}

/// Sorts messages as the user's files are; those without a place come first. Messages about one place keep their order.
///
/// A preview asks several plugins at a time, and its messages come as they finish.
pub(crate) fn sort_as_file(messages: &mut [LocatedMessage]) {
    messages.sort_by_key(|located| located.message.source);
}

/// Returns the lines of a message: severity, subject and text (further lines indented), the position, the hint on its
/// own line.
pub(crate) fn message(located: &LocatedMessage) -> Vec<Line> {
    let message = &located.message;
    let (word, style) = severity(message.severity);
    let mut head = Line::new().styled(style, word).styled(Palette::BOLD, ":").text(" ");
    if let Some(urn) = &message.urn {
        head = head.join(subject(urn));
        if let Some(property) = unnamed_property(message) {
            head = head.text(" ").styled(Palette::UPDATE, property);
        }
        head = head.text(": ");
    } else if let Some(plugin) = &message.plugin {
        head = head.styled(Palette::BOLD, format!("plugin {plugin}")).text(": ");
    }
    let mut lines = text_lines(head, message);
    if let Some(place) = &located.place {
        lines.push(Line::plain("  ").styled(Palette::DIM, "at ").text(&place.position));
        lines.extend(place.excerpt.iter().map(|line| Line::plain("  ").styled(Palette::DIM, line)));
    }
    lines.extend(hint_lines(message));
    lines
}

/// Returns the property that a message is about, unless the text names it, as texts of most providers do.
pub(super) fn unnamed_property(message: &Message) -> Option<&str> {
    message.property.as_deref().filter(|property| !message.text.contains(property))
}

/// Returns the lines of the text of a message, behind a head, and of its details.
pub(super) fn text_lines(head: Line, message: &Message) -> Vec<Line> {
    let mut text = message.text.trim_end().lines();
    let mut lines = vec![head.text(text.next().unwrap_or_default())];
    lines.extend(text.map(|line| Line::plain("  ").text(line)));
    if let Some(details) = &message.details {
        lines.extend(detail_lines(details, &message.text));
    }
    lines
}

/// Returns the lines of the hint of a message; none if it has no hint.
pub(super) fn hint_lines(message: &Message) -> Vec<Line> {
    let mut hint = message.hint.as_deref().unwrap_or_default().trim_end().lines();
    let Some(first) = hint.next() else { return Vec::new() };
    let head = Line::plain("  ").styled(Palette::HINT, "hint").styled(Palette::BOLD, ":").text(" ").text(first);
    std::iter::once(head).chain(hint.map(|line| Line::plain("        ").text(line))).collect()
}

/// Returns the line of a call that failed and is repeated: `↻ page--prod (rec:Thing): Create is repeated in 1.2s (attempt 2):
/// the account is busy`.
pub(crate) fn retry(retry: &ScheduledRetry) -> Line {
    let line = Line::plain("  ").styled(Palette::WARNING, "↻").text(" ");
    let line = match (&retry.urn, &retry.function) {
        (Some(urn), _) => line.join(subject(urn)),
        (None, Some(function)) => line.styled(Palette::BOLD, function),
        (None, None) => line.styled(Palette::BOLD, format!("plugin {}", retry.plugin)),
    };
    let message = retry.message.trim().lines().next().unwrap_or_default();
    let ScheduledRetry { method, attempt, .. } = retry;
    line.text(format!(": {method} is repeated in {} (attempt {attempt}): {message}", duration(retry.delay)))
}

/// Returns the lines for the details of an error that its text does not contain: reasons, pages with help, and the time
/// that the provider asks to wait.
fn detail_lines(details: &ErrorDetails, text: &str) -> Vec<Line> {
    let line = |word: &str, text: &str| {
        Line::plain("  ").styled(Palette::DIM, word).styled(Palette::DIM, ":").text(" ").text(text.trim_end())
    };
    let reasons = details.reasons.iter().filter(|reason| !text.contains(reason.as_str()));
    let mut lines: Vec<Line> = reasons.map(|reason| line("reason", reason)).collect();
    lines.extend(details.links.iter().map(|link| match link.description.as_str() {
        "" => line("help", &link.url),
        description => line("help", &format!("{description}: {}", link.url)),
    }));
    if let Some(wait) = details.retry_after.filter(|wait| !wait.is_zero()) {
        lines.push(line("the plugin asks to wait", &duration(wait)));
    }
    lines.extend(details.not_repeated.as_ref().map(|reason| line("not repeated", reason)));
    lines
}

/// Returns the words for a resource: `site--prod (aws:s3:Bucket)`.
pub(crate) fn subject(urn: &Urn) -> Line {
    Line::new().styled(Palette::BOLD, urn.name()).styled(Palette::DIM, format!(" ({})", short_type(urn.type_token())))
}

/// Returns the message of a failed step, unless an earlier error of the resource contains it.
pub(crate) fn failure_message(urn: &Urn, text: &str, messages: &[LocatedMessage]) -> Option<LocatedMessage> {
    let is_reported = |LocatedMessage { message, .. }: &LocatedMessage| {
        message.severity == Severity::Error && message.urn.as_ref() == Some(urn) && message.text.contains(text.trim())
    };
    let message = || Message { urn: Some(urn.clone()), ..Message::new(Severity::Error, text) };
    (!messages.iter().any(is_reported)).then(|| LocatedMessage { message: message(), place: None })
}
