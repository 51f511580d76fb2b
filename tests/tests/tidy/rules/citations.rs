//! Rule: each citation of the specification, in code and in pages, leads to a section of `docs/spec`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::assert_none;
use super::language::rust_files;
use crate::workspace::root;

/// Start of each citation: `docs/spec/PAGE.md#SECTION`.
const FOLDER: &str = "docs/spec/";

/// Names of pages. A citation by name and section instead of path and section would not be checked.
const TITLES: [&str; 5] =
    ["engine semantics", "provider protocol", "state and secrets", "plugin hosts", "simple-container"];

/// Returns the sections of each page, by the name of its file.
fn sections() -> BTreeMap<String, BTreeSet<String>> {
    let pages = fs::read_dir(root().join(FOLDER)).expect("there is a specification");
    let read = |path: &std::path::Path| {
        let text = fs::read_to_string(path).expect("a page can be read");
        let anchors = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let paths = pages.map(|page| page.expect("the folder can be listed").path());
    paths.map(|path| (path.file_name().expect("it has a name").to_string_lossy().into_owned(), read(&path))).collect()
}

/// Returns the citations of a line: the file and its sections. Further sections of the same page follow as `, #2.3`.
fn citations(line: &str) -> Vec<(String, Vec<String>)> {
    let is_of_section = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let cite = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(rest.len());
        let mut sections = Vec::new();
        let mut rest = &rest[end..];
        while let Some(anchor) = rest.strip_prefix('#') {
            let end = anchor.find(|c| !is_of_section(c)).unwrap_or(anchor.len());
            sections.push(anchor[..end].trim_end_matches('.').to_owned());
            rest = anchor[end..].trim_start_matches([',', ' ']);
            rest = ["and ", "to "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
        }
        sections
    };
    let starts = line.split(FOLDER).skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    starts
        .map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(rest.len());
            (rest[..end].trim_end_matches('.').to_owned(), cite(rest))
        })
        .collect()
}

/// Returns what is wrong with the citations of a file.
fn violations(path: &str, text: &str, sections: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", at + 1);
        let lower = line.to_lowercase();
        let is_cited =
            |title: &&&str| [", section", ", §", " §"].iter().any(|end| lower.contains(&format!("{title}{end}")));
        if let Some(title) = TITLES.iter().find(is_cited) {
            found.push(format!("{place}: cites `{title}` without path and section"));
        }
        for (page, cited) in citations(line) {
            match sections.get(&page) {
                None => found.push(format!("{place}: there is no page {FOLDER}{page}")),
                Some(known) => found.extend(
                    cited
                        .iter()
                        .filter(|section| !known.contains(*section))
                        .map(|section| format!("{place}: {page} has no section {section}")),
                ),
            }
        }
    }
    found
}

#[test]
fn citations_of_the_specification_lead_to_a_section() {
    let own = "tests/tests/tidy/rules/citations.rs";
    let sections = sections();
    let files: BTreeMap<String, String> = rust_files().into_iter().filter(|(path, _)| path != own).collect();
    let count: usize = files.values().flat_map(|text| text.lines()).map(|line| citations(line).len()).sum();
    assert!(count > 100, "the code cites the specification in {count} places");
    assert_none(&files.iter().flat_map(|(path, text)| violations(path, text, &sections)).collect::<Vec<_>>());
}

#[test]
fn a_citation_of_a_missing_section_is_found() {
    let sections = BTreeMap::from([("p.md".to_owned(), BTreeSet::from(["2.1".to_owned(), "E.1".to_owned()]))]);
    let check = |line: &str| violations("a.rs", line, &sections);
    assert_eq!(check("/// Rule (docs/spec/p.md#2.1 and #E.1)."), [""; 0]);
    assert_eq!(check("/// Rule (docs/spec/p.md#2.2)."), ["a.rs:1: p.md has no section 2.2"]);
    assert_eq!(check("/// Rule (docs/spec/p.md#2.1, #2.3)."), ["a.rs:1: p.md has no section 2.3"]);
    assert_eq!(check("/// Rule (docs/spec/q.md)."), ["a.rs:1: there is no page docs/spec/q.md"]);
    assert_eq!(
        check("/// Rule (engine semantics, section 2.1)."),
        ["a.rs:1: cites `engine semantics` without path and section"]
    );
}
