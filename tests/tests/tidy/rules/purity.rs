//! Rule: modules that make decisions are pure. They do not wait, write no trace, and use no files, environment, clock or randomness.

use std::collections::BTreeSet;

use super::{assert_none, is_within};
use crate::graph::{Graph, build, graph};
use crate::workspace::test_workspace;

/// Pure module, and the modules of its crate that it must not import from.
type Row<'a> = (&'a str, &'a [&'a str]);

/// Pure modules. `engine::context` has the parts that a run works with: the host, the recorder, the locks.
const PURE: [Row<'_>; 1] = [("engine::decisions", &["engine::context", "engine::deployment_state"])];

/// Code of other crates that is not pure.
const IMPURE: [&str; 13] = [
    "tokio",
    "tracing",
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "uuid::Uuid::new_v4",
    "uuid::Uuid::now_v7",
    "getrandom",
];

fn violations(graph: &Graph, rows: &[Row<'_>]) -> Vec<String> {
    let within = |path: &[String], module: &str| is_within(&path.join("::"), module);
    let mut found = BTreeSet::new();
    for (pure, context) in rows {
        for import in graph.imports.iter().filter(|import| within(&import.module, pure)) {
            if IMPURE.iter().chain(*context).any(|impure| within(&import.target, impure)) {
                found.insert(format!("{}:{}: {}", import.file, import.line, import.target.join("::")));
            }
        }
        for module in graph.modules.iter().filter(|module| within(&module.path, pure)) {
            found.extend(module.asynchronous.iter().map(|line| format!("{}:{line}: async", module.file)));
        }
        for name in [*pure].into_iter().chain(context.iter().copied()) {
            if !graph.modules.iter().any(|module| module.path.join("::") == name) {
                found.insert(format!("`{name}` is not a module"));
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn decisions_are_pure() {
    assert_none(&violations(graph(), &PURE));
}

#[test]
fn impure_code_is_reported() {
    let decide = [
        "use std::time::Instant;",
        "use crate::engine::Engine;",
        "fn now() -> Instant { Instant::now() }",
        "fn read() { std::fs::read(\"x\"); }",
        "fn wait() { let _ = async { 1 }; }",
        "fn id() -> String { format!(\"{}\", uuid::Uuid::new_v4()) }",
        "fn trace() { tracing::debug!(\"decided\"); }",
        "fn select() { tokio::select! { x = f() => x.await } }",
        "#[cfg(test)] mod tests { use std::fs; }",
    ];
    let graph = build(&test_workspace(&[
        ("lib.rs", "mod decide; mod engine;"),
        ("decide.rs", &decide.join("\n")),
        ("engine.rs", "pub(crate) struct Engine; async fn run() {}"),
    ]));
    assert_eq!(
        violations(&graph, &[("app::decide", &["app::engine"]), ("app::gone", &[])]),
        [
            "`app::gone` is not a module",
            "decide.rs:2: app::engine::Engine",
            "decide.rs:3: std::time::Instant::now",
            "decide.rs:4: std::fs::read",
            "decide.rs:5: async",
            "decide.rs:6: uuid::Uuid::new_v4",
            "decide.rs:7: tracing::debug",
            "decide.rs:8: async",
            "decide.rs:8: tokio::select",
        ]
    );
}
