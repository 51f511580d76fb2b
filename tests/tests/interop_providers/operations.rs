//! Operations of `sc`, one function for each column of the table, checked in the provider's log, its things and our
//! state.

use std::collections::BTreeSet;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tests::things::{ANOTHER_SECRET, Call, Peer, Repository, SECRET, Secrecy, plain, thing};

pub(crate) fn create(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    let calls = repository.provision();

    let id = repository.id("a");
    assert_eq!(repository.home.things(), [(id.clone(), json!({"v": "1", "k": "x", "secret": SECRET}))]);
    assert_eq!(deeds(&calls), [format!("Create {id}")]);
    let entry = repository.entry("a");
    assert_eq!(plain(&entry["inputs"]), json!({"v": "1", "k": "x", "secret": SECRET}));
    assert_eq!(plain(&entry["outputs"]), json!({"v": "1", "k": "x", "secret": SECRET, "out": "made of 1"}));
    assert_eq!(repository.outputs(&[])["a"]["out"], "made of 1");
    assert_processes_of_its_own(&calls);
}

pub(crate) fn no_op(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    repository.provision();
    let before = (repository.state(), repository.home.things());

    let calls = repository.provision();
    assert_eq!(deeds(&calls), [""; 0]);
    assert!(calls.iter().any(|call| call.call == "Diff"), "{calls:?}");
    assert_eq!(resources(&repository.state()), resources(&before.0));
    assert_eq!(repository.home.things(), before.1);
    repository.succeeds(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
}

pub(crate) fn update(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    repository.provision();
    let id = repository.id("a");

    repository.describe(&[("a", peer, thing("2", "x", "first"))]);
    assert_eq!(deeds(&repository.provision()), [format!("Update {id}")]);
    assert_eq!(repository.home.things(), [(id.clone(), json!({"v": "2", "k": "x", "secret": SECRET}))]);
    assert_eq!(repository.id("a"), id);
    assert_eq!(repository.entry("a")["outputs"]["out"], "made of 2");
    assert_eq!(repository.outputs(&[])["a"]["out"], "made of 2");
}

pub(crate) fn replace(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    repository.provision();
    let old = repository.id("a");

    repository.describe(&[("a", peer, thing("1", "y", "first"))]);
    let calls = repository.provision();
    let new = repository.id("a");
    assert_ne!(old, new);
    assert_eq!(deeds(&calls), [format!("Create {new}"), format!("Delete {old}")]);
    assert_eq!(repository.home.things(), [(new, json!({"v": "1", "k": "y", "secret": SECRET}))]);
}

pub(crate) fn refresh_with_drift(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    repository.provision();
    let id = repository.id("a");
    repository.home.alter(&id, &json!({"v": "3", "k": "x", "secret": SECRET}));

    let (code, text) = repository.run(&["refresh", "-s", "reef", "--preview", "--expect-no-changes"]);
    assert_eq!(code, 7, "{text}");
    let (_, calls) = repository.succeeds(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(deeds(&calls), [""; 0]);
    assert!(calls.iter().any(|call| call.call == "Read" && call.id == id), "{calls:?}");
    let entry = repository.entry("a");
    assert_eq!(plain(&entry["inputs"]), json!({"v": "3", "k": "x", "secret": SECRET}));
    assert_eq!(plain(&entry["outputs"]), json!({"v": "3", "k": "x", "secret": SECRET, "out": "made of 3"}));

    assert_eq!(deeds(&repository.provision()), [format!("Update {id}")]);
    assert_eq!(repository.home.things()[0].1["v"], "1");

    repository.home.lose(&id);
    repository.succeeds(&["refresh", "-s", "reef", "--yes"]);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
    let calls = repository.provision();
    let new = repository.id("a");
    assert_eq!(deeds(&calls), [format!("Create {new}")]);
    assert_eq!(repository.home.things().len(), 1);
}

pub(crate) fn views(peer: Peer) {
    let repository = Repository::new(&[peer]);
    let with_parts = |v: &str, parts: &str| {
        let mut thing = thing(v, "x", "first");
        thing["parts"] = json!(parts);
        repository.describe(&[("a", peer, thing)]);
    };
    let views = || {
        let state = repository.state();
        let views =
            state["deployment"]["resources"].as_array().unwrap().iter().filter(|entry| entry["viewOf"].is_string());
        let said = views.map(|view| {
            assert_eq!(
                (&view["viewOf"], &view["parent"]),
                (&repository.entry("a")["urn"], &repository.entry("a")["urn"])
            );
            assert!(view["outputs"]["secret"].is_object(), "{view}");
            (view["inputs"]["part"].clone(), plain(&view["outputs"]["v"]))
        });
        said.collect::<Vec<_>>()
    };
    with_parts("1", "x,y");
    repository.provision();
    assert_eq!(views(), [(json!("x"), json!("1")), (json!("y"), json!("1"))]);
    repository.succeeds(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);

    with_parts("2", "y,z");
    let (told, _) = repository.succeeds(&["provision", "-s", "reef", "--yes"]);
    assert_eq!(views(), [(json!("y"), json!("2")), (json!("z"), json!("2"))]);
    for step in ["deleted a--main.x", "updated a--main.y", "created a--main.z"] {
        assert!(told.contains(step), "{step}: {told}");
    }
    repository.succeeds(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(repository.state()["deployment"]["resources"].as_array().map_or(0, Vec::len), 0);
}

pub(crate) fn delete(peer: Peer) {
    let repository = Repository::new(&[peer]);
    let kept = ("a", peer, thing("1", "x", "first"));
    repository.describe(&[kept.clone(), ("b", peer, thing("1", "x", "first"))]);
    repository.provision();
    let (a, b) = (repository.id("a"), repository.id("b"));

    repository.describe(&[kept]);
    assert_eq!(deeds(&repository.provision()), [format!("Delete {b}")]);
    assert_eq!(repository.entries("b"), [Value::Null; 0]);
    assert_eq!(repository.home.things().iter().map(|(id, _)| id).collect::<Vec<_>>(), [&a]);

    let (_, calls) = repository.succeeds(&["destroy", "--parent", "-s", "reef", "--yes"]);
    assert_eq!(deeds(&calls), [format!("Delete {a}")]);
    assert_eq!(repository.home.things(), []);
}

pub(crate) fn secrets(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    let (text, mut calls) = repository.succeeds(&["provision", "-s", "reef", "--yes"]);
    let id = repository.id("a");

    repository.describe(&[("a", peer, thing("1", "x", "second"))]);
    let (more_text, more_calls) = repository.succeeds(&["provision", "-s", "reef", "--yes"]);
    assert_eq!(deeds(&more_calls), [format!("Update {id}")]);
    assert_eq!(repository.home.things()[0].1["secret"], ANOTHER_SECRET);
    calls.extend(more_calls);
    let came = |call: &&Call| call.secret != Secrecy::Absent;
    assert!(calls.iter().filter(came).count() > 4, "{calls:?}");
    assert!(calls.iter().filter(came).all(|call| call.secret == peer.secrets()), "{calls:?}");

    let entry = repository.entry("a");
    for bag in ["inputs", "outputs"] {
        let secret = &entry[bag]["secret"];
        assert!(secret.is_object(), "{bag}: {secret}");
        assert_eq!(plain(secret), json!(ANOTHER_SECRET));
    }
    assert_eq!(repository.outputs(&[])["a"]["secret"], "[secret]");
    assert_eq!(repository.outputs(&["--show-secrets"])["a"]["secret"], ANOTHER_SECRET);
    let (export, _) = repository.succeeds(&["stack", "export", "-s", "reef"]);
    let files = repository.state_files();
    assert!(!files.is_empty());
    for (path, content) in files {
        assert_holds_no_secret(&path.display().to_string(), &String::from_utf8_lossy(&content));
    }
    for (what, text) in [("the first run", text), ("the second run", more_text), ("the export", export)] {
        assert_holds_no_secret(what, &text);
    }
}

pub(crate) fn preview(peer: Peer) {
    let repository = Repository::new(&[peer]);
    repository.describe(&[("a", peer, thing("1", "x", "first"))]);
    let preview = ["provision", "-s", "reef", "--preview"];
    let (_, calls) = repository.succeeds(&preview);
    let previewed = |calls: &[Call], call: &str| calls.iter().any(|made| made.call == call && made.preview);
    assert_eq!(deeds(&calls), [""; 0]);
    assert_eq!(previewed(&calls, "Create"), peer.shows_previews());
    assert_eq!((repository.home.things(), repository.state_files()), (vec![], vec![]));

    repository.provision();
    let before = (repository.home.things(), repository.state_files());
    repository.describe(&[("a", peer, thing("2", "x", "first")), ("b", peer, thing("1", "x", "first"))]);
    let (_, calls) = repository.succeeds(&preview);
    assert_eq!(deeds(&calls), [""; 0]);
    assert_eq!(previewed(&calls, "Update"), peer.shows_previews());
    let (code, text) = repository.run(&["provision", "-s", "reef", "--preview", "--expect-no-changes"]);
    assert_eq!(code, 7, "{text}");
    assert_eq!((repository.home.things(), repository.state_files()), before);
}

pub(crate) fn overlap(peer: Peer) {
    let repository = Repository::new(&[peer]);
    let keys: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let wanted = |key| (key, peer, json!({"v": "1", "k": "x", "delay": 100}));
    repository.describe(&keys.iter().map(String::as_str).map(wanted).collect::<Vec<_>>());
    let (_, calls) = repository.succeeds(&["provision", "-s", "reef", "--yes", "--skip-preview", "--parallel", "50"]);
    let creates: Vec<Call> = calls.into_iter().filter(|call| call.call == "Create").collect();
    assert_overlap(&creates);
}

/// Tests all peers in one stack.
pub(crate) fn processes() {
    let repository = Repository::new(&Peer::ALL);
    let wanted: Vec<_> = Peer::ALL.into_iter().map(|peer| (peer.language(), peer, thing("1", "x", "first"))).collect();
    repository.describe(&wanted);
    let calls = repository.provision();
    let of = |peer: Peer| {
        let name = format!("{}--main", peer.language());
        calls.iter().filter(|call| call.name == name).cloned().collect::<Vec<_>>()
    };
    let pids: Vec<_> = Peer::ALL.into_iter().map(|peer| assert_processes_of_its_own(&of(peer))).collect();
    assert!(pids[0].is_disjoint(&pids[1]) && pids[1].is_disjoint(&pids[2]) && pids[2].is_disjoint(&pids[0]));
}

/// Checks fifty Creates of 100 ms each: by the provider's log many ran at once, and all together took less than half of
/// the time that they would take in sequence.
pub(crate) fn assert_overlap(creates: &[Call]) {
    assert_eq!(creates.len(), 50);
    assert!(creates.iter().all(|call| call.end - call.begin >= 99.0), "{creates:?}");
    let under_way = |at: f64| creates.iter().filter(|call| call.begin <= at && at < call.end).count();
    let most = creates.iter().map(|call| under_way(call.begin)).max().unwrap_or_default();
    let first = creates.iter().map(|call| call.begin).fold(f64::INFINITY, f64::min);
    let last = creates.iter().map(|call| call.end).fold(0.0, f64::max);
    assert!(most >= 10, "at most {most} were under way at once");
    assert!(last - first < 2500.0, "they took {} ms", last - first);
}

/// Returns the calls that change things, in the order of their ends.
fn deeds(calls: &[Call]) -> Vec<String> {
    let done = calls.iter().filter(|call| !call.preview && ["Create", "Update", "Delete"].contains(&&*call.call));
    done.map(|call| format!("{} {}", call.call, call.id)).collect()
}

/// Checks that the processes behind the calls were configured at most once and have ended. Returns their ids.
fn assert_processes_of_its_own(calls: &[Call]) -> BTreeSet<i32> {
    let pids: BTreeSet<i32> = calls.iter().map(|call| call.pid).collect();
    assert!(!pids.is_empty());
    for pid in &pids {
        let of_it = || calls.iter().filter(|call| call.pid == *pid);
        assert!(of_it().filter(|call| call.call == "Configure").count() <= 1, "{:?}", of_it().collect::<Vec<_>>());
        assert!(test_kill_process(Pid::from_raw(*pid).unwrap()).is_err(), "{pid} still runs");
    }
    pids
}

fn assert_holds_no_secret(what: &str, text: &str) {
    assert!(!text.contains(SECRET) && !text.contains(ANOTHER_SECRET), "{what} holds a secret:\n{text}");
}

fn resources(state: &Value) -> &Value {
    &state["deployment"]["resources"]
}
