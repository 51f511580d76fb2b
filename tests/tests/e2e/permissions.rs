//! Tests of the permissions of files and folders, with a umask that takes no permission away.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::repository::{CHECKPOINT, FILES, PROVISIONER, REC, Repository, Running, Sections, in_shell};

const THING: &str = "first: { type: rec:index:Thing, config: { v: 1 } }";

/// Starts the command with the umask 0.
fn start<'a>(repository: &'a Repository, arguments: &str) -> Running<'a> {
    repository.start_command(in_shell("umask 0", &repository.command(arguments)))
}

/// Returns the paths below a folder that other users may access, sorted.
fn accessible(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
            found.push(path.display().to_string());
        }
        found.extend(accessible(&path));
    }
    found.sort();
    found
}

fn private_repository(plugins: &str) -> Repository {
    let repository = Repository::new(Sections { plugins, resources: THING, outputs: "" });
    let provisioner = PROVISIONER.replace("path: file://backend", "path: file://backend, private: true");
    repository.write_stack("reef", &provisioner, Sections { plugins, resources: THING, outputs: "" });
    repository
}

/// Shows: state.md#files "`.sc/journal` is always accessible to your account only."
#[test]
fn journal_is_accessible_to_its_owner_only_and_the_state_as_in_pulumi() {
    let repository = Repository::new(Sections { plugins: REC, resources: THING, outputs: "" });
    repository.script(json!({"resources": {"first--prod": {"hang": "create"}}}));
    let running = start(&repository, "provision -S");
    repository.wait_until_called("Create first--prod");
    assert_eq!(repository.names("backend/.sc/journal/tank/reef").len(), 1);
    let mode = |path: &str| fs::metadata(repository.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("backend/.sc"), 0o700);
    assert_eq!(accessible(&repository.path("backend/.sc")), Vec::<String>::new());
    running.signal(rustix::process::Signal::INT);
    running.output();
    assert_eq!((mode("backend/.pulumi/stacks"), mode(CHECKPOINT)), (0o777, 0o666));
}

/// Shows: state.md#files "With `private: true` beside `path` they are accessible to your account only (0600 and 0700),
///   whatever the umask"
#[test]
fn private_state_is_accessible_to_its_owner_only() {
    let repository = private_repository(REC);
    for _ in 0..2 {
        let output = start(&repository, "provision -S").output();
        assert!(output.starts_with("exit 0\n"), "{output}");
    }
    assert!(repository.path(CHECKPOINT).exists());
    assert_eq!(accessible(&repository.path("backend")), Vec::<String>::new());
}

/// Shows: plugins.md#the-cache "Files and folders of the cache are created for your account alone, whatever the umask
///   is."
#[test]
fn cache_is_accessible_to_its_owner_only() {
    let checksum = tests::releases::sha256(&fs::read(tests::binaries::files_plugin().unwrap()).unwrap());
    let plugins = FILES.replace("path: $FILES", &format!("path: $FILES, checksum: '{checksum}'"));
    let file = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
    let repository = Repository::new(Sections { plugins: &plugins, resources: file, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    let output = start(&repository, "provision -S").output();
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(!repository.names("home/.cache/sc/types").is_empty());
    assert_eq!(accessible(&repository.path("home")), Vec::<String>::new());
}
