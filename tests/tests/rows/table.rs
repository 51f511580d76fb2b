//! Checks that each situation has a test, and each test a row in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Number of rows in docs/spec/engine-semantics.md#10.
const ROWS: u32 = 57;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the tree").to_path_buf()
}

/// Returns the tests of a folder that have the number of a row, by number: `row_05_…`.
fn tests_in(folder: &str) -> BTreeMap<u32, Vec<String>> {
    let mut found = BTreeMap::<u32, Vec<String>>::new();
    for entry in fs::read_dir(root().join(folder)).expect("the folder exists") {
        let text = fs::read_to_string(entry.expect("the folder can be listed").path()).expect("the file is text");
        for line in text.lines().map(str::trim) {
            let line = line.strip_prefix("async ").unwrap_or(line);
            let Some(rest) = line.strip_prefix("fn ").unwrap_or(line).strip_prefix("row_") else { continue };
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let number = rest
                .split('_')
                .next()
                .and_then(|number| number.parse().ok())
                .expect("the name has the number of a row");
            found.entry(number).or_default().push(format!("row_{}", &rest[..end]));
        }
    }
    found
}

/// Returns the rows of the table in `README.md`: number, test, file of the decision.
fn table() -> Vec<(u32, String, String)> {
    let text = fs::read_to_string(root().join("tests/tests/rows/README.md")).expect("the table exists");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let number = cells.next()?.parse().ok()?;
        Some((number, cells.next()?.trim_matches('`').to_owned(), cells.next()?.to_owned()))
    });
    rows.collect()
}

#[test]
fn each_row_has_one_test_and_a_line_in_the_table() {
    let tests: Vec<(u32, String)> = tests_in("tests/tests/rows")
        .into_iter()
        .flat_map(|(row, names)| names.into_iter().map(move |name| (row, name)))
        .collect();
    let listed: Vec<(u32, String)> = table().into_iter().map(|(row, test, _)| (row, test)).collect();
    assert_eq!(listed, tests, "tests/tests/rows/README.md");
    assert_eq!(listed.iter().map(|(row, _)| *row).collect::<Vec<_>>(), (1..=ROWS).collect::<Vec<_>>());
}

#[test]
fn each_decided_row_has_a_test_in_the_decision_tables() {
    let decided: BTreeSet<u32> =
        table().into_iter().filter(|(_, _, place)| place.contains("`decisions/")).map(|(row, _, _)| row).collect();
    let tested: BTreeSet<u32> = tests_in("provisioner/engine/src/decisions/tests").into_keys().collect();
    assert_eq!(decided, tested);
}
