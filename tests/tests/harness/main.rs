//! Tests of the harness itself with the recordings: the program runner and the comparison of outcomes.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

mod alterations;
mod leniency;
mod process;
mod programs;
mod store_proxy;

use std::path::Path;
use std::sync::OnceLock;

use tests::scenario::Scenario;

/// Returns all recorded scenarios of the repository, which are read once.
fn scenarios() -> &'static [Scenario] {
    static SCENARIOS: OnceLock<Vec<Scenario>> = OnceLock::new();
    SCENARIOS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/engine");
        let files = ["situations.jsonl", "random.jsonl", "components.jsonl"];
        files.iter().flat_map(|file| Scenario::read(&folder.join(file)).unwrap()).collect()
    })
}
