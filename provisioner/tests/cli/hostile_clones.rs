//! Tests of what a repository that was only cloned gets from each command: each cell of the table in `docs/security.md`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::{run, sc};

const TOKEN: &str = "sekret-7f3a";
const COLUMNS: [&str; 4] =
    ["runs its plugins", "connects to its state storage", "sends credentials there", "writes through links out of it"];

/// Server that refuses each request, and keeps what it receives.
struct Server {
    port: u16,
    received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), received: Arc::default() };
        let received = Arc::clone(&server.received);
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                    match connection.read(&mut buffer) {
                        Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                received.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let reply = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                connection.write_all(reply).unwrap_or_default();
            }
        });
        server
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

/// Writes a clone whose files try to get something.
fn write_clone(root: &Path, outside: &Path, storage: &str) {
    let stack = root.join(".sc/stacks/dev");
    fs::create_dir_all(&stack).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(root.join(".sc/cfg.default.yaml"), "projectName: reef\n").unwrap();
    let server = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: \"{storage}\" }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
plugins: [{{ name: evil, source: {{ type: local, path: evil }}, startTimeout: 5s }}]
resources: {{ resources: {{ prod: {{ resources: {{ thing: {{ type: 'evil:index:Thing' }} }} }} }} }}
"
    );
    fs::write(stack.join("server.yaml"), server).unwrap();
    let plugin = root.join("evil");
    fs::write(&plugin, format!("#!/bin/sh\ntouch {}\nexit 1\n", root.join("ran").display())).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(outside.join("file"), "mine").unwrap();
    symlink(outside.join("file"), root.join(".gitignore")).unwrap();
    symlink(outside.join("file"), root.join(".sc/secrets.yaml")).unwrap();
    symlink(outside.join("file"), root.join(".sc/sc.lock")).unwrap();
    symlink(outside, root.join(".sc/.tmp")).unwrap();
    symlink(outside, root.join(".sc/linked")).unwrap();
    fs::create_dir(root.join("schemas")).unwrap();
    symlink(outside, root.join("schemas/aws")).unwrap();
    symlink(outside.join("file"), root.join("state.json")).unwrap();
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let content = |path: &Path| fs::read(path).unwrap_or_default();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), content(&entry.path()))).collect()
}

/// Runs a command in a clone with each kind of state storage, and returns what it gave.
fn observe(command: &str, server: &Server) -> [bool; 4] {
    let mut observed = [false; 4];
    let remote = format!("s3://b-${{env:TOKEN}}/x?endpoint=http://127.0.0.1:{}&s3ForcePathStyle=true", server.port);
    for storage in [remote.as_str(), "file://backend?create_dir=true", "file://.sc/linked"] {
        let [folder, outside, home] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        write_clone(&root, outside.path(), storage);
        let before = files(outside.path());
        let mut words: Vec<&str> = command.split(' ').collect();
        let is_completion = words[0] == "TAB";
        if is_completion {
            words.splice(0..1, ["--", "sc"]);
            words.push("");
        }
        let mut process = sc(&words);
        process.current_dir(&root).env("HOME", home.path()).env("PATH", "/usr/bin:/bin").env("TOKEN", TOKEN);
        process.env("AWS_ACCESS_KEY_ID", TOKEN).env("AWS_SECRET_ACCESS_KEY", TOKEN).env("AWS_REGION", "us-east-1");
        if is_completion {
            process.env("SC_COMPLETE", "fish");
        }
        run(process);
        let received = server.take();
        let gave = [
            root.join("ran").exists(),
            !received.is_empty(),
            received.iter().any(|request| request.contains(TOKEN)),
            files(outside.path()) != before,
        ];
        (0..4).for_each(|at| observed[at] |= gave[at]);
    }
    observed
}

/// Shows: security.md#the-repository "Each cell is tested."
#[test]
fn each_command_gives_a_clone_what_the_table_says() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md")).unwrap();
    let head = format!("| command | {} |", COLUMNS.join(" | "));
    let rows = page.split_once(&head).unwrap_or_else(|| panic!("no table with {head}")).1;
    let rows: Vec<&str> = rows.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 24);
    let server = Server::start();
    let mut differences = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (command, cells) = (cells[0].trim_matches('`').trim_start_matches("sc "), &cells[1..]);
        let mut expected = [0, 1, 2, 3].map(|at| cells[at] == "yes");
        // A build without clouds has no storage that it could connect to.
        expected[1] &= cfg!(feature = "cloud");
        expected[2] &= cfg!(feature = "cloud");
        let observed = observe(command, &server);
        assert!(cells.iter().all(|cell| ["yes", "no"].contains(cell)), "{row}");
        if observed != expected {
            differences.push(format!("{command}: {observed:?}, and the table has {expected:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
