//! Tests of `templates`, which are exported as outputs for client stacks (docs/spec/simple-container.md#2.3, #5.1).

use config::Stack;
use config::tree::Value;
use provisioner::registry::recipes;
use serde_json::Value as Json;

use crate::repository::{Files, PROVISIONER, recorded_cases};
use crate::sections;

/// Returns the name and the text of each secret output.
fn exported(stack: &Stack) -> Vec<(&str, String)> {
    let texts = stack.outputs.iter().map(|output| match &output.value.value {
        Value::Interpolated(string) if string.secret => (output.name.as_str(), string.known().unwrap()),
        other => panic!("{}: {other:?}", output.name),
    });
    texts.collect()
}

fn server(text: &str) -> String {
    format!("{PROVISIONER}{text}")
}

fn files() -> Files {
    Files::empty().types(recipes::built_in_types())
}

/// Names of recorded cases whose text Go writes differently. Go drops line breaks at the start, writes tabs in lines
/// unescaped, writes a line separator as a line break, and escapes characters beyond the first plane of Unicode.
const INTENDED_DIFFERENCES: [&str; 7] = [
    r#"text "\na""#,
    r#"text "\n""#,
    r#"text "\n\n""#,
    r#"text "a\n\tb""#,
    r#"text "tab\tin\nlines""#,
    r#"text "a\u2028b""#,
    "text 😀",
];

/// Compares each template byte by byte with the recorded output of the Go program's packages.
///
/// Shows: server-yaml.md#templates "The text is the same as that of the Go tool, byte for byte"
#[test]
fn recorded_templates_are_exported_as_in_go() {
    let cases: Vec<Json> = recorded_cases("templates");
    let mut mismatches = Vec::new();
    for case in &cases {
        let template = case["in"].as_str().unwrap().replace('\n', "\n    ");
        let read = sections(&format!("templates:\n  t:\n    {template}\n")).read(&["s"]);
        let actual = read.loaded.stacks.first().map(|stack| exported(stack).remove(0).1);
        let is_intended = INTENDED_DIFFERENCES.iter().any(|name| case["name"] == *name);
        let parsed = |yaml: &str| serde_yaml::from_str::<serde_yaml::Value>(yaml).unwrap();
        let texts = |yaml: &str| {
            let value = parsed(yaml);
            (value.get("parentStack").cloned(), value["config"].get("region").cloned())
        };
        let is_text_kept = match actual.as_deref() {
            Some(yaml) if case["name"].as_str().is_some_and(|name| name.starts_with("text")) => {
                texts(yaml) == texts(case["in"].as_str().unwrap())
            }
            _ => true,
        };
        if (actual.as_deref() != case["out"].as_str()) != is_intended || !is_text_kept {
            mismatches.push(format!("{}\n{}\n{actual:?}\n{}", case["name"], case["out"], read.messages()));
        }
    }
    assert_eq!(mismatches.join("\n\n"), "");
    assert!(cases.len() > 100);
}

#[test]
fn template_output_has_full_stack_name_and_resolved_placeholders() {
    let template = "templates:
  web:
    type: aws-lambda
    parentStack: '${stack:name}'
    config: { credentials: '${auth:a}', account: '${auth:a.projectId}', region: '${secret:region}' }\n";
    let secrets = "auth: { a: { type: aws-token, config: { account: '012', accessKey: k, region: r } } }
values: { region: eu-north-1 }\n";
    let organization = PROVISIONER.replace("config:\n", "config:\n    organization: organization\n");
    for (provisioner, name) in [(PROVISIONER, "/reef/s/web"), (organization.as_str(), "organization/reef/s/web")] {
        let read = files()
            .with(".sc/stacks/s/server.yaml", &format!("{provisioner}{template}"))
            .with(".sc/stacks/s/secrets.yaml", secrets)
            .read(&["s"]);
        assert_eq!(read.messages(), "");
        let account = r#"{"account":"012","accessKey":"k","secretAccessKey":"","region":"r","credentials":""}"#;
        let yaml = format!(
            "type: aws-lambda
parentStack: s
config:
    account: \"012\"
    accessKey: \"\"
    secretAccessKey: \"\"
    region: eu-north-1
    credentials: '{account}'
inherit: \"\"
"
        );
        assert_eq!(exported(&read.loaded.stacks[0]), [(name, yaml)]);
    }
}

