//! Operations of `sc`. Each is checked in the provider's log, the provider's resources and our state.

use std::collections::BTreeSet;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tests::sdk_providers::{ANOTHER_SECRET, Call, Repository, SECRET, Sdk, SecretForm, plain, resource_inputs};

pub(crate) fn create(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    let calls = repository.provision();

    let id = repository.id("a");
    assert_eq!(repository.home.resources(), [(id.clone(), json!({"v": "1", "k": "x", "secret": SECRET}))]);
    assert_eq!(changes(&calls), [format!("Create {id}")]);
    let entry = repository.entry("a");
    assert_eq!(plain(&entry["inputs"]), json!({"v": "1", "k": "x", "secret": SECRET}));
    assert_eq!(plain(&entry["outputs"]), json!({"v": "1", "k": "x", "secret": SECRET, "out": "made of 1"}));
    assert_eq!(repository.outputs(&[])["a"]["out"], "made of 1");
    assert_own_processes(&calls);
}

pub(crate) fn no_op(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    repository.provision();
    let before = (repository.state(), repository.home.resources());

    let calls = repository.provision();
    assert_eq!(changes(&calls), [""; 0]);
    assert!(calls.iter().any(|call| call.call == "Diff"), "{calls:?}");
    assert_eq!(resources(&repository.state()), resources(&before.0));
    assert_eq!(repository.home.resources(), before.1);
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
}

/// All operations in the sandbox `strict`.
///
/// Shows: hosting.md#sandbox "providers and components on Pulumi's SDKs for Python, Node and Go"
pub(crate) fn sandbox(sdk: Sdk) {
    let outside = tempfile::tempdir().unwrap();
    let readable = sdk.install(&outside.path().join("plugin")).outside;
    let repository = Repository::new(&[sdk]).in_strict_sandbox(&readable);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    let calls = repository.provision();
    let id = repository.id("a");
    assert_eq!(changes(&calls), [format!("Create {id}")]);
    assert_own_processes(&calls);
    repository.run_successfully(&["provision", "-s", "reef", "--expect-no-changes"]);
    repository.declare(&[("a", sdk, resource_inputs("2", "x", "first"))]);
    assert_eq!(changes(&repository.provision()), [format!("Update {id}")]);
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    let (_, calls) = repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(changes(&calls), [format!("Delete {id}")]);
    let (text, _) = repository.run_successfully(&["plugin", "ls", "-s", "reef"]);
    assert!(text.contains("strict"), "{text}");
}

pub(crate) fn update(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    repository.provision();
    let id = repository.id("a");

    repository.declare(&[("a", sdk, resource_inputs("2", "x", "first"))]);
    assert_eq!(changes(&repository.provision()), [format!("Update {id}")]);
    assert_eq!(repository.home.resources(), [(id.clone(), json!({"v": "2", "k": "x", "secret": SECRET}))]);
    assert_eq!(repository.id("a"), id);
    assert_eq!(repository.entry("a")["outputs"]["out"], "made of 2");
    assert_eq!(repository.outputs(&[])["a"]["out"], "made of 2");
}

pub(crate) fn replace(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    repository.provision();
    let old = repository.id("a");

    repository.declare(&[("a", sdk, resource_inputs("1", "y", "first"))]);
    let calls = repository.provision();
    let new = repository.id("a");
    assert_ne!(old, new);
    assert_eq!(changes(&calls), [format!("Create {new}"), format!("Delete {old}")]);
    assert_eq!(repository.home.resources(), [(new, json!({"v": "1", "k": "y", "secret": SECRET}))]);
}

pub(crate) fn refresh_with_drift(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    repository.provision();
    let id = repository.id("a");
    repository.home.change(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));

    let (code, text) = repository.run(&["refresh", "-s", "reef", "--preview", "--expect-no-changes"]);
    assert_eq!(code, 7, "{text}");
    let (_, calls) = repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(changes(&calls), [""; 0]);
    assert!(calls.iter().any(|call| call.call == "Read" && call.id == id), "{calls:?}");
    let entry = repository.entry("a");
    assert_eq!(plain(&entry["inputs"]), json!({"v": "3", "k": "x", "secret": SECRET}));
    assert_eq!(plain(&entry["outputs"]), json!({"v": "3", "k": "x", "secret": SECRET, "out": "made of 3"}));

    assert_eq!(changes(&repository.provision()), [format!("Update {id}")]);
    assert_eq!(repository.home.resources()[0].1["v"], "1");

    repository.home.delete(&id);
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
    let calls = repository.provision();
    let new = repository.id("a");
    assert_eq!(changes(&calls), [format!("Create {new}")]);
    assert_eq!(repository.home.resources().len(), 1);
}

