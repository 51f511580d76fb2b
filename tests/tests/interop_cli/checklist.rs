//! Checklist for states and their stores (state and secrets, section 11), as far as no other test covers it: Pulumi's
//! commands besides `up` on our stacks, its store formats, and locks.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tests::things::{PASSPHRASE, Peer, Repository, SECRET, plain, thing};

use crate::pulumi::{Pulumi, STACK};
use crate::states::{repository, write_program};

const PREVIEW: [&str; 5] = ["provision", "-s", "reef", "--preview", "--expect-no-changes"];

fn urn(name: &str) -> String {
    format!("urn:pulumi:reef::tide::peergo:index:Thing::{name}--main")
}

/// Returns the path of the uncompressed checkpoint.
fn checkpoint(repository: &Repository) -> PathBuf {
    repository.folder().join(".sc/state/.pulumi/stacks/tide/reef.json")
}

fn edit(repository: &Repository, change: impl FnOnce(&mut Value)) {
    let path = checkpoint(repository);
    let mut text: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut text);
    fs::write(path, text.to_string()).unwrap();
}

/// Returns the files of the store, relative to its `.pulumi`, without attributes.
fn files(repository: &Repository) -> Vec<String> {
    let store = repository.folder().join(".sc/state/.pulumi");
    let paths = repository.state_files().into_iter().map(|(path, _)| path);
    let below = paths.filter_map(|path| Some(path.strip_prefix(&store).ok()?.display().to_string()));
    below.filter(|path| !path.ends_with(".attrs")).collect()
}

pub(crate) fn what_pulumi_destroys_and_removes_leaves_only_backups() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.changes("destroy");
    pulumi.succeeds(&["stack", "rm", "--yes"]);
    let left = files(&repository);
    let may_stay = |path: &String| path == "meta.yaml" || path.contains(".bak") || path.starts_with("backups/");
    assert!(left.iter().all(may_stay), "{left:?}");
}

pub(crate) fn our_history_is_pulumis() {
    let repository = repository();
    repository.provision();
    repository.describe(&[("a", Peer::Go, thing("2", "x", "first"))]);
    repository.provision();
    repository.succeeds(&["refresh", "-s", "reef", "--yes"]);
    let pulumi = Pulumi::new(&repository);
    let history: Value =
        serde_json::from_str(&pulumi.succeeds(&["stack", "history", "--json", "--show-secrets"])).unwrap();
    let kinds: Vec<_> = history.as_array().unwrap().iter().map(|entry| (&entry["kind"], &entry["result"])).collect();
    assert_eq!(kinds[0], (&json!("refresh"), &json!("succeeded")), "{history:#}");
    let updates: Vec<_> = kinds.iter().filter(|(kind, _)| *kind == "update").collect();
    assert_eq!(updates.len(), 2, "{history:#}");
    let changes = history.as_array().unwrap().iter().map(|entry| entry["resourceChanges"]["update"].clone());
    assert!(changes.into_iter().any(|updated| updated == 1), "{history:#}");
}

pub(crate) fn a_configuration_of_pulumis_is_in_our_history_and_comes_back_from_it() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.succeeds(&["config", "set", "depth", "7"]);
    pulumi.succeeds(&["config", "set", "--secret", "code", "eel-9"]);
    pulumi.succeeds(&["config", "set", "--path", "--secret", "crew[0].name", "ada"]);
    repository.file("Pulumi.reef.yaml", &pulumi.settings());
    repository.describe(&[("a", Peer::Go, thing("2", "x", "first"))]);
    repository.provision();

    let history: Value =
        serde_json::from_str(&pulumi.succeeds(&["stack", "history", "--json", "--show-secrets"])).unwrap();
    let config = &history[0]["config"];
    assert_eq!(config["tide:code"], json!({"value": "eel-9", "secret": true}), "{config:#}");
    assert_eq!(config["tide:depth"]["value"], "7", "{config:#}");
    pulumi.adopt_salt();
    assert!(!pulumi.settings().contains("depth"));
    pulumi.succeeds(&["config", "refresh", "--force"]);
    assert_eq!(pulumi.succeeds(&["config", "get", "code"]).trim(), "eel-9");
    assert_eq!(pulumi.succeeds(&["config", "get", "--path", "crew[0].name"]).trim(), "ada");
    let (code, _, said) = pulumi.run(&["config", "get", "code"], "another");
    assert!(code != 0 && said.contains("passphrase"), "{said}");
}

pub(crate) fn tags_and_the_name_of_a_stack_of_ours_are_pulumis_to_change() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.succeeds(&["stack", "tag", "set", "depth", "7"]);
    assert!(repository.succeeds(&["stack", "tag", "ls", "-s", "reef"]).0.contains("depth"));
    repository.succeeds(&["stack", "tag", "set", "-s", "reef", "width", "3"]);
    let tags = pulumi.succeeds(&["stack", "tag", "ls"]);
    assert!(tags.contains("depth") && tags.contains("width"), "{tags}");

    pulumi.succeeds(&["stack", "rename", "organization/tide/shore"]);
    let (code, text) = repository.run(&["stack", "export", "-s", "reef"]);
    assert_ne!(code, 0, "{text}");
    pulumi.succeeds(&["stack", "rename", STACK, "--stack", "organization/tide/shore"]);
    repository.succeeds(&PREVIEW);
}

