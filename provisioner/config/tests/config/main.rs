//! Repositories as users write them: the stacks that are read from them, and the diagnostics of their mistakes.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod repository;

mod core_types;
mod inheritance;
mod mistakes;
mod placeholders;
mod plugins;
mod recorded_reading;
mod robustness;
mod stacks;
mod web;
#[path = "../../src/yaml/yaml_text.rs"]
mod yaml_text;