pub(crate) fn views(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let with_parts = |v: &str, parts: &str| {
        let mut inputs = resource_inputs(v, "x", "first");
        inputs["parts"] = json!(parts);
        repository.declare(&[("a", sdk, inputs)]);
    };
    let views = || {
        let state = repository.state();
        let views =
            state["deployment"]["resources"].as_array().unwrap().iter().filter(|entry| entry["viewOf"].is_string());
        let entries = views.map(|view| {
            assert_eq!(
                (&view["viewOf"], &view["parent"]),
                (&repository.entry("a")["urn"], &repository.entry("a")["urn"])
            );
            assert!(view["outputs"]["secret"].is_object(), "{view}");
            (view["inputs"]["part"].clone(), plain(&view["outputs"]["v"]))
        });
        entries.collect::<Vec<_>>()
    };
    with_parts("1", "x,y");
    repository.provision();
    assert_eq!(views(), [(json!("x"), json!("1")), (json!("y"), json!("1"))]);
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);

    with_parts("2", "y,z");
    let (text, _) = repository.run_successfully(&["provision", "-s", "reef", "--yes"]);
    assert_eq!(views(), [(json!("y"), json!("2")), (json!("z"), json!("2"))]);
    for step in ["deleted a--main.x", "updated a--main.y", "created a--main.z"] {
        assert!(text.contains(step), "{step}: {text}");
    }
    repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(repository.state()["deployment"]["resources"].as_array().map_or(0, Vec::len), 0);
}