pub(crate) fn a_key_that_pulumi_changes_is_ours_from_then_on() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    let before = pulumi.settings();
    // The new passphrase is read from standard input. It equals the old one, but the salt is new.
    let mut change = pulumi.command(&["stack", "change-secrets-provider", "passphrase"], PASSPHRASE);
    let mut change = change.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(change.stdin.take().unwrap(), "{PASSPHRASE}").unwrap();
    assert!(change.wait().unwrap().success());
    assert_ne!(pulumi.settings(), before);
    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.succeeds(&PREVIEW);
    repository.describe(&[("a", Peer::Go, thing("2", "x", "second"))]);
    repository.provision();
    assert_eq!(plain(&pulumi.resource("a--main")["inputs"]["v"]), "2");
    assert_ne!(plain(&pulumi.resource("a--main")["inputs"]["secret"]), SECRET);
}

pub(crate) fn both_change_by_hand_what_the_other_recorded() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    pulumi.succeeds(&["state", "protect", &urn("a"), "--yes"]);
    assert_eq!(repository.entry("a")["protect"], true);
    repository.succeeds(&["state", "unprotect", "-s", "reef", "--yes", "a--main"]);
    assert_eq!(pulumi.resource("a--main")["protect"], Value::Null);
    repository.succeeds(&["state", "taint", "-s", "reef", "--yes", "a--main"]);
    assert_eq!(pulumi.resource("a--main")["taint"], true);
    pulumi.succeeds(&["state", "untaint", &urn("a"), "--yes"]);
    repository.succeeds(&PREVIEW);
    pulumi.succeeds(&["state", "repair", "--yes"]);
    pulumi.succeeds(&["state", "delete", &urn("a"), "--yes"]);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
}

