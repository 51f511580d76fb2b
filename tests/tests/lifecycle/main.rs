//! Lifecycle tests: programs are deployed to a fake cloud, and the engine's calls and records are checked.
//!
//! Each run is checked for the invariants of all runs (`invariants.rs`); a test adds its own checks.

mod components;
mod concurrency;
mod crash;
mod deletes;
mod fake_cloud;
mod imports;
mod invariants;
mod program;
mod providers;
mod random;
mod replacements;
mod run;
mod stopping;
mod values;
mod views;
mod with_program;

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
