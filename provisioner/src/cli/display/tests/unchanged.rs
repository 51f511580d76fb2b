//! Tests of the lines about a stack without changes, and of the last line of a command.

use super::*;

fn unchanged(operation: Operation, preview: bool, end: u64) -> Script {
    let mut script = Script::new(operation, preview);
    let inputs = || Some(bag([("size", 1.0.into())]));
    let info = Arc::new(step(StepOp::Same, &urn("t:m:T", "one"), inputs(), inputs()));
    for info in [root_step(StepOp::Same), info] {
        script.start(10, &info);
        script.done(20, &info, 10);
    }
    let outputs = bag([("token", PropertyValue::secret("hush-hush".into()))]);
    script.at(25, Event::OutputsRegistered(state(&root(), outputs)));
    script.end(end, operation, preview, Outcome::Succeeded, &[(StepOp::Same, 2)]);
    script
}

const PHASES: [(Operation, bool); 3] =
    [(Operation::Refresh, false), (Operation::Update, true), (Operation::Update, false)];

#[test]
fn stack_without_changes_is_one_sentence() {
    let (progress, results, screen) = (Shared::default(), Shared::default(), Shared::default());
    let options = DisplayOptions { before: Duration::from_secs(1), ..options(true) };
    let mut plain = PlainDisplay::new(progress.clone(), results.clone(), None, options);
    let shown = Shared::default();
    let mut live = LiveDisplay::new(screen, shown.clone(), || Some((80, 24)), options);
    for display in [&mut plain as &mut dyn Renderer, &mut live] {
        for (operation, preview) in PHASES {
            unchanged(operation, preview, 500).play(display, 0, 1000);
        }
        display.finish(Duration::from_millis(2_400)).unwrap();
    }
    for text in [results.text(), shown.text()] {
        assert_eq!(text, "No changes: all 2 resources of aquarium are unchanged (3.4s)\n");
    }
    assert_eq!(progress.text(), "");
}

#[test]
fn last_line_has_the_time_of_the_whole_command() {
    let (progress, results) = (Shared::default(), Shared::default());
    let options = DisplayOptions { before: Duration::from_secs(1), ..options(false) };
    let mut display = PlainDisplay::new(progress, results.clone(), None, options);
    for preview in [true, false] {
        let mut script = Script::new(Operation::Update, preview);
        let info = Arc::new(step(StepOp::Create, &urn("t:m:T", "one"), None, Some(bag([]))));
        script.start(10, &info);
        script.done(20, &info, 10);
        script.end(500, Operation::Update, preview, Outcome::Succeeded, &[(StepOp::Create, 1)]);
        script.play(&mut display, 0, 1000);
    }
    display.finish(Duration::from_millis(4_000)).unwrap();
    insta::assert_snapshot!(results.text(), @"
    + one  t:m:T  create

    Preview of aquarium done in 0.5s: 1 to create
    Update of aquarium done in 5.0s: 1 created
    ");
}

/// Shows: events.md#order "Messages that come after the end of a phase"
#[test]
fn messages_after_the_end_of_a_phase_precede_its_event() {
    for verbose in [true, false] {
        let out = Shared::default();
        let numbers = EventNumbers::default();
        let display =
            Display::start(Box::new(JsonDisplay::new(out.clone(), Secrets::Masked, verbose, numbers)), Arc::default())
                .unwrap();
        let sink = display.sink("aquarium", None);
        for (_, event) in unchanged(Operation::Update, false, 500).events {
            sink.emit(event);
        }
        sink.emit(Event::Message(Message::new(Severity::Debug, "bye")));
        sink.emit(Event::Message(Message::new(Severity::Info, "2 stacks done")));
        display.finish().unwrap();
        let text = out.text();
        let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.last().unwrap()["event"], "phase-ended");
        assert_eq!(text.contains("bye"), verbose);
        assert!(text.contains("2 stacks done"));
        assert!(events.iter().enumerate().all(|(index, event)| event["sequence"] == index + 1));
    }
}