pub(crate) fn delete(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let kept = ("a", sdk, resource_inputs("1", "x", "first"));
    repository.declare(&[kept.clone(), ("b", sdk, resource_inputs("1", "x", "first"))]);
    repository.provision();
    let (a, b) = (repository.id("a"), repository.id("b"));

    repository.declare(&[kept]);
    assert_eq!(changes(&repository.provision()), [format!("Delete {b}")]);
    assert_eq!(repository.entries("b"), [Value::Null; 0]);
    assert_eq!(repository.home.resources().iter().map(|(id, _)| id).collect::<Vec<_>>(), [&a]);

    let (_, calls) = repository.run_successfully(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(changes(&calls), [format!("Delete {a}")]);
    assert_eq!(repository.home.resources(), []);
}

pub(crate) fn secrets(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    let (text, mut calls) = repository.run_successfully(&["provision", "-s", "reef", "--yes"]);
    let id = repository.id("a");

    repository.declare(&[("a", sdk, resource_inputs("1", "x", "second"))]);
    let (more_text, more_calls) = repository.run_successfully(&["provision", "-s", "reef", "--yes"]);
    assert_eq!(changes(&more_calls), [format!("Update {id}")]);
    assert_eq!(repository.home.resources()[0].1["secret"], ANOTHER_SECRET);
    calls.extend(more_calls);
    let has_secret = |call: &&Call| call.secret != SecretForm::Absent;
    assert!(calls.iter().filter(has_secret).count() > 4, "{calls:?}");
    assert!(calls.iter().filter(has_secret).all(|call| call.secret == sdk.secret_form()), "{calls:?}");

    let entry = repository.entry("a");
    for bag in ["inputs", "outputs"] {
        let secret = &entry[bag]["secret"];
        assert!(secret.is_object(), "{bag}: {secret}");
        assert_eq!(plain(secret), json!(ANOTHER_SECRET));
    }
    assert_eq!(repository.outputs(&[])["a"]["secret"], "[secret]");
    assert_eq!(repository.outputs(&["--show-secrets"])["a"]["secret"], ANOTHER_SECRET);
    let (export, _) = repository.run_successfully(&["stack", "export", "-s", "reef"]);
    let files = repository.state_files();
    assert!(!files.is_empty());
    for (path, content) in files {
        assert_contains_no_secret(&path.display().to_string(), &String::from_utf8_lossy(&content));
    }
    for (what, text) in [("the first run", text), ("the second run", more_text), ("the export", export)] {
        assert_contains_no_secret(what, &text);
    }
}

pub(crate) fn preview(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    repository.declare(&[("a", sdk, resource_inputs("1", "x", "first"))]);
    let preview = ["provision", "-s", "reef", "--preview"];
    let (_, calls) = repository.run_successfully(&preview);
    let has_preview_call = |calls: &[Call], call: &str| calls.iter().any(|made| made.call == call && made.preview);
    assert_eq!(changes(&calls), [""; 0]);
    assert_eq!(has_preview_call(&calls, "Create"), sdk.supports_previews());
    assert_eq!((repository.home.resources(), repository.state_files()), (vec![], vec![]));

    repository.provision();
    let before = (repository.home.resources(), repository.state_files());
    repository
        .declare(&[("a", sdk, resource_inputs("2", "x", "first")), ("b", sdk, resource_inputs("1", "x", "first"))]);
    let (_, calls) = repository.run_successfully(&preview);
    assert_eq!(changes(&calls), [""; 0]);
    assert_eq!(has_preview_call(&calls, "Update"), sdk.supports_previews());
    let (code, text) = repository.run(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
    assert_eq!(code, 7, "{text}");
    assert_eq!((repository.home.resources(), repository.state_files()), before);
}

pub(crate) fn overlap(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let keys: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let resource = |key| (key, sdk, json!({"v": "1", "k": "x", "delay": 100}));
    repository.declare(&keys.iter().map(String::as_str).map(resource).collect::<Vec<_>>());
    let (_, calls) =
        repository.run_successfully(&["provision", "-s", "reef", "--yes", "--skip-preview", "--parallel", "50"]);
    let creates: Vec<Call> = calls.into_iter().filter(|call| call.call == "Create").collect();
    assert_overlap(&creates);
}

/// Tests the providers of all SDKs in one stack.
pub(crate) fn processes() {
    let repository = Repository::new(&Sdk::ALL);
    let resources: Vec<_> =
        Sdk::ALL.into_iter().map(|sdk| (sdk.language(), sdk, resource_inputs("1", "x", "first"))).collect();
    repository.declare(&resources);
    let calls = repository.provision();
    let of = |sdk: Sdk| {
        let name = format!("{}--main", sdk.language());
        calls.iter().filter(|call| call.name == name).cloned().collect::<Vec<_>>()
    };
    let pids: Vec<_> = Sdk::ALL.into_iter().map(|sdk| assert_own_processes(&of(sdk))).collect();
    assert!(pids[0].is_disjoint(&pids[1]) && pids[1].is_disjoint(&pids[2]) && pids[2].is_disjoint(&pids[0]));
}

/// Checks fifty Creates of 100 ms each: by the provider's log many ran at once, and all together took less than half of
/// the time that they would take in sequence.
pub(crate) fn assert_overlap(creates: &[Call]) {
    assert_eq!(creates.len(), 50);
    assert!(creates.iter().all(|call| call.end - call.begin >= 99.0), "{creates:?}");
    let running_at = |at: f64| creates.iter().filter(|call| call.begin <= at && at < call.end).count();
    let most = creates.iter().map(|call| running_at(call.begin)).max().unwrap_or_default();
    let first = creates.iter().map(|call| call.begin).fold(f64::INFINITY, f64::min);
    let last = creates.iter().map(|call| call.end).fold(0.0, f64::max);
    assert!(most >= 10, "at most {most} ran at once");
    assert!(last - first < 2500.0, "the Creates took {} ms", last - first);
}

/// Returns the calls that change resources, in the order of their ends.
pub(crate) fn changes(calls: &[Call]) -> Vec<String> {
    let done = calls.iter().filter(|call| !call.preview && ["Create", "Update", "Delete"].contains(&&*call.call));
    done.map(|call| format!("{} {}", call.call, call.id)).collect()
}

/// Checks that the processes of the calls were configured at most once and have ended. Returns their ids.
pub(crate) fn assert_own_processes(calls: &[Call]) -> BTreeSet<i32> {
    let pids: BTreeSet<i32> = calls.iter().map(|call| call.pid).collect();
    assert!(!pids.is_empty());
    for pid in &pids {
        let calls_of_process = || calls.iter().filter(|call| call.pid == *pid);
        assert!(
            calls_of_process().filter(|call| call.call == "Configure").count() <= 1,
            "{:?}",
            calls_of_process().collect::<Vec<_>>()
        );
        assert!(test_kill_process(Pid::from_raw(*pid).unwrap()).is_err(), "{pid} still runs");
    }
    pids
}

fn assert_contains_no_secret(what: &str, text: &str) {
    assert!(!text.contains(SECRET) && !text.contains(ANOTHER_SECRET), "{what} contains a secret:\n{text}");
}

fn resources(state: &Value) -> &Value {
    &state["deployment"]["resources"]
}