pub(crate) fn what_pulumi_refuses_to_read_we_refuse() {
    type Break = (&'static str, fn(&mut Value));
    let broken: [Break; 4] = [
        ("a version that nobody knows", |file| file["version"] = json!(5)),
        ("a feature that nobody knows", |file| {
            file["version"] = json!(4);
            file["features"] = json!(["gills"]);
        }),
        ("a parent that comes later", |file| {
            file["checkpoint"]["latest"]["resources"].as_array_mut().unwrap().reverse();
        }),
        ("a digest that is not that of the version", |file| {
            file["checkpoint"]["latest"]["manifest"]["magic"] = json!("tampered with");
        }),
    ];
    for (what, how) in broken {
        let repository = repository();
        repository.provision();
        let pulumi = Pulumi::new(&repository);
        pulumi.adopt_salt();
        write_program(&pulumi);
        edit(&repository, how);
        let (code, stdout, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
        assert_ne!(code, 0, "{what}:\n{stdout}\n{stderr}");
        let (code, text) = repository.run(&["provision", "-s", "reef", "--yes"]);
        assert_ne!(code, 0, "{what}:\n{text}");
        assert_eq!(repository.home.things().len(), 1, "{what}");
    }
}

pub(crate) fn what_pulumi_has_only_begun_is_ours_to_go_on_with() {
    let repository = repository();
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.succeeds(&["stack", "init"]);
    let stacks = repository.succeeds(&["stack", "ls"]).0;
    assert!(stacks.contains("reef"), "{stacks}");
    repository.provision();
    pulumi.succeeds(&["preview", "--expect-no-changes"]);
}

pub(crate) fn compressed_stores_of_either_are_read_by_the_other() {
    let repository = repository();
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.succeeds(&["stack", "init"]);
    for (variable, extension) in [("PULUMI_DIY_BACKEND_GZIP", ".json.gz"), ("PULUMI_DIY_BACKEND_ZSTD", ".json.zst")] {
        let up = ["up", "--yes", "--skip-preview"];
        let output = pulumi.command(&up, PASSPHRASE).env(variable, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(files(&repository).iter().any(|path| path.ends_with(extension)), "{:?}", files(&repository));
        repository.succeeds(&PREVIEW);
        // The state is written uncompressed without the variable and compressed with it, and the other program reads
        // both.
        repository.describe(&[("a", Peer::Go, thing("2", "x", "first"))]);
        repository.provision();
        assert_eq!(pulumi.resource("a--main")["inputs"]["v"], "2");
        repository.describe(&[("a", Peer::Go, thing("1", "x", "first"))]);
        let output = repository.command(&["provision", "-s", "reef", "--yes"]).env(variable, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        pulumi.succeeds(&["preview", "--expect-no-changes"]);
    }
}

pub(crate) fn an_export_in_clear_is_taken_by_either() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    let file = repository.folder().join("export.json").display().to_string();
    pulumi.succeeds(&["stack", "export", "--show-secrets", "--file", &file]);
    repository.succeeds(&["stack", "import", "-s", "reef", "--file", &file]);
    assert_eq!(plain(&pulumi.resource("a--main")["outputs"]["secret"]), SECRET);
    repository.succeeds(&PREVIEW);
    let (ours, _) = repository.succeeds(&["stack", "export", "-s", "reef", "--show-secrets"]);
    fs::write(&file, ours).unwrap();
    pulumi.succeeds(&["stack", "import", "--file", &file]);
    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.succeeds(&PREVIEW);
}

/// Run in the background that holds the lock during a Create. It is killed when it is dropped.
struct Busy(Child);

impl Busy {
    /// Starts a run, and waits until its Create is recorded as pending, by either program.
    fn start(repository: &Repository, mut command: std::process::Command) -> Self {
        let mut busy = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let began = || {
            let written = repository.state_files().into_iter().map(|(_, content)| content);
            written.into_iter().any(|content| String::from_utf8_lossy(&content).contains("reating"))
        };
        while !began() {
            assert!(busy.0.try_wait().unwrap().is_none(), "it ended before its Create began");
            std::thread::yield_now();
        }
        busy
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

/// Returns a repository with a thing whose replacement takes a long time.
fn slow() -> Repository {
    let repository = repository();
    repository.provision();
    let mut wanted = thing("1", "y", "first");
    wanted["delay"] = json!(60_000);
    repository.describe(&[("a", Peer::Go, wanted)]);
    repository
}

/// Writes the program of [`slow`] for Pulumi.
fn write_slow(pulumi: &Pulumi<'_>) {
    let secret = json!({"fn::secret": SECRET});
    let resources = json!({
        "peergo": {"type": "pulumi:providers:peergo"},
        "a--main": {
            "type": "peergo:index:Thing",
            "properties": {"v": "1", "k": "y", "secret": secret, "delay": 60_000},
            "options": {"provider": "${peergo}"},
        },
    });
    pulumi.program(&resources, &json!({}));
}

pub(crate) fn our_lock_keeps_pulumi_out_until_it_is_cancelled() {
    let repository = slow();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    write_slow(&pulumi);
    let busy = Busy::start(&repository, repository.command(&["provision", "-s", "reef", "--yes", "-S", "-R"]));
    let (code, stdout, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    assert_ne!(code, 0, "{stdout}");
    let said = stdout + &stderr;
    let pid = format!("(pid {})", busy.0.id());
    assert!(said.contains("currently locked by 1 lock(s)") && said.contains(&pid), "{said}");
    pulumi.succeeds(&["stack", "export"]);
    busy.kill();
    // After a crash the lock stays until a user removes it.
    let (code, _, said) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    assert!(code != 0 && said.contains("currently locked"), "{said}");
    pulumi.succeeds(&["cancel", "--yes"]);
    assert!(!files(&repository).iter().any(|path| path.starts_with("locks/")), "{:?}", files(&repository));
}

pub(crate) fn pulumis_lock_keeps_us_out_until_it_is_cancelled() {
    let repository = slow();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    write_slow(&pulumi);
    let busy = Busy::start(&repository, pulumi.command(&["up", "--yes", "--skip-preview"], PASSPHRASE));
    let provision = ["provision", "-s", "reef", "--yes", "-S", "-R"];
    let (code, said) = repository.run(&provision);
    assert!(code != 0 && said.contains(&busy.0.id().to_string()), "{said}");
    repository.succeeds(&["stack", "export", "-s", "reef"]);
    repository.succeeds(&["provision", "-s", "reef", "--preview", "-R"]);
    busy.kill();
    let (code, said) = repository.run(&provision);
    assert!(code != 0 && said.contains("sc cancel"), "{said}");
    repository.succeeds(&["cancel", "-s", "reef", "--yes"]);
    // The pending creation is reported, and stays pending.
    repository.describe(&[("a", Peer::Go, thing("1", "y", "first"))]);
    let (_, said) = repository.run(&["provision", "-s", "reef", "--yes"]);
    assert!(said.contains("a--main"), "{said}");
    repository.succeeds(&["refresh", "-s", "reef", "--yes", "--clear-pending-creates"]);
    repository.provision();
    let (_, pending, _) = pulumi.run(&["stack", "export"], PASSPHRASE);
    assert!(!pending.contains("pending_operations"), "{pending}");
}

pub(crate) fn of_many_that_start_at_once_never_two_win() {
    let repository = repository();
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.adopt_salt();
    write_program(&pulumi);
    let ours = || repository.command(&["provision", "-s", "reef", "--yes", "-S", "-R"]);
    let theirs = || pulumi.command(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    for _ in 0..3 {
        let start =
            |mut command: std::process::Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<Child> = (0..6).map(|turn| start(if turn % 2 == 0 { ours() } else { theirs() })).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            // A run that does not get the lock reports it.
            assert!(output.status.success() || said.contains("lock"), "{said}");
        }
        assert!(!files(&repository).iter().any(|path| path.starts_with("locks/")), "{:?}", files(&repository));
    }
    repository.succeeds(&PREVIEW);
    assert_eq!(repository.home.things().len(), 1);
}
