//! Rule: each citation of the specification in Rust code leads to a section of `docs/spec`. `pages` checks the links of
//! the documentation.

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

/// Citation of a page.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    page: String,
    sections: Vec<String>,
}

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

/// Returns the paragraphs of a file with their first lines. The lines of a comment are one paragraph: a citation may wrap.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let comment = line.starts_with("//").then(|| line.trim_start_matches(['/', '!']).trim_start());
        match paragraphs.last_mut() {
            Some((_, paragraph)) if is_open && comment.is_some() => {
                paragraph.push(' ');
                paragraph.push_str(comment.unwrap_or_default());
            }
            _ => paragraphs.push((at + 1, comment.unwrap_or(line).to_owned())),
        }
        is_open = comment.is_some();
    }
    paragraphs
}

/// Returns the citations of a paragraph. Further sections of the same page follow as `, #2.3`.
fn citations(paragraph: &str) -> Vec<Citation> {
    let starts = paragraph.split(FOLDER).skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    let cite = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(rest.len());
        let (page, mut rest) = rest.split_at(end);
        let mut sections = Vec::new();
        while let Some(anchor) = rest.strip_prefix('#') {
            let end = anchor.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(anchor.len());
            sections.push(anchor[..end].trim_end_matches('.').to_owned());
            rest = anchor[end..].trim_start_matches([',', ' ']);
            rest = ["and ", "to "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
        }
        Citation { page: page.trim_end_matches('.').to_owned(), sections }
    };
    starts.map(cite).collect()
}

/// Returns the violations in the citations of a file.
fn violations(path: &str, text: &str, pages: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        let place = format!("{path}:{line}");
        let lower = paragraph.to_lowercase();
        let is_cited =
            |title: &&&str| [", section", ", §", " §"].iter().any(|end| lower.contains(&format!("{title}{end}")));
        let is_number =
            |rest: &str| rest.trim_start_matches('s').trim_start().starts_with(|c: char| c.is_ascii_digit());
        if let Some(title) = TITLES.iter().find(is_cited) {
            found.push(format!("{place}: cites `{title}` without path and section"));
        } else if ["section", "§"].iter().any(|word| lower.split(word).skip(1).any(is_number)) {
            found.push(format!("{place}: cites a section without its page"));
        }
        // A name of a page in another folder, or in none.
        let is_elsewhere =
            |page: &&String| paragraph.matches(*page).count() > paragraph.matches(&format!("{FOLDER}{page}")).count();
        let names = pages.keys().filter(|page| *page != "README.md");
        found.extend(names.filter(is_elsewhere).map(|page| format!("{place}: {page} is in {FOLDER}")));
        for Citation { page, sections } in citations(&paragraph) {
            let Some(known) = pages.get(&page) else {
                found.push(format!("{place}: there is no page {FOLDER}{page}"));
                continue;
            };
            if sections.is_empty() {
                found.push(format!("{place}: cites {page} without a section"));
            }
            let missing = sections.iter().filter(|section| !known.contains(*section));
            found.extend(missing.map(|section| format!("{place}: {page} has no section {section}")));
        }
    }
    found
}

#[test]
fn citations_of_the_specification_lead_to_a_section() {
    let own = "tests/tests/tidy/rules/citations.rs";
    let sections = sections();
    let files: BTreeMap<String, String> = rust_files().into_iter().filter(|(path, _)| path != own).collect();
    let count: usize = files.values().flat_map(|text| paragraphs(text)).map(|(_, text)| citations(&text).len()).sum();
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
    assert_eq!(check("/// Rule (docs/spec/p.md)."), ["a.rs:1: cites p.md without a section"]);
    assert_eq!(check("/// Rule (spec/p.md#2.1)."), ["a.rs:1: p.md is in docs/spec/"]);
    let title = ["a.rs:1: cites `engine semantics` without path and section"];
    assert_eq!(check("/// Rule (engine semantics, section 2.1)."), title);
    assert_eq!(check("/// Rule (engine semantics,\n/// section 2.1)."), title);
    assert_eq!(check("fn f() {}\n/// Rule (docs/spec/p.md#2.1,\n/// #2.4)."), ["a.rs:2: p.md has no section 2.4"]);
    for line in ["/// Rule (section 2.1).", "/// Rule (sections\n/// 2.1 and 2.2).", "// Rule (§2.1)."] {
        assert_eq!(check(line), ["a.rs:1: cites a section without its page"]);
    }
    assert_eq!(check("/// Sections of the page, in section order."), [""; 0]);
    assert_eq!(check("//! Rule (docs/spec/p.md#2.1 and\n//! #E.1)."), [""; 0]);
    assert_eq!(check("/// Rule, docs/spec/p.md#2.1\n#[test]\nfn f() {}"), [""; 0]);
}
