//! Tests of calls that are repeated because a plugin asks for it (RetryInfo).

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::repository::{REC, Repository, Running, Sections};

/// Status code INVALID_ARGUMENT.
const INVALID_ARGUMENT: i32 = 3;
/// Status code RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: i32 = 8;
/// Status code UNAVAILABLE.
const UNAVAILABLE: i32 = 14;

const PAGE: &str = "page: { type: rec:index:Thing, config: { v: 1 } }";

fn repository(repeats_mutations: bool) -> Repository {
    let plugins =
        if repeats_mutations { REC.replace("passEnv", "retry: { mutations: true }, passEnv") } else { REC.to_owned() };
    Repository::new(Sections { plugins: &plugins, resources: PAGE, ..Sections::default() })
}

/// Returns the status of a number of failures; 0: all calls fail.
fn busy_status(times: u32, retry_after: f64) -> Value {
    json!({
        "code": RESOURCE_EXHAUSTED,
        "message": "rec is busy, says hush",
        "times": times,
        "retryAfter": retry_after,
    })
}

/// Makes a number of calls for `page` fail as busy; 0: all.
fn busy(repository: &Repository, rpc: &str, times: u32, retry_after: f64) {
    let status = busy_status(times, retry_after);
    repository.script(json!({ "resources": { "page--prod": { "statuses": { rpc: status } } } }));
}

fn attempts(repository: &Repository, call: &str) -> usize {
    repository.calls().iter().filter(|known| *known == call).count()
}

fn events(output: &str) -> Vec<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Starts a run whose Create waits for its second attempt.
fn waiting(repository: &Repository) -> Running<'_> {
    busy(repository, "Create", 0, 200.0);
    let running = repository.start("provision -S --json");
    running.wait_until_printed("retry-scheduled");
    running
}

/// Shows: engine.md#repeated-calls "Each repetition is shown, with the error of the attempt before it"
#[test]
fn busy_plugin_is_called_again_and_each_repetition_is_shown() {
    let repository = repository(false);
    let status = json!({ "code": UNAVAILABLE, "message": "no token yet", "times": 1, "retryAfter": 0.0 });
    repository.script(json!({ "resources": {
        "rec": { "statuses": { "Configure": status } },
        "page--prod": { "statuses": { "Check": busy_status(2, 0.1) } },
    } }));
    insta::assert_snapshot!(repository.sc("provision -S"), @r"
    exit 0
    --- out
    + tank-reef      Stack                 created [time]
    + ├─ rec         pulumi:providers:rec  created [time]
    + └─ page--prod  rec:Thing             created [time]
            + v: 1

    Update of reef done in [time]: 3 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
      ↻ rec (pulumi:providers:rec): Configure is repeated in [time] (attempt 2): no token yet
      ↻ page--prod (rec:Thing): Check is repeated in [time] (attempt 2): rec is busy, says [secret]
      ↻ page--prod (rec:Thing): Check is repeated in [time] (attempt 3): rec is busy, says [secret]
      + created page--prod (rec:Thing) ([time])
    ");
    assert_eq!(attempts(&repository, "Configure rec"), 2);
    assert_eq!(attempts(&repository, "Check page--prod"), 3);
}

#[test]
fn failed_mutation_is_not_repeated_without_the_declaration() {
    let repository = repository(false);
    busy(&repository, "Create", 1, 0.0);
    insta::assert_snapshot!(repository.sc("provision -S"), @r"
    exit 1
    --- out
    + tank-reef      Stack                 created [time]
    + ├─ rec         pulumi:providers:rec  created [time]
    ✗ └─ page--prod  rec:Thing             failed [time]
            + v: 1

    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: page--prod (rec:Thing): rec is busy, says [secret]
      not repeated: Create is repeated only with `retry: { mutations: true }` in the declaration of the plugin, which states that such a failure has no effect
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: rec:index:Thing, config: { v: 1 } }
         |         ^^^^
    ");
    assert_eq!(attempts(&repository, "Create page--prod"), 1);
    assert_eq!(repository.resources().len(), 2);
}

#[test]
fn failed_mutation_is_repeated_with_the_declaration_and_is_one_operation() {
    let repository = repository(true);
    busy(&repository, "Create", 1, 0.0);
    let output = repository.expect_exit(0, "provision -S --json");
    let events = events(&output);
    let retries: Vec<&Value> = events.iter().filter(|event| event["event"] == "retry-scheduled").collect();
    assert_eq!(retries.len(), 1, "{output}");
    let members = ["plugin", "method", "function", "attempt", "message", "class", "retryAfterMs", "notRepeated"];
    assert_eq!(
        members.map(|member| retries[0][member].clone()),
        [
            json!("rec"),
            json!("Create"),
            Value::Null,
            json!(2),
            json!("rec is busy, says [secret]"),
            json!("quota"),
            json!(0),
            Value::Null,
        ]
    );
    assert!(retries[0]["urn"].as_str().unwrap().ends_with("rec:index:Thing::page--prod"));
    assert!(retries[0]["delayMs"].as_u64().unwrap() <= 2_000);
    let of_page = |event: &&Value| event["name"] == "page--prod";
    let steps: Vec<&str> = events.iter().filter(of_page).filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(steps, ["step-started", "step-succeeded"]);
    assert_eq!(attempts(&repository, "Create page--prod"), 2);
}

/// Shows: engine.md#repeated-calls "This ends a wait at once."
#[test]
fn stop_ends_the_wait_at_once_and_reports_the_last_failure() {
    let repository = repository(true);
    let running = waiting(&repository);
    let started = Instant::now();
    running.signal(Signal::INT);
    let output = running.output();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(output.starts_with("exit 130\n"), "{output}");
    let events = events(&output);
    let failed = events.iter().find(|event| event["event"] == "step-failed").unwrap();
    assert_eq!(failed["message"], "rec is busy, says [secret]");
    assert_eq!(failed["notRepeated"], "the run is being stopped");
    assert_eq!(attempts(&repository, "Create page--prod"), 1);
    assert_eq!(repository.resources().len(), 2, "no operation is pending");
    assert!(!repository.is_locked());
}

/// Shows: engine.md#repeated-calls "All attempts are one operation in the journal"
#[test]
fn kill_during_the_wait_leaves_one_pending_operation() {
    let repository = repository(true);
    let running = waiting(&repository);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status, "killed by signal 9");
    repository.expect_exit(0, "cancel --yes");
    repository.script(json!({}));
    repository.expect_exit(0, "refresh --yes");
    let pending: Vec<String> = repository.resources().into_iter().filter(|line| line.starts_with("creating")).collect();
    assert_eq!(pending, ["creating page--prod rec:index:Thing"]);
}

