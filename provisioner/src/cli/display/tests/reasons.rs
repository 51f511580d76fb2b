//! Tests of the reasons that a preview shows.

use super::*;

fn bag_of(size: f64) -> Option<PropertyMap> {
    Some(bag([("size", size.into())]))
}

fn refreshed(urn: &Urn, recorded: f64, found: Option<f64>) -> StepInfo {
    let result = if found.is_some() { StepOp::Update } else { StepOp::Delete };
    let new = found.and_then(bag_of);
    StepInfo { result: Some(result), ..step(StepOp::Refresh, urn, bag_of(recorded), new) }
}

/// Plays a preview of a step, after a refresh in the same phase or in a phase of its own.
fn play_preview(display: &mut dyn Renderer, refresh: Option<StepInfo>, info: StepInfo, is_own_phase: bool) {
    let mut play = |operation, preview, infos: Vec<StepInfo>| {
        let mut script = Script::new(operation, preview);
        for info in infos.into_iter().map(Arc::new) {
            script.start(1, &info);
            script.done(1, &info, 0);
        }
        script.end(2, operation, preview, Outcome::Succeeded, &[]);
        script.play(display, 0, u64::MAX);
    };
    if is_own_phase {
        play(Operation::Refresh, false, refresh.into_iter().collect());
        play(Operation::Update, true, vec![info]);
    } else {
        play(Operation::Update, true, refresh.into_iter().chain([info]).collect());
    }
}

/// Returns the reason in the event of a step, as a program reads it.
fn reason_in_json(refresh: Option<StepInfo>, info: StepInfo, is_own_phase: bool) -> String {
    let mut json = Vec::new();
    let mut display = JsonDisplay::new(&mut json, Secrets::Masked, true, EventNumbers::default());
    play_preview(&mut display, refresh, info, is_own_phase);
    let events = String::from_utf8(json).unwrap();
    let mut events = events.lines().rev().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let done = events.find(|event| event["event"] == "step-succeeded").unwrap();
    done["reason"].as_str().unwrap_or_default().to_owned()
}

/// Returns what a preview shows of a step.
fn shown(refresh: Option<StepInfo>, info: StepInfo, is_own_phase: bool) -> String {
    let (progress, results) = (Shared::default(), Shared::default());
    let mut display = PlainDisplay::new(progress, results.clone(), None, options(false));
    play_preview(&mut display, refresh, info, is_own_phase);
    let text = results.text();
    let line = text.lines().find(|line| line.contains("t:m:T")).unwrap_or_default();
    line.split("t:m:T").nth(1).unwrap_or_default().trim().to_owned()
}

#[test]
fn preview_says_why_each_resource_changes() {
    let urn = urn("t:m:T", "one");
    let update = |old, new| step(StepOp::Update, &urn, bag_of(old), bag_of(new));
    let named = |info: StepInfo, name: &str| StepInfo { replace_keys: vec![name.to_owned()], ..info };
    let replace = |old, new| StepInfo { op: StepOp::Replace, ..update(old, new) };
    let unknown = Some(bag([("size", PropertyValue::UNKNOWN)]));
    let follows = step(StepOp::Update, &urn, bag_of(1.0), unknown);
    let table = [
        (None, update(1.0, 2.0), "update     edited here"),
        (Some(refreshed(&urn, 1.0, Some(3.0))), update(3.0, 1.0), "update     changed outside"),
        (Some(refreshed(&urn, 1.0, Some(3.0))), update(3.0, 2.0), "update     edited here, changed outside"),
        (None, follows, "update     follows from other changes"),
        (None, update(1.0, 1.0), "update"),
        (None, named(replace(1.0, 2.0), "size"), "replace    edited here; replaced because of size [size]"),
        (None, named(replace(1.0, 1.0), "provider"), "replace    its provider changed [provider]"),
        (
            Some(refreshed(&urn, 1.0, None)),
            step(StepOp::Create, &urn, None, bag_of(1.0)),
            "create     it is gone: created again",
        ),
        (None, step(StepOp::Create, &urn, None, bag_of(1.0)), "create"),
    ];
    for (refresh, info, expected) in table {
        for is_own_phase in [false, true] {
            let text = shown(refresh.clone(), info.clone(), is_own_phase);
            assert_eq!(text, expected, "own phase: {is_own_phase}");
            let without_names = expected.split(" [").next().unwrap();
            let reason = without_names.split_once(' ').map_or("", |(_, reason)| reason.trim_start());
            assert_eq!(reason_in_json(refresh.clone(), info.clone(), is_own_phase), reason);
        }
    }
}

