//! What registrations come to: situation and replies on the left, what comes next on the right.

use bridge::provider::{DiffKind, PropertyDiff};
use pulumi_proto::resource_id::ResourceId;

use super::*;

/// The resource is itself a provider.
fn provider(situation: &mut Situation<'_>) {
    situation.kind = ResourceKind::Provider;
}

/// Gives `v` another value.
fn set(goal: &mut Goal, value: PropertyValue) {
    goal.inputs = Arc::new(PropertyMap::from([("v".to_owned(), value)]));
}

macro_rules! table {
    ($($name:ident: $case:expr => $next:literal;)*) => {
        $(#[test] fn $name() { assert_eq!($case.next(), $next); })*
    };
}

table! {
    row_01_a_preview_decides_as_a_run_does: Case::new().given(|situation| situation.preview = true) => "Check°";
    row_01_then_created: Case::new().given(|situation| situation.preview = true).checked() => "create";
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
    row_08_what_is_gone_is_made_with_its_dependents_gone_where_the_old_one_goes_first:
        Case::recorded(&[]).old(|old| old.pending_replacement = true).goal(|goal| goal.delete_before_replace = Some(true))
            .checked().diff(SOME, &["v"])
        => "delete, then create";
    row_16_init_errors_update_what_did_not_change:
        Case::recorded(&[("v", 1.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "update";
    row_19_a_refresh_leaves_it_at_what_was_read:
        Case::recorded(&[]).given(|situation| situation.operation = Operation::Refresh) => "as recorded";
    row_19_and_makes_nothing: Case::new().given(|situation| situation.operation = Operation::Refresh) => "skip";
    row_19_but_brings_providers_up_to_date:
        Case::recorded(&[]).given(|situation| (situation.operation, situation.kind) = (Operation::Refresh, ResourceKind::Provider))
        => "Check";
    row_19_an_update_goes_on_with_what_was_read: Case::recorded(&[("v", 2.0)]) => "Check";
    row_20_an_import_that_matches_is_done:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.imported = true).checked().diff(NONE, &[])
        => "as recorded";
    row_21_an_import_that_differs_is_updated:
        Case::recorded(&[]).given(|situation| situation.imported = true).checked().diff(SOME, &[]) => "update";
    row_21_an_import_is_never_replaced:
        Case::recorded(&[]).goal(|goal| goal.import_id = ResourceId::new("x")).checked().diff(SOME, &["v"])
        => "refused: import";
    row_21_but_a_preview_shows_what_would_be:
        Case::recorded(&[]).goal(|goal| goal.import_id = ResourceId::new("x")).given(|situation| situation.preview = true).checked()
            .diff(SOME, &["v"])
        => "replace, complaining";
    row_25_what_was_not_made_is_made_as_new: Case::new().checked() => "create";
    row_26_what_did_not_come_up_is_updated_though_nothing_changed:
        Case::recorded(&[("v", 1.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "update";
    row_27_and_so_it_is_where_something_did:
        Case::recorded(&[("v", 2.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(SOME, &[])
        => "update";
    row_28_inputs_that_are_refused_end_it: Case::new().refused() => "refused: inputs";
    row_28_in_a_preview_too: Case::new().given(|situation| situation.preview = true).refused() => "refused: inputs";
    row_28_whatever_is_recorded: Case::recorded(&[]).refused() => "refused: inputs";
    row_28_also_of_what_is_to_come_in_its_place:
        Case::recorded(&[]).refused().goal(|goal| goal.replacement_trigger = Some(1.0.into()))
            .old(|old| old.replacement_trigger = 2.0.into())
        => "refused: inputs";
    row_29_a_provider_resource_is_checked: Case::recorded(&[("v", 2.0)]).given(provider) => "Check";
    row_29_compared: Case::recorded(&[("v", 2.0)]).given(provider).checked() => "Diff";
    row_29_and_updated: Case::recorded(&[("v", 2.0)]).given(provider).checked().diff(SOME, &[]) => "update";
    row_29_or_left_as_it_is_where_it_has_no_word_of_its_own_and_the_configuration_is_equal:
        Case::recorded(&[("v", 1.0)]).given(provider).checked().diff(UNKNOWN, &[]) => "same";
    row_30_a_provider_is_replaced_where_it_asks_for_it:
        Case::recorded(&[]).given(provider).checked().diff(SOME, &["v"]) => "create, then delete";
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
    row_33_a_version_is_a_change_like_any_other:
        Case::recorded(&[]).given(provider).checked().diff(UNKNOWN, &[]) => "update";
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
    row_37_what_is_not_known_is_compared_like_anything:
        Case::recorded(&[("v", 1.0)]).goal(|goal| set(goal, PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked()
        => "Diff";
    row_37_and_updated_where_the_provider_says_so:
        Case::recorded(&[("v", 1.0)]).goal(|goal| set(goal, PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked().diff(SOME, &[])
        => "update";
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
            .goal(|goal| goal.replacement_trigger = Some("two".into())).old(|old| old.replacement_trigger = "one".into())
            .checked()
        => "create, then delete";
    row_54_a_trigger_that_comes_or_goes_does_not:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some("two".into())).checked() => "Diff";
    row_54_a_secret_trigger_counts_by_what_is_in_it:
        Case::recorded(&[("v", 1.0)])
            .goal(|goal| goal.replacement_trigger = Some(PropertyValue::secret("one".into())))
            .old(|old| old.replacement_trigger = "one".into()).checked()
        => "Diff";
    row_54_an_unknown_trigger_is_refused_in_a_real_run:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some(PropertyValue::UNKNOWN)).checked()
        => "refused: trigger";
    row_54_and_replaces_in_a_preview:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some(PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked()
        => "create, then delete";
    row_55_with_a_configuration_that_is_not_known_a_change_is_taken_for_an_update:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.preview = true).checked().diff(SOME, &[]) => "update";
    row_56_a_destroy_answers_with_what_is_recorded:
        Case::recorded(&[]).given(|situation| situation.operation = Operation::Destroy) => "doomed";
    row_56_and_makes_nothing: Case::new().given(|situation| situation.operation = Operation::Destroy) => "skip";
    row_56_nor_answers_for_what_needs_something_that_is_not_there:
        Case::recorded(&[]).given(|situation| (situation.operation, situation.needs_missing) = (Operation::Destroy, true))
        => "skip";
    row_56_but_brings_providers_up_to_date:
        Case::recorded(&[]).given(|situation| (situation.operation, situation.kind) = (Operation::Destroy, ResourceKind::Provider))
        => "Check";
    row_56_and_deletes_nothing_first_for_nothing_would_make_it_anew:
        Case::recorded(&[]).goal(|goal| goal.delete_before_replace = Some(true))
            .given(|situation| (situation.operation, situation.kind) = (Operation::Destroy, ResourceKind::Provider))
            .checked().diff(SOME, &["v"])
        => "create, then delete";
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
    row_50_a_component_is_compared_by_its_inputs:
        Case::recorded(&[("v", 2.0)]).given(|situation| situation.kind = ResourceKind::Component) => "update";
    row_50_an_equal_component_is_the_same:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.kind = ResourceKind::Component) => "same";
    row_50_a_new_component_is_made_unchecked: Case::new().given(|situation| situation.kind = ResourceKind::Component) => "create";
    row_39_what_a_targeted_replacement_took_down_is_made_again_unchecked:
        Case::recorded(&[]).recreating().given(|situation| situation.in_scope = false) => "create what went down";
}

#[test]
fn row_34_ignored_changes_are_undone_before_the_check_and_not_before_the_second() {
    let case = Case::recorded(&[("v", 7.0)]).goal(|goal| goal.ignore_changes = vec!["v".into()]);
    let Decision::Query(ProviderQuery::CheckCarried { news }) = case.decision() else {
        panic!("{:?}", case.decision())
    };
    assert_eq!(*news, props(&[("v", 7.0)]));
}

#[test]
fn a_detailed_diff_replaces_by_its_kinds() {
    let mut case = Case::recorded(&[]).checked().diff(SOME, &[]);
    let detailed = [("v".to_owned(), PropertyDiff { kind: DiffKind::UpdateReplace, input_diff: true })];
    case.replies.diff.as_mut().expect("answered").detailed_diff = Some(detailed.into());
    assert_eq!(case.next(), "create, then delete");
}

#[test]
fn a_difference_is_told_by_its_path() {
    let nested =
        |value: f64| PropertyMap::from([("a b".to_owned(), PropertyValue::List(vec![props(&[("x", value)]).into()]))]);
    let (names, detailed) = crate::decisions::change::compare(&nested(1.0), &nested(2.0));
    assert_eq!(names, ["a b"]);
    assert_eq!(detailed.keys().collect::<Vec<_>>(), [r#"["a b"][0].x"#]);
}
