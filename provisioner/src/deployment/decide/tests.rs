//! The decisions as a table: situation and answers on the left, what comes next on the right. Rows are those of engine
//! semantics, section 10, where they have a number there.

use std::sync::Arc;

use bridge::provider::{DiffChanges, DiffKind, DiffReply, PropertyDiff};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};

use super::*;

fn props(pairs: &[(&str, f64)]) -> PropertyMap {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), PropertyValue::Number(*value))).collect()
}

/// A custom resource with input `v: 1`, and what is recorded of it.
struct Case {
    goal: Goal,
    old: Option<ResourceState>,
    answers: Answers,
    recreating: Option<Vec<String>>,
    adjust: fn(&mut Situation<'_>),
}

impl Case {
    fn new() -> Self {
        let goal = Goal::custom(TypeToken::new("t:m:T"), "a", props(&[("v", 1.0)]));
        Self { goal, old: None, answers: Answers::default(), recreating: None, adjust: |_| {} }
    }

    /// Recorded with these inputs.
    fn recorded(inputs: &[(&str, f64)]) -> Self {
        let mut old = ResourceState::new(Urn::new("s", "p", None, "t:m:T", "a"), true);
        old.id = "a-1".into();
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
        let inputs = Some(Arc::clone(&self.goal.inputs));
        self.answers.carried.clone_from(&inputs);
        self.answers.fresh = inputs;
        self
    }

    /// Only the first Check, against what is recorded, has been answered.
    fn checked_once(mut self) -> Self {
        self.answers.carried = Some(Arc::clone(&self.goal.inputs));
        self
    }

    fn diff(mut self, changes: DiffChanges, replaces: &[&str]) -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        self.answers.diff =
            Some(DiffReply { changes, diffs: vec!["v".into()], replaces: names(replaces), ..DiffReply::default() });
        self
    }

    fn provider_diff(mut self, changes: DiffChanges, replaces: &[&str]) -> Self {
        let replaces = replaces.iter().map(|name| (*name).to_owned()).collect();
        self.answers.provider_diff = Some(DiffReply { changes, replaces, ..DiffReply::default() });
        self
    }

