//! Rule: the generated types of the wire are named only in modules that encode or decode messages.

use std::collections::BTreeSet;

use super::{assert_none, is_within};
use crate::graph::{Graph, build, graph};
use crate::workspace::test_workspace;

/// Path of the generated code of `pulumirpc`.
const GENERATED: &str = "pulumi_proto::rpc";

/// Modules that may name it: the crate that contains it, the client and the servers of the bridge, and plugins.
const ALLOWED: [&str; 5] = ["pulumi_proto", "bridge::provider", "bridge::host", "bridge::launch", "plugins_example"];

fn violations(graph: &Graph, generated: &str, allowed: &[&str]) -> Vec<String> {
    let within = |path: &[String], module: &str| is_within(&path.join("::"), module);
    let found: BTreeSet<String> = graph
        .imports
        .iter()
        .filter(|import| within(&import.target, generated))
        .filter(|import| !allowed.iter().any(|module| within(&import.module, module)))
        .map(|import| format!("{}:{}: {}", import.file, import.line, import.target.join("::")))
        .collect();
    let stale = allowed.iter().filter(|name| !graph.modules.iter().any(|module| module.path.join("::") == **name));
    found.into_iter().chain(stale.map(|name| format!("`{name}` is no module"))).collect()
}

#[test]
fn generated_types_are_used_in_allowed_modules_only() {
    assert!(graph().imports.iter().any(|import| import.target.join("::").starts_with(GENERATED)));
    assert_none(&violations(graph(), GENERATED, &ALLOWED));
}

#[test]
fn generated_type_under_alias_is_reported() {
    let graph = build(&test_workspace(&[
        ("lib.rs", "pub mod rpc; mod client; mod stranger;"),
        ("rpc.rs", "mod generated { include_proto!(\"x\"); } pub use generated::*;"),
        ("client.rs", "pub use crate::rpc::CheckRequest; use crate::rpc as wire; fn f(_: wire::Reply) {}"),
        ("stranger.rs", "use crate::client::CheckRequest;\nuse crate::rpc;\nfn f(_: rpc::inner::Reply) {}"),
    ]));
    assert_eq!(
        violations(&graph, "app::rpc", &["app::rpc", "app::client", "app::gone"]),
        [
            "stranger.rs:1: app::rpc::generated::CheckRequest",
            "stranger.rs:2: app::rpc",
            "stranger.rs:3: app::rpc::generated::inner",
            "`app::gone` is no module",
        ]
    );
}
