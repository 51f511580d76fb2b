//! Tests of what is shown while a run waits for something beside the steps of a phase.

use engine::events::{Activity, ActivityKind, ActivityStage};

use super::*;

fn activity(kind: ActivityKind, subject: &str, stage: ActivityStage) -> Event {
    Event::Activity(Activity { kind, subject: subject.to_owned(), stage })
}

fn play(display: &mut dyn Renderer, millis: u64, event: &Event) {
    display.event(stamp(millis), EventSubject { stack: "aquarium", place: None }, event).unwrap();
}

#[test]
fn terminal_shows_an_activity_within_300_milliseconds_in_one_line() {
    let screen = Shared::default();
    let mut display = LiveDisplay::new(screen.clone(), Shared::default(), || Some((80, 24)), options(false));
    play(&mut display, 0, &activity(ActivityKind::Start, "files", ActivityStage::Started));
    display.tick(Duration::from_millis(100)).unwrap();
    assert!(!screen.text().contains("starting"), "a short one would flicker");
    display.tick(Duration::from_millis(200)).unwrap();
    assert!(screen.text().contains("starting plugin files (0.2s)"), "{}", screen.text());
    play(&mut display, 300, &activity(ActivityKind::Start, "files", ActivityStage::Ended));
    display.tick(Duration::from_millis(300)).unwrap();
    let shown = screen.text().len();
    display.tick(Duration::from_millis(400)).unwrap();
    assert_eq!(screen.text().len(), shown, "nothing is painted without an activity");
}

#[test]
fn pipe_shows_what_is_awaited_after_5_seconds_and_then_every_30() {
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), Shared::default(), None, options(false));
    play(&mut display, 0, &activity(ActivityKind::WaitForLock, "aquarium", ActivityStage::Started));
    for second in 0..70 {
        display.tick(Duration::from_secs(second)).unwrap();
    }
    play(&mut display, 70_000, &activity(ActivityKind::WaitForLock, "aquarium", ActivityStage::Ended));
    for second in 70..200 {
        display.tick(Duration::from_secs(second)).unwrap();
    }
    insta::assert_snapshot!(progress.text(), @"
      … waiting for the lock of aquarium (5.0s)
      … waiting for the lock of aquarium (35s)
      … waiting for the lock of aquarium (1m05s)
    ");
}

/// Shows: events.md#activity "An activity that is done within 300 ms has no event."
#[test]
fn activity_that_lasts_has_events() {
    let out = Shared::default();
    let mut display = JsonDisplay::new(out.clone(), Secrets::Masked, false, EventNumbers::default());
    for (kind, end) in [(ActivityKind::DeriveKey, 200), (ActivityKind::Configure, 900)] {
        play(&mut display, 0, &activity(kind, "x", ActivityStage::Started));
        (0..end / 100).for_each(|step| display.tick(Duration::from_millis(step * 100)).unwrap());
        play(&mut display, end, &activity(kind, "x", ActivityStage::Ended));
    }
    display.finish(Duration::from_secs(1)).unwrap();
    let text = out.text();
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let members = |event: &serde_json::Value| ["event", "kind", "subject", "stage", "text"].map(|it| event[it].clone());
    let expected =
        |stage: &str| ["activity", "configure", "x", stage, "configuring plugin x"].map(serde_json::Value::from);
    assert_eq!(events.iter().map(members).collect::<Vec<_>>(), [expected("started"), expected("done")]);
}

#[test]
fn heading_counts_the_resources_that_the_phase_is_about() {
    let screen = Shared::default();
    let mut display = LiveDisplay::new(screen.clone(), Shared::default(), || Some((80, 24)), options(false));
    let mut script = Script::new(Operation::Refresh, false);
    script.at(0, Event::PhaseTotal(12));
    let inputs = || Some(bag([]));
    let info = Arc::new(step(StepOp::Refresh, &urn("t:m:T", "one"), inputs(), inputs()));
    script.start(10, &info);
    script.done(20, &info, 10);
    script.play(&mut display, 0, 1_000);
    assert!(screen.text().contains("Refreshing aquarium  [1/12]  1s"), "{}", screen.text());
}
