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
pub(crate) fn pages() -> BTreeMap<String, String> {
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
pub(crate) fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the anchor of a heading, as GitHub derives it.
pub(crate) fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the anchors of a page: one for each heading, as GitHub derives it, and the explicit ones.
fn anchors(text: &str) -> BTreeSet<String> {
    let explicit =
        prose(text).flat_map(|line| line.split("<a id=\"").skip(1)).filter_map(|rest| rest.split('"').next());
    let mut anchors: BTreeSet<String> = explicit.map(str::to_owned).collect();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        anchors.insert(anchor(heading));
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
                Component::ParentDir if !path.pop() => return true,
                Component::ParentDir => {}
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
    let page = "# First things\n<a id=\"2.1\"></a>\n## `sc state`: edit, and don't_lose (v2.0)\n\
        ```sh\n# Comment\n<a id=\"2.3\"></a>\n```\n";
    let pages = BTreeMap::from([("docs/a.md".to_owned(), page.to_owned())]);
    let text = "[a](a.md) [b](a.md#first-things) [c](a.md#2.1) [d](a.md#2.2)\n[e](b.md) [f](../README.md)\n\
        [g](https://h) [h](a.md#sc-state-edit-and-dont_lose-v20) [i](a.md#sc-state:-edit)\n\
        [j](a.md#comment) [k](a.md#2.3) [a link\nthat wraps](c.md#x) [m](../../README.md)";
    let dead = ["a.md#2.2", "b.md", "a.md#sc-state:-edit", "a.md#comment", "a.md#2.3", "c.md#x", "../../README.md"];
    assert_eq!(dead_links("docs/c.md", text, &pages), dead.map(|link| format!("docs/c.md links to {link}")));
}

/// Returns the files of the tests that a page shows: the link to each, a line that ends with a colon, and the block of code
/// that follows it.
fn shown_files(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split("):\n\n```").collect();
    let shown = parts.windows(2).filter_map(|pair| {
        let (_, link) = pair[0].rsplit_once("](")?;
        let (_, code) = pair[1].split_once('\n')?;
        Some((link, code.split_once("```").map_or(code, |(code, _)| code)))
    });
    shown.filter(|(link, _)| link.starts_with("../tests/")).collect()
}

/// Shows: plugin-authoring.md#failures-with-details "`RetryInfo` and `BadRequest` of google.rpc are details of a
///   status. These files make them"
/// Shows: plugin-authoring.md#registering "These files register a provider on Pulumi's SDK."
#[test]
fn shown_files_of_the_tests_are_shown_as_they_are() {
    let pages = pages();
    let shown = shown_files(&pages["docs/plugin-authoring.md"]);
    assert_eq!(shown.len(), 6, "two files for each SDK");
    for (link, code) in shown {
        let file = fs::read_to_string(root().join("docs").join(link)).expect("the file can be read");
        assert_eq!(code, file, "{link}");
    }
}

/// Folders of product code.
const SOURCES: [&str; 8] = [
    "pulumi-proto/src",
    "bridge/src",
    "provisioner/src",
    "provisioner/state/src",
    "provisioner/engine/src",
    "provisioner/config/src",
    "provisioner/secrets-store/src",
    "provisioner/cloud/src",
];

/// Returns the source folder for the first segment of a path in a page, and whether the segment is a crate.
fn folder_of(first: &str) -> Option<(&'static str, bool)> {
    Some(match first {
        "pulumi_proto" => ("pulumi-proto/src", true),
        "bridge" => ("bridge/src", true),
        "state" => ("provisioner/state/src", true),
        "engine" => ("provisioner/engine/src", true),
        "config" => ("provisioner/config/src", true),
        "secrets_store" => ("provisioner/secrets-store/src", true),
        "cloud" => ("provisioner/cloud/src", true),
        "cli" | "operation" | "program" | "registry" | "schema" => ("provisioner/src", false),
        // The architecture leaves the crate out in lists of the engine's modules.
        "phases" | "step_generator" | "step_executor" => ("provisioner/engine/src", false),
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

/// Returns whether a path such as `engine::records::Records::begin` leads to a module, or to an item of a module. A path
/// may begin with a type instead, such as `StepOp::Create`.
fn exists(path: &str) -> bool {
    let mut segments: Vec<&str> = path.split("::").collect();
    let Some((folder, is_crate)) = folder_of(segments[0]) else {
        let is_type = segments[0].starts_with(char::is_uppercase);
        return is_type && SOURCES.iter().any(|folder| defines(&code(&root().join(folder)), &segments));
    };
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
    segments.is_empty() || defines(&code(&place), &segments)
}

/// Returns whether code defines all these items, variants included.
fn defines(code: &str, items: &[&str]) -> bool {
    items.iter().all(|item| {
        let keywords = ["fn", "struct", "enum", "trait", "type", "const", "static"];
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
fn code_named_by_the_guide_for_contributors_is_in_the_named_file() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page exists");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = text.split("` (`").collect();
    let named = parts.iter().zip(parts.iter().skip(1)).filter_map(|(before, after)| {
        let (item, path) = (before.rsplit('`').next()?, after.split('`').next()?);
        path.ends_with(".rs").then_some((item, path))
    });
    let named: Vec<(&str, &str)> = named.collect();
    assert!(named.len() >= 8, "{named:?}");
    let is_missing =
        |(item, path): &(&str, &str)| !fs::read_to_string(root().join(path)).is_ok_and(|code| defines(&code, &[item]));
    let missing = named.into_iter().filter(is_missing).map(|(item, path)| format!("{item} is not in {path}"));
    let quoted = text.split('`').skip(1).step_by(2).filter(|quoted| {
        let is_path = quoted.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
        is_path && ["bridge/", "provisioner/", "tests/", "docs/"].iter().any(|folder| quoted.starts_with(folder))
    });
    let absent = quoted.filter(|path| !root().join(path).exists()).map(|path| format!("{path} does not exist"));
    assert_none(&missing.chain(absent).collect::<Vec<_>>());
}

#[test]
fn path_to_missing_code_is_found() {
    assert!(exists("engine::records::Records::begin") && exists("engine::step_executor"));
    assert!(exists("StepOp::Create") && exists("phases::reading"));
    assert!(!exists("engine::records::Records::vanish") && !exists("engine::vanished::f"));
    assert!(!exists("StepOp::Vanish") && !exists("Vanished::new") && !exists("phases::vanished"));
    assert!(!exists("vanished::reading"));
}
