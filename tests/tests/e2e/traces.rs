//! Tests of `--trace` and `SC_LOG`: what they show, where they write, and what they never contain.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::repository::{FILES, REC, Repository, Sections};

/// Secret that each spelling writes differently.
const SECRET: &str = "sword\"fish\\7f3a/µ?";

/// Begin or end of a slice, or an event in it, of one lane.
fn events_of(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the slices as paths of their names in their lane, with their arguments.
fn slices(events: &[Value]) -> Vec<(String, String)> {
    let mut lanes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut last = 0.0;
    for event in events {
        let lane = lanes.entry(event["tid"].as_u64().unwrap()).or_default();
        let phase = event["ph"].as_str().unwrap();
        if phase != "M" {
            let time = event["ts"].as_f64().unwrap();
            assert!(time >= last, "{event} is before its predecessor");
            last = time;
        }
        match phase {
            "B" => {
                lane.push(event["name"].as_str().unwrap().to_owned());
                found.push((lane.join(" > "), event["args"].to_string()));
            }
            "E" => assert!(lane.pop().is_some(), "{event} ends nothing"),
            "i" | "M" => {}
            other => panic!("{other}"),
        }
    }
    assert!(lanes.values().all(Vec::is_empty), "{lanes:?} have no end");
    found
}

#[test]
fn trace_has_the_calls_of_each_resource_within_its_step() {
    let resources = "
    a: { type: files:fs:File, config: { path: a, content: one } }
    b: { type: files:fs:File, config: { path: b, content: '${resource:a.path}' } }";
    let repository = Repository::new(Sections { plugins: FILES, resources, outputs: "" });
    repository.expect_exit(0, "provision -S --trace trace.json");
    let mode = repository.path("trace.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let events = events_of(&repository.read("trace.json"));
    let slices = slices(&events);
    for name in ["a--prod", "b--prod"] {
        let step = slices.iter().position(|(path, arguments)| {
            path.ends_with("job > step") && arguments.contains("\"op\":\"create\"") && arguments.contains(name)
        });
        let calls = &slices[step.unwrap_or_else(|| panic!("{name} has no step: {slices:#?}"))..];
        let create = calls.iter().find(|(path, _)| path.ends_with("job > step > call")).unwrap();
        assert_eq!(create.1, r#"{"method":"Create","plugin":"files"}"#);
    }
    let has = |end: &str, argument: &str| {
        slices.iter().any(|(path, arguments)| path.ends_with(end) && arguments.contains(argument))
    };
    for (end, argument) in [
        ("job > wait", "slot"),
        ("job > plan > call", "Check"),
        ("start plugin > launch process", ""),
        ("phase", "program"),
        ("lock", "reef"),
        ("store", "write"),
        ("journal flush", ""),
    ] {
        assert!(has(end, argument), "{end} {argument}: {slices:#?}");
    }
    let decided = events.iter().filter(|event| event["name"] == "decided" && event["args"]["decision"] == "create");
    assert!(decided.count() >= 2);
}

/// Shows: events.md#events-as-json-lines "they go to standard error, or to the file in `SC_LOG_FILE`"
/// Shows: README.md#what-it-does "without a value of a property, and with secrets masked"
#[test]
fn log_stays_out_of_standard_output_and_of_plugins() {
    let plugins = format!("{FILES}\n{}", REC.replace("REC_DIR", "REC_DIR, SC_LOG"));
    let resources = "page: { type: files:fs:File, config: { path: a, content: one } }";
    let repository = Repository::new(Sections { plugins: &plugins, resources, outputs: "" });
    let mut command = repository.command("provision --json");
    command.env("SC_LOG", "debug");
    let ended = repository.start_command(command).wait();
    assert_eq!(ended.status, "exit 0", "{}", ended.stderr);
    let events: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["event"].is_string()));
    let warning = "the environment variable SC_LOG in passEnv is not set";
    assert!(events.iter().any(|event| event["text"].as_str() == Some(warning)), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("DEBUG engine::step_executor::executor: begins=step op=create urn="),
        "{}",
        ended.stderr
    );

    let mut command = repository.command("refresh --yes");
    command.env("SC_LOG", "engine=info").env("SC_LOG_FILE", "log.jsonl");
    let ended = repository.start_command(command).wait();
    assert_eq!(ended.status, "exit 0", "{}", ended.stderr);
    assert!(!ended.stderr.contains("INFO"), "{}", ended.stderr);
    let log = repository.read("log.jsonl");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["begins"] == "phase" && line["level"] == "INFO"), "{log}");
    assert!(lines.iter().all(|line| line["module"].as_str().unwrap().starts_with("engine")), "{log}");

    let mut command = repository.command("preview");
    command.env("SC_LOG", "h2=trace");
    let ended = repository.start_command(command).wait();
    assert_eq!(ended.status, "exit 2");
    assert!(ended.stderr.contains("the variable SC_LOG is not a filter: \"h2=trace\""), "{}", ended.stderr);
}

/// Shows: events.md#events-as-json-lines "they go to standard error, or to the file in `SC_LOG_FILE`"
/// Shows: README.md#what-it-does "without a value of a property, and with secrets masked"
#[test]
fn neither_the_trace_nor_the_log_contains_a_secret() {
    let resources = "
    thing: { type: rec:index:Thing, config: { v: '${secret:token}', w: { deep: ['x${secret:token}y'] } } }
    heir: { type: rec:index:Thing, config: { v: '${resource:thing.out}' } }
    page: { type: files:fs:File, config: { path: a, content: 'key=${secret:token}' } }
    pw: { type: files:random:Password, config: { length: 24 } }
    copy: { type: files:fs:File, config: { path: b, content: '${resource:pw.result}' } }
    plain: { type: files:fs:File, config: { path: c, content: unmarked-value-81 } }";
    let plugins = format!("{FILES}\n{}", REC.replace("passEnv", "config: { token: '${secret:token}' }, passEnv"));
    let repository =
        Repository::new(Sections { plugins: &plugins, resources, outputs: "\n    token: '${secret:token}'" });
    let values = serde_json::json!({ "schemaVersion": "1.0", "values": { "token": SECRET } });
    repository.write(".sc/stacks/reef/secrets.yaml", &values.to_string());
    let run = |command: &str| {
        let mut command = repository.command(&format!("{command} --trace trace.json"));
        command.env("SC_LOG", "trace").env("REC_DIR", repository.path("rec"));
        let ended = repository.start_command(command).wait();
        assert_eq!(ended.status, "exit 0", "{}", ended.stderr);
        let trace = repository.read("trace.json");
        assert!(!slices(&events_of(&trace)).is_empty());
        ended.stderr + &trace
    };
    let mut written = run("provision -S");
    let password = repository.read("site/b");
    repository.write("site/a", "tampered");
    for command in ["provision -S", "refresh --yes", "destroy --parent --yes"] {
        written += &run(command);
    }
    for secret in [SECRET, &password, "hush", "unmarked-value-81"] {
        let escaped = serde_json::to_string(secret).unwrap();
        let twice = serde_json::to_string(&escaped).unwrap();
        let spellings = [
            secret.to_owned(),
            escaped.trim_matches('"').to_owned(),
            twice.trim_matches('"').trim_matches(['\\', '"']).to_owned(),
            BASE64.encode(secret),
            BASE64.encode(format!("key={secret}")),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        ];
        for spelling in spellings {
            let found = written.lines().find(|line| line.contains(&spelling));
            assert!(found.is_none(), "{found:?} contains {spelling}");
        }
    }
}
