//! Runs whose lock was removed: nothing that may change a resource begins.

use engine::events::Outcome;
use state::HeldLease;
use state::store::StackReference;

use crate::deploy;
use crate::program::{PROJECT, STACK, remote_component};

/// Shows: state.md#locks "If the lock was removed meanwhile, the run begins no further operation, calls no method"
#[tokio::test]
async fn method_is_not_called_once_the_lock_of_the_stack_is_lost() {
    let program = [remote_component("c").input("ask", "a")];
    let (cloud, state) = deploy(&program).await;
    assert_eq!(cloud.called().len(), 1);
    // Nothing is created, so no record precedes the call.
    let lease = HeldLease::of_lost_lock(StackReference::new(PROJECT, STACK).unwrap()).await.unwrap();
    let ended = cloud.up(&state, &program).lease(lease).run().await.expect(Outcome::Failed);
    assert_eq!(cloud.called().len(), 1);
    let refused = "the method was not called: organization/p/s: the lock of this run was removed";
    assert!(ended.errors.iter().any(|error| error.contains(refused)), "{:?}", ended.errors);
}
