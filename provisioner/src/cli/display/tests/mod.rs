//! Tests that play scripted runs through each display.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bridge::provider::{DiffKind, PropertyDiff};
use engine::events::{
    Deletions, Event, Message, Operation, Outcome, Phase, Severity, StepFailure, StepInfo, StepOp, Summary,
};
use jiff::Timestamp;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use state::ResourceState;

use super::long_texts::{TEXT_BYTES, TEXT_CHARACTERS};
use super::*;

mod activities;
mod causes;
mod changes;
mod names;
mod order;
mod ordinary_words;
mod queue;
mod reasons;
mod stack_turns;
mod terminal;
mod unchanged;

static PLACE: LazyLock<FilePosition> = LazyLock::new(|| FilePosition {
    position: "server.yaml:12:5".to_owned(),
    excerpt: ["   |", "12 |     length: 4", "   |     ^^^^^^"].map(str::to_owned).to_vec(),
});

fn subject() -> EventSubject<'static> {
    EventSubject { stack: "aquarium", place: Some(&PLACE) }
}

/// Scripted events of a run, with their times in milliseconds.
struct Script {
    now: u64,
    events: Vec<(u64, Event)>,
}

impl Script {
    fn new(operation: Operation, preview: bool) -> Self {
        let phase = Event::PhaseStarted(Phase { operation, preview });
        Self { now: 0, events: vec![(0, phase)] }
    }

    fn at(&mut self, millis: u64, event: Event) {
        self.now = millis;
        self.events.push((millis, event));
    }

    fn start(&mut self, millis: u64, info: &Arc<StepInfo>) {
        self.at(millis, Event::StepStarted(Arc::clone(info)));
    }

    fn done(&mut self, millis: u64, info: &Arc<StepInfo>, took: u64) {
        self.at(millis, Event::StepSucceeded(Arc::clone(info), Duration::from_millis(took)));
    }

    fn end(&mut self, millis: u64, operation: Operation, preview: bool, outcome: Outcome, changes: &[(StepOp, usize)]) {
        let summary = Summary {
            phase: Phase { operation, preview },
            changes: changes.iter().copied().collect(),
            deletions: Deletions::default(),
            outcome,
            duration: Duration::from_millis(millis),
            journal: None,
        };
        self.at(millis, Event::PhaseEnded(summary));
    }

    /// Renders the events of a period, in milliseconds, and the end of the display after the last one.
    fn play(&self, renderer: &mut dyn Renderer, from: u64, to: u64) {
        for (millis, event) in self.events.iter().filter(|(millis, _)| (from..to).contains(millis)) {
            if matches!(event, Event::Message(message) if !renderer.message_filter().shows(message)) {
                continue;
            }
            renderer.event(stamp(*millis), subject(), event).unwrap();
        }
        match self.events.last() {
            Some((end, Event::PhaseEnded(_))) if to == u64::MAX => {
                renderer.finish(Duration::from_millis(*end)).unwrap();
            }
            _ => renderer.tick(Duration::from_millis(to)).unwrap(),
        }
    }
}

fn stamp(millis: u64) -> Stamp {
    let time = Timestamp::from_millisecond(1_760_000_000_000 + i64::try_from(millis).unwrap()).unwrap();
    Stamp { at: Duration::from_millis(millis), time }
}

fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn root() -> Urn {
    Urn::root_stack("aquarium", "tidepool")
}

fn urn(type_token: &str, name: &str) -> Urn {
    Urn::new("aquarium", "tidepool", None, type_token, name)
}

fn state(urn: &Urn, inputs: PropertyMap) -> Arc<ResourceState> {
    let is_root = *urn == root();
    let mut state = ResourceState::new(urn.clone(), !is_root);
    state.parent = (!is_root).then(root);
    state.inputs = Arc::new(inputs.clone());
    state.outputs = Arc::new(inputs);
    Arc::new(state)
}

