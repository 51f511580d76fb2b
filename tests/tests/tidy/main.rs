//! Holds the tree to the picture in `docs/architecture.md`: who may import what, and how long a file may be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of product code.
struct Source {
    /// Path from the root of the tree.
    path: String,
    /// Lines before its inline tests.
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the tree").to_path_buf()
}

/// The Rust files below a folder, inline tests and test modules left out.
fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && path.file_stem().is_some_and(|stem| stem != "tests")
            {
                let text = fs::read_to_string(&path).expect("source files can be read");
                let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").map(str::to_owned).collect();
                let path = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
                found.push(Source { path, lines });
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {folder}");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The first path segments after `crate::` in a line of code.
fn crate_paths(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("crate::")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(|(at, found)| {
            let rest = &code[at + found.len()..];
            &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len())]
        })
        .collect()
}

/// Every import of a room by another one that the table does not allow.
fn trespasses(base: &str, rooms: &BTreeMap<&str, &[&str]>) -> Vec<String> {
    let room_of = |path: &str| {
        let mut rooms: Vec<&str> = rooms.keys().copied().filter(|room| path.starts_with(room)).collect();
        rooms.sort_by_key(|room| room.len());
        rooms.pop()
    };
    let mut found = Vec::new();
    for source in sources(base) {
        let inside = source.path[base.len() + 1..].trim_end_matches(".rs").replace('/', "::");
        let Some(own) = room_of(&inside) else { continue };
        for line in &source.lines {
            for target in crate_paths(line).into_iter().filter_map(room_of) {
                if target != own && !rooms[own].contains(&target) {
                    found.push(format!("{}: {own} imports {target}: {}", source.path, line.trim()));
                }
            }
        }
    }
    found
}

#[test]
fn the_rooms_of_the_provisioner_import_downwards_only() {
    let rooms = BTreeMap::from([
        (
            "operation",
            &[
                "config",
                "config::diagnostics",
                "config::yaml",
                "program",
                "registry::types",
                "registry::provision",
                "deployment",
                "state",
                "events",
                "schema",
            ][..],
        ),
        ("schema", &["registry::types"]),
        (
            "program",
            &[
                "config",
                "config::diagnostics",
                "config::yaml",
                "registry::types",
                "registry::provision",
                "deployment",
                "events",
            ],
        ),
        (
            "registry::provision",
            &["registry::types", "config", "config::diagnostics", "config::yaml", "deployment", "events", "state"],
        ),
        // What a file says is below the types that read it, and those are below the whole of the configuration.
        ("registry::types", &["config::diagnostics", "config::yaml"]),
        ("config", &["registry::types"]),
        ("config::yaml", &["config::diagnostics"]),
        ("config::diagnostics", &[]),
        ("deployment", &["state", "events"]),
        ("events", &["state"]),
        ("state", &[]),
    ]);
    assert_eq!(trespasses("provisioner/src", &rooms), Vec::<String>::new());
}

#[test]
fn the_rooms_of_the_bridge_import_downwards_only() {
    let order = ["host", "provider", "launch", "install", "source", "plugin", "process", "fs"];
    let rooms = order.iter().enumerate().map(|(at, room)| (*room, &order[at + 1..])).collect();
    assert_eq!(trespasses("bridge/src", &rooms), Vec::<String>::new());
}

#[test]
fn a_trespass_is_seen() {
    assert_eq!(crate_paths("use crate::state::{A, B};"), ["state::"]);
    assert_eq!(crate_paths("    fn f(a: crate::program::Plan) -> crate::state::B {"), ["program::Plan", "state::B"]);
    assert_eq!(crate_paths("// crate::state"), Vec::<&str>::new());
    let nothing_allowed = BTreeMap::from([("deployment", &[][..]), ("state", &[])]);
    assert!(!trespasses("provisioner/src", &nothing_allowed).is_empty());
}

#[test]
fn crates_depend_one_way() {
    let forbidden = [
        ("pulumi-proto", &["bridge", "provisioner", "plugins-example", "schemas", "tests"][..]),
        ("schemas", &["bridge", "provisioner", "plugins-example", "tests"]),
        ("bridge", &["provisioner", "plugins-example", "schemas", "tests"]),
        ("provisioner", &["plugins-example", "tests"]),
        ("plugins-example", &["bridge", "provisioner", "schemas", "tests"]),
    ];
    for (package, others) in forbidden {
        let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).expect("every crate has a manifest");
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for other in others {
            let named = dependencies.lines().any(|line| line.starts_with(&format!("{other}.")));
            assert!(!named, "{package} depends on {other}");
        }
    }
}

#[test]
fn the_wire_stops_at_its_door() {
    let doors = ["bridge/src/provider/", "bridge/src/host/", "bridge/src/launch/"];
    let strangers: Vec<String> = ["bridge/src", "provisioner/src"]
        .into_iter()
        .flat_map(sources)
        .filter(|source| !doors.iter().any(|door| source.path.starts_with(door)))
        .filter(|source| source.lines.iter().any(|line| line.contains("pulumi_proto::rpc")))
        .map(|source| source.path)
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}

#[test]
fn decisions_are_pure() {
    let forbidden =
        ["async ", ".await", "tokio::", "std::fs", "std::env", "Instant::now", "now_v", "new_v4", "::engine::"];
    let impure: Vec<String> = sources("provisioner/src/deployment/decide")
        .into_iter()
        .flat_map(|source| source.lines.into_iter().map(move |line| (source.path.clone(), line)))
        .filter(|(_, line)| forbidden.iter().any(|word| line.split("//").next().unwrap_or_default().contains(word)))
        .map(|(path, line)| format!("{path}: {}", line.trim()))
        .collect();
    assert_eq!(impure, Vec::<String>::new());
}

#[test]
fn files_fit_in_one_sitting() {
    let crates =
        ["pulumi-proto/src", "bridge/src", "provisioner/src", "plugins-example/src", "schemas/src", "tests/src"];
    let long: Vec<String> = crates
        .into_iter()
        .flat_map(sources)
        .filter(|source| source.lines.len() > 800)
        .map(|source| format!("{}: {} lines", source.path, source.lines.len()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn the_quick_start_is_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let first = readme.split("\n## ").nth(1).expect("the README has a first section");
    let blocks: Vec<&str> = first.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(blocks, ["cargo quickstart", "cargo test --workspace"]);
}

#[test]
fn pages_that_are_linked_are_there() {
    for page in [
        "README.md",
        "docs/architecture.md",
        "docs/comparison.md",
        "docs/plugins.md",
        "docs/server-yaml.md",
        "docs/state.md",
    ] {
        let page = root().join(page);
        let text = fs::read_to_string(&page).expect("the page is there");
        let folder = page.parent().expect("a page lies in a folder");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let local = !target.is_empty() && !target.contains("://");
            assert!(!local || folder.join(target).exists(), "{} links to {target}", page.display());
        }
    }
}
