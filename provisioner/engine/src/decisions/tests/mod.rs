//! The decisions as tables. A test whose name begins with a row is about that row of engine semantics, section 10; what the
//! whole engine makes of it is told under the same number in `tests/tests/rows`.

mod entries;
mod registrations;

use std::sync::Arc;

use bridge::provider::{CheckFailure, DiffChanges, DiffReply};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::TypeToken;

use pulumi_proto::urn::{ProviderReference, Urn};
use state::ResourceState;

use super::registration::*;
use crate::entry::Entry;
use crate::events::Operation;
use crate::goal::{Goal, ResourceKind};

fn props(pairs: &[(&str, f64)]) -> PropertyMap {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::Number(*value))).collect()
}

/// A custom resource with input `v: 1`, and what is recorded of it.
struct Case {
    goal: Goal,
    old: Option<ResourceState>,
    replies: Replies,
    recreating: Option<Vec<String>>,
    adjust: fn(&mut Situation<'_>),
}

impl Case {
    fn new() -> Self {
        let goal = Goal::custom(TypeToken::new("t:m:T"), "a", props(&[("v", 1.0)]));
        Self { goal, old: None, replies: Replies::default(), recreating: None, adjust: |_| {} }
    }

    /// Recorded with these inputs.
    fn recorded(inputs: &[(&str, f64)]) -> Self {
        let mut old = ResourceState::new(Urn::new("s", "p", None, "t:m:T", "a"), true);
        old.id = ResourceId::new("a-1");
        old.inputs = Arc::new(props(inputs));
        old.outputs = Arc::clone(&old.inputs);
        Self { old: Some(old), ..Self::new() }
    }

    fn goal(mut self, change: fn(&mut Goal)) -> Self {
        change(&mut self.goal);
        self
    }

    fn old(mut self, change: fn(&mut ResourceState)) -> Self {
        change(self.old.as_mut().expect("the case has a recorded entry"));
        self
    }

    fn given(mut self, adjust: fn(&mut Situation<'_>)) -> Self {
        self.adjust = adjust;
        self
    }

    fn recreating(mut self) -> Self {
        self.recreating = Some(vec!["k".to_owned()]);
        self
    }

    fn checked(mut self) -> Self {
        let inputs = Some(Checked::Accepted(Arc::clone(&self.goal.inputs)));
        self.replies.carried.clone_from(&inputs);
        self.replies.fresh = inputs;
        self
    }

    /// Check refuses the inputs, against what is recorded or as they are.
    fn refused(mut self) -> Self {
        let failure = CheckFailure { property: Some("v".into()), reason: "too small".into() };
        let failures = Some(Checked::Refused(vec![failure]));
        self.replies.carried.clone_from(&failures);
        self.replies.fresh = failures;
        self
    }

    /// Only the first Check, against what is recorded, has been answered.
    fn checked_once(mut self) -> Self {
        self.replies.carried = Some(Checked::Accepted(Arc::clone(&self.goal.inputs)));
        self
    }

    fn diff(mut self, changes: DiffChanges, replaces: &[&str]) -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        self.replies.diff =
            Some(DiffReply { changes, diffs: vec!["v".into()], replaces: names(replaces), ..DiffReply::default() });
        self
    }

    fn provider_diff(mut self, changes: DiffChanges, replaces: &[&str]) -> Self {
        let replaces = replaces.iter().map(|name| (*name).to_owned()).collect();
        self.replies.provider_diff = Some(DiffReply { changes, replaces, ..DiffReply::default() });
        self
    }

    fn decision(&self) -> Decision {
        let mut situation = Situation {
            operation: Operation::Update,
            kind: ResourceKind::Custom,
            preview: false,
            goal: &self.goal,
            old: self.old.as_ref(),
            imported: false,
            in_scope: true,
            needs_missing: false,
            recreating: self.recreating.as_deref(),
            marked: false,
            replaced_partner: None,
            provider: ProviderChange::None,
            protect: self.goal.protect.unwrap_or_default(),
            delete_before_replace: self.goal.delete_before_replace,
        };
        (self.adjust)(&mut situation);
        decide(&situation, &self.replies)
    }

    /// What comes next, in a word.
    fn next(&self) -> &'static str {
        match self.decision() {
            Decision::Query(ProviderQuery::CheckFresh) => "Check°",
            Decision::Query(ProviderQuery::CheckCarried { .. }) => "Check",
            Decision::Query(ProviderQuery::DiffProvider) => "DiffConfig",
            Decision::Query(ProviderQuery::Diff { .. }) => "Diff",
            Decision::RefuseInputs(_) => "refused: inputs",
            Decision::Refuse(Refusal::Protected) => "refused: protected",
            Decision::Refuse(Refusal::ImportMismatch) => "refused: import",
            Decision::Refuse(Refusal::UnknownTrigger) => "refused: trigger",
            Decision::Proceed(Plan::Same { .. }) => "same",
            Decision::Proceed(Plan::KeepUntilDeleted) => "doomed",
            Decision::Proceed(Plan::KeepRecorded) => "as recorded",
            Decision::Proceed(Plan::CarryOver) => "untouched",
            Decision::Proceed(Plan::SkipCreate) => "skip",
            Decision::Proceed(Plan::Create { .. }) => "create",
            Decision::Proceed(Plan::Update { .. }) => "update",
            Decision::Proceed(Plan::Replace(replacement)) => match (replacement.order, replacement.refusal) {
                (_, Some(_)) => "replace, complaining",
                (ReplaceOrder::CreateFirst, None) => "create, then delete",
                (ReplaceOrder::DeleteFirst, None) => "delete, then create",
                (ReplaceOrder::Recreate, None) => "create what went down",
                (ReplaceOrder::Resume, None) => "create what is gone",
            },
        }
    }
}

const SOME: DiffChanges = DiffChanges::Some;
const NONE: DiffChanges = DiffChanges::None;
const UNKNOWN: DiffChanges = DiffChanges::Unknown;
