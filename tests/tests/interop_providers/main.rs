//! Tests of providers on Pulumi's own SDKs, each in its own process, driven by `sc`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod operations;
mod wire;

use tests::things::Peer;

tests::test_with_each_peer! {
    create => crate::operations::create;
    no_op => crate::operations::no_op;
    update => crate::operations::update;
    replace => crate::operations::replace;
    refresh_with_drift => crate::operations::refresh_with_drift;
    delete => crate::operations::delete;
    secrets => crate::operations::secrets;
    preview => crate::operations::preview;
    overlap => crate::operations::overlap;
    async protocol => crate::wire::speaks_the_protocol;
    async overlap_on_the_wire => crate::wire::works_on_fifty_at_once;
}

/// Only the generated code of Go's SDK allows a provider to publish views.
#[test]
fn views_of_a_go_provider_are_recorded() {
    operations::views(Peer::Go);
}

#[test]
fn each_peer_of_one_stack_has_processes_of_its_own() {
    operations::processes();
}