fn step(op: StepOp, urn: &Urn, old: Option<PropertyMap>, new: Option<PropertyMap>) -> StepInfo {
    StepInfo::new(op, urn.clone(), old.map(|inputs| state(urn, inputs)), new.map(|inputs| state(urn, inputs)))
}

fn root_step(op: StepOp) -> Arc<StepInfo> {
    let old = (op != StepOp::Create).then(|| bag([("token", PropertyValue::secret("hush-hush".into()))]));
    Arc::new(step(op, &root(), old, Some(PropertyMap::new())))
}

fn update(kind: DiffKind, input_diff: bool) -> PropertyDiff {
    PropertyDiff { kind, input_diff }
}

/// Returns a script with one resource each that is created, updated, replaced and deleted; an update of another one
/// fails unless it is a preview.
fn all_step_kinds(preview: bool) -> Script {
    let mut script = Script::new(Operation::Update, preview);
    let root_step = root_step(StepOp::Same);
    script.start(10, &root_step);
    script.done(10, &root_step, 0);

    let site = urn("aws:s3/bucketV2:BucketV2", "site--prod");
    let inputs = bag([
        ("bucket", "site-prod".into()),
        ("__defaults", PropertyValue::List(vec![])),
        ("password", PropertyValue::secret("correct horse".into())),
        ("tags", bag([("env", "prod".into()), ("team", "reef".into())]).into()),
        ("arn", PropertyValue::UNKNOWN),
    ]);
    let create = Arc::new(step(StepOp::Create, &site, None, Some(inputs)));
    script.start(20, &create);

    let config = urn("files:fs:File", "config--prod");
    let old = bag([
        ("content", "listen 80\nroot /srv\nlog on\nuser www\ngzip off\n".into()),
        ("mode", 420.0.into()),
        ("key", PropertyValue::secret("old key".into())),
        ("policy", r#"{"allow": ["a"], "deny": []}"#.into()),
    ]);
    let new = bag([
        ("content", "listen 8080\nroot /srv\nlog on\nuser www\ngzip on\n".into()),
        ("mode", 384.0.into()),
        ("key", PropertyValue::secret("new key".into())),
        ("policy", r#"{"allow": ["a", "b"], "deny": []}"#.into()),
        ("owner", "www".into()),
    ]);
    let mut info = step(StepOp::Update, &config, Some(old), Some(new));
    info.diffs = ["content", "key", "mode", "owner", "policy"].map(str::to_owned).to_vec();
    let change = Arc::new(info);
    script.start(30, &change);

    script.done(1520, &create, 1500);
    script.done(2030, &change, 2000);

    let database = urn("aws:rds/instance:Instance", "orders--prod");
    let old = bag([
        ("engine", "postgres".into()),
        ("tags", bag([("env", "prod".into())]).into()),
        ("ports", vec![80.0.into(), 443.0.into()].into()),
    ]);
    let new = bag([
        ("engine", "mysql".into()),
        ("tags", bag([("env", "prod".into()), ("team", "reef".into())]).into()),
        ("ports", vec![80.0.into(), 8443.0.into()].into()),
    ]);
    let mut info = step(StepOp::CreateReplacement, &database, Some(old.clone()), Some(new));
    info.replace_keys = vec!["engine".to_owned()];
    info.diffs = vec!["engine".to_owned(), "tags".to_owned(), "ports".to_owned()];
    info.detailed_diff = BTreeMap::from([
        ("engine".to_owned(), update(DiffKind::UpdateReplace, true)),
        ("tags.team".to_owned(), update(DiffKind::Add, true)),
        ("ports[1]".to_owned(), update(DiffKind::Update, true)),
    ]);
    let replacement = Arc::new(info);
    script.start(2040, &replacement);
    script.done(65_000, &replacement, 62_960);
    let marker = Arc::new(StepInfo { op: StepOp::Replace, ..(*replacement).clone() });
    script.start(65_000, &marker);
    script.done(65_000, &marker, 0);

    let key = urn("tls:index/privateKey:PrivateKey", "proxy--prod");
    let renewed =
        Arc::new(step(StepOp::Update, &key, Some(bag([("hours", 24.0.into())])), Some(bag([("hours", 48.0.into())]))));
    script.at(
        65_010,
        Event::Message(Message {
            urn: Some(key.clone()),
            property: Some("hours".to_owned()),
            hint: Some("ask for at most 36 hours".into()),
            ..Message::new(Severity::Warning, "so long a life is seldom allowed\nby most authorities")
        }),
    );
    script.start(65_020, &renewed);
    if preview {
        script.done(65_030, &renewed, 0);
    } else {
        let failure = StepFailure {
            message: "the authority refused: password \"correct horse\" is too weak\nrequest 4711".to_owned().into(),
            indeterminate: false,
            partial: false,
            details: None,
        };
        script.at(66_000, Event::StepFailed(renewed, failure));
    }

    let cleanup = Arc::new(StepInfo { op: StepOp::DeleteReplaced, new: None, ..(*replacement).clone() });
    script.start(66_010, &cleanup);
    script.done(67_000, &cleanup, 900);
    let gone = urn("files:fs:File", "motd--prod");
    let delete = Arc::new(step(StepOp::Delete, &gone, Some(bag([("path", "motd".into())])), None));
    script.start(67_010, &delete);
    script.done(67_200, &delete, 190);

    let outputs = bag([("token", PropertyValue::secret("hush-hush".into())), ("url", "https://reef.example".into())]);
    script.at(67_300, Event::OutputsRegistered(state(&root(), outputs)));
    let outcome = if preview { Outcome::Succeeded } else { Outcome::Failed };
    let changes = [
        (StepOp::Create, 1),
        (StepOp::Update, if preview { 2 } else { 1 }),
        (StepOp::Replace, 1),
        (StepOp::Delete, 1),
        (StepOp::Same, 23),
    ];
    script.end(67_400, Operation::Update, preview, outcome, &changes);
    script
}

/// Returns a script that creates two hundred resources, sixteen at a time; one of them fails.
fn two_hundred_creates() -> Script {
    let mut script = Script::new(Operation::Update, false);
    script.start(5, &root_step(StepOp::Create));
    let types = ["aws:s3/bucketV2:BucketV2", "gcp:artifactregistry/repository:Repository", "files:fs:File"];
    let mut events: Vec<(u64, Event)> = Vec::new();
    for index in 0..200_u64 {
        let urn = urn(types[usize::try_from(index).unwrap() % 3], &format!("resource-{index:03}--production"));
        let info = Arc::new(step(StepOp::Create, &urn, None, Some(bag([("index", 1.0.into())]))));
        let begin = 10 + index / 16 * 1000 + index % 16;
        let took = 900 + index % 7 * 10;
        events.push((begin, Event::StepStarted(Arc::clone(&info))));
        if index == 70 {
            let message = "quota of 70 repositories is used up\nask for more".to_owned();
            let failure = StepFailure { message: message.into(), indeterminate: false, partial: false, details: None };
            events.push((begin + took, Event::StepFailed(info, failure)));
        } else {
            events.push((begin + took, Event::StepSucceeded(info, Duration::from_millis(took))));
        }
    }
    events.sort_by_key(|(millis, _)| *millis);
    script.events.extend(events);
    script.end(13_500, Operation::Update, false, Outcome::Failed, &[(StepOp::Create, 200)]);
    script
}

/// Writer whose text can be read while a display owns a clone of it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn options(diff: bool) -> DisplayOptions {
    let diff = diff.then_some(DiffOptions { secrets: Secrets::Masked, full: false });
    DisplayOptions {
        diff,
        secrets: Secrets::Masked,
        verbose: false,
        color: false,
        results_color: false,
        before: Duration::ZERO,
    }
}

/// Returns the progress and the results that a run prints without a terminal.
fn plain(script: &Script, diff: bool) -> (String, String) {
    let (progress, results) = (Shared::default(), Shared::default());
    let mut display = PlainDisplay::new(progress.clone(), results.clone(), None, options(diff));
    script.play(&mut Redacting::new(&mut display), 0, u64::MAX);
    (progress.text(), results.text())
}

#[test]
fn ends_of_steps_count_the_changes_that_the_preview_announced() {
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), Shared::default(), None, options(true));
    let info = |op, name: &str, old, new| Arc::new(step(op, &urn("files:fs:File", name), old, new));
    let create = info(StepOp::Create, "a", None, Some(bag([])));
    let same = info(StepOp::Same, "b", Some(bag([])), Some(bag([])));
    let steps = [StepOp::CreateReplacement, StepOp::DeleteReplaced];
    let [replacement, old] = steps.map(|op| info(op, "c", Some(bag([])), Some(bag([]))));
    for preview in [true, false] {
        let mut script = Script::new(Operation::Update, preview);
        for info in [&create, &same, &replacement, &old] {
            script.start(10, info);
            script.done(20, info, 10);
        }
        script.end(30, Operation::Update, preview, Outcome::Succeeded, &[]);
        script.play(&mut display, 0, u64::MAX);
    }
    insta::assert_snapshot!(progress.text(), @"
    Previewing update of aquarium
    Updating aquarium
      + created a (files:fs:File) (0.0s) [1/2]
      ± replaced c (files:fs:File) (0.0s) [2/2]
    ");
}

