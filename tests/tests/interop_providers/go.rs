//! The cells of this peer in the table.

use tests::things::Peer;

use crate::{operations, wire};

const PEER: Peer = Peer::Go;

#[test]
fn create() {
    operations::create(PEER);
}

#[test]
fn no_op() {
    operations::no_op(PEER);
}

#[test]
fn update() {
    operations::update(PEER);
}

#[test]
fn replace() {
    operations::replace(PEER);
}

#[test]
fn refresh_with_drift() {
    operations::refresh_with_drift(PEER);
}

#[test]
fn delete() {
    operations::delete(PEER);
}

#[test]
fn secrets() {
    operations::secrets(PEER);
}

#[test]
fn preview() {
    operations::preview(PEER);
}

#[test]
fn overlap() {
    operations::overlap(PEER);
}

#[test]
fn views() {
    operations::views(PEER);
}

#[tokio::test]
async fn protocol() {
    wire::speaks_the_protocol(PEER).await;
}

#[tokio::test]
async fn overlap_on_the_wire() {
    wire::works_on_fifty_at_once(PEER).await;
}