    fn decision(&self) -> Decision {
        let mut situation = Situation {
            operation: Operation::Update,
            kind: Kind::Custom,
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
        decide(&situation, &self.answers)
    }

    /// What comes next, in a word.
    fn next(&self) -> &'static str {
        match self.decision() {
            Decision::Ask(Question::CheckFresh) => "Check°",
            Decision::Ask(Question::CheckCarried { .. }) => "Check",
            Decision::Ask(Question::DiffProvider) => "DiffConfig",
            Decision::Ask(Question::Diff { .. }) => "Diff",
            Decision::Refuse(Refusal::Protected) => "refused: protected",
            Decision::Refuse(Refusal::ImportMismatch) => "refused: import",
            Decision::Refuse(Refusal::UnknownTrigger) => "refused: trigger",
            Decision::Settle(Settlement::Same { .. }) => "same",
            Decision::Settle(Settlement::AsRecorded) => "imported",
            Decision::Settle(Settlement::Untouched) => "untouched",
            Decision::Settle(Settlement::SkipCreate) => "skip",
            Decision::Settle(Settlement::Create { .. }) => "create",
            Decision::Settle(Settlement::Update { .. }) => "update",
            Decision::Settle(Settlement::Replace(replacement)) => match (replacement.order, replacement.complaint) {
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

macro_rules! table {
    ($($name:ident: $case:expr => $next:literal;)*) => {
        $(#[test] fn $name() { assert_eq!($case.next(), $next); })*
    };
}

table! {
    row_02_a_new_resource_is_checked_as_it_is: Case::new() => "Check°";
    row_02_then_created: Case::new().checked() => "create";
    row_03_a_recorded_one_is_checked_against_what_is_recorded: Case::recorded(&[("v", 1.0)]) => "Check";
    row_03_then_compared_even_when_nothing_changed: Case::recorded(&[("v", 1.0)]).checked() => "Diff";
    row_03_then_the_same: Case::recorded(&[("v", 1.0)]).checked().diff(NONE, &[]) => "same";
    row_04_a_change_updates: Case::recorded(&[("v", 2.0)]).checked().diff(SOME, &[]) => "update";
    row_05_a_replacing_change_is_checked_once_more: Case::recorded(&[]).checked_once().diff(SOME, &["v"]) => "Check°";
    row_05_then_replaced_new_one_first: Case::recorded(&[]).checked().diff(SOME, &["v"]) => "create, then delete";
    row_06_the_option_turns_the_order_round:
        Case::recorded(&[]).goal(|goal| goal.delete_before_replace = Some(true)).checked().diff(SOME, &["v"])
        => "delete, then create";
    row_07_what_went_down_with_another_is_made_again: Case::recorded(&[]).recreating() => "Check°";
    row_07_without_a_diff: Case::recorded(&[]).recreating().checked() => "create what went down";
    row_08_a_deletion_that_was_done_is_not_repeated:
        Case::recorded(&[("v", 1.0)]).old(|old| old.pending_replacement = true).checked().diff(NONE, &[])
        => "create what is gone";
    row_16_init_errors_update_what_did_not_change:
        Case::recorded(&[("v", 1.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "update";
    row_20_an_import_that_matches_is_done:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.imported = true).checked().diff(NONE, &[])
        => "imported";
    row_21_an_import_that_differs_is_updated:
        Case::recorded(&[]).given(|situation| situation.imported = true).checked().diff(SOME, &[]) => "update";
    row_21_an_import_is_never_replaced:
        Case::recorded(&[]).goal(|goal| goal.import_id = "x".into()).checked().diff(SOME, &["v"])
        => "refused: import";
    row_30_a_changed_provider_is_asked_first:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.provider = ProviderChange::Other).checked()
        => "DiffConfig";
    row_30_and_may_replace:
        Case::recorded(&[]).given(|situation| situation.provider = ProviderChange::Other).checked()
            .provider_diff(SOME, &["region"])
        => "create, then delete";
    row_32_or_not:
        Case::recorded(&[]).given(|situation| situation.provider = ProviderChange::Other).checked()
            .provider_diff(NONE, &[])
        => "Diff";
    row_36_protected_things_are_not_replaced:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true)).old(|old| old.protect = true).checked()
            .diff(SOME, &["v"])
        => "refused: protected";
    row_36_a_preview_complains_and_goes_on:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true)).old(|old| old.protect = true)
            .given(|situation| situation.preview = true).checked().diff(SOME, &["v"])
        => "replace, complaining";
    row_36_unprotect_and_replace_in_one_run:
        Case::recorded(&[]).old(|old| old.protect = true).checked().diff(SOME, &["v"]) => "create, then delete";
    row_39_out_of_scope_nothing_is_asked:
        Case::recorded(&[]).given(|situation| situation.in_scope = false) => "untouched";
    row_39_nor_made: Case::new().given(|situation| situation.in_scope = false) => "skip";
    row_43_what_was_only_read_is_made: Case::recorded(&[]).old(|old| old.external = true) => "Check°";
    row_43_and_not_compared: Case::recorded(&[]).old(|old| old.external = true).checked() => "create, then delete";
    row_53_a_tainted_one_is_checked_as_new: Case::recorded(&[]).old(|old| old.taint = true) => "Check°";
    row_53_and_replaced_without_a_diff:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.marked = true).checked() => "create, then delete";
    row_54_a_replaced_partner_replaces:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.replaced_partner = Some("replaceWith")).checked()
        => "create, then delete";
    row_54_a_changed_trigger_replaces:
        Case::recorded(&[("v", 1.0)])
            .goal(|goal| goal.replacement_trigger = "two".into()).old(|old| old.replacement_trigger = "one".into())
            .checked()
        => "create, then delete";
    row_54_a_trigger_that_comes_or_goes_does_not:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = "two".into()).checked() => "Diff";
    row_54_a_secret_trigger_counts_by_what_is_in_it:
        Case::recorded(&[("v", 1.0)])
            .goal(|goal| goal.replacement_trigger = PropertyValue::secret("one".into()))
            .old(|old| old.replacement_trigger = "one".into()).checked()
        => "Diff";
    row_54_an_unknown_trigger_is_refused_in_a_real_run:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = PropertyValue::UNKNOWN).checked()
        => "refused: trigger";
    replace_keys_without_a_change_have_no_effect:
        Case::recorded(&[("v", 1.0)]).checked().diff(NONE, &["v"]) => "same";
    a_silent_provider_is_taken_at_the_inputs_word: Case::recorded(&[("v", 2.0)]).checked().diff(UNKNOWN, &[]) => "update";
    a_silent_provider_and_equal_inputs_are_the_same:
        Case::recorded(&[("v", 1.0)]).checked().diff(UNKNOWN, &[]) => "same";
    a_silent_provider_may_still_ask_for_replacement:
        Case::recorded(&[("v", 2.0)]).checked().diff(UNKNOWN, &["v"]) => "create, then delete";
    a_path_of_replace_on_changes_replaces:
        Case::recorded(&[("v", 2.0)]).goal(|goal| goal.replace_on_changes = vec!["v".into()]).checked().diff(SOME, &[])
        => "create, then delete";
    a_nested_path_does_not_cover_a_bare_name:
        Case::recorded(&[("v", 2.0)]).goal(|goal| goal.replace_on_changes = vec!["v.x".into()]).checked()
            .diff(SOME, &[])
        => "update";
    a_star_covers_what_did_not_come_up:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replace_on_changes = vec!["*".into()])
            .old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "create, then delete";
    a_component_that_became_custom_is_replaced:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.provider = ProviderChange::Kind).checked()
        => "create, then delete";
    a_component_is_compared_by_its_inputs:
        Case::recorded(&[("v", 2.0)]).given(|situation| situation.kind = Kind::Component) => "update";
    an_equal_component_is_the_same:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.kind = Kind::Component) => "same";
    what_a_targeted_replacement_took_down_is_made_again_unchecked:
        Case::recorded(&[]).recreating().given(|situation| situation.in_scope = false) => "create what went down";
}

#[test]
fn row_34_ignored_changes_are_undone_before_the_check_and_not_before_the_second() {
    let case = Case::recorded(&[("v", 7.0)]).goal(|goal| goal.ignore_changes = vec!["v".into()]);
    let Decision::Ask(Question::CheckCarried { news }) = case.decision() else { panic!("{:?}", case.decision()) };
    assert_eq!(*news, props(&[("v", 7.0)]));
}

#[test]
fn a_detailed_diff_replaces_by_its_kinds() {
    let mut case = Case::recorded(&[]).checked().diff(SOME, &[]);
    let detailed = [("v".to_owned(), PropertyDiff { kind: DiffKind::UpdateReplace, input_diff: true })];
    case.answers.diff.as_mut().expect("answered").detailed_diff = Some(detailed.into());
    assert_eq!(case.next(), "create, then delete");
}

#[test]
fn a_difference_is_told_by_its_path() {
    let nested =
        |value: f64| PropertyMap::from([("a b".to_owned(), PropertyValue::List(vec![props(&[("x", value)]).into()]))]);
    let (names, detailed) = change::compare(&nested(1.0), &nested(2.0));
    assert_eq!(names, ["a b"]);
    assert_eq!(detailed.keys().collect::<Vec<_>>(), [r#"["a b"][0].x"#]);
}
