//! Repositories as users write them: what is read from them, and what is said about their mistakes.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod repository;

mod buckets;
mod core_types;
mod editor;
mod inheritance;
mod mistakes;
mod placeholders;
mod plugins;
mod recorded;
mod recorded_reading;
mod robustness;
mod stacks;
mod templates;
