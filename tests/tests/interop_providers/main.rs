//! Providers written with Pulumi's own SDKs, each a process of its own, driven by us.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod go;
mod node;
mod operations;
mod python;
mod wire;

use std::collections::BTreeSet;
use std::process::Command;

use tests::things::Peer;

/// What is proved of each peer.
const OPERATIONS: [&str; 11] = [
    "create",
    "no_op",
    "update",
    "replace",
    "refresh_with_drift",
    "delete",
    "secrets",
    "preview",
    "overlap",
    "protocol",
    "overlap_on_the_wire",
];

#[test]
fn every_cell_of_the_table_is_a_test() {
    let list = tests::peers::run(Command::new(std::env::current_exe().unwrap()).arg("--list")).unwrap();
    let list = String::from_utf8(list).unwrap();
    let cells: BTreeSet<String> = list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| name.contains("::"))
        .map(str::to_owned)
        .collect();
    let of = |peer: Peer| OPERATIONS.map(|operation| format!("{}::{operation}", peer.module()));
    // The only SDK whose generated code a provider can publish views with.
    let views = ["go::views".to_owned()];
    assert_eq!(cells, Peer::ALL.into_iter().flat_map(of).chain(views).collect());
}

#[test]
fn each_peer_of_one_stack_has_processes_of_its_own() {
    operations::processes();
}
