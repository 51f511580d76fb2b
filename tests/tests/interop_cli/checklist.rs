//! Checklist for states and their stores (docs/spec/state-and-secrets.md#11), as far as no other test covers it:
//! Pulumi's commands besides `up` on our stacks, its store formats, and locks.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tests::processes::kill_with_variable;
use tests::sdk_providers::{PASSPHRASE, Repository, SECRET, Sdk, plain, resource_inputs};

use crate::pulumi::{Pulumi, STACK};
use crate::states::{repository, write_program};
use crate::stores::Stores;

pub(crate) const PREVIEW: [&str; 5] = ["provision", "-s", "reef", "--preview", "--expect-no-changes"];

fn urn(name: &str) -> String {
    format!("urn:pulumi:reef::tide::peergo:index:Thing::{name}--main")
}

/// Returns the files of the store, relative to its `.pulumi`, without attributes.
fn files(repository: &Repository) -> Vec<String> {
    let store = repository.folder().join(".sc/state/.pulumi");
    let paths = repository.state_files().into_iter().map(|(path, _)| path);
    let relative_paths = paths.filter_map(|path| Some(path.strip_prefix(&store).ok()?.display().to_string()));
    relative_paths.filter(|path| !path.ends_with(".attrs")).collect()
}

pub(crate) fn pulumi_destroy_and_rm_leave_only_backups(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.changes("destroy");
    pulumi.run_successfully(&["stack", "rm", "--yes"]);
    let left = files(&repository);
    let is_allowed = |path: &String| path == "meta.yaml" || path.contains(".bak") || path.starts_with("backups/");
    assert!(left.iter().all(is_allowed), "{left:?}");
}

pub(crate) fn pulumi_reads_our_history(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.provision();
    repository.run_successfully(&["refresh", "-s", "reef", "--yes"]);
    let pulumi = Pulumi::new(&repository);
    let history: Value =
        serde_json::from_str(&pulumi.run_successfully(&["stack", "history", "--json", "--show-secrets"])).unwrap();
    let kinds: Vec<_> = history.as_array().unwrap().iter().map(|entry| (&entry["kind"], &entry["result"])).collect();
    assert_eq!(kinds[0], (&json!("refresh"), &json!("succeeded")), "{history:#}");
    let updates: Vec<_> = kinds.iter().filter(|(kind, _)| *kind == "update").collect();
    assert_eq!(updates.len(), 2, "{history:#}");
    let changes = history.as_array().unwrap().iter().map(|entry| entry["resourceChanges"]["update"].clone());
    assert!(changes.into_iter().any(|updated| updated == 1), "{history:#}");
}

pub(crate) fn pulumi_configuration_is_recorded_in_history_and_restored(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.run_successfully(&["config", "set", "depth", "7"]);
    pulumi.run_successfully(&["config", "set", "--secret", "code", "eel-9"]);
    pulumi.run_successfully(&["config", "set", "--path", "--secret", "crew[0].name", "ada"]);
    repository.write_file("Pulumi.reef.yaml", &pulumi.settings());
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
    repository.provision();

    let history: Value =
        serde_json::from_str(&pulumi.run_successfully(&["stack", "history", "--json", "--show-secrets"])).unwrap();
    let config = &history[0]["config"];
    assert_eq!(config["tide:code"], json!({"value": "eel-9", "secret": true}), "{config:#}");
    assert_eq!(config["tide:depth"]["value"], "7", "{config:#}");
    pulumi.copy_secrets_provider();
    assert!(!pulumi.settings().contains("depth"));
    pulumi.run_successfully(&["config", "refresh", "--force"]);
    assert_eq!(pulumi.run_successfully(&["config", "get", "code"]).trim(), "eel-9");
    assert_eq!(pulumi.run_successfully(&["config", "get", "--path", "crew[0].name"]).trim(), "ada");
    let (code, _, stderr) = pulumi.run(&["config", "get", "code"], "another");
    assert!(code != 0 && stderr.contains("passphrase"), "{stderr}");
}

/// Shows: state.md#stores "each program continues, edits, renames, restores and destroys the stacks of the other"
pub(crate) fn pulumi_changes_tags_and_name_of_our_stack(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.run_successfully(&["stack", "tag", "set", "depth", "7"]);
    assert!(repository.run_successfully(&["stack", "tag", "ls", "-s", "reef"]).0.contains("depth"));
    repository.run_successfully(&["stack", "tag", "set", "-s", "reef", "width", "3"]);
    let tags = pulumi.run_successfully(&["stack", "tag", "ls"]);
    assert!(tags.contains("depth") && tags.contains("width"), "{tags}");

    pulumi.run_successfully(&["stack", "rename", "organization/tide/shore"]);
    let (code, text) = repository.run(&["stack", "export", "-s", "reef"]);
    assert_ne!(code, 0, "{text}");
    pulumi.run_successfully(&["stack", "rename", STACK, "--stack", "organization/tide/shore"]);
    repository.run_successfully(&PREVIEW);
}

