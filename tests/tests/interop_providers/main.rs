//! Tests of providers on Pulumi's own SDKs, each in its own process, started by `sc`.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod configurations;
mod failures;
mod operations;
mod starts;
mod wire;

use tests::sdk_providers::Sdk;

tests::test_with_each_sdk! {
    create => crate::operations::create;
    no_op => crate::operations::no_op;
    update => crate::operations::update;
    replace => crate::operations::replace;
    refresh_with_drift => crate::operations::refresh_with_drift;
    delete => crate::operations::delete;
    secrets => crate::operations::secrets;
    preview => crate::operations::preview;
    overlap => crate::operations::overlap;
    failures => crate::failures::failures;
    async protocol => crate::wire::run_all_calls;
    async lease => crate::wire::second_lease_has_equal_replies_and_the_configured_process;
    sandbox => crate::operations::sandbox;
    registration => crate::starts::registration;
    refused_registration => crate::starts::refused_registration;
    attaching => crate::starts::attaching;
    async overlap_on_the_wire => crate::wire::run_fifty_creates_concurrently;
}

/// Only the generated code of Go's SDK allows a provider to publish views.
#[test]
fn views_of_a_go_provider_are_recorded() {
    operations::views(Sdk::Go);
}

#[test]
fn each_provider_of_a_stack_has_its_own_process() {
    operations::processes();
}
