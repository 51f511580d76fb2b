//! The cells of this peer in the table.

use crate::peer::Peer;
use crate::wire;

const PEER: Peer = Peer::Python;

#[tokio::test]
async fn protocol() {
    wire::speaks_the_protocol(PEER).await;
}

#[tokio::test]
async fn overlap_on_the_wire() {
    wire::works_on_fifty_at_once(PEER).await;
}
