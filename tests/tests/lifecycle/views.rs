//! Views: entries that a provider published beside the resource they are a view of, in states that Pulumi made. Ours are not
//! asked for views; those that are there stay with their resource, and go with it.

use std::sync::Arc;

use provisioner::events::Outcome;
use provisioner::state::{ResourceState, Snapshot};
use pulumi_proto::urn::Urn;

use crate::program::{PROJECT, STACK, thing};
use crate::run::entry;
use crate::standing;
use crate::world::{Goes, World};

/// A world with `a` and `b` that hangs on it; `a` has a view, which has one within it.
async fn viewed() -> (World, Snapshot) {
    let (world, mut state) = standing(&[thing("a").with("v", "1"), thing("b").of("v", "a")]).await;
    let owner = entry(&state, "a").urn.clone();
    let mut parent = owner.clone();
    for name in ["inside", "deeper"] {
        let mut view = ResourceState::new(Urn::new(STACK, PROJECT, Some(&parent), "cloud:index:View", name), true);
        view.parent = Some(parent);
        view.view_of = Some(owner.clone());
        parent = view.urn.clone();
        state.resources.push(Arc::new(view));
    }
    (world, state)
}

fn views(state: &Snapshot) -> Vec<&str> {
    state.resources.iter().filter(|state| state.view_of.is_some()).map(|state| state.urn.name()).collect()
}

#[tokio::test]
async fn a_view_stays_with_its_resource() {
    let (world, state) = viewed().await;
    let ended = world.up(&state, &[thing("a").with("v", "2"), thing("b").of("v", "a")]).go().await;
    assert_eq!(views(&ended.expect(Outcome::Succeeded).state), ["inside", "deeper"]);
}

#[tokio::test]
async fn a_view_follows_its_resource_to_a_new_name() {
    let (world, state) = viewed().await;
    let program = [thing("c").with("v", "1").was("a"), thing("b").of("v", "c")];
    let ended = world.up(&state, &program).go().await.expect(Outcome::Succeeded);
    let owner = &entry(&ended.state, "c").urn;
    assert_eq!(entry(&ended.state, "inside").view_of.as_ref(), Some(owner));
    assert_eq!(entry(&ended.state, "deeper").view_of.as_ref(), Some(owner));
}

#[tokio::test]
async fn a_view_is_neither_read_nor_deleted_and_goes_with_its_resource() {
    let (world, state) = viewed().await;
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.calls.iter().filter(|call| call.verb == "read").count(), 2);
    let ended = world.destroy(&ended.state).go().await.expect(Outcome::Succeeded);
    assert_eq!((ended.changes().len(), ended.state.resources.len()), (2, 0));
}

#[tokio::test]
async fn the_views_of_what_is_gone_are_gone() {
    let (world, state) = viewed().await;
    world.when("read a-1", Goes::Gone);
    let ended = world.refresh(&state).go().await.expect(Outcome::Succeeded);
    assert_eq!(ended.entries(), ["b-1"]);
}
