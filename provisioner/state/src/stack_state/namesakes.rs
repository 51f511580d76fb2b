//! Stacks that have the name of a stack below other projects of its store.

use futures_util::future::join_all;
use pulumi_proto::urn::Urn;

use super::access::StackAccess;
use super::loading::read_snapshot;
use crate::store::StackReference;

/// Stack with the same name below another project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namesake {
    /// Name of the stack.
    pub stack: StackReference,
    /// URNs of its resources.
    pub resources: Vec<Urn>,
}

/// Returns the stacks that have the name of a stack below another project of its store. Those that cannot be listed or read are left
/// out: credentials may be for one project only.
pub async fn namesakes(access: &StackAccess) -> Vec<Namesake> {
    let (store, own) = (&access.store, &access.stack);
    let stacks = store.list().await.unwrap_or_default();
    let others = stacks.into_iter().filter(|stack| stack.stack() == own.stack() && stack.project() != own.project());
    let read = others.map(async |stack| {
        let text = store.text(&stack).await.ok()??;
        let resources = read_snapshot(&text).ok()?.resources;
        let resources = resources.iter().filter(|entry| entry.custom && !entry.is_provider());
        Some(Namesake { resources: resources.map(|entry| entry.urn.clone()).collect(), stack })
    });
    join_all(read).await.into_iter().flatten().collect()
}
