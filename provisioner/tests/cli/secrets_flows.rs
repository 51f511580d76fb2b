//! Sequences of commands that were recorded with the Go program, run with ours.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::sc;

const STORE: &str = ".sc/secrets.yaml";

/// Steps that end otherwise on purpose: sequence, number of the step, our exit code, reason. After such a step, the
/// folder gets the files that the Go program left.
const DIFFERENT: [(&str, usize, i32, &str); 14] = [
    ("schema-version-text", 0, 1, "an unreadable store is not taken for an empty one"),
    ("store-malformed", 0, 1, "an unreadable store is not taken for an empty one"),
    ("store-malformed-hide", 0, 1, "an unreadable store is not overwritten"),
    ("key-enc-missing", 0, 0, "each line of a pipe is a reply, and no passphrase is needed to add the first file"),
    ("multibyte-2048", 1, 0, "a piece is never too long for the key"),
    ("multibyte-2048", 2, 0, "a piece is never too long for the key"),
    ("flow-basic", 4, 0, "each line of a pipe is a reply"),
    ("flow-basic", 14, 1, "a path that is not registered is a mistake"),
    ("flow-basic", 18, 2, "an unknown command is a mistake"),
    ("flow-basic", 19, 2, "a missing command is a mistake"),
    ("flow-init-nogit", 2, 0, "`sc init` is another command: it writes a first stack"),
    ("flow-init-nogit", 4, 1, "no repository is created unasked"),
    ("flow-init-git", 2, 1, "a profile is never overwritten"),
    ("flow-init-git", 3, 0, "`sc init` is another command: it writes a first stack"),
];

type Files = BTreeMap<String, Vec<u8>>;

fn read_files(root: &Path) -> Files {
    fn read(root: &Path, folder: &Path, files: &mut Files) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with(".git") && !path.ends_with(".sc/.tmp") {
                    read(root, &path, files);
                }
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut files = Files::new();
    read(root, root, &mut files);
    files
}

fn write_file(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn content(value: &Value) -> Vec<u8> {
    match value.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(value["base64"].as_str().unwrap()).unwrap(),
    }
}

/// Returns the files after a step of the Go program. A new key pair is any.
fn files_after(before: &Files, step: &Value, ours: &Files) -> Files {
    let mut files = before.clone();
    for (path, text) in step["wrote"].as_object().into_iter().flatten() {
        let written = match text.as_str() {
            Some(any @ "(profile with a new key pair)") => {
                let profile =
                    ours.get(path).filter(|text| String::from_utf8_lossy(text).contains("BEGIN RSA PRIVATE KEY"));
                profile.cloned().unwrap_or_else(|| any.as_bytes().to_vec())
            }
            _ => content(text),
        };
        files.insert(path.clone(), written);
    }
    for path in step["removed"].as_array().into_iter().flatten() {
        files.remove(path.as_str().unwrap());
    }
    files
}

/// Returns the results of the Go program: its output without questions, which are on standard error here, without the
/// files that `allow` and `disallow` reveal before they do anything, and without the order of keys, which is random.
fn results(stdout: &str, arguments: &[&str]) -> Vec<String> {
    let is_dialogue =
        |line: &str| ["====", "Lines added", "Lines removed", "++ ", "-- "].iter().any(|start| line.starts_with(start));
    let reveals_first = arguments.iter().any(|word| ["allow", "disallow"].contains(word));
    let mut lines: Vec<String> = stdout
        .lines()
        .map(|line| line.replace("do you accept changes [Y/N]? >", ""))
        .filter(|line| !(is_dialogue(line) || line.is_empty() || reveals_first && line.starts_with("revealed")))
        .collect();
    if arguments.contains(&"allowed-keys") {
        lines.sort();
    }
    lines
}

/// Returns the order of the files, and that of the entries of each key, by its last 12 characters.
fn orders(store: &[u8]) -> Value {
    let store: Value = serde_yaml::from_slice(store).unwrap();
    let recipients = store["secrets"].as_object().unwrap().iter().map(|(key, recipient)| {
        let (kind, end) = (key.split(' ').next().unwrap(), &key[key.len() - 12..]);
        let paths: Vec<&Value> = recipient["secrets"].as_array().unwrap().iter().map(|entry| &entry["path"]).collect();
        (format!("{kind} …{end}"), serde_json::json!(paths))
    });
    serde_json::json!({ "registry": store["registry"]["files"], "recipients": recipients.collect::<serde_json::Map<_, _>>() })
}

