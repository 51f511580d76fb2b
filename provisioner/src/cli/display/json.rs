//! Display for programs: prints each event as one line of JSON. `docs/events.md` specifies the members.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bridge::provider::{DiffKind, ErrorDetails};
use config::diagnostics::escape_controls;
use engine::events::{
    Activity, ActivityKind, ActivityStage, Download, DownloadStage, Event, Message, Operation, Outcome, Phase,
    Severity, StepInfo, StepOp, Summary,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use state::ResourceState;

use super::activities::Activities;
use super::queue::MessageFilter;
use super::reasons::step_reason;
use super::rows::Refreshed;
use super::value::{DisplayValue, Secrets, map_to_json};
use super::{EventSubject, Renderer, Stamp, StopNotice};

/// Numbers of the events of a command, shared by all that write them.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventNumbers(Arc<AtomicU64>);

impl EventNumbers {
    /// Returns the members that every event has, with the next number.
    pub(crate) fn next_event(&self, time: Timestamp, stack: &str) -> Map<String, Value> {
        let sequence = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut line = Map::new();
        line.insert("sequence".into(), sequence.into());
        line.insert("time".into(), time.to_string().into());
        line.insert("stack".into(), stack.into());
        line
    }
}

/// Writes an event as one line. Each line is one write, so that no reader sees a part of a line.
pub(crate) fn write_event(out: &mut impl Write, line: Map<String, Value>) -> io::Result<()> {
    let line = Value::Object(line).to_string();
    out.write_all(format!("{}\n", escape_controls(&line)).as_bytes())?;
    out.flush()
}

/// Renderer that writes each event as one line.
pub(crate) struct JsonDisplay<W: Write> {
    out: W,
    secrets: Secrets,
    verbose: bool,
    numbers: EventNumbers,
    /// End of the last phase, with its time and stack. It follows the messages that come after it, as it may be the last event.
    held: Option<(Stamp, String, Summary)>,
    activities: Activities,
    /// Differences from the recorded state that the last refresh has found.
    refreshed: Refreshed,
}

/// Age from which an activity has an event.
const ACTIVITY_AGE: Duration = Duration::from_millis(300);

impl<W: Write> JsonDisplay<W> {
    pub(crate) fn new(out: W, secrets: Secrets, verbose: bool, numbers: EventNumbers) -> Self {
        Self {
            out,
            secrets,
            verbose,
            numbers,
            held: None,
            activities: Activities::default(),
            refreshed: Refreshed::new(),
        }
    }

    fn write(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        let mut line = self.numbers.next_event(stamp.time, subject.stack);
        describe(event, self.secrets, &mut line);
        if let Event::Message(_) = event {
            line.insert("place".into(), subject.place.map(|place| place.position.as_str()).into());
        }
        if let Event::StepStarted(info) | Event::StepSucceeded(info, _) | Event::StepFailed(info, _) = event {
            let reason = step_reason(info.op, info, self.refreshed.get(&info.urn).map(Arc::as_ref));
            if !reason.is_empty() {
                line.insert("reason".into(), reason.into());
            }
        }
        write_event(&mut self.out, line)
    }

    /// Writes the end of the last phase, unless it is written already.
    fn write_held(&mut self) -> io::Result<()> {
        let Some((stamp, stack, summary)) = self.held.take() else { return Ok(()) };
        self.write(stamp, EventSubject { stack: &stack, place: None }, &Event::PhaseEnded(summary))
    }

    /// Keeps what a refresh finds, for the reasons of the changes after it.
    fn keep_refresh(&mut self, event: &Event) {
        match event {
            Event::PhaseStarted(phase) if phase.operation == Operation::Refresh => self.refreshed.clear(),
            Event::StepSucceeded(info, _) if info.result.is_some_and(|result| result != StepOp::Same) => {
                self.refreshed.insert(info.urn.clone(), Arc::clone(info));
            }
            _ => {}
        }
    }

    fn write_activity(&mut self, kind: ActivityKind, subject: &str, stage: ActivityStage) -> io::Result<()> {
        let mut line = self.numbers.next_event(Timestamp::now(), "");
        let activity = Activity { kind, subject: subject.to_owned(), stage };
        describe(&Event::Activity(activity), self.secrets, &mut line);
        write_event(&mut self.out, line)
    }
}

impl<W: Write + Send> Renderer for JsonDisplay<W> {
    fn message_filter(&self) -> MessageFilter {
        MessageFilter { verbose: self.verbose, ephemeral: true }
    }

    fn secrets(&self) -> Secrets {
        self.secrets
    }

    fn log(&mut self, line: &str) -> io::Result<()> {
        // Standard output has the events alone. An error means that standard error is closed.
        drop(writeln!(io::stderr(), "{line}"));
        Ok(())
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.keep_refresh(event);
        match event {
            // Progress of downloads is emitted many times a second, for terminals only.
            Event::Download(download) if download.stage == DownloadStage::Running => return Ok(()),
            // The steps of a resource tell a program more.
            Event::RegistrationStarted(_) | Event::RegistrationDecided(_) | Event::PhaseTotal(_) => return Ok(()),
            // Only what lasts has an event.
            Event::Activity(activity) => {
                if self.activities.apply(stamp.at, activity) {
                    self.write_activity(activity.kind, &activity.subject, ActivityStage::Ended)?;
                }
                return Ok(());
            }
            Event::PhaseEnded(summary) => {
                self.write_held()?;
                self.held = Some((stamp, subject.stack.to_owned(), summary.clone()));
                return Ok(());
            }
            Event::Message(_) => {}
            _ => self.write_held()?,
        }
        self.write(stamp, subject, event)
    }

    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()> {
        self.event(stamp, EventSubject { stack: "", place: None }, &Event::Message(notice.message(None)))
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        let begun = self.activities.report(at, ACTIVITY_AGE);
        let begun: Vec<_> = begun.map(|running| (running.kind, running.subject.clone())).collect();
        begun.iter().try_for_each(|(kind, subject)| self.write_activity(*kind, subject, ActivityStage::Started))
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self, _: Duration) -> io::Result<()> {
        self.write_held()?;
        self.pause()
    }
}

fn describe(event: &Event, secrets: Secrets, line: &mut Map<String, Value>) {
    match event {
        Event::PhaseStarted(phase) => {
            line.insert("event".into(), "phase-started".into());
            describe_phase(*phase, line);
        }
        Event::RegistrationStarted(_) | Event::RegistrationDecided(_) | Event::PhaseTotal(_) => {}
        Event::Activity(activity) => {
            line.insert("event".into(), "activity".into());
            describe_activity(activity, line);
        }
        Event::StepStarted(info) => {
            line.insert("event".into(), "step-started".into());
            describe_step(info, secrets, line);
        }
        Event::StepSucceeded(info, took) => {
            line.insert("event".into(), "step-succeeded".into());
            describe_step(info, secrets, line);
            line.insert("durationMs".into(), millis(*took));
        }
        Event::StepFailed(info, failure) => {
            line.insert("event".into(), "step-failed".into());
            describe_step(info, secrets, line);
            line.insert("message".into(), failure.message.as_str().into());
            line.insert("indeterminate".into(), failure.indeterminate.into());
            line.insert("partial".into(), failure.partial.into());
            failure.details.iter().for_each(|details| describe_details(details, line));
        }
        Event::RetryScheduled(retry) => {
            line.insert("event".into(), "retry-scheduled".into());
            line.insert("plugin".into(), retry.plugin.as_str().into());
            line.insert("method".into(), retry.method.to_string().into());
            line.insert("urn".into(), retry.urn.as_ref().map(|urn| urn.as_str()).into());
            line.insert("function".into(), retry.function.as_deref().into());
            line.insert("attempt".into(), retry.attempt.into());
            line.insert("delayMs".into(), millis(retry.delay));
            line.insert("message".into(), retry.message.as_str().into());
            describe_details(&retry.details, line);
        }
        Event::OutputsRegistered(state) => {
            line.insert("event".into(), "outputs-registered".into());
            line.insert("urn".into(), state.urn.as_str().into());
            line.insert("outputs".into(), map_to_json(&DisplayValue::of_map(&state.outputs, secrets)));
        }
        Event::Download(download) => {
            line.insert("event".into(), "download".into());
            describe_download(download, line);
        }
        Event::Message(message) => {
            line.insert("event".into(), "message".into());
            describe_message(message, line);
        }
        Event::PhaseEnded(summary) => {
            line.insert("event".into(), "phase-ended".into());
            describe_summary(summary, line);
        }
        Event::Unrecorded(change) => {
            line.insert("event".into(), "unrecorded".into());
            line.insert("change".into(), change.kind.as_str().into());
            line.insert("urn".into(), change.urn.as_str().into());
            line.insert("id".into(), change.id.as_str().into());
        }
    }
}

fn describe_activity(activity: &Activity, line: &mut Map<String, Value>) {
    let Activity { kind, subject, stage } = activity;
    let stage = match stage {
        ActivityStage::Started => "started",
        ActivityStage::Ended => "done",
    };
    line.insert("kind".into(), kind.as_str().into());
    line.insert("subject".into(), subject.as_str().into());
    line.insert("stage".into(), stage.into());
    line.insert("text".into(), format!("{kind} {subject}").into());
}

fn describe_download(download: &Download, line: &mut Map<String, Value>) {
    let stage = match download.stage {
        DownloadStage::Started => "started",
        DownloadStage::Running => "running",
        DownloadStage::Done => "done",
        DownloadStage::Failed => "failed",
    };
    line.insert("plugin".into(), download.plugin.as_str().into());
    line.insert("what".into(), download.name.as_str().into());
    line.insert("stage".into(), stage.into());
    line.insert("received".into(), download.received.into());
    line.insert("total".into(), download.total.into());
}

fn describe_phase(phase: Phase, line: &mut Map<String, Value>) {
    let operation = match phase.operation {
        Operation::Update => "update",
        Operation::Refresh => "refresh",
        Operation::Destroy => "destroy",
        Operation::Import => "import",
    };
    line.insert("operation".into(), operation.into());
    line.insert("preview".into(), phase.preview.into());
}

fn describe_step(info: &StepInfo, secrets: Secrets, line: &mut Map<String, Value>) {
    line.insert("op".into(), info.op.as_str().into());
    if let Some(result) = info.result {
        line.insert("result".into(), result.as_str().into());
    }
    line.insert("urn".into(), info.urn.as_str().into());
    line.insert("type".into(), info.urn.type_token().into());
    line.insert("name".into(), info.urn.name().into());
    if let Some(former) = info.former_urn() {
        line.insert("formerUrn".into(), former.as_str().into());
    }
    line.insert("internal".into(), info.internal.into());
    if info.is_retained() {
        line.insert("retained".into(), true.into());
    }
    if info.may_exist {
        line.insert("mayExist".into(), true.into());
    }
    line.insert("replaceKeys".into(), info.replace_keys.clone().into());
    line.insert("changedProperties".into(), info.diffs.clone().into());
    let detailed = info.detailed_diff.iter().map(|(path, diff)| {
        let kind = match diff.kind {
            DiffKind::Add => "add",
            DiffKind::AddReplace => "add-replace",
            DiffKind::Delete => "delete",
            DiffKind::DeleteReplace => "delete-replace",
            DiffKind::Update => "update",
            DiffKind::UpdateReplace => "update-replace",
        };
        (path.clone(), json!({ "kind": kind, "inputDiff": diff.input_diff }))
    });
    line.insert("detailedDiff".into(), Value::Object(detailed.collect()));
    line.insert("old".into(), describe_state(info.old.as_deref(), secrets));
    line.insert("new".into(), describe_state(info.new.as_deref(), secrets));
}

fn describe_state(state: Option<&ResourceState>, secrets: Secrets) -> Value {
    let Some(state) = state else { return Value::Null };
    json!({
        "id": state.id_text(),
        "custom": state.custom,
        "parent": state.parent.as_ref().map(|urn| urn.as_str()),
        "provider": state.provider.as_ref().map(ToString::to_string),
        "protect": state.protect,
        "external": state.external,
        "inputs": map_to_json(&DisplayValue::of_map(&state.inputs, secrets)),
        "outputs": map_to_json(&DisplayValue::of_map(&state.outputs, secrets)),
    })
}

fn describe_message(message: &Message, line: &mut Map<String, Value>) {
    let severity = match message.severity {
        Severity::Debug => "debug",
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    line.insert("severity".into(), severity.into());
    line.insert("urn".into(), message.urn.as_ref().map(|urn| urn.as_str()).into());
    line.insert("property".into(), message.property.as_deref().unwrap_or_default().into());
    line.insert("plugin".into(), message.plugin.as_deref().into());
    line.insert("text".into(), message.text.as_str().into());
    line.insert("hint".into(), message.hint.as_deref().unwrap_or_default().into());
    line.insert("ephemeral".into(), message.ephemeral.into());
    message.details.iter().for_each(|details| describe_details(details, line));
}

/// Adds the class and the details of the error of a provider.
fn describe_details(details: &ErrorDetails, line: &mut Map<String, Value>) {
    line.insert("class".into(), details.class.as_str().into());
    line.insert("reasons".into(), details.reasons.clone().into());
    let violations = details.violations.iter().map(
        |failure| json!({ "property": failure.property.as_deref().unwrap_or_default(), "reason": failure.reason }),
    );
    line.insert("violations".into(), violations.collect());
    let links = details.links.iter().map(|link| json!({ "description": link.description, "url": link.url }));
    line.insert("links".into(), links.collect());
    line.insert("retryAfterMs".into(), details.retry_after.map_or(Value::Null, millis));
    line.insert("notRepeated".into(), details.not_repeated.as_deref().into());
}

fn describe_summary(summary: &Summary, line: &mut Map<String, Value>) {
    describe_phase(summary.phase, line);
    let outcome = match summary.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Canceled => "canceled",
    };
    line.insert("outcome".into(), outcome.into());
    let changes = summary.changes.iter().map(|(op, count)| (op.as_str().to_owned(), (*count).into()));
    line.insert("changes".into(), Value::Object(changes.collect()));
    line.insert("deletions".into(), summary.deletions.total().into());
    line.insert("durationMs".into(), millis(summary.duration));
    let lags = summary.journal.as_ref().and_then(|journal| Some((journal, journal.lags()?)));
    let journal = lags.map(|(journal, (median, longest))| {
        json!({
            "segments": journal.segments(),
            "lagMedianMs": millis(median),
            "lagMaximumMs": millis(longest),
            "waitedMs": millis(journal.waited()),
        })
    });
    if let Some(journal) = journal {
        line.insert("journal".into(), journal);
    }
}

fn millis(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
