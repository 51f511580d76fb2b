//! Tests of programs with resources that fail, are skipped, or are missing.

use std::collections::BTreeSet;

use engine::{ProgramEnd, RegistrationResult};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;

use crate::fake::{FakeDeployment, StackProgram};

const CHAIN: &str = "
a: { type: 'p:m:A', config: { n: 1 } }
b: { type: 'p:m:B', config: { x: '${resource:a.n}', y: 'y${resource:a.n}', z: [1, '${resource:a.n}'] } }
c: { type: 'p:m:C', options: { dependsOn: [b] } }
d: { type: 'p:m:D' }
";

#[tokio::test]
async fn dependents_of_failed_resource_are_not_registered_and_other_resources_are() {
    let subject = StackProgram::resources(CHAIN, "outputs: { d: '${resource:d.id}' }\n");
    let deployment =
        FakeDeployment { results: [("a--e", RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
    let result = subject.program.run(&deployment, &deployment).await;
    assert_eq!(result.end, ProgramEnd::Failed);
    assert_eq!(deployment.names(), ["reef-s", "p", "a--e", "d--e"]);
    assert_eq!(deployment.output("d"), "d--e-1".into());
}

#[tokio::test]
async fn outputs_are_not_registered_if_one_references_a_failed_resource() {
    let subject = StackProgram::resources(CHAIN, "outputs: { d: '${resource:d.id}', c: '${resource:c.id}' }\n");
    let deployment =
        FakeDeployment { results: [("a--e", RegistrationResult::Failed)].into(), ..FakeDeployment::default() };
    assert_eq!(subject.diagnostics(&deployment).await, "");
    assert!(deployment.stack_outputs.lock().unwrap().is_none());
}

#[tokio::test]
async fn rejected_registration_ends_the_program() {
    let subject = StackProgram::resources(CHAIN, "");
    let deployment = FakeDeployment { rejected: vec!["a--e"], ..FakeDeployment::default() };
    assert_eq!(subject.diagnostics(&deployment).await, "");
    assert!(!deployment.names().contains(&"b--e".to_owned()));
    assert!(deployment.stack_outputs.lock().unwrap().is_none());
}

#[tokio::test]
async fn outputs_of_skipped_resource_are_omitted_outside_of_preview() {
    let subject = StackProgram::resources(CHAIN, "");
    let skipped = || [("a--e", RegistrationResult::Skipped)].into();
    let deployment = FakeDeployment { results: skipped(), ..FakeDeployment::default() };
    subject.run(&deployment).await;
    let goal = deployment.goal("b--e");
    assert_eq!(*goal.inputs, [("z".to_owned(), vec![1.0.into(), PropertyValue::Null].into())].into());
    assert_eq!(goal.dependencies.len(), 1, "the dependency is kept");
    let preview = FakeDeployment { results: skipped(), ..FakeDeployment::preview() };
    subject.run(&preview).await;
    assert_eq!(preview.goal("b--e").inputs["y"], PropertyValue::UNKNOWN);
}

#[tokio::test]
async fn unknown_output_is_reported_at_its_line() {
    let subject = StackProgram::resources(
        "a: { type: 'p:m:A', config: { name: x } }\nb: { type: 'p:m:B', config: { x: '${resource:a.nam}' } }",
        "",
    );
    let deployment = FakeDeployment::default();
    insta::assert_snapshot!(subject.diagnostics(&deployment).await, @r#"
    error[unknown-output]: resource "a" has no output "nam"
     --> .sc/stacks/s/server.yaml:8:43
      |
    8 |         b: { type: 'p:m:B', config: { x: '${resource:a.nam}' } }
      |                                           ^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `name`?
    "#);
    let subject =
        StackProgram::resources("a: { type: 'p:m:A', config: { l: [1] } }", "outputs:\n  o: x${resource:a.l}\n");
    insta::assert_snapshot!(subject.diagnostics(&FakeDeployment::default()).await, @r"
    error[cannot-join]: ${resource:a.l} is a list: it cannot be part of a text
     --> .sc/stacks/s/server.yaml:9:7
      |
    9 |   o: x${resource:a.l}
      |       ^^^^^^^^^^^^^^^
      |
      = hint: use it as the whole value, or reference a property inside it
    ");
}

#[tokio::test]
async fn plugin_resources_are_announced_with_the_options_that_keep_them() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:m:A', config: { n: 1 }, options: { retainOnDelete: true } }
b: { type: 'p:m:B', config: { x: '${resource:a.n}' }, options: { protect: true, aliases: [{ name: c--e }], import: b-1 } }
",
        "",
    );
    let deployment = FakeDeployment::default();
    subject.run(&deployment).await;
    let engine::Announcement { goals: announced, incomplete_packages } = deployment.announced.lock().unwrap().clone();
    assert_eq!(incomplete_packages, BTreeSet::new(), "all resources are announced");
    let options = |goal: &engine::Goal| {
        let import_id = ResourceId::text(goal.import_id.as_ref()).to_owned();
        (goal.name.clone(), goal.protect, goal.retain_on_delete, goal.aliases.len(), import_id)
    };
    let options: Vec<_> = announced.iter().map(options).collect();
    let (a, b) = (
        ("a--e".to_owned(), None, Some(true), 0, String::new()),
        ("b--e".to_owned(), Some(true), None, 1, "b-1".to_owned()),
    );
    assert_eq!(options, [a, b]);
    // An announcement finds the entry of the registration, so both have one URN.
    for goal in &announced {
        assert_eq!(crate::fake::urn(goal), crate::fake::urn(&deployment.goal(&goal.name)));
    }
}

/// Shows: engine.md#differences-from-pulumi "In a replacement, `retainOnDelete` of the program counts beside the
///   recorded one."
/// Shows: engine.md#differences-from-pulumi "`protect` and `retainOnDelete` of the program count for dependent
///   replacements before they are registered."
#[tokio::test]
async fn core_resources_are_announced_with_the_options_that_keep_them() {
    let secrets = "
auth:
  reef: { type: aws-token, config: { account: '0042', accessKey: AK, secretAccessKey: SK, region: eu-north-1 } }
";
    let server = "
resources:
  resources:
    staging:
      resources:
        thing: { type: 'p:index:Thing' }
        media:
          type: s3-bucket
          config: { credentials: '${auth:reef}' }
          options: { retainOnDelete: true, dependsOn: [thing] }
        logs:
          type: s3-bucket
          config: { credentials: '${auth:reef}' }
          options: { protect: true, dependsOn: [media] }
";
    let deployment = FakeDeployment::default();
    StackProgram::with_secrets(server, secrets).run(&deployment).await;
    let kept = |goal: &engine::Goal| (crate::fake::urn(goal).to_string(), goal.protect, goal.retain_on_delete);
    let of_core = |goal: &&engine::Goal| goal.type_token.as_str().starts_with("aws:");
    let announced: BTreeSet<_> = deployment.announced.lock().unwrap().goals.iter().filter(of_core).map(kept).collect();
    let registered: BTreeSet<_> = deployment.goals.lock().unwrap().iter().filter(of_core).map(kept).collect();
    assert_eq!(announced, registered);
    assert_eq!(deployment.announced.lock().unwrap().incomplete_packages, ["aws".to_owned()].into());
    assert!(announced.iter().any(|(_, protect, retain)| (*protect, *retain) == (None, Some(true))), "{announced:?}");
    assert!(announced.iter().any(|(_, protect, retain)| (*protect, *retain) == (Some(true), None)), "{announced:?}");
}