/// Shows: secrets.md#the-store "lists what differs from the Go tool"
#[test]
fn recorded_sequences_of_commands_end_alike() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/simple-container/secrets/flows.json");
    let flows: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(flows.len(), 30);
    let mut different = 0;
    for flow in &flows {
        let name = flow["name"].as_str().unwrap();
        let (parent, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = parent.path().join(name);
        fs::create_dir(&root).unwrap();
        if flow["git"] == true {
            write_file(&root, ".git/HEAD", b"ref: refs/heads/main\n");
            // The user of the recordings has registered the files, and is not asked about them again.
            write_file(&root, ".git/sc-secrets-confirmed", b"file a.txt\n");
        }
        for (path, text) in flow["start"].as_object().into_iter().flatten() {
            write_file(&root, path, &content(text));
        }
        for (number, step) in flow["steps"].as_array().unwrap().iter().enumerate() {
            for (path, text) in step["first"]["write"].as_object().into_iter().flatten() {
                write_file(&root, path, &content(text));
            }
            for path in step["first"]["remove"].as_array().into_iter().flatten() {
                fs::remove_file(root.join(path.as_str().unwrap())).unwrap();
            }
            let before = read_files(&root);
            let arguments: Vec<&str> =
                step["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            let mut command = sc(&arguments);
            command.current_dir(&root).env("HOME", home.path()).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            // A command that asks no question closes its input early.
            child.stdin.take().unwrap().write_all(step["stdin"].as_str().unwrap().as_bytes()).unwrap_or_default();
            let output = child.wait_with_output().unwrap();
            let exit = output.status.code().unwrap();
            let after = read_files(&root);
            let errors = String::from_utf8_lossy(&output.stderr);
            let place = format!("{name}, step {number}: {arguments:?}\n{errors}");
            if let Some((.., expected, _)) = DIFFERENT.iter().find(|(of, at, ..)| *of == name && *at == number) {
                assert_eq!(exit, *expected, "{place}");
                if exit != 0 {
                    assert_eq!(after, before, "nothing is written: {place}");
                }
                different += 1;
                for path in after.keys() {
                    fs::remove_file(root.join(path)).unwrap();
                }
                for (path, text) in &files_after(&before, step, &after) {
                    write_file(&root, path, text);
                }
                continue;
            }
            assert_eq!(exit == 0, step["exit"] == 0, "{place}");
            let stdout = String::from_utf8(output.stdout).unwrap();
            match step["stdout"].as_str().unwrap() {
                "(help text of the command)" => assert!(stdout.contains("Usage: "), "{place}"),
                recorded if exit == 0 => {
                    assert_eq!(results(&stdout, &arguments), results(recorded, &arguments), "{place}");
                }
                _ => assert_eq!(stdout, "", "{place}"),
            }
            if exit != 0 {
                let is_reason = |line: &str| line.starts_with("error: ") || line == "nothing was changed";
                assert!(errors.lines().any(is_reason), "{place}");
            }
            let mut expected = files_after(&before, step, &after);
            match (&step["store_after"], after.get(STORE)) {
                (Value::Null, _) => {}
                (recorded, Some(store)) => {
                    assert_eq!(orders(store), *recorded, "{place}");
                    expected.insert(STORE.to_owned(), store.clone());
                }
                (_, None) => panic!("no store: {place}"),
            }
            // The Go program ends the last lines of these files with no line end.
            let text = |files: &Files, path: &str| {
                let text = files.get(path).map(Vec::as_slice)?;
                Some(
                    if [".gitignore", ".sc/cfg.yaml.template"].contains(&path) { text.trim_ascii_end() } else { text }
                        .to_owned(),
                )
            };
            let changed: Vec<&String> = after
                .keys()
                .chain(expected.keys())
                .filter(|path| text(&after, path) != text(&expected, path))
                .collect();
            assert_eq!(changed, Vec::<&String>::new(), "{place}");
        }
        if let (Some(text), false) = (flow["store_text_after"].as_str(), name == "store-malformed-hide") {
            assert_eq!(fs::read_to_string(root.join(STORE)).unwrap(), text, "{name}");
        }
    }
    assert_eq!(different, DIFFERENT.len(), "each exception is one of a step");
}