#[test]
fn diff_of_a_destroy_shows_the_properties_after_a_refresh() {
    let mut script = Script::new(Operation::Destroy, true);
    let thing = urn("files:fs:File", "motd");
    let inputs = || Some(bag([("path", "motd".into())]));
    let refresh = step(StepOp::Refresh, &thing, inputs(), inputs());
    for info in [StepInfo { result: Some(StepOp::Same), ..refresh }, step(StepOp::Delete, &thing, inputs(), None)] {
        let info = Arc::new(info);
        script.start(10, &info);
        script.done(20, &info, 10);
    }
    script.end(30, Operation::Destroy, true, Outcome::Succeeded, &[(StepOp::Delete, 1)]);
    insta::assert_snapshot!(plain(&script, true).1, @r#"
    - motd  files:fs:File  delete
         - path: "motd"

    Preview of aquarium done in 0.0s: 1 to delete
    "#);
}

/// Renderer that redacts events as in a run.
struct Redacting<'a> {
    renderer: &'a mut dyn Renderer,
    masker: &'static SecretMasker,
    redactor: Redactor<'static>,
}

impl<'a> Redacting<'a> {
    fn new(renderer: &'a mut dyn Renderer) -> Self {
        let masker = Box::leak(Box::default());
        let redactor = Redactor::new(masker, renderer.secrets());
        Self { renderer, masker, redactor }
    }
}