#[test]
fn template_is_inherited_through_chains_and_resolved_for_the_inheriting_stack() {
    let base = server("templates: { far: { type: aws-lambda, config: { region: '${secret:region}' } } }\n");
    let files = files()
        .with(".sc/stacks/base/server.yaml", &base)
        .with(".sc/stacks/base/secrets.yaml", "values: { region: of-the-base }")
        .with(".sc/stacks/middle/server.yaml", &server("templates: { web: { inherit: base/far } }\n"))
        .with(".sc/stacks/app/server.yaml", &server("templates: { web: { inherit: middle, type: ignored } }\n"))
        .with(".sc/stacks/app/secrets.yaml", "values: { region: of-the-app }");
    // Only `app` is requested; the stacks that it inherits from are read on demand.
    let read = files.read(&["app"]);
    assert_eq!(read.messages(), "");
    let [(name, yaml)] = &exported(&read.loaded.stacks[0])[..] else { panic!() };
    assert_eq!(*name, "/reef/app/web");
    assert!(yaml.contains("region: of-the-app\n") && yaml.ends_with("inherit: \"\"\n"), "{yaml}");
}

#[test]
fn resource_and_dependency_placeholders_are_kept_for_client_stacks() {
    let template = "templates: { web: { type: aws-lambda, config: { region: 'x ${resource:db.host} ${dependency:a.b.c}', account: '${resource:a:here}' } } }\n";
    let read = sections(template).read(&["s"]);
    assert_eq!(read.messages(), "");
    let [(_, yaml)] = &exported(&read.loaded.stacks[0])[..] else { panic!() };
    assert!(yaml.contains("    region: x ${resource:db.host} ${dependency:a.b.c}\n"), "{yaml}");
    assert!(yaml.contains("    account: here\n"), "{yaml}");
}

