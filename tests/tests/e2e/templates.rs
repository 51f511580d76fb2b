//! Test of templates in the outputs of a stack, from which client stacks read them.

use serde_json::Value;

use crate::repository::{REC, Repository, Sections};

const NAME: &str = r#"a.b/c "d""#;

fn repository() -> Repository {
    let thing = "thing: { type: rec:index:Thing, config: { v: '1' } }";
    Repository::new(Sections { plugins: REC, resources: thing, outputs: "" })
}

fn set_region(repository: &Repository, region: &str) {
    let server = ".sc/stacks/reef/server.yaml";
    let described = repository.read(server);
    let described = described.split("templates:").next().unwrap();
    let template = format!("templates:\n  '{NAME}': {{ type: aws-lambda, config: {{ region: {region} }} }}\n");
    repository.write(server, &format!("{described}{template}"));
}

/// Returns the region in the template that client stacks read.
fn template_region(repository: &Repository) -> String {
    let outputs = repository.start("stack outputs --show-secrets").wait().stdout;
    let outputs: Value = serde_json::from_str(&outputs).unwrap();
    let yaml = outputs["outputs"][format!("/tank/reef/{NAME}")].as_str().unwrap().to_owned();
    let region = yaml.lines().find_map(|line| line.trim().strip_prefix("region: ")).unwrap();
    region.to_owned()
}

#[test]
fn template_output_changes_only_with_a_successful_provision() {
    let repository = repository();
    set_region(&repository, "north");
    repository.expect_exit(0, "provision");
    assert_eq!(template_region(&repository), "north");

    set_region(&repository, "south");
    insta::assert_snapshot!(repository.sc("preview"), @r#"
    exit 0
    --- out
    Outputs:
      ~ "/tank/reef/a.b/c \"d\"": [secret] → [secret]

    Preview of reef done in [time]: 3 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    "#);
    assert_eq!(template_region(&repository), "north");
    repository.expect_exit(0, "refresh --yes");
    assert_eq!(template_region(&repository), "north");

    repository.script(serde_json::json!({"resources": {"thing--prod": {"update": "error"}}}));
    let server = repository.read(".sc/stacks/reef/server.yaml");
    repository.write(".sc/stacks/reef/server.yaml", &server.replace("v: '1'", "v: '2'"));
    repository.expect_exit(1, "provision");
    assert_eq!(template_region(&repository), "north");

    repository.script(serde_json::json!({}));
    repository.expect_exit(0, "provision");
    assert_eq!(template_region(&repository), "south");
}
