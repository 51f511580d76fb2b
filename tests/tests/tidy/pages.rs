//! Checks of the pages of the documentation: their commands and their links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::rules::assert_none;
use crate::workspace::root;

#[test]
fn the_quick_start_is_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let first = readme.split("\n## ").nth(1).expect("the README has a first section");
    let blocks: Vec<&str> = first.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(blocks, ["cargo quickstart", "cargo test --workspace"]);
}

/// Returns the pages of the documentation with their paths below the root: those at the root, and all below `docs`.
fn pages() -> BTreeMap<String, String> {
    fn read(folder: &Path, is_recursive: bool, pages: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() && is_recursive {
                read(&path, true, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let relative = path.strip_prefix(root()).expect("the page lies below the root").display().to_string();
                pages.insert(relative, fs::read_to_string(&path).expect("a page can be read"));
            }
        }
    }
    let mut pages = BTreeMap::new();
    read(&root(), false, &mut pages);
    read(&root().join("docs"), true, &mut pages);
    pages
}

/// Returns the lines of a page outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the anchors of a page: one for each heading, as GitHub derives it, and the explicit ones.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors: BTreeSet<String> =
        text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    anchors
}

/// Returns the links of a page that lead nowhere: to no file, or to no heading of a page.
fn dead_links(page: &str, text: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let links = prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    let is_dead = |link: &&str| {
        let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
        let mut path = PathBuf::new();
        for part in folder.join(target).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                part => path.push(part),
            }
        }
        let path = if target.is_empty() { page.to_owned() } else { path.display().to_string() };
        let has_anchor = |text: &String| anchor.is_empty() || anchors(text).contains(anchor);
        !pages.get(&path).map_or_else(|| root().join(&path).exists() && anchor.is_empty(), has_anchor)
    };
    links.filter(|link| !link.contains("://")).filter(is_dead).map(|link| format!("{page} links to {link}")).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    assert!(
        pages.keys().any(|page| page.starts_with("docs/spec/")),
        "the specification is a part of the documentation"
    );
    assert_none(&pages.iter().flat_map(|(page, text)| dead_links(page, text, &pages)).collect::<Vec<_>>());
}

#[test]
fn a_dead_link_is_found() {
    let pages = BTreeMap::from([("docs/a.md".to_owned(), "# First things\n<a id=\"2.1\"></a>".to_owned())]);
    let text =
        "[a](a.md) [b](a.md#first-things) [c](a.md#2.1) [d](a.md#2.2)\n[e](b.md) [f](../README.md) [g](https://h)";
    assert_eq!(dead_links("docs/c.md", text, &pages), ["docs/c.md links to a.md#2.2", "docs/c.md links to b.md"]);
}

/// Row of the table of claims.
struct Claim {
    page: String,
    text: String,
    /// Tests that show the claim: path of the file, and name of the function.
    tests: Vec<(String, String)>,
}

/// Returns the rows of the table of claims in `docs/testing.md`.
fn claims(text: &str) -> Vec<Claim> {
    let section = text.split("\n## Claims\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| [")).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{line}");
        let tests = cells[2].split(", ").filter_map(|test| {
            let (file, function) = test.trim_matches('`').split_once("::")?;
            Some((file.to_owned(), function.to_owned()))
        });
        let page = cells[0].split(['[', ']']).nth(1).unwrap_or_default();
        Claim { page: page.to_owned(), text: cells[1].to_owned(), tests: tests.collect() }
    });
    rows.collect()
}

#[test]
fn each_claim_of_the_documentation_has_a_test() {
    let claims = claims(&pages()["docs/testing.md"]);
    let mut violations = Vec::new();
    for Claim { page, text, tests } in &claims {
        if tests.is_empty() {
            violations.push(format!("{page}: no test shows: {text}"));
        }
        for (file, function) in tests {
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            // Names in tables of a macro stand without `fn`.
            let is_defined = text.contains(&format!("fn {function}(")) || text.contains(&format!(" {function},"));
            if !is_defined {
                violations.push(format!("{page}: {file} has no test {function}"));
            }
        }
    }
    assert_none(&violations);
    for page in pages().keys().filter_map(|page| page.strip_prefix("docs/")).filter(|page| !page.contains('/')) {
        let is_exempt = ["architecture.md", "glossary.md", "testing.md"].contains(&page);
        assert!(is_exempt || claims.iter().any(|claim| claim.page == page), "no claim of docs/{page} is listed");
    }
}

/// Returns the source folder for the first segment of a path in a page, and whether the segment is a crate.
fn folder_of(first: &str) -> Option<(&'static str, bool)> {
    Some(match first {
        "pulumi_proto" => ("pulumi-proto/src", true),
        "bridge" => ("bridge/src", true),
        "state" => ("provisioner/state/src", true),
        "engine" => ("provisioner/engine/src", true),
        "config" => ("provisioner/config/src", true),
        "cli" | "operation" | "program" | "registry" | "schema" => ("provisioner/src", false),
        _ => return None,
    })
}

/// Returns the Rust code of a file, or of all files below a folder.
fn code(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).expect("a source file can be read");
    }
    let entries = fs::read_dir(path).expect("a source folder can be read");
    entries.map(|entry| code(&entry.expect("a source folder can be read").path())).collect()
}

/// Returns whether a path such as `engine::records::Records::begin` leads to a module, or to an item of a module.
fn exists(path: &str) -> bool {
    let mut segments: Vec<&str> = path.split("::").collect();
    let Some((folder, is_crate)) = folder_of(segments[0]) else { return true };
    let mut place = root().join(folder);
    if is_crate {
        segments.remove(0);
    }
    while let Some(first) = segments.first() {
        let (child, file) = (place.join(first), place.join(format!("{first}.rs")));
        place = match (child.is_dir(), file.is_file()) {
            // The last module may have items of its own beside a folder of submodules.
            (true, true) if segments.len() <= 2 => file,
            (true, _) => child,
            (false, true) => file,
            (false, false) => break,
        };
        segments.remove(0);
    }
    let code = if segments.is_empty() { String::new() } else { code(&place) };
    segments.iter().all(|item| {
        let keywords = ["fn", "struct", "enum", "trait", "type", "const"];
        let is_defined = |end: char| keywords.iter().any(|keyword| code.contains(&format!("{keyword} {item}{end}")));
        let is_variant = || [" {", "(", ","].iter().any(|end| code.contains(&format!("\n    {item}{end}")));
        ['(', '<', ' ', ';', ':'].into_iter().any(is_defined) || is_variant()
    })
}

#[test]
fn code_named_by_the_architecture_and_the_glossary_exists() {
    for page in ["docs/architecture.md", "docs/glossary.md"] {
        let text = fs::read_to_string(root().join(page)).expect("the page exists");
        let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path =
            |text: &&str| text.contains("::") && text.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
        let paths: Vec<&str> = quoted.filter(is_path).collect();
        assert!(paths.len() > 20, "{page} names code");
        assert_none(&paths.into_iter().filter(|path| !exists(path)).map(str::to_owned).collect::<Vec<_>>());
    }
}

#[test]
fn path_to_missing_code_is_found() {
    assert!(exists("engine::records::Records::begin") && exists("engine::step_executor"));
    assert!(!exists("engine::records::Records::vanish") && !exists("engine::vanished::f"));
}
