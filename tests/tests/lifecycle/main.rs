//! Lifecycle tests: a cloud in memory, programs, and the engine's calls and records.
//!
//! Each run is checked for the promises of all runs (`promises.rs`); a test adds checks of its own.

mod chance;
mod components;
mod concurrency;
mod crash;
mod deletes;
mod imports;
mod program;
mod promises;
mod providers;
mod replacements;
mod run;
mod stopping;
mod values;
mod views;
mod with_program;
mod world;

use engine::events::Outcome;
use state::Snapshot;

use crate::program::Thing;
use crate::world::World;

/// Runs a program in a new world, and returns the world and the state.
async fn standing(things: &[Thing]) -> (World, Snapshot) {
    let world = World::default();
    let ended = world.up(&Snapshot::default(), things).go().await.expect(Outcome::Succeeded);
    (world, ended.state)
}