pub(crate) fn sc_uses_secrets_provider_changed_by_pulumi(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    let before = pulumi.settings();
    // The new passphrase is read from standard input. It equals the old one, but the salt is new.
    let mut change = pulumi.command(&["stack", "change-secrets-provider", "passphrase"], PASSPHRASE);
    let mut change = change.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(change.stdin.take().unwrap(), "{PASSPHRASE}").unwrap();
    assert!(change.wait().unwrap().success());
    assert_ne!(pulumi.settings(), before);
    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.run_successfully(&PREVIEW);
    repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "second"))]);
    repository.provision();
    assert_eq!(plain(&pulumi.resource("a--main")["inputs"]["v"]), "2");
    assert_ne!(plain(&pulumi.resource("a--main")["inputs"]["secret"]), SECRET);
}

/// Shows: state.md#stores "each program continues, edits, renames, restores and destroys the stacks of the other"
pub(crate) fn state_edits_work_on_states_of_the_other_program(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    pulumi.run_successfully(&["state", "protect", &urn("a"), "--yes"]);
    assert_eq!(repository.entry("a")["protect"], true);
    repository.run_successfully(&["state", "unprotect", "-s", "reef", "--yes", "a--main"]);
    assert_eq!(pulumi.resource("a--main")["protect"], Value::Null);
    repository.run_successfully(&["state", "taint", "-s", "reef", "--yes", "a--main"]);
    assert_eq!(pulumi.resource("a--main")["taint"], true);
    pulumi.run_successfully(&["state", "untaint", &urn("a"), "--yes"]);
    repository.run_successfully(&PREVIEW);
    pulumi.run_successfully(&["state", "repair", "--yes"]);
    pulumi.run_successfully(&["state", "delete", &urn("a"), "--yes"]);
    assert_eq!(repository.entries("a"), [Value::Null; 0]);
}

