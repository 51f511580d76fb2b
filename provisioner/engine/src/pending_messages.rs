//! Warnings about pending operations of earlier runs, one for all operations of a kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::message_text::MessageText;
use pulumi_proto::urn::TypeToken;
use state::{OperationKind, PendingOperation, ResourceState};

use crate::events::{Message, Severity};
use crate::messages::{UNKNOWN_CREATION, UNKNOWN_REPLACEMENT};

/// Knowledge about a pending operation, by which a warning says what is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// Create whose id is known: this run reads the resource.
    Created,
    /// Create without an id.
    MayExist,
    /// Create without an id of a resource that is recorded with another one: it was being replaced.
    MayExistTwice,
    /// Another operation on a recorded resource.
    MayHaveChanged(OperationKind),
}

/// Pending operation of an earlier run, with the live entry of its URN, if there is one.
pub type PendingWithEntry = (PendingOperation, Option<Arc<ResourceState>>);

/// Returns the warnings about pending operations of earlier runs. The resource of an entry with a pending replacement is deleted
/// already, so it counts as missing.
pub fn pending_operation_warnings(pending: &[PendingWithEntry]) -> Vec<Message> {
    let mut groups: BTreeMap<Known, Vec<&PendingWithEntry>> = BTreeMap::new();
    for found in pending {
        groups.entry(Known::of(found)).or_default().push(found);
    }
    groups.into_iter().map(|(known, group)| known.warning(&group)).collect()
}

impl Known {
    fn of((operation, recorded): &PendingWithEntry) -> Self {
        match operation.kind {
            OperationKind::Creating if operation.resource.id.is_some() => Self::Created,
            OperationKind::Creating if recorded.as_ref().is_some_and(|entry| !entry.pending_replacement) => {
                Self::MayExistTwice
            }
            OperationKind::Creating => Self::MayExist,
            kind => Self::MayHaveChanged(kind),
        }
    }

    fn warning(self, group: &[&PendingWithEntry]) -> Message {
        if let [(operation, recorded)] = group {
            let message = Message::new(Severity::Warning, self.text_of_one());
            let hint = Some(self.hint_of_one(operation, recorded.as_deref()));
            return Message { urn: Some(operation.resource.urn.clone()), hint, repeated: true, ..message };
        }
        let resources: Vec<String> = group
            .iter()
            .map(|(operation, recorded)| {
                let resource = &operation.resource;
                let short = TypeToken::new(resource.urn.type_token()).short_form().into_owned();
                let id = match self {
                    Self::Created => format!(", id {:?}", resource.id_text()),
                    Self::MayExistTwice => {
                        recorded.iter().map(|entry| format!(", {:?} is recorded", entry.id_text())).collect()
                    }
                    Self::MayExist | Self::MayHaveChanged(_) => String::new(),
                };
                format!("{} ({short}{id})", resource.urn.name())
            })
            .collect();
        let (count, resources) = (group.len(), resources.join(", "));
        let text = match self {
            Self::Created => MessageText::new(format_args!(
                "an earlier run created {count} resources, and could not use the replies of their providers: {resources}"
            )),
            _ => MessageText::new(format_args!(
                "an earlier run was interrupted while {} {count} resources: {resources}",
                self.kind().as_str()
            )),
        };
        Message { hint: Some(self.hint_of_many().into()), repeated: true, ..Message::new(Severity::Warning, text) }
    }

    fn kind(self) -> OperationKind {
        match self {
            Self::Created | Self::MayExist | Self::MayExistTwice => OperationKind::Creating,
            Self::MayHaveChanged(kind) => kind,
        }
    }

    fn text_of_one(self) -> MessageText {
        match self {
            Self::Created => "an earlier run created it, and could not use the reply of its provider".into(),
            _ => MessageText::new(format_args!("an earlier run was interrupted while {} it", self.kind().as_str())),
        }
    }

    fn hint_of_one(self, operation: &PendingOperation, recorded: Option<&ResourceState>) -> MessageText {
        match (self, recorded) {
            (Self::Created, _) => MessageText::new(format_args!(
                "it has the id {:?}: this run reads it and records it",
                operation.resource.id_text()
            )),
            (Self::MayExistTwice, Some(recorded)) => {
                MessageText::new(format_args!("{:?} is recorded; {UNKNOWN_REPLACEMENT}", recorded.id_text()))
            }
            (Self::MayExist | Self::MayExistTwice, _) => UNKNOWN_CREATION.into(),
            (Self::MayHaveChanged(_), _) => "its recorded state may be stale; run `sc refresh`".into(),
        }
    }

    fn hint_of_many(self) -> &'static str {
        match self {
            Self::Created => "this run reads them and records them",
            Self::MayExist => {
                "they may exist without being recorded: give the ids of those that exist to the next `sc provision` or `sc refresh`, which \
                 ask for them on a terminal,\nor with --import-pending-creates NAME=ID, once for each; if none exists, give \
                 --clear-pending-creates"
            }
            Self::MayExistTwice => {
                "second resources may exist without being recorded: delete those that have other ids at their provider;\n\
                 --clear-pending-creates removes the pending creates"
            }
            Self::MayHaveChanged(_) => "their recorded states may be stale; run `sc refresh`",
        }
    }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::resource_id::ResourceId;
    use pulumi_proto::urn::Urn;

    use super::*;

    fn pending(kind: OperationKind, name: &str, id: &str) -> PendingOperation {
        let resource = ResourceState::new(Urn::new("dev", "reef", None, "t:m:T", name), true);
        PendingOperation { resource: Arc::new(ResourceState { id: ResourceId::new(id), ..resource }), kind }
    }

    fn recorded(name: &str) -> Option<Arc<ResourceState>> {
        Some(pending(OperationKind::Updating, name, &format!("{name}-1")).resource)
    }

    fn shown(pending: &[PendingWithEntry]) -> Vec<String> {
        let shown = |message: Message| {
            let urn = message.urn.map(|urn| format!("{}: ", urn.name())).unwrap_or_default();
            format!("{urn}{}", message.text)
        };
        pending_operation_warnings(pending).into_iter().map(shown).collect()
    }

    #[test]
    fn operations_of_a_kind_are_one_warning() {
        use OperationKind::{Creating, Deleting, Updating};
        let create = |name| (pending(Creating, name, ""), None);
        assert_eq!(shown(&[create("a")]), ["a: an earlier run was interrupted while creating it"]);
        assert_eq!(
            shown(&[create("a"), create("b"), (pending(Creating, "c", "c-1"), None)]),
            [
                "c: an earlier run created it, and could not use the reply of its provider",
                "an earlier run was interrupted while creating 2 resources: a (t:m:T), b (t:m:T)",
            ]
        );
        let replaced = |name| (pending(Creating, name, ""), recorded(name));
        assert_eq!(
            shown(&[replaced("a"), replaced("b")]),
            [
                r#"an earlier run was interrupted while creating 2 resources: a (t:m:T, "a-1" is recorded), b (t:m:T, "b-1" is recorded)"#
            ]
        );
        let change = |kind, name: &str| (pending(kind, name, "x"), recorded(name));
        assert_eq!(
            shown(&[change(Updating, "a"), change(Deleting, "b"), change(Updating, "c")]),
            [
                "an earlier run was interrupted while updating 2 resources: a (t:m:T), c (t:m:T)",
                "b: an earlier run was interrupted while deleting it",
            ]
        );
    }
}
