//! Lifecycle tests: programs are deployed to a fake cloud, and the engine's calls and records are checked.
//!
//! Each run is checked for the invariants of all runs (`invariants.rs`); a test adds its own checks.
//!
//! The name of an input determines the reply of the fake cloud to Diff if the value changes: a name that begins with
//! `k` replaces the resource (create before delete), one that begins with `d` replaces it and requests delete before
//! replace, and any other name, such as `v`, updates it. Inputs with further effects have constants in `fake_cloud.rs`.
//!
//! The cloud gives a resource an id of its name and a counter: `a-1`, and `a-2` for its replacement. The text of a call
//! is its verb and the id for `read`, `update` and `delete`, else the name: `create a`, `delete a-1`. `FakeCloud::fail`
//! and `FakeCloud::hold` take such a text, or the verb and the name of any call. The text of a step is its operation
//! and the name.

mod accounts;
mod components;
mod concurrency;
mod crash;
mod deletes;
mod fake_cloud;
mod former_dependents;
mod guards;
mod hint_commands;
mod imports;
mod invariants;
#[cfg(debug_assertions)]
mod io_errors;
mod lost_lock;
mod lost_replies;
mod old_versions;
mod plans;
mod program;
mod providers;
mod random;
mod references;
mod replacements;
mod retention;
mod retries;
mod rotated_configurations;
mod run;
mod secrets;
mod shared_resources;
mod stopping;
mod values;
mod views;
mod with_program;
mod without_read;

use engine::events::Outcome;
use state::Snapshot;

use crate::fake_cloud::FakeCloud;
use crate::program::ProgramResource;

/// Deploys a program to a new cloud, and returns the cloud and the state.
async fn deploy(resources: &[ProgramResource]) -> (FakeCloud, Snapshot) {
    let cloud = FakeCloud::default();
    let ended = cloud.up(&Snapshot::default(), resources).run().await.expect(Outcome::Succeeded);
    (cloud, ended.state)
}