#[test]
fn resource_that_is_created_again_is_shown_with_its_properties() {
    let urn = urn("t:m:T", "one");
    let mut script = Script::new(Operation::Update, true);
    for info in [refreshed(&urn, 1.0, None), step(StepOp::Create, &urn, None, bag_of(1.0))].map(Arc::new) {
        script.start(1, &info);
        script.done(1, &info, 0);
    }
    script.end(2, Operation::Update, true, Outcome::Succeeded, &[(StepOp::Create, 1)]);
    insta::assert_snapshot!(plain(&script, true).1, @"
    + one  t:m:T  create     it is gone: created again
         + size: 1

    Preview of aquarium done in 0.0s: 1 to create
    ");
}

#[test]
fn destroy_says_what_is_gone_already() {
    let mut script = Script::new(Operation::Destroy, true);
    let (gone, kept) = (urn("t:m:T", "gone"), urn("t:m:T", "kept"));
    for info in [refreshed(&gone, 1.0, None), step(StepOp::Delete, &kept, bag_of(1.0), None)].map(Arc::new) {
        script.start(1, &info);
        script.done(1, &info, 0);
    }
    script.end(2, Operation::Destroy, true, Outcome::Succeeded, &[(StepOp::Delete, 1)]);
    insta::assert_snapshot!(plain(&script, false).1, @"
    ↻ gone  t:m:T  gone       it does not exist any more
    - kept  t:m:T  delete

    Preview of aquarium done in 0.0s: 1 to delete, 1 gone already
    ");
}

#[test]
fn computed_outputs_that_change_are_not_shown_as_removed() {
    let outputs = |info: StepInfo, old: f64, new: Option<PropertyValue>| {
        let with = |state: Option<Arc<ResourceState>>, volume: Option<PropertyValue>| {
            let mut state = (*state.unwrap()).clone();
            let mut outputs = (*state.outputs).clone();
            outputs.extend(volume.map(|volume| ("volume".to_owned(), volume)));
            state.outputs = Arc::new(outputs);
            Some(Arc::new(state))
        };
        StepInfo { old: with(info.old.clone(), Some(old.into())), new: with(info.new.clone(), new), ..info }
    };
    let info = |op| {
        let diffs = vec!["size".to_owned(), "volume".to_owned()];
        StepInfo { diffs, ..step(op, &urn("t:m:T", "one"), bag_of(1.0), bag_of(2.0)) }
    };
    let show = |info: &StepInfo| -> Vec<String> {
        let options = DiffOptions { secrets: Secrets::Masked, full: false };
        super::super::diff::step_diff(info, options).iter().map(|line| line.render(false)).collect()
    };
    for (new, expected) in [
        (None, "~ volume: 7 → <computed>"),
        (Some(PropertyValue::UNKNOWN), "~ volume: 7 → <computed>"),
        (Some(14.0.into()), "~ volume: 7 → 14"),
    ] {
        let plain = outputs(info(StepOp::Update), 7.0, new.clone());
        assert_eq!(show(&plain), ["~ size: 1 → 2", expected]);
        let detailed_diff = BTreeMap::from([
            ("size".to_owned(), update(DiffKind::UpdateReplace, true)),
            ("volume".to_owned(), update(DiffKind::Delete, false)),
        ]);
        let detailed = StepInfo { detailed_diff, ..outputs(info(StepOp::Replace), 7.0, new) };
        assert_eq!(show(&detailed), ["~ size: 1 → 2 [replaces]", expected]);
    }
    assert_eq!(show(&outputs(info(StepOp::Update), 7.0, Some(7.0.into()))), ["~ size: 1 → 2"]);
}