impl Renderer for Redacting<'_> {
    fn log(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn message_filter(&self) -> MessageFilter {
        self.renderer.message_filter()
    }

    fn secrets(&self) -> Secrets {
        self.renderer.secrets()
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        // The engine adds the secrets of steps.
        if let Event::StepStarted(info) | Event::StepSucceeded(info, _) | Event::StepFailed(info, _) = event {
            info.old.iter().chain(&info.new).for_each(|state| self.masker.add_resource(state));
        }
        let mut event = event.clone();
        self.redactor.redact(&mut event);
        self.renderer.event(stamp, subject, &event)
    }

    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()> {
        self.renderer.stop(stamp, notice)
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.renderer.tick(at)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.renderer.pause()
    }

    fn finish(&mut self, at: Duration) -> io::Result<()> {
        self.renderer.finish(at)
    }
}

#[test]
fn preview_without_a_terminal_prints_changes_as_result() {
    let (progress, results) = plain(&all_step_kinds(true), true);
    insta::assert_snapshot!("plain_preview_progress", progress);
    insta::assert_snapshot!("plain_preview_results", results);
}

#[test]
fn update_without_a_terminal_prints_the_end_of_each_step() {
    let (progress, results) = plain(&all_step_kinds(false), false);
    insta::assert_snapshot!("plain_update_progress", progress);
    insta::assert_snapshot!("plain_update_results", results);
}

