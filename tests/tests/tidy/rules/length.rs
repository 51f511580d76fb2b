//! Rule: files are short enough to be read in one go, and long enough to be worth a place. Lines of inline tests do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::assert_none;
use crate::graph::graph;
use crate::modules::{File, parse};
use crate::workspace::{root, test_workspace};

const LINE_LIMIT: usize = 500;
const LEAST_LINES: usize = 30;

/// Returns the files that are too long, and the product files that are too short. A file of another length needs a reason at its
/// top, in a line that starts with `//! Length:`. Roots of modules and crates may be short.
fn violations(files: &BTreeMap<String, File>) -> Vec<String> {
    let is_long = |file: &File| file.lines > LINE_LIMIT && file.reason_for_length.is_none();
    let is_root = |path: &str| ["mod.rs", "lib.rs", "main.rs"].iter().any(|root| path.ends_with(root));
    let is_short = |path: &str, file: &File| {
        file.lines < LEAST_LINES && !file.is_test && !is_root(path) && file.reason_for_length.is_none()
    };
    let wrong = files.iter().filter(|(path, file)| is_long(file) || is_short(path, file));
    wrong.map(|(path, file)| format!("{path} has {} lines", file.lines)).collect()
}

#[test]
fn files_have_30_to_500_lines_or_a_reason() {
    assert_none(&violations(&graph().files));
}

#[test]
fn harness_files_have_at_most_500_lines() {
    fn check(folder: &Path) {
        for entry in fs::read_dir(folder).expect("a source folder can be read") {
            let path = entry.expect("a source folder can be read").path();
            if path.is_dir() {
                check(&path);
            } else {
                let lines = fs::read_to_string(&path).expect("a source file can be read").lines().count();
                assert!(lines <= LINE_LIMIT, "{} has {lines} lines", path.display());
            }
        }
    }
    check(&root().join("tests/src"));
}

#[test]
fn inline_tests_are_not_counted_and_a_reason_allows_length() {
    let line = "fn f() {}\n";
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(LINE_LIMIT));
    let files = [
        ("lib.rs", "mod long; mod excused; mod tested; mod small;".to_owned()),
        ("long.rs", line.repeat(LINE_LIMIT + 1)),
        ("excused.rs", format!("//! A table.\n//!\n//! Length: one row for each state.\n{}", line.repeat(LINE_LIMIT))),
        ("tested.rs", format!("{tests}{line}{tests}")),
        ("small.rs", format!("//! A type.\n//!\n//! Length: two files share it.\n{line}")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let files = parse(&test_workspace(&files)).files;
    assert_eq!(files["tested.rs"].lines, 1);
    assert_eq!(violations(&files), ["long.rs has 501 lines", "tested.rs has 1 lines"]);
}
