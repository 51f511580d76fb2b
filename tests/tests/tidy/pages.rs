//! Checks of the pages of the documentation: their commands and their links.

use std::fs;
use std::path::Path;

use crate::rules::assert_none;
use crate::workspace::root;

#[test]
fn the_quick_start_is_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let first = readme.split("\n## ").nth(1).expect("the README has a first section");
    let blocks: Vec<&str> = first.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(blocks, ["cargo quickstart", "cargo test --workspace"]);
}

#[test]
fn linked_pages_exist() {
    for page in [
        "README.md",
        "docs/architecture.md",
        "docs/comparison.md",
        "docs/plugins.md",
        "docs/server-yaml.md",
        "docs/state.md",
    ] {
        let page = root().join(page);
        let text = fs::read_to_string(&page).expect("the page exists");
        let folder = page.parent().expect("a page lies in a folder");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let local = !target.is_empty() && !target.contains("://");
            assert!(!local || folder.join(target).exists(), "{} links to {target}", page.display());
        }
    }
}

/// Returns the source folder for the first segment of a path in a page, and whether the segment is a crate.
fn folder_of(first: &str) -> Option<(&'static str, bool)> {
    Some(match first {
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
fn the_code_that_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).expect("the page exists");
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_path = |text: &&str| text.contains("::") && text.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    let paths: Vec<&str> = quoted.filter(is_path).collect();
    assert!(paths.len() > 20, "the walk names the functions on its way");
    assert_none(&paths.into_iter().filter(|path| !exists(path)).map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn a_name_that_is_gone_is_noticed() {
    assert!(exists("engine::records::Records::begin") && exists("engine::step_executor"));
    assert!(!exists("engine::records::Records::vanish") && !exists("engine::vanished::f"));
}
