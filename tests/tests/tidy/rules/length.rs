//! Rule: files are short enough to be read in one go. Lines of inline tests do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::assert_none;
use crate::graph::graph;
use crate::modules::{File, parse};
use crate::workspace::{root, test_workspace};

const LINE_LIMIT: usize = 500;
const MEDIAN_LIMIT: usize = 150;

/// Returns the files that are too long. A longer file needs a reason at its top, in a line that starts with `//!
/// Length:`.
fn violations(files: &BTreeMap<String, File>) -> Vec<String> {
    let is_long = |file: &File| file.lines > LINE_LIMIT && file.reason_for_length.is_none();
    let long = files.iter().filter(|(_, file)| is_long(file));
    long.map(|(path, file)| format!("{path} has {} lines", file.lines)).collect()
}

fn median(files: &BTreeMap<String, File>) -> usize {
    let mut lengths: Vec<usize> = files.values().filter(|file| !file.is_test).map(|file| file.lines).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or_default()
}

#[test]
fn files_have_at_most_500_lines_or_a_reason() {
    assert_none(&violations(&graph().files));
}

#[test]
fn median_file_has_at_most_150_lines() {
    let median = median(&graph().files);
    assert!(median <= MEDIAN_LIMIT, "{median} lines");
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
        ("lib.rs", "mod long; mod excused; mod tested;".to_owned()),
        ("long.rs", line.repeat(LINE_LIMIT + 1)),
        ("excused.rs", format!("//! A table.\n//!\n//! Length: one row for each state.\n{}", line.repeat(LINE_LIMIT))),
        ("tested.rs", format!("{tests}{line}{tests}")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let files = parse(&test_workspace(&files)).files;
    assert_eq!(files["tested.rs"].lines, 1);
    assert_eq!(violations(&files), ["long.rs has 501 lines"]);
    assert_eq!(median(&files), 501);
}
