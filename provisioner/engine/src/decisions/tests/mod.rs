//! Tables of decisions. A test whose name begins with the number of a row is about that row of
//! docs/spec/engine-semantics.md#10. The test with the same number in `tests/tests/rows` is about the behaviour of the
//! whole engine.

mod entries;
mod registrations;
mod retries;

use std::sync::Arc;

use bridge::provider::{CheckFailure, DiffChanges, DiffReply};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use state::{Entry, ResourceState};

use super::decision::*;
use crate::events::Operation;
use crate::goal::{Goal, ResourceKind};

fn props(pairs: &[(&str, f64)]) -> PropertyMap {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::Number(*value))).collect()
}

/// Case of a table: a custom resource with input `v: 1`, and its recorded entry.
struct Case {
    goal: Goal,
    old: Option<ResourceState>,
    replies: Replies,
    dependent_replace_keys: Option<Vec<String>>,
    adjust: fn(&mut Situation<'_>),
}

impl Case {
    fn new() -> Self {
        let goal = Goal::custom(TypeToken::new("t:m:T"), "a", props(&[("v", 1.0)]));
        Self { goal, old: None, replies: Replies::default(), dependent_replace_keys: None, adjust: |_| {} }
    }

    /// Creates a case whose entry is recorded with these inputs.
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

    fn dependent_replacement(mut self) -> Self {
        self.dependent_replace_keys = Some(vec!["k".to_owned()]);
        self
    }

    fn checked(mut self) -> Self {
        let inputs = Some(Checked::Accepted(Arc::clone(&self.goal.inputs)));
        self.replies.check_against_olds.clone_from(&inputs);
        self.replies.check_without_olds = inputs;
        self
    }

    /// Adds a Check that rejects the inputs, with and without olds.
    fn rejected(mut self) -> Self {
        let failure = CheckFailure { property: Some("v".into()), reason: "too small".into() };
        let failures = Some(Checked::Rejected(vec![failure]));
        self.replies.check_against_olds.clone_from(&failures);
        self.replies.check_without_olds = failures;
        self
    }

    /// Adds the reply to the first Check only, which is against the recorded inputs.
    fn checked_against_olds(mut self) -> Self {
        self.replies.check_against_olds = Some(Checked::Accepted(Arc::clone(&self.goal.inputs)));
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
            depends_on_skipped: false,
            dependent_replace_keys: self.dependent_replace_keys.as_deref(),
            replace_requested: false,
            replace_with_key: None,
            provider: ProviderChange::None,
            protect: self.goal.protect.unwrap_or_default(),
            delete_before_replace: self.goal.delete_before_replace,
        };
        (self.adjust)(&mut situation);
        decide(&situation, &self.replies)
    }

    /// Returns the next action as a short text. `Check°` is a Check without old inputs.
    fn next(&self) -> &'static str {
        match self.decision() {
            Decision::Query(ProviderQuery::CheckWithoutOlds) => "Check°",
            Decision::Query(ProviderQuery::CheckAgainstOlds { .. }) => "Check",
            Decision::Query(ProviderQuery::DiffProvider) => "DiffConfig",
            Decision::Query(ProviderQuery::Diff { .. }) => "Diff",
            Decision::InputsRejected(_) => "rejected inputs",
            Decision::Refuse(Refusal::Protected) => "refused: protected",
            Decision::Refuse(Refusal::ImportMismatch) => "refused: import",
            Decision::Refuse(Refusal::UnknownTrigger) => "refused: trigger",
            Decision::Proceed(Plan::Same { .. }) => "same",
            Decision::Proceed(Plan::KeepUntilDeleted) => "keep until deleted",
            Decision::Proceed(Plan::KeepRecorded) => "keep recorded",
            Decision::Proceed(Plan::CarryOver) => "carry over",
            Decision::Proceed(Plan::Skip) => "skip",
            Decision::Proceed(Plan::Create { .. }) => "create",
            Decision::Proceed(Plan::Update { .. }) => "update",
            Decision::Proceed(Plan::Replace(replacement)) => match (replacement.order, replacement.refusal) {
                (_, Some(_)) => "replace, with error",
                (ReplaceOrder::CreateBeforeDelete, None) => "create, then delete",
                (ReplaceOrder::DeleteBeforeReplace, None) => "delete, then create",
                (ReplaceOrder::Recreate, None) => "recreate",
                (ReplaceOrder::Resume, None) => "resume replacement",
            },
        }
    }
}

const SOME: DiffChanges = DiffChanges::Some;
const NONE: DiffChanges = DiffChanges::None;
const UNKNOWN: DiffChanges = DiffChanges::Unknown;