pub(crate) fn state_rejected_by_pulumi_is_rejected(stores: Stores<'_>) {
    type InvalidEdit = (&'static str, fn(&mut Value));
    let invalid_edits: [InvalidEdit; 4] = [
        ("unknown version", |file| file["version"] = json!(5)),
        ("unknown feature", |file| {
            file["version"] = json!(4);
            file["features"] = json!(["gills"]);
        }),
        ("parent after its child", |file| {
            file["checkpoint"]["latest"]["resources"].as_array_mut().unwrap().reverse();
        }),
        ("invalid manifest digest", |file| {
            file["checkpoint"]["latest"]["manifest"]["magic"] = json!("tampered with");
        }),
    ];
    for (what, edit_state) in invalid_edits {
        let repository = repository(stores);
        repository.provision();
        let pulumi = Pulumi::new(&repository);
        pulumi.copy_secrets_provider();
        write_program(&pulumi);
        repository.change_checkpoint(edit_state);
        let (code, stdout, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
        assert_ne!(code, 0, "{what}:\n{stdout}\n{stderr}");
        let (code, text) = repository.run(&["provision", "-s", "reef", "--yes"]);
        assert_ne!(code, 0, "{what}:\n{text}");
        assert_eq!(repository.home.resources().len(), 1, "{what}");
    }
}

pub(crate) fn sc_continues_stack_created_by_pulumi_stack_init(stores: Stores<'_>) {
    let repository = repository(stores);
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.run_successfully(&["stack", "init"]);
    let stacks = repository.run_successfully(&["stack", "ls"]).0;
    assert!(stacks.contains("reef"), "{stacks}");
    repository.provision();
    pulumi.run_successfully(&["preview", "--expect-no-changes"]);
}

pub(crate) fn compressed_states_are_read_by_the_other_program(stores: Stores<'_>) {
    let repository = repository(stores);
    let pulumi = Pulumi::new(&repository);
    write_program(&pulumi);
    pulumi.run_successfully(&["stack", "init"]);
    for (variable, extension) in [("PULUMI_DIY_BACKEND_GZIP", ".json.gz"), ("PULUMI_DIY_BACKEND_ZSTD", ".json.zst")] {
        let up = ["up", "--yes", "--skip-preview"];
        let output = pulumi.command(&up, PASSPHRASE).env(variable, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(files(&repository).iter().any(|path| path.ends_with(extension)), "{:?}", files(&repository));
        repository.run_successfully(&PREVIEW);
        // The state is written uncompressed without the variable and compressed with it, and the other program reads
        // both.
        repository.declare(&[("a", Sdk::Go, resource_inputs("2", "x", "first"))]);
        repository.provision();
        assert_eq!(pulumi.resource("a--main")["inputs"]["v"], "2");
        repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
        let output = repository.command(&["provision", "-s", "reef", "--yes"]).env(variable, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        pulumi.run_successfully(&["preview", "--expect-no-changes"]);
    }
}

/// Shows: comparison.md#for-pulumi-users "each program imports the exports of the other"
/// Shows: state.md#stores "each program continues, edits, renames, restores and destroys the stacks of the other"
pub(crate) fn plaintext_export_is_imported_by_both_programs(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    let file = repository.folder().join("export.json").display().to_string();
    pulumi.run_successfully(&["stack", "export", "--show-secrets", "--file", &file]);
    repository.run_successfully(&["stack", "import", "-s", "reef", "--file", &file]);
    assert_eq!(plain(&pulumi.resource("a--main")["outputs"]["secret"]), SECRET);
    repository.run_successfully(&PREVIEW);
    let (ours, _) = repository.run_successfully(&["stack", "export", "-s", "reef", "--show-secrets"]);
    fs::write(&file, ours).unwrap();
    pulumi.run_successfully(&["stack", "import", "--file", &file]);
    assert_eq!(plain(&repository.entry("a")["outputs"]["secret"]), SECRET);
    repository.run_successfully(&PREVIEW);
}

/// Operation in the background that holds the lock during a Create. Dropping it kills it, and the plugins that `pulumi` leaves
/// behind then.
struct RunningOperation {
    child: Child,
    /// Home folder in the environment of all processes of the operation.
    home: PathBuf,
}

impl RunningOperation {
    /// Starts an operation of either program, and waits until its Create is recorded as pending.
    fn start(repository: &Repository, mut command: std::process::Command) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut running = Self { child, home: repository.folder().join("home") };
        let has_started = || {
            let written = repository.state_files().into_iter().map(|(_, content)| content);
            written.into_iter().any(|content| String::from_utf8_lossy(&content).contains("reating"))
        };
        while !has_started() {
            assert!(running.child.try_wait().unwrap().is_none(), "the run ended before its Create started");
            std::thread::yield_now();
        }
        running
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn kill(self) {
        drop(self);
    }
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait()));
        kill_with_variable("HOME", &self.home);
    }
}

/// Returns a repository with a resource whose replacement takes a long time.
fn repository_with_slow_replacement(stores: Stores<'_>) -> Repository {
    let repository = repository(stores);
    repository.provision();
    let mut inputs = resource_inputs("1", "y", "first");
    inputs["delay"] = json!(60_000);
    repository.declare(&[("a", Sdk::Go, inputs)]);
    repository
}

/// Writes the program of [`repository_with_slow_replacement`] for Pulumi.
fn write_slow_program(pulumi: &Pulumi<'_>) {
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

/// Shows: state.md#what-pulumi-sees "Every `pulumi` command that changes the state"
/// Shows: state.md#what-pulumi-sees "that take no lock (`preview`, `stack export`, `stack output`, `stack ls`) show the
///   checkpoint from before the run"
pub(crate) fn our_lock_blocks_pulumi_until_cancel(stores: Stores<'_>) {
    let repository = repository_with_slow_replacement(stores);
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_slow_program(&pulumi);
    let running =
        RunningOperation::start(&repository, repository.command(&["provision", "-s", "reef", "--yes", "-S", "-R"]));
    let (code, stdout, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    assert_ne!(code, 0, "{stdout}");
    let output_text = stdout + &stderr;
    let pid = format!("(pid {})", running.id());
    assert!(output_text.contains("currently locked by 1 lock(s)") && output_text.contains(&pid), "{output_text}");
    pulumi.run_successfully(&["stack", "export"]);
    running.kill();
    // After a crash the lock stays until a user removes it.
    let (code, _, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    assert!(code != 0 && stderr.contains("currently locked"), "{stderr}");
    pulumi.run_successfully(&["cancel", "--yes"]);
    assert!(!files(&repository).iter().any(|path| path.starts_with("locks/")), "{:?}", files(&repository));
}

/// Shows: state.md#locks "A lock of `pulumi`, or of an earlier `sc`, has no lease and is never taken over. `pulumi`
///   sees a lock of `sc` as an ordinary one and refuses."
/// Shows: state.md#locks "The next command that changes the stack removes a lock whose run has ended"
pub(crate) fn lock_of_our_killed_run_blocks_pulumi_but_not_sc(stores: Stores<'_>) {
    let repository = repository_with_slow_replacement(stores);
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_program(&pulumi);
    let provision = ["provision", "-s", "reef", "--yes", "-S", "-R"];
    RunningOperation::start(&repository, repository.command(&provision)).kill();
    // The journal of this machine is lost, too.
    fs::remove_dir_all(repository.folder().join("home")).unwrap();
    let (code, _, stderr) = pulumi.run(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    assert!(code != 0 && stderr.contains("currently locked by 1 lock(s)"), "{stderr}");
    repository.declare(&[("a", Sdk::Go, resource_inputs("1", "x", "first"))]);
    let (_, output_text) = repository.run(&provision);
    assert!(output_text.contains("took over the lock of organization/tide/reef"), "{output_text}");
    repository.run_successfully(&["refresh", "-s", "reef", "--yes", "--clear-pending-creates"]);
    repository.provision();
    pulumi.run_successfully(&["preview", "--expect-no-changes"]);
    pulumi.changes("up");
    repository.run_successfully(&PREVIEW);
    assert_eq!(repository.home.resources().len(), 1);
}

/// Shows: state.md#locks "A lock of `pulumi`, or of an earlier `sc`, has no lease and is never taken over. `pulumi`
///   sees a lock of `sc` as an ordinary one and refuses."
/// Shows: state.md#locks "The next command that changes the stack removes a lock whose run has ended"
pub(crate) fn pulumi_lock_blocks_sc_until_cancel(stores: Stores<'_>) {
    let repository = repository_with_slow_replacement(stores);
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_slow_program(&pulumi);
    let running = RunningOperation::start(&repository, pulumi.command(&["up", "--yes", "--skip-preview"], PASSPHRASE));
    let provision = ["provision", "-s", "reef", "--yes", "-S", "-R"];
    let (code, output_text) = repository.run(&provision);
    assert!(code == 4 && output_text.contains(&running.id().to_string()), "{output_text}");
    repository.run_successfully(&["stack", "export", "-s", "reef"]);
    repository.run_successfully(&["provision", "-s", "reef", "--preview", "-R"]);
    running.kill();
    let (code, output_text) = repository.run(&provision);
    assert!(code == 4 && output_text.contains("sc cancel"), "{output_text}");
    repository.run_successfully(&["cancel", "-s", "reef", "--yes"]);
    // The pending create is reported, and stays pending.
    repository.declare(&[("a", Sdk::Go, resource_inputs("1", "y", "first"))]);
    let (_, output_text) = repository.run(&["provision", "-s", "reef", "--yes"]);
    assert!(output_text.contains("a--main"), "{output_text}");
    repository.run_successfully(&["refresh", "-s", "reef", "--yes", "--clear-pending-creates"]);
    repository.provision();
    let (_, pending, _) = pulumi.run(&["stack", "export"], PASSPHRASE);
    assert!(!pending.contains("pending_operations"), "{pending}");
}

/// Shows: comparison.md#when-to-use-which "each respects the lock of the other"
pub(crate) fn concurrent_runs_of_both_programs_exclude_each_other(stores: Stores<'_>) {
    let repository = repository(stores);
    repository.provision();
    let pulumi = Pulumi::new(&repository);
    pulumi.copy_secrets_provider();
    write_program(&pulumi);
    let ours = || repository.command(&["provision", "-s", "reef", "--yes", "-S", "-R"]);
    let theirs = || pulumi.command(&["up", "--yes", "--skip-preview"], PASSPHRASE);
    for _ in 0..3 {
        let start =
            |mut command: std::process::Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<Child> = (0..6).map(|turn| start(if turn % 2 == 0 { ours() } else { theirs() })).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            // A run that does not get the lock reports it. `pulumi` lists the locks and then reads each: one that has ended
            // meanwhile is an error for it.
            let is_refused = output_text.contains("lock") || output_text.contains("NotFound");
            assert!(output.status.success() || is_refused, "{output_text}");
        }
        assert!(!files(&repository).iter().any(|path| path.starts_with("locks/")), "{:?}", files(&repository));
    }
    repository.run_successfully(&PREVIEW);
    assert_eq!(repository.home.resources().len(), 1);
}
