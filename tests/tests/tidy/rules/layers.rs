//! Rule: the modules of a crate import from lower layers only.

use std::collections::BTreeSet;

use super::{assert_none, below_crate, is_within};
use crate::graph::{Definition, Graph, build, graph};
use crate::workspace::test_workspace;

/// Module, and the modules of its package that it may import from. A module belongs to the longest row that matches it,
/// and may always import from its own row.
type Row<'a> = (&'a str, &'a [&'a str]);

/// Modules from the top down: each may import from all below it.
const BRIDGE: [&str; 18] = [
    "host",
    "provider",
    "launch",
    "install",
    "source",
    "plugin",
    "json",
    "yaml",
    "process",
    "peer",
    "fs",
    "speed",
    "terminal",
    "shell",
    "error",
    "health",
    "message_text",
    "zstd",
];

const PROVISIONER: [Row<'_>; 11] = [
    (
        "cli",
        &[
            "operation",
            "plan",
            "schema",
            "program",
            "registry::recipes",
            "registry::recipe",
            "registry::packages",
            "registry::types",
        ],
    ),
    (
        "operation",
        &[
            "plan",
            "schema",
            "program",
            "registry::recipes",
            "registry::recipe",
            "registry::packages",
            "registry::types",
        ],
    ),
    ("plan", &[]),
    ("schema", &["registry::types"]),
    ("program", &["registry::recipes", "registry::recipe", "registry::packages", "registry::types"]),
    ("registry::recipes", &["registry::recipe", "registry::packages", "registry::templates", "registry::types"]),
    ("registry::recipe", &["registry::packages", "registry::types", "registry::sdk"]),
    ("registry::packages", &["registry::sdk"]),
    ("registry::templates", &[]),
    ("registry::types", &[]),
    ("registry::sdk", &[]),
];

/// Modules from the top down: each may import from all below it.
const ENGINE: [&str; 24] = [
    "deployment",
    "resource_monitor",
    "phases",
    "step_generator",
    "step_executor",
    "pending_messages",
    "messages",
    "step",
    "context",
    "records",
    "deployment_state",
    "options",
    "providers",
    "decisions",
    "registrar",
    "reporter",
    "masking",
    "jobs",
    "secretness",
    "plan_guard",
    "goal",
    "missing",
    "deletion_limit",
    "events",
];

/// Modules that do not import each other: the step generator does not execute steps.
const INDEPENDENT: (&str, &str) = ("step_generator", "step_executor");

/// Returns a row for each module of an order from the top down.
fn order<'a>(modules: &'a [&'a str]) -> Vec<Row<'a>> {
    modules.iter().enumerate().map(|(at, name)| (*name, &modules[at + 1..])).collect()
}

fn violations(graph: &Graph, package: &str, rows: &[Row<'_>]) -> Vec<String> {
    let row_of = |module: &[String]| {
        let module = below_crate(module);
        rows.iter().filter(|(name, _)| is_within(&module, name)).max_by_key(|(name, _)| name.len())
    };
    let mut found = BTreeSet::new();
    for import in graph.imports.iter().filter(|import| import.package == package && !import.is_re_export_of_child) {
        let (Some((own, allowed)), Definition::Item { package: other, module, .. }) =
            (row_of(&import.module), &import.defined_in)
        else {
            continue;
        };
        if let (true, Some((target, _))) = (other == package, row_of(module))
            && target != own
            && !allowed.contains(target)
        {
            let name = import.target.join("::");
            found.insert(format!("{}: {own} imports from {target}: {name}", import.file));
        }
    }
    let modules = graph.modules.iter().filter(|module| module.package == package).map(|module| &module.path);
    let modules: Vec<&Vec<String>> = modules.collect();
    assert!(!modules.is_empty(), "no module in {package}");
    for (name, allowed) in rows {
        for name in [*name].into_iter().chain(allowed.iter().copied()) {
            if !modules.iter().any(|module| below_crate(module) == name) {
                found.insert(format!("the table has a row for `{name}`, which is not a module of {package}"));
            }
        }
    }
    // A module needs no row if all its children have rows.
    for module in modules.into_iter().filter(|module| module.len() > 1) {
        let path = below_crate(module);
        if row_of(module).is_none() && !rows.iter().any(|(name, _)| is_within(name, &path)) {
            found.insert(format!("`{path}` of {package} has no row in the table"));
        }
    }
    found.into_iter().collect()
}

#[test]
fn bridge_modules_import_lower_layers_only() {
    assert_none(&violations(graph(), "bridge", &order(&BRIDGE)));
}

#[test]
fn provisioner_modules_import_lower_layers_only() {
    assert_none(&violations(graph(), "provisioner", &PROVISIONER));
}

#[test]
fn engine_modules_import_lower_layers_only() {
    let (generator, executor) = INDEPENDENT;
    let below: Vec<&str> = ENGINE.into_iter().skip_while(|name| *name != executor).skip(1).collect();
    let mut rows = order(&ENGINE);
    rows.iter_mut().filter(|(name, _)| *name == generator).for_each(|row| row.1 = &below);
    assert_none(&violations(graph(), "engine", &rows));
}

#[test]
fn import_of_a_higher_layer_is_reported() {
    let graph = build(&test_workspace(&[
        ("lib.rs", "mod upper; mod lower; mod other; pub use upper::Upper;"),
        ("upper.rs", "use crate::lower::below; pub(crate) struct Upper;"),
        (
            "lower/mod.rs",
            "pub(crate) fn below() {}\n#[cfg(test)] mod tests {}\nfn f() -> crate::Upper { crate::Upper }",
        ),
        ("other.rs", ""),
    ]));
    let rows: [Row<'_>; 3] = [("upper", &["lower"]), ("lower", &[]), ("gone", &[])];
    assert_eq!(
        violations(&graph, "app", &rows),
        [
            "`other` of app has no row in the table",
            "lower/mod.rs: lower imports from upper: app::upper::Upper",
            "the table has a row for `gone`, which is not a module of app",
        ]
    );
}

#[test]
fn longest_matching_row_applies_to_a_module() {
    let graph = build(&test_workspace(&[
        ("lib.rs", "mod config;"),
        ("config/mod.rs", "pub mod yaml; use yaml::Value; pub(crate) struct Stack;"),
        ("config/yaml.rs", "use super::Stack; pub(crate) struct Value;"),
    ]));
    let rows: [Row<'_>; 2] = [("config", &["config::yaml"]), ("config::yaml", &[])];
    assert_eq!(
        violations(&graph, "app", &rows),
        ["config/yaml.rs: config::yaml imports from config: app::config::Stack"]
    );
}
