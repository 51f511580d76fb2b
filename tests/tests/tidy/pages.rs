//! Checks of the pages of the documentation: their commands and their links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use proc_macro2::TokenStream;
use syn::{Attribute, Item, ItemMod};

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
    let explicit =
        prose(text).flat_map(|line| line.split("<a id=\"").skip(1)).filter_map(|rest| rest.split('"').next());
    let mut anchors: BTreeSet<String> = explicit.map(str::to_owned).collect();
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
    // The first two rows are the head of the table.
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{line}");
        let tests = cells[2].split(", ").filter(|test| !test.is_empty()).map(|test| {
            let quoted = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
            let (file, function) = quoted.and_then(|test| test.split_once("::")).expect("a test is `FILE::FUNCTION`");
            (file.to_owned(), function.to_owned())
        });
        let page = cells[0].split(['[', ']']).nth(1).expect("the first cell links to a page");
        Claim { page: page.to_owned(), text: cells[1].to_owned(), tests: tests.collect() }
    });
    rows.collect()
}

/// Returns the tests that a file defines: functions with an attribute `test`, and the functions and the names of cases in a
/// macro that defines tests. An ignored test is left out.
fn tests(text: &str) -> BTreeSet<String> {
    fn has(attributes: &[Attribute], name: &str) -> bool {
        attributes.iter().any(|attribute| attribute.path().segments.last().is_some_and(|last| last.ident == name))
    }
    fn collect(items: &[Item], tests: &mut BTreeSet<String>) {
        for item in items {
            match item {
                Item::Fn(item) if has(&item.attrs, "test") && !has(&item.attrs, "ignore") => {
                    tests.insert(item.sig.ident.to_string());
                }
                Item::Mod(ItemMod { content: Some((_, items)), .. }) => collect(items, tests),
                Item::Macro(item) if item.ident.is_none() => {
                    let mut before = String::new();
                    let mut tokens = item.mac.tokens.clone().into_iter().map(|token| token.to_string()).peekable();
                    while let Some(token) = tokens.next() {
                        let is_case = tokens.peek().is_some_and(|next| [",", ":", "="].contains(&next.as_str()));
                        if before == "fn" || is_case && before != ":" {
                            tests.insert(token.clone());
                        }
                        before = token;
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&syn::parse_file(text).expect("a source file can be parsed").items, &mut found);
    found
}

/// Returns whether a file defines a test, or a function that the `main.rs` beside it lists as a
/// test (`test!`, `test_in_stores!`).
fn is_test(file: &str, function: &str) -> bool {
    let path = root().join(file);
    let Ok(text) = fs::read_to_string(&path) else { return false };
    let module = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_listed = || {
        let main = fs::read_to_string(path.with_file_name("main.rs")).unwrap_or_default();
        let tokens = main.parse::<TokenStream>().expect("a source file can be parsed").to_string().replace(' ', "");
        let is_in_macro = |before: char| tokens.contains(&format!("{before}{module}::{function})"));
        tokens.contains("constTESTS:") && ['(', ','].into_iter().any(is_in_macro)
    };
    tests(&text).contains(function) || text.contains(&format!("\npub(crate) fn {function}(")) && is_listed()
}

#[test]
fn each_claim_of_the_documentation_has_a_test() {
    let pages = pages();
    let claims = claims(&pages["docs/testing.md"]);
    let mut violations = Vec::new();
    for Claim { page, text, tests } in &claims {
        if tests.is_empty() {
            violations.push(format!("{page}: no test shows: {text}"));
        }
        let missing = tests.iter().filter(|(file, function)| !is_test(file, function));
        violations.extend(missing.map(|(file, function)| format!("{page}: {file} has no test {function}")));
    }
    for page in pages.keys().filter_map(|page| page.strip_prefix("docs/")).filter(|page| !page.contains('/')) {
        let is_exempt = ["architecture.md", "glossary.md", "testing.md"].contains(&page);
        if !is_exempt && !claims.iter().any(|claim| claim.page == page) {
            violations.push(format!("no claim of docs/{page} is listed"));
        }
    }
    assert_none(&violations);
}

#[test]
fn claim_without_a_test_is_found() {
    let text = "// #[test] fn in_a_comment() {}\n/// See in_a_doc_comment, and others.\nfn no_test() { f(argument, 1) }\n\
        #[tokio::test]\n/// Shows it.\nasync fn test_with_comment() {}\nmod tests { #[test] fn nested() {} }\n\
        cases! {\n    // not_a_case,\n    first,\n    second: option,\n}\n\
        proptest! { #[test] fn property(x in 0..2) { g(x, 1) } }\n#[test]\n#[ignore]\nfn ignored() {}\n";
    let expected = ["first", "nested", "property", "second", "test_with_comment"];
    assert_eq!(tests(text), expected.map(str::to_owned).into());
    assert!(is_test("tests/tests/tidy/pages.rs", "claim_without_a_test_is_found"));
    assert!(is_test("tests/tests/interop_cli/states.rs", "pulumi_lists_our_stack"));
    assert!(!is_test("tests/tests/tidy/pages.rs", "is_test") && !is_test("tests/tests/tidy/gone.rs", "is_test"));

    let table = "\n## Claims\n\n| page | claim | test |\n|---|---|---|\n| [a.md](a.md) | A holds. | |\n\
        | [b.md](b.md) | B holds. | `b.rs::b`, `c.rs::c` |\n";
    let claims = claims(table);
    assert!(claims[0].tests.is_empty() && claims[0].page == "a.md" && claims[0].text == "A holds.");
    assert_eq!(claims[1].tests, [("b.rs", "b"), ("c.rs", "c")].map(|(file, name)| (file.to_owned(), name.to_owned())));
    assert_eq!(claims.len(), 2);
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
