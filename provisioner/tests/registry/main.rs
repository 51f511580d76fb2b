//! Tests of the core types and template types of `sc`: `config` of each type, and its JSON Schema.

#![expect(clippy::unwrap_used, reason = "a test panics at the first failure")]

#[path = "../../config/tests/config/repository.rs"]
#[expect(dead_code, reason = "the tests of `config` use more of it")]
mod repository;
#[path = "../../config/tests/config/schema_agreement.rs"]
mod schema_agreement;

mod agreement;
mod buckets;
mod editor;
mod queues;
mod required_keys;
mod templates;
mod unused_keys;

use provisioner::registry::recipes;
use repository::Files;

/// Creates a stack `s` with a provisioner and these sections, which is read with the types of `sc`.
fn sections(text: &str) -> Files {
    Files::sections(text).types(recipes::built_in_types())
}
