//! Tests of programs with resources that fail, are skipped, or are missing.

use engine::RegistrationResult;
use provisioner::program::End;
use pulumi_proto::property::PropertyValue;

use crate::fake::{FakeDeployment, Subject};

const CHAIN: &str = "
a: { type: 'p:m:A', config: { n: 1 } }
b: { type: 'p:m:B', config: { x: '${resource:a.n}', y: 'y${resource:a.n}', z: [1, '${resource:a.n}'] } }
c: { type: 'p:m:C', options: { dependsOn: [b] } }
d: { type: 'p:m:D' }
";

#[tokio::test]
async fn what_hangs_on_a_failure_is_not_attempted_and_the_rest_is() {
    let subject = Subject::resources(CHAIN, "outputs: { d: '${resource:d.id}' }\n");
    let deployment =
        FakeDeployment { results: [("a--e", RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
    let ended = subject.program.run(&deployment).await;
    assert_eq!(ended.end, End::Incomplete);
    assert_eq!(deployment.names(), ["reef-s", "p", "a--e", "d--e"]);
    assert_eq!(deployment.output("d"), "d--e-1".into());
}

#[tokio::test]
async fn outputs_that_name_what_failed_are_not_registered() {
    let subject = Subject::resources(CHAIN, "outputs: { d: '${resource:d.id}', c: '${resource:c.id}' }\n");
    let deployment =
        FakeDeployment { results: [("a--e", RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
    assert_eq!(subject.words(&deployment).await, "");
    assert!(deployment.stack_outputs.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_refusal_ends_the_program() {
    let subject = Subject::resources(CHAIN, "");
    let deployment = FakeDeployment { refuse: vec!["a--e"], ..FakeDeployment::default() };
    assert_eq!(subject.words(&deployment).await, "");
    assert!(!deployment.names().contains(&"b--e".to_owned()));
    assert!(deployment.stack_outputs.lock().unwrap().is_none());
}

#[tokio::test]
async fn what_comes_from_a_skipped_resource_is_left_out_of_a_real_run() {
    let subject = Subject::resources(CHAIN, "");
    let skipped = || [("a--e", RegistrationResult::Skipped)].into();
    let deployment = FakeDeployment { results: skipped(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    let goal = deployment.goal("b--e");
    assert_eq!(*goal.inputs, [("z".to_owned(), vec![1.0.into(), PropertyValue::Null].into())].into());
    assert_eq!(goal.dependencies.len(), 1, "it still depends on it");
    let preview = FakeDeployment { results: skipped(), ..FakeDeployment::preview() };
    subject.run(&preview).await;
    assert_eq!(preview.goal("b--e").inputs["y"], PropertyValue::UNKNOWN);
}

#[tokio::test]
async fn an_output_that_does_not_exist_is_told_at_its_line() {
    let subject = Subject::resources(
        "a: { type: 'p:m:A', config: { name: x } }\nb: { type: 'p:m:B', config: { x: '${resource:a.nam}' } }",
        "",
    );
    let deployment = FakeDeployment::default();
    insta::assert_snapshot!(subject.words(&deployment).await, @r#"
    error[unknown-output]: resource "a" has no output "nam"
     --> .sc/stacks/s/server.yaml:8:43
      |
    8 |         b: { type: 'p:m:B', config: { x: '${resource:a.nam}' } }
      |                                           ^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `name`?
    "#);
    let subject = Subject::resources("a: { type: 'p:m:A', config: { l: [1] } }", "outputs:\n  o: x${resource:a.l}\n");
    insta::assert_snapshot!(subject.words(&FakeDeployment::default()).await, @r"
    error[cannot-join]: ${resource:a.l} is a list: it cannot be part of a text
     --> .sc/stacks/s/server.yaml:9:7
      |
    9 |   o: x${resource:a.l}
      |       ^^^^^^^^^^^^^^^
      |
      = hint: let it stand alone, or name something inside of it
    ");
}