#[test]
fn long_step_without_a_terminal_is_reported_after_5_and_then_every_30_seconds() {
    let mut script = Script::new(Operation::Update, false);
    script.start(0, &root_step(StepOp::Same));
    let slow = urn("aws:rds/instance:Instance", "orders--prod");
    script.start(1_000, &Arc::new(step(StepOp::Create, &slow, None, Some(PropertyMap::new()))));
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), Shared::default(), None, options(true));
    script.play(&mut display, 0, 2_000);
    for second in 2..100 {
        display.tick(Duration::from_secs(second)).unwrap();
    }
    insta::assert_snapshot!(progress.text(), @"
    Updating aquarium
      … creating orders--prod (4.0s)
      … creating orders--prod (34s)
      … creating orders--prod (1m04s)
      … creating orders--prod (1m34s)
    ");
}

/// Shows: events.md#every-event "1 for the first line, then one more for each line"
/// Shows: events.md#events-as-json-lines "A secret value is written as the text `[secret]`"
#[test]
fn json_display_prints_one_line_per_event_with_masked_secrets() {
    let out = Shared::default();
    let mut display = JsonDisplay::new(out.clone(), Secrets::Masked, true, EventNumbers::default());
    all_step_kinds(false).play(&mut Redacting::new(&mut display), 0, u64::MAX);
    insta::assert_snapshot!("json", out.text());
}

