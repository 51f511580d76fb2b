//! Tests of errors of plugins with the details of google.rpc: what is shown of them, and where.

use serde_json::{Value, json};

use crate::repository::{REC, Repository, Sections};

/// Status code INVALID_ARGUMENT.
const INVALID_ARGUMENT: i32 = 3;
/// Status code FAILED_PRECONDITION.
const FAILED_PRECONDITION: i32 = 9;

const RESOURCES: &str = "
page:
  type: rec:index:Thing
  config:
    v:
      name: Upper
      tags:
        - a
        - B";

fn repository(status: &Value) -> Repository {
    let repository = Repository::new(Sections { plugins: REC, resources: RESOURCES, ..Sections::default() });
    repository.script(json!({ "resources": { "page--prod": { "statuses": { "Create": status } } } }));
    repository
}

/// Shows: plugin-authoring.md#calls "Each field that `BadRequest` names is shown at its line"
#[test]
fn fields_of_a_bad_request_are_shown_at_their_lines() {
    let repository = repository(&json!({
        "code": INVALID_ARGUMENT,
        "message": "rec refuses the page",
        "badRequest": {
            "v.name": "must be lower-case\u{1b}[2J",
            "v.tags[1]": "is too short",
            "elsewhere.x": "is unknown",
        },
    }));
    insta::assert_snapshot!(repository.expect_exit(1, "provision --yes"), @r#"
    exit 1
    --- out
    + tank-reef      Stack                 create
    + ├─ rec         pulumi:providers:rec  create
    + └─ page--prod  rec:Thing             create
            + v:
              + name: "Upper"
              + tags: ["a", "B"]

    Preview of reef done in [time]: 3 to create
    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: page--prod (rec:Thing): rec refuses the page
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page:
         |         ^^^^
    error: page--prod (rec:Thing): property elsewhere.x: is unknown
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page:
         |         ^^^^
    error: page--prod (rec:Thing): property v.name: must be lower-case
      at .sc/stacks/reef/server.yaml:17:15
         |
      17 |               name: Upper
         |               ^^^^
    error: page--prod (rec:Thing): property v.tags[1]: is too short
      at .sc/stacks/reef/server.yaml:20:19
         |
      20 |                 - B
         |                   ^
    "#);
}

/// Shows: plugin-authoring.md#calls "are shown as reasons, `Help` as links"
#[test]
fn reasons_and_links_are_shown_without_secrets_and_escapes() {
    let repository = repository(&json!({
        "code": FAILED_PRECONDITION,
        "message": "rec cannot create the page",
        "reason": "API_DISABLED",
        "quota": { "project:a": "9 of 9, with hush\u{1b}]0;title\u{7}" },
        "help": { "https://example.org/quota": "ask for more" },
        "retryAfter": 90.0,
    }));
    insta::assert_snapshot!(repository.expect_exit(1, "provision --yes"), @r#"
    exit 1
    --- out
    + tank-reef      Stack                 create
    + ├─ rec         pulumi:providers:rec  create
    + └─ page--prod  rec:Thing             create
            + v:
              + name: "Upper"
              + tags: ["a", "B"]

    Preview of reef done in [time]: 3 to create
    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Previewing update of reef
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: page--prod (rec:Thing): rec cannot create the page
      reason: project:a: 9 of 9, with [secret]
      reason: API_DISABLED (rec)
      help: ask for more: https://example.org/quota
      the plugin asks to wait: 1m30s
      not repeated: Create is repeated only with `retry: { mutations: true }` in the declaration of the plugin, which states that such a failure has no effect
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page:
         |         ^^^^
    "#);
}

/// Shows: events.md#errors-of-plugins "A `message` and a `step-failed` that report the error of a plugin say what may
///   remedy it, and what the plugin has said about it."
#[test]
fn class_and_details_are_in_events() {
    let repository = repository(&json!({
        "code": FAILED_PRECONDITION,
        "message": "rec refuses the page",
        "badRequest": { "v.name": "must be lower-case" },
        "reason": "BAD_NAME",
        "help": { "https://example.org/names": "names" },
        "retryAfter": 1.5,
    }));
    let output = repository.expect_exit(1, "provision --yes --json");
    let events: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let details = |event: &Value| {
        let members = ["class", "reasons", "violations", "links", "retryAfterMs", "notRepeated"];
        members.map(|member| event[member].clone())
    };
    let expected = [
        json!("bad-input"),
        json!(["BAD_NAME (rec)"]),
        json!([{ "property": "v.name", "reason": "must be lower-case" }]),
        json!([{ "description": "names", "url": "https://example.org/names" }]),
        json!(1500),
        json!("the plugin names invalid inputs, with which the call would fail again"),
    ];
    let failed = events.iter().find(|event| event["event"] == "step-failed").unwrap();
    assert_eq!(details(failed), expected);
    let errors: Vec<&Value> = events.iter().filter(|event| event["severity"] == "error").collect();
    assert_eq!(errors.len(), 2, "{errors:#?}");
    assert_eq!(details(errors[0]), expected);
    assert_eq!(errors[1]["property"], "v.name");
    assert_eq!(errors[1]["place"], ".sc/stacks/reef/server.yaml:17:15");
    assert!(errors[1].get("class").is_none());
}