/// Shows: engine.md#repeated-calls "if `RetryInfo` names more than five minutes"
/// Shows: engine.md#repeated-calls "if the status has `BadRequest`, too"
#[test]
fn named_time_of_a_year_and_contradictory_details_fail_at_once() {
    const YEAR: f64 = 365.0 * 24.0 * 60.0 * 60.0;
    let repository = repository(true);
    busy(&repository, "Check", 0, YEAR);
    insta::assert_snapshot!(repository.expect_exit(1, "provision -S"), @r"
    exit 1
    --- out
    + tank-reef      Stack                 created [time]
    + ├─ rec         pulumi:providers:rec  created [time]
    ✗ └─ page--prod  rec:Thing             failed [time]     rec is busy, says [secret]

    Update of reef failed after [time]: 1 failed, 2 created
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
      + created tank-reef (Stack) ([time])
      + created rec (pulumi:providers:rec) ([time])
    error: page--prod (rec:Thing): rec is busy, says [secret]
      the plugin asks to wait: 8760h00m
      not repeated: the plugin asks to wait for longer than 5 minutes, the limit of sc
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: rec:index:Thing, config: { v: 1 } }
         |         ^^^^
    ");
    repository.script(json!({ "resources": { "page--prod": { "statuses": { "Check": {
        "code": UNAVAILABLE,
        "message": "rec refuses the page",
        "badRequest": { "v": "must be even" },
        "retryAfter": 0.0,
    } } } } }));
    insta::assert_snapshot!(repository.expect_exit(1, "provision -S"), @r"
    exit 1
    --- out
      tank-reef      Stack
    ✗ └─ page--prod  rec:Thing  failed [time]     rec refuses the page

    Update of reef failed after [time]: 1 failed, 2 unchanged
    --- err
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: page--prod (rec:Thing): rec refuses the page
      not repeated: the plugin names invalid inputs, with which the call would fail again
      at .sc/stacks/reef/server.yaml:13:9
         |
      13 |         page: { type: rec:index:Thing, config: { v: 1 } }
         |         ^^^^
    error: page--prod (rec:Thing): property v: must be even
      at .sc/stacks/reef/server.yaml:13:50
         |
      13 |         page: { type: rec:index:Thing, config: { v: 1 } }
         |                                                  ^
    ");
    assert_eq!(attempts(&repository, "Check page--prod"), 2);
    // RetryInfo alone contradicts the code, and is what the plugin says last.
    repository.script(json!({ "resources": { "page--prod": { "statuses": { "Check": {
        "code": INVALID_ARGUMENT,
        "message": "rec has no quota yet",
        "times": 1,
        "retryAfter": 0.0,
    } } } } }));
    repository.expect_exit(0, "provision -S");
    assert_eq!(attempts(&repository, "Check page--prod"), 4);
}
