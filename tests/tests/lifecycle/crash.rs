//! Tests of a crash after every record: each leaves a valid state, and the next run completes it.

use engine::events::Outcome;
use state::Snapshot;

use crate::program::{Thing, group, provider, thing};
use crate::run::Ended;
use crate::standing;
use crate::world::World;

/// Runs a program again from the state after a crash at each record.
async fn every_crash_is_made_good(ended: &Ended, program: &[Thing]) {
    for prefix in &ended.prefixes {
        let world = World::default();
        world.forgive();
        let made_good = world.up(prefix, program).after_a_loss().go().await.expect(Outcome::Succeeded);
        let again = world.up(&made_good.state, program).after_a_loss().go().await.expect(Outcome::Succeeded);
        assert_eq!(again.changes(), [""; 0]);
        let (mut names, mut expected) = (names(&again.state), names(&ended.state));
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }
}

fn names(state: &Snapshot) -> Vec<String> {
    state.resources.iter().map(|state| state.urn.to_string()).collect()
}

fn program(value: &str, key: &str) -> Vec<Thing> {
    vec![
        provider("p").with(key, value),
        group("g"),
        thing("a").with(key, value).within("g"),
        thing("b").of("k", "a").by("p"),
        thing("c").of("v", "b").after("g"),
    ]
}

#[tokio::test]
async fn of_a_first_creation() {
    let world = World::default();
    let ended = world.up(&Snapshot::default(), &program("1", "v")).go().await.expect(Outcome::Succeeded);
    every_crash_is_made_good(&ended, &program("1", "v")).await;
}

#[tokio::test]
async fn of_updates() {
    let (world, state) = standing(&program("1", "v")).await;
    let ended = world.up(&state, &program("2", "v")).go().await.expect(Outcome::Succeeded);
    every_crash_is_made_good(&ended, &program("2", "v")).await;
}

#[tokio::test]
async fn of_replacements_that_create_first() {
    let (world, state) = standing(&program("1", "k")).await;
    let ended = world.up(&state, &program("2", "k")).go().await.expect(Outcome::Succeeded);
    every_crash_is_made_good(&ended, &program("2", "k")).await;
}

#[tokio::test]
async fn of_replacements_that_delete_first() {
    let (world, state) = standing(&program("1", "d")).await;
    let ended = world.up(&state, &program("2", "d")).go().await.expect(Outcome::Succeeded);
    every_crash_is_made_good(&ended, &program("2", "d")).await;
}

#[tokio::test]
async fn of_deletes() {
    let (world, state) = standing(&program("1", "v")).await;
    let ended = world.up(&state, &[thing("c")]).go().await.expect(Outcome::Succeeded);
    every_crash_is_made_good(&ended, &[thing("c")]).await;
}

#[tokio::test]
async fn of_new_names() {
    let (world, state) = standing(&program("1", "v")).await;
    let renamed = [
        provider("p2").was("p").with("v", "1"),
        group("g2").was("g"),
        thing("a2").was("a").with("v", "1").within("g2"),
        thing("b2").was("b").of("k", "a2").by("p2"),
        thing("c").of("v", "b2").after("g2"),
    ];
    let ended = world.up(&state, &renamed).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.changes(), [""; 0]);
    every_crash_is_made_good(&ended, &renamed).await;
}
