//! Who may import whom: downwards only, as the introduction of the crate says.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the top to the bottom; `process` and `fs` are both the bottom and know nothing of each other.
const ROOMS: [&str; 7] = ["host", "provider", "launch", "source", "plugin", "process", "fs"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The rooms that a file of one room may not name, and names.
fn forbidden(room: usize, text: &str) -> Vec<&'static str> {
    let may_not = |other: usize| other < room || (ROOMS[room] == "process" && ROOMS[other] == "fs");
    let named = |other: &usize| text.contains(&format!("crate::{}::", ROOMS[*other]));
    (0..ROOMS.len()).filter(|other| may_not(*other)).filter(named).map(|other| ROOMS[other]).collect()
}

#[test]
fn rooms_import_downwards_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (index, room) in ROOMS.into_iter().enumerate() {
        for file in files(&source.join(room)) {
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(forbidden(index, &text), [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn generated_code_is_named_behind_two_doors_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let doors = [source.join("provider/grpc"), source.join("host/engine_service.rs")];
    for file in files(&source).into_iter().filter(|file| !doors.iter().any(|door| file.starts_with(door))) {
        let text = fs::read_to_string(&file).unwrap();
        let generated = ["pulumi_proto::rpc", "pulumi_proto::plugin_v1", "pulumi_proto::google_rpc"];
        assert!(!generated.iter().any(|name| text.contains(name)), "{}", file.display());
    }
}
