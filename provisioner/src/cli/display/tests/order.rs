//! Order of the resources and messages of a preview: that of the user's files, whichever resource is ready first.

use super::*;

/// Names and places of resources that are previewed at the same time. Those without a place are to be deleted.
const RESOURCES: [(&str, Option<u64>); 5] =
    [("zebra", Some(1)), ("moss", None), ("apple", Some(3)), ("lichen", None), ("mango", Some(2))];

/// Returns a preview whose resources are ready in the order of these indexes, each with a message.
fn preview(order: [usize; 5]) -> Script {
    let mut script = Script::new(Operation::Update, true);
    script.start(0, &root_step(StepOp::Same));
    for index in order {
        let (name, place) = RESOURCES[index];
        let urn = urn("box:index:Box", name);
        let source = place.map(SourceRef);
        let step = match place {
            Some(_) => step(StepOp::Create, &urn, None, Some(PropertyMap::new())),
            None => step(StepOp::Delete, &urn, Some(PropertyMap::new()), None),
        };
        let step = Arc::new(StepInfo { source, ..step });
        script.start(1, &step);
        if place.is_some() {
            let urn = Some(urn);
            script.at(1, Event::Message(Message { urn, source, ..Message::new(Severity::Warning, "old version") }));
        }
        script.done(1, &step, 0);
    }
    script.end(2, Operation::Update, true, Outcome::Succeeded, &[(StepOp::Create, 3), (StepOp::Delete, 2)]);
    script
}

/// Returns what the display without a terminal prints, progress and results, and what the live display prints.
fn shown(script: &Script) -> [String; 3] {
    let (progress, results) = plain(script, false);
    let screen = Shared::default();
    let mut live = LiveDisplay::new(screen.clone(), screen.clone(), || Some((80, 24)), options(false));
    script.play(&mut live, 0, u64::MAX);
    [progress, results, screen.text()]
}

/// Returns the names of the resources in the order in which the lines of a text begin to name them.
fn names_in(text: &str) -> Vec<&str> {
    let named = |line: &str| RESOURCES.iter().find(|(name, _)| line.contains(name)).map(|(name, _)| *name);
    text.lines().filter_map(named).collect()
}

/// Shows: README.md#what-it-does "both in the order of the file"
#[test]
fn preview_is_ordered_as_the_file_is() {
    let expected = shown(&preview([0, 1, 2, 3, 4]));
    let [progress, results, _] = &expected;
    assert_eq!(names_in(results), ["zebra", "mango", "apple", "lichen", "moss"]);
    assert_eq!(names_in(progress), ["zebra", "mango", "apple"]);
    for order in [[4, 3, 2, 1, 0], [2, 0, 4, 3, 1], [1, 4, 0, 2, 3]] {
        assert_eq!(shown(&preview(order)), expected);
    }
}

#[test]
fn interrupted_preview_prints_its_messages() {
    let mut script = preview([0, 1, 2, 3, 4]);
    script.events.pop();
    let progress = Shared::default();
    let mut display = PlainDisplay::new(progress.clone(), io::sink(), None, options(false));
    script.play(&mut display, 0, u64::MAX);
    display.finish(Duration::ZERO).unwrap();
    assert_eq!(names_in(&progress.text()), ["zebra", "mango", "apple"]);
}