#[test]
fn malformed_placeholder_in_template_is_an_error() {
    let template = "templates: { web: { type: aws-lambda, parentStack: '${stack:', config: { region: '${resource:${stack:name}.host}' } } }\n";
    insta::assert_snapshot!(sections(template).read(&["s"]).messages(), @r#"
    error[malformed-placeholder]: `${stack:…` is not closed
     --> .sc/stacks/s/server.yaml:6:53
      |
    6 | templates: { web: { type: aws-lambda, parentStack: '${stack:', config: { region: '${resource:${stack:name}.host}' } } }
      |                                                     ^^^^^^^^
      |
      = hint: add the missing `}`, as in `${stack:NAME}`
      = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again

    error[malformed-placeholder]: `${resource:…}` contains another placeholder
     --> .sc/stacks/s/server.yaml:6:83
      |
    6 | templates: { web: { type: aws-lambda, parentStack: '${stack:', config: { region: '${resource:${stack:name}.host}' } } }
      |                                                                                   ^^^^^^^^^^^
      |
      = hint: write text in its place: a placeholder cannot contain another one, not even in its default
      = hint: to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again
    "#);
}

#[test]
fn organization_is_inherited_with_provisioner() {
    let organization = PROVISIONER.replace("config:\n", "config:\n    organization: organization\n");
    let app = "provisioner: { inherit: base }\ntemplates: { web: { type: cloudrun } }\n";
    let read = files()
        .with(".sc/stacks/base/server.yaml", &organization)
        .with(".sc/stacks/app/server.yaml", app)
        .read(&["app"]);
    assert_eq!(read.messages(), "");
    assert_eq!(exported(&read.loaded.stacks[0])[0].0, "organization/reef/app/web");
}

#[test]
fn errors_in_templates_are_reported() {
    let text = "
templates:
  a: { inherit: s/b }
  b: { inherit: s/a }
  c: { inherit: ghost }
  d: { inherit: s/webb }
  web: { type: aws-lambda, config: { regoin: x } }
  wrong: { type: aws-lambda, config: [], parent: s }
  kind: { type: heroku }
  bucket: { type: s3-bucket }
  nothing:
outputs: { /reef/s/web: 1 }
";
    insta::assert_snapshot!(sections(text).messages(), @r#"
    error[inherit-cycle]: the template is inherited in a cycle: s/a -> s/b -> s/a
     --> .sc/stacks/s/server.yaml:8:17
      |
    8 |   a: { inherit: s/b }
      |                 ^^^

    error[inherit-cycle]: the template is inherited in a cycle: s/b -> s/a -> s/b
     --> .sc/stacks/s/server.yaml:9:17
      |
    9 |   b: { inherit: s/a }
      |                 ^^^

    error[inherit]: the stack "ghost" to inherit the template "c" from does not exist
      --> .sc/stacks/s/server.yaml:10:17
       |
    10 |   c: { inherit: ghost }
       |                 ^^^^^

    error[inherit]: the stack "s" has no template "webb" to inherit
      --> .sc/stacks/s/server.yaml:11:17
       |
    11 |   d: { inherit: s/webb }
       |                 ^^^^^^
       |
       = hint: did you mean `web`?

    error[duplicate-output]: the output "/reef/s/web" has the name of a template
      --> .sc/stacks/s/server.yaml:12:3
       |
    12 |   web: { type: aws-lambda, config: { regoin: x } }
       |   ^^^
       |
       = hint: rename the output: client stacks find the template by this name

    warning[unknown-key]: the key `regoin` is ignored
      --> .sc/stacks/s/server.yaml:12:38
       |
    12 |   web: { type: aws-lambda, config: { regoin: x } }
       |                                      ^^^^^^
       |
       = hint: did you mean `region`?
       = hint: the keys are account, accessKey, secretAccessKey, region, credentials

    error[wrong-kind]: expected a mapping, found a list
      --> .sc/stacks/s/server.yaml:13:38
       |
    13 |   wrong: { type: aws-lambda, config: [], parent: s }
       |                                      ^^

    warning[unknown-key]: the key `parent` is ignored
      --> .sc/stacks/s/server.yaml:13:42
       |
    13 |   wrong: { type: aws-lambda, config: [], parent: s }
       |                                          ^^^^^^
       |
       = hint: the keys are type, parentStack, config, inherit

    error[unknown-type]: unknown template type "heroku"
      --> .sc/stacks/s/server.yaml:14:17
       |
    14 |   kind: { type: heroku }
       |                 ^^^^^^
       |
       = hint: the types of templates are ecs-fargate, aws-lambda, aws-static-website, cloudrun, gcp-static-website, gcp-gke-autopilot, kubernetes-cloudrun

    warning[unused]: no client stack can be deployed from a template of type "s3-bucket"
      --> .sc/stacks/s/server.yaml:15:19
       |
    15 |   bucket: { type: s3-bucket }
       |                   ^^^^^^^^^
       |
       = note: the template is not exported
       = hint: the types of templates are ecs-fargate, aws-lambda, aws-static-website, cloudrun, gcp-static-website, gcp-gke-autopilot, kubernetes-cloudrun

    error[unknown-type]: unknown template type ""
      --> .sc/stacks/s/server.yaml:16:10
       |
    16 |   nothing:
       |          ^
       |
       = hint: the types of templates are ecs-fargate, aws-lambda, aws-static-website, cloudrun, gcp-static-website, gcp-gke-autopilot, kubernetes-cloudrun
    "#);
}
