//! Tests with real plugins on HashiCorp's go-plugin: the examples of the library, built from its module, and a provider.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod debugging;
mod example_plugin;
mod example_provider;
mod examples;
mod lifecycle;
mod provisioning;
mod repository;
mod stops;