/// Shows: events.md#events-as-json-lines "Secrets are also masked in the texts of messages and errors, always"
#[test]
fn no_display_shows_a_secret() {
    for preview in [true, false] {
        let script = all_step_kinds(preview);
        let (progress, results) = plain(&script, true);
        let json = Shared::default();
        script.play(
            &mut Redacting::new(&mut JsonDisplay::new(json.clone(), Secrets::Masked, true, EventNumbers::default())),
            0,
            u64::MAX,
        );
        for text in [progress, results, json.text()] {
            for secret in ["correct horse", "old key", "new key", "hush-hush"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
        }
    }
}

#[test]
fn values_that_equal_a_secret_are_masked_in_every_display() {
    let echo = || bag([("echo", "hush-hush".into()), ("list", vec!["hush-hush".into(), "open".into()].into())]);
    let user = urn("t:m:User", "user");
    for op in [StepOp::Create, StepOp::Update, StepOp::Delete, StepOp::Refresh, StepOp::Import, StepOp::Read] {
        let mut script = Script::new(Operation::Update, false);
        script.start(
            1,
            &Arc::new(step(StepOp::Same, &user, None, Some(bag([("pw", PropertyValue::secret("hush-hush".into()))])))),
        );
        let (old, new) = match op {
            StepOp::Create | StepOp::Import | StepOp::Read => (None, Some(echo())),
            StepOp::Delete => (Some(echo()), None),
            _ => (Some(bag([("echo", "before".into())])), Some(echo())),
        };
        let info = Arc::new(step(op, &urn("t:m:Echo", "echo"), old, new));
        script.start(2, &info);
        script.done(3, &info, 1);
        script.at(4, Event::OutputsRegistered(state(&root(), echo())));
        script.end(5, Operation::Update, false, Outcome::Succeeded, &[(op, 1)]);
        let (progress, results) = plain(&script, true);
        let json = Shared::default();
        let mut display = JsonDisplay::new(json.clone(), Secrets::Masked, true, EventNumbers::default());
        script.play(&mut Redacting::new(&mut display), 0, u64::MAX);
        for text in [progress, results, json.text()] {
            assert!(!text.contains("hush-hush"), "{op:?}: {text}");
        }
        assert!(json.text().contains("open") && json.text().contains("[secret]"), "{op:?}");
    }
}

/// Shows: events.md#secrets-in-texts "A text is shortened only after it is masked"
#[test]
fn secret_in_a_long_message_is_masked_before_the_message_is_shortened() {
    const SECRET: &str = "swordfish-7f3a";
    let masker = SecretMasker::default();
    masker.add_text(SECRET);
    // Texts that are masked as a whole, and texts of which only the beginning is.
    for (before, after) in [(TEXT_CHARACTERS / 4 * 3 - 6, TEXT_CHARACTERS), (TEXT_BYTES - 6, 1_000_000)] {
        for around in ["x", "é", SECRET] {
            let around = |bytes: usize| around.repeat(bytes / around.len());
            let text = format!("{}{SECRET}{}", around(before), around(after));
            let mut event =
                Event::Message(Message { hint: Some(text.clone().into()), ..Message::new(Severity::Info, text) });
            Redactor::new(&masker, Secrets::Masked).redact(&mut event);
            let Event::Message(Message { text, hint, .. }) = event else { panic!("{event:?}") };
            assert!(text.contains(" … ") || after < TEXT_BYTES, "{} bytes", text.len());
            assert!(text.chars().count() < TEXT_CHARACTERS + 40, "{} bytes", text.len());
            assert!(!text.contains("swo") && !text.contains("-7f"), "{text}");
            assert_eq!(hint.as_deref(), Some(&*text));
        }
    }
}

/// Shows: events.md#events-as-json-lines "It is written as soon as the event occurs."
/// Shows: events.md#order "The last line of a run that was not aborted is a `phase-ended`"
#[test]
fn finish_waits_until_all_events_are_rendered_in_order() {
    let out = Shared::default();
    let display = Display::start(
        Box::new(JsonDisplay::new(out.clone(), Secrets::Masked, true, EventNumbers::default())),
        Arc::default(),
    )
    .unwrap();
    let sink = display.sink("dev", None);
    for text in ["one", "two", "three"] {
        sink.emit(Event::Message(Message::new(Severity::Info, text)));
    }
    display.pause();
    assert_eq!(out.text().lines().count(), 3);
    sink.emit(Event::Message(Message::new(Severity::Info, "four")));
    display.finish().unwrap();
    let texts: Vec<String> = out
        .text()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}

/// Shows: events.md#message "position in your files, as `file:line:column`"
#[test]
fn messages_have_the_position_in_the_program() {
    let out = Shared::default();
    let display = Display::start(
        Box::new(JsonDisplay::new(out.clone(), Secrets::Masked, true, EventNumbers::default())),
        Arc::default(),
    )
    .unwrap();
    let locate: Locate = Arc::new(|source, property| {
        Some(FilePosition { position: format!("server.yaml:{}:{}", source.0, property.unwrap()), excerpt: Vec::new() })
    });
    let message =
        Message { source: Some(SourceRef(7)), property: Some("a.b".to_owned()), ..Message::new(Severity::Error, "no") };
    display.sink("dev", Some(locate)).emit(Event::Message(message.clone()));
    display.sink("dev", None).emit(Event::Message(message));
    display.finish().unwrap();
    let places: Vec<serde_json::Value> = out
        .text()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["place"].clone())
        .collect();
    assert_eq!(places, ["server.yaml:7:a.b".into(), serde_json::Value::Null]);
}

#[test]
fn broken_pipe_is_reported_at_the_end() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let display = Display::start(
        Box::new(JsonDisplay::new(Closed, Secrets::Masked, true, EventNumbers::default())),
        Arc::default(),
    )
    .unwrap();
    let sink = display.sink("dev", None);
    (0..3).for_each(|_| sink.emit(Event::Message(Message::new(Severity::Info, "x"))));
    assert_eq!(display.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
