//! Pending creates of earlier runs: what a run does with them, the question about them, and the guard of what was imported for them.
//!
//! A pending create without an id may have created its resource. Only a person knows, or the tools of its provider.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bridge::message_text::MessageText;
use engine::events::{Message, Severity};
use engine::{MissingApproval, ProviderReadings};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use super::missing::MissingGuard;

/// Reply to the question about a pending create whose resource does not exist.
const FORGET: &str = "forget";

/// Treatment of the pending creates of earlier runs.
#[derive(Clone, Debug, Default)]
pub struct PendingCreates {
    /// True if all pending creates are cleared.
    pub clear: bool,
    /// Resolutions of single pending creates, each with the name or URN of its resource.
    pub resolutions: Vec<(String, PendingCreateResolution)>,
    /// Question about each pending create without an id, if nothing else resolves any; `None`: nobody is asked.
    pub question: Option<Arc<dyn PendingQuestion>>,
    /// True if resources that may exist are created again.
    pub recreates: bool,
}

/// Resolution of a pending create of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingCreateResolution {
    /// Removes the pending create: no resource was created.
    Clear,
    /// Imports the resource that was created, with this id.
    Import(ResourceId),
}

/// Question to the user about a pending create.
#[async_trait]
pub trait PendingQuestion: fmt::Debug + Send + Sync {
    /// Asks, and returns the line that the user has typed; `None` if the user ended the questions.
    async fn ask(&self, question: &MessageText) -> Option<String>;
}

/// Guard of the first refresh after imports: an imported resource that it does not find was imported with a wrong id.
#[derive(Debug)]
pub(super) struct ImportedGuard {
    pub(super) imported: Vec<(Urn, ResourceId)>,
    /// Guard that decides about the other resources.
    pub(super) missing: Option<Arc<MissingGuard>>,
    /// True once an imported resource was not found.
    pub(super) has_refused: AtomicBool,
}

#[async_trait]
impl MissingApproval for ImportedGuard {
    async fn approve(&self, readings: &[ProviderReadings]) -> Result<(), Message> {
        let mut missing = readings.iter().flat_map(|found| &found.missing);
        let wrong = missing.find_map(|resource| self.imported.iter().find(|(urn, _)| *urn == resource.urn));
        if let Some((urn, id)) = wrong {
            self.has_refused.store(true, Ordering::Relaxed);
            let text = MessageText::new(format_args!(
                "{} was imported with the id {:?}, and its provider does not find it; its create stays pending, and nothing was changed",
                urn.name(),
                id.as_str()
            ));
            let hint = "look the id up with the tools of the provider; if the resource does not exist, give --clear-pending-creates";
            return Err(Message { hint: Some(hint.into()), ..Message::new(Severity::Error, text) });
        }
        match &self.missing {
            Some(guard) => guard.approve(readings).await,
            None => Ok(()),
        }
    }
}

/// Asks about each pending create without an id. Returns `None` if the user ended the questions.
pub(super) async fn ask(
    question: &dyn PendingQuestion,
    snapshot: &Snapshot,
) -> Option<Vec<(String, PendingCreateResolution)>> {
    let mut resolutions = Vec::new();
    for operation in snapshot.pending_operations.iter().filter(|operation| operation.is_create_without_id()) {
        let urn = &operation.resource.urn;
        // The resource of a pending replacement is deleted already, so the created one takes its place.
        let recorded = live_resource(snapshot, urn).map(|recorded| recorded.id_text());
        let reply = question.ask(&question_text(urn, recorded)).await?;
        let resolution = match reply.as_str() {
            FORGET => Some(PendingCreateResolution::Clear),
            id => ResourceId::new(id).map(PendingCreateResolution::Import),
        };
        resolutions.extend(resolution.map(|resolution| (urn.to_string(), resolution)));
    }
    Some(resolutions)
}

/// Returns the question about a pending create. `recorded` is the id of the existing resource with the same URN, if there
/// is one; in that case no second id can be recorded.
fn question_text(urn: &Urn, recorded: Option<&str>) -> MessageText {
    let resource = MessageText::new(format_args!("{} ({})", urn.name(), urn.type_token()));
    match recorded {
        Some(id) => MessageText::new(format_args!(
            "{resource} was being replaced when a run was interrupted; {id:?} is still recorded. If a second resource \
             exists with another id, delete it and type `{FORGET}`; press Enter to leave the create pending:"
        )),
        None => MessageText::new(format_args!(
            "{resource} was being created when a run was interrupted. Type its id to record it, or `{FORGET}` if it was not \
             created; press Enter to leave the create pending:"
        )),
    }
}

/// Returns the live entry of a URN, unless its resource is deleted and its replacement is pending.
pub(super) fn live_resource<'s>(snapshot: &'s Snapshot, urn: &Urn) -> Option<&'s Arc<ResourceState>> {
    let is_live = |resource: &&Arc<ResourceState>| !resource.delete && !resource.pending_replacement;
    snapshot.resources.iter().filter(is_live).find(|resource| resource.urn == *urn)
}

#[cfg(test)]
mod tests {
    use engine::MissingResource;

    use super::*;

    #[tokio::test]
    async fn refresh_that_does_not_find_an_imported_resource_is_refused_because_of_its_id() {
        let urn = |name: &str| -> Urn { format!("urn:pulumi:dev::reef::t:m:T::{name}").parse().unwrap() };
        let readings = |missing: &[&str]| ProviderReadings {
            providers: vec!["urn:pulumi:dev::reef::pulumi:providers:t::t".parse().unwrap()],
            configuration: 0,
            read: 3,
            missing: missing.iter().map(|name| MissingResource { urn: urn(name), protect: false }).collect(),
            is_reconfigured: false,
        };
        let imported = vec![(urn("a"), ResourceId::new("a-9").unwrap())];
        let guard = ImportedGuard { imported, missing: None, has_refused: AtomicBool::new(false) };
        assert_eq!(guard.approve(&[readings(&["b"])]).await.map_err(|message| message.text), Ok(()));
        assert!(!guard.has_refused.load(Ordering::Relaxed));
        let refused = guard.approve(&[readings(&[]), readings(&["a"])]).await.unwrap_err();
        let expected = "a was imported with the id \"a-9\", and its provider does not find it; its create stays pending, and nothing was changed";
        assert_eq!(refused.text, expected);
        assert!(guard.has_refused.load(Ordering::Relaxed));
    }

    #[test]
    fn question_asks_for_an_id_only_if_it_can_be_recorded() {
        let urn = "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap();
        assert!(question_text(&urn, None).contains("Type its id to record it"));
        let replaced = question_text(&urn, Some("a-1"));
        assert!(replaced.contains("\"a-1\" is still recorded") && !replaced.contains("Type its id"), "{replaced}");
    }
}
