//! Tests of the check of references against the outputs in the schema of a plugin.

use std::collections::BTreeMap;

use bridge::host::{PackageTypes, TypeInfo};
use engine::ProgramEnd;

use crate::fake::{FakeDeployment, Run, StackProgram};

fn types() -> BTreeMap<String, PackageTypes> {
    let info = |outputs: &[&str], is_component| TypeInfo {
        outputs: outputs.iter().map(|output| (*output).to_owned()).collect(),
        is_component,
        ..TypeInfo::default()
    };
    let types = [
        ("p:index:Thing", info(&["size", "value"], false)),
        ("p:index:Component", info(&["value"], true)),
        ("p:index:WithoutOutputs", info(&[], false)),
    ];
    let types = types.map(|(token, info)| (token.to_owned(), info)).into_iter().collect();
    [("p".to_owned(), types)].into()
}

/// Runs a program in which a resource `b`, or the output of the stack, refers to a resource `a`. Returns the codes of the
/// diagnostics, and the number of registrations besides the root stack resource.
async fn check(
    run: Run,
    type_text: &str,
    reference: &str,
    recorded: &[(&'static str, &'static str)],
) -> (String, usize) {
    let resources =
        format!("a: {{ type: '{type_text}' }}\nb: {{ type: 'p:Unknown', config: {{ x: ['{reference}'] }} }}");
    let subject = StackProgram::resources(&resources, "");
    let recorded_outputs = recorded.to_vec();
    let deployment = FakeDeployment { run, types: types(), recorded_outputs, ..FakeDeployment::default() };
    let result = subject.program.run(&deployment).await;
    assert_eq!(result.end == ProgramEnd::Failed, !result.diagnostics.is_empty());
    let codes = result.diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect();
    (codes, deployment.names().len() - 1)
}

#[tokio::test]
async fn output_that_neither_the_schema_nor_the_state_has_is_an_error_before_any_registration() {
    let unknown = || ("unknown-output".to_owned(), 0);
    for run in [Run::Preview, Run::Update] {
        assert_eq!(check(run, "p:Thing", "${resource:a.valeu}", &[]).await, unknown());
        assert_eq!(check(run, "p:Thing", "x${resource:a.valeu.k:default}", &[("b--e", "valeu")]).await, unknown());
    }
    // Accepted in a preview, where outputs that are missing in a reply are unknown.
    for (type_text, reference, recorded) in [
        ("p:Thing", "${resource:a.value.any.0}", &[] as &[_]),
        ("p:Thing", "${resource:a.id} ${resource:a.urn}", &[]),
        ("p:Thing", "${resource:a.valeu}", &[("a--e", "valeu")]),
        ("p:Component", "${resource:a.valeu}", &[]),
        ("p:WithoutOutputs", "${resource:a.valeu}", &[]),
        ("p:Other", "${resource:a.valeu}", &[]),
    ] {
        let found = check(Run::Preview, type_text, reference, recorded).await;
        assert_eq!(found, (String::new(), 3), "{type_text} {reference} {recorded:?}");
    }
}

#[tokio::test]
async fn unknown_outputs_are_reported_together_with_suggestions() {
    let subject = StackProgram::resources(
        "a: { type: 'p:Thing' }\nb: { type: 'p:Thing', config: { x: '${resource:a.valeu}' } }",
        "outputs:\n  o: ${resource:e/a.weight}\n  p: ${resource:b.value}\n",
    );
    let deployment = FakeDeployment { run: Run::Preview, types: types(), ..FakeDeployment::default() };
    insta::assert_snapshot!(subject.diagnostics(&deployment).await, @r#"
    error[unknown-output]: resource "a" has no output "valeu"
     --> .sc/stacks/s/server.yaml:8:45
      |
    8 |         b: { type: 'p:Thing', config: { x: '${resource:a.valeu}' } }
      |                                             ^^^^^^^^^^^^^^^^^^^
      |
      = note: the schema of the type p:index:Thing has no such output
      = hint: did you mean `value`?

    error[unknown-output]: resource "a" has no output "weight"
      --> .sc/stacks/s/server.yaml:10:6
       |
    10 |   o: ${resource:e/a.weight}
       |      ^^^^^^^^^^^^^^^^^^^^^^
       |
       = note: the schema of the type p:index:Thing has no such output
       = hint: its outputs are size, value
    "#);
}
