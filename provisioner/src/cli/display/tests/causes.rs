//! Tests of errors of one cause.

use super::*;

/// Returns a run in which all of a number of resources fail for one cause, and another one for a cause of its own.
fn failing(preview: bool, count: usize, others: bool) -> Script {
    let mut script = Script::new(Operation::Update, preview);
    let root_step = root_step(StepOp::Same);
    script.start(10, &root_step);
    script.done(10, &root_step, 0);
    let fail = |script: &mut Script, name: &str, text: &str| {
        let urn = urn("gcp:artifactregistry/repository:Repository", name);
        let info = Arc::new(step(StepOp::Create, &urn, None, Some(PropertyMap::new())));
        let hint = Some("ask for a larger quota".into());
        let message = Message { urn: Some(urn), hint, ..Message::new(Severity::Error, text.to_owned()) };
        if preview {
            script.at(20, Event::Message(message));
            return;
        }
        script.start(15, &info);
        script.at(20, Event::Message(message));
        let (message, details) = (text.to_owned().into(), None);
        let failure = StepFailure { message, indeterminate: false, partial: false, details };
        script.at(20, Event::StepFailed(info, failure));
    };
    for index in 0..count {
        let (name, request) = (format!("repo-{index:02}--prod"), 7_000_000_000_u64 + index as u64);
        fail(&mut script, &name, &format!("quota of 70 is used up\nfor {name}, request {request}"));
    }
    if others {
        fail(&mut script, "other--prod", "no access");
    }
    script.end(30, Operation::Update, preview, Outcome::Failed, &[(StepOp::Same, 1)]);
    script
}

#[test]
fn errors_of_one_cause_are_one_message_with_all_resources() {
    let (progress, results) = plain(&failing(true, 3, false), true);
    insta::assert_snapshot!(progress, @"
    Previewing update of aquarium
    error: 3 resources: quota of 70 is used up
      for repo-00--prod, request 7000000000
      repo-00--prod (gcp:artifactregistry:Repository) at server.yaml:12:5
      repo-01--prod (gcp:artifactregistry:Repository) at server.yaml:12:5
      repo-02--prod (gcp:artifactregistry:Repository) at server.yaml:12:5
      hint: ask for a larger quota
    ");
    insta::assert_snapshot!(results, @"
      tidepool-aquarium  Stack
    ✗ ├─ repo-00--prod   gcp:artifactregistry:Repository  failed     quota of 70 is used up
    ✗ ├─ repo-01--prod   gcp:artifactregistry:Repository  failed     quota of 70 is used up
    ✗ └─ repo-02--prod   gcp:artifactregistry:Repository  failed     quota of 70 is used up

    Preview of aquarium failed after 0.0s: 3 failed, 1 unchanged
    ");
}

#[test]
fn run_without_a_terminal_prints_the_first_error_of_a_cause_at_once_and_the_others_at_its_end() {
    let (progress, _) = plain(&failing(false, 12, true), false);
    insta::assert_snapshot!(progress);
    let (progress, _) = plain(&failing(false, 1, false), false);
    assert!(!progress.contains("failed"), "one error needs no recap: {progress}");
}

#[test]
fn run_on_a_terminal_ends_with_its_failed_resources_by_cause() {
    let screen = Shared::default();
    let mut live = LiveDisplay::new(screen.clone(), Shared::default(), || Some((80, 24)), options(false));
    failing(false, 12, true).play(&mut live, 0, u64::MAX);
    let text = screen.text();
    assert_eq!(text.matches("ask for a larger quota").count(), 2, "{text}");
    assert!(text.contains("error: 13 resources failed:"), "{text}");
}

#[test]
fn recorded_resource_whose_check_fails_stands_in_the_tree_as_failed() {
    let urn = urn("t:m:T", "one");
    let inputs = || Some(bag([("v", 1.0.into())]));
    for result in [StepOp::Same, StepOp::Update] {
        let mut script = Script::new(Operation::Update, true);
        let refresh = step(StepOp::Refresh, &urn, inputs(), inputs());
        let refresh = Arc::new(StepInfo { result: Some(result), ..refresh });
        script.start(1, &refresh);
        script.done(2, &refresh, 1);
        let message = Message { urn: Some(urn.clone()), ..Message::new(Severity::Error, "v is refused".to_owned()) };
        script.at(3, Event::Message(message));
        script.end(4, Operation::Update, true, Outcome::Failed, &[]);
        let (_, results) = plain(&script, false);
        assert!(results.starts_with("✗ one  t:m:T  failed     v is refused\n"), "{results}");
    }
}
