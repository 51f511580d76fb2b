//! Lifecycle tests: a cloud in memory, programs, and what the engine asks and records, side by side.
//!
//! Each run is held to the promises of every run (`promises.rs`); a test says what is special about its own.

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

/// A world in which a program has been run.
async fn standing(things: &[Thing]) -> (World, Snapshot) {
    let world = World::default();
    let ended = world.up(&Snapshot::default(), things).go().await.expect(Outcome::Succeeded);
    (world, ended.state)
}
