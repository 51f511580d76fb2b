//! Decisions about registrations: situation and replies on the left, next action on the right.

use bridge::provider::{DiffKind, PropertyDiff};
use pulumi_proto::resource_id::ResourceId;

use super::*;

/// Makes the resource a provider resource.
fn provider(situation: &mut Situation<'_>) {
    situation.kind = ResourceKind::Provider;
}

/// Sets the input `v`.
fn set(goal: &mut Goal, value: PropertyValue) {
    goal.inputs = Arc::new(PropertyMap::from([("v".to_owned(), value)]));
}

macro_rules! table {
    ($($name:ident: $case:expr => $next:literal;)*) => {
        $(#[test] fn $name() { assert_eq!($case.next(), $next); })*
    };
}

table! {
    row_01_preview_checks_new_resource_without_olds:
        Case::new().given(|situation| situation.preview = true) => "Check°";
    row_01_checked_resource_is_created_in_preview:
        Case::new().given(|situation| situation.preview = true).checked() => "create";
    row_02_new_resource_is_checked_without_olds: Case::new() => "Check°";
    row_02_checked_resource_is_created: Case::new().checked() => "create";
    row_03_recorded_resource_is_checked_against_olds: Case::recorded(&[("v", 1.0)]) => "Check";
    row_03_diff_is_called_for_equal_inputs: Case::recorded(&[("v", 1.0)]).checked() => "Diff";
    row_03_unchanged_resource_is_same: Case::recorded(&[("v", 1.0)]).checked().diff(NONE, &[]) => "same";
    row_04_changed_resource_is_updated: Case::recorded(&[("v", 2.0)]).checked().diff(SOME, &[]) => "update";
    row_05_replacing_change_is_checked_again_without_olds:
        Case::recorded(&[]).checked_against_olds().diff(SOME, &["v"]) => "Check°";
    row_05_replacement_creates_first: Case::recorded(&[]).checked().diff(SOME, &["v"]) => "create, then delete";
    row_06_delete_before_replace_deletes_first:
        Case::recorded(&[]).goal(|goal| goal.delete_before_replace = Some(true)).checked().diff(SOME, &["v"])
        => "delete, then create";
    row_07_dependent_replacement_is_checked_without_olds: Case::recorded(&[]).dependent_replacement() => "Check°";
    row_07_dependent_replacement_is_created_without_diff:
        Case::recorded(&[]).dependent_replacement().checked() => "recreate";
    row_08_pending_replacement_is_resumed:
        Case::recorded(&[("v", 1.0)]).old(|old| old.pending_replacement = true).checked().diff(NONE, &[])
        => "resume replacement";
    row_08_pending_replacement_with_delete_before_replace_deletes_dependents_first:
        Case::recorded(&[]).old(|old| old.pending_replacement = true)
            .goal(|goal| goal.delete_before_replace = Some(true))
            .checked().diff(SOME, &["v"])
        => "delete, then create";
    row_16_unchanged_resource_with_init_errors_is_updated:
        Case::recorded(&[("v", 1.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "update";
    row_19_refresh_keeps_the_read_state:
        Case::recorded(&[]).given(|situation| situation.operation = Operation::Refresh) => "keep recorded";
    row_19_refresh_creates_nothing:
        Case::new().given(|situation| situation.operation = Operation::Refresh) => "skip";
    row_19_refresh_updates_providers:
        Case::recorded(&[])
            .given(|situation| (situation.operation, situation.kind) = (Operation::Refresh, ResourceKind::Provider))
        => "Check";
    row_19_update_checks_against_the_read_state: Case::recorded(&[("v", 2.0)]) => "Check";
    row_20_matching_import_keeps_the_read_state:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.imported = true).checked().diff(NONE, &[])
        => "keep recorded";
    row_21_differing_import_is_updated:
        Case::recorded(&[]).given(|situation| situation.imported = true).checked().diff(SOME, &[]) => "update";
    row_21_import_that_needs_replacement_is_refused:
        Case::recorded(&[]).goal(|goal| goal.import_id = ResourceId::new("x")).checked().diff(SOME, &["v"])
        => "refused: import";
    row_21_preview_shows_refused_import:
        Case::recorded(&[]).goal(|goal| goal.import_id = ResourceId::new("x"))
            .given(|situation| situation.preview = true).checked()
            .diff(SOME, &["v"])
        => "replace, with error";
    row_25_unrecorded_resource_is_created: Case::new().checked() => "create";
    row_26_unchanged_resource_with_init_errors_is_updated:
        Case::recorded(&[("v", 1.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "update";
    row_27_changed_resource_with_init_errors_is_updated:
        Case::recorded(&[("v", 2.0)]).old(|old| old.init_errors = vec!["cold".into()]).checked().diff(SOME, &[])
        => "update";
    row_28_rejected_inputs_end_the_run: Case::new().rejected() => "rejected inputs";
    row_28_rejected_inputs_end_a_preview:
        Case::new().given(|situation| situation.preview = true).rejected() => "rejected inputs";
    row_28_rejected_inputs_of_recorded_resource_end_the_run: Case::recorded(&[]).rejected() => "rejected inputs";
    row_28_rejected_inputs_of_replacement_end_the_run:
        Case::recorded(&[]).rejected().goal(|goal| goal.replacement_trigger = Some(1.0.into()))
            .old(|old| old.replacement_trigger = 2.0.into())
        => "rejected inputs";
    row_29_provider_resource_is_checked: Case::recorded(&[("v", 2.0)]).given(provider) => "Check";
    row_29_diff_is_called_for_provider_resource: Case::recorded(&[("v", 2.0)]).given(provider).checked() => "Diff";
    row_29_changed_provider_resource_is_updated:
        Case::recorded(&[("v", 2.0)]).given(provider).checked().diff(SOME, &[]) => "update";
    row_29_unknown_diff_of_equal_configuration_is_same:
        Case::recorded(&[("v", 1.0)]).given(provider).checked().diff(UNKNOWN, &[]) => "same";
    row_30_provider_resource_is_replaced_by_its_diff:
        Case::recorded(&[]).given(provider).checked().diff(SOME, &["v"]) => "create, then delete";
    row_30_changed_provider_needs_diff_config:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.provider = ProviderChange::Other).checked()
        => "DiffConfig";
    row_30_diff_config_replaces_resource:
        Case::recorded(&[]).given(|situation| situation.provider = ProviderChange::Other).checked()
            .provider_diff(SOME, &["region"])
        => "create, then delete";
    row_32_diff_config_without_replacement_leads_to_diff:
        Case::recorded(&[]).given(|situation| situation.provider = ProviderChange::Other).checked()
            .provider_diff(NONE, &[])
        => "Diff";
    row_33_unknown_diff_of_changed_provider_inputs_updates:
        Case::recorded(&[]).given(provider).checked().diff(UNKNOWN, &[]) => "update";
    row_36_replacement_of_protected_resource_is_refused:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true)).old(|old| old.protect = true).checked()
            .diff(SOME, &["v"])
        => "refused: protected";
    row_36_protection_that_comes_with_the_replacement_refuses_it:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true)).checked().diff(SOME, &["v"]) => "refused: protected";
    row_36_pending_replacement_of_protected_resource_is_completed:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true))
            .old(|old| (old.protect, old.pending_replacement) = (true, true)).checked().diff(SOME, &["v"])
        => "resume replacement";
    row_36_preview_reports_protected_replacement_and_continues:
        Case::recorded(&[]).goal(|goal| goal.protect = Some(true)).old(|old| old.protect = true)
            .given(|situation| situation.preview = true).checked().diff(SOME, &["v"])
        => "replace, with error";
    row_36_unprotected_resource_is_replaced_in_same_run:
        Case::recorded(&[]).old(|old| old.protect = true).checked().diff(SOME, &["v"]) => "create, then delete";
    row_37_diff_is_called_for_unknown_inputs:
        Case::recorded(&[("v", 1.0)]).goal(|goal| set(goal, PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked()
        => "Diff";
    row_37_unknown_inputs_are_updated_by_diff:
        Case::recorded(&[("v", 1.0)]).goal(|goal| set(goal, PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked().diff(SOME, &[])
        => "update";
    row_39_entry_out_of_scope_is_carried_over:
        Case::recorded(&[]).given(|situation| situation.in_scope = false) => "carry over";
    row_39_resource_out_of_scope_is_not_created:
        Case::new().given(|situation| situation.in_scope = false) => "skip";
    row_43_external_resource_is_checked_without_olds: Case::recorded(&[]).old(|old| old.external = true) => "Check°";
    row_43_external_resource_is_replaced_without_diff:
        Case::recorded(&[]).old(|old| old.external = true).checked() => "create, then delete";
    row_53_tainted_resource_is_checked_without_olds: Case::recorded(&[]).old(|old| old.taint = true) => "Check°";
    row_53_requested_replacement_needs_no_diff:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.replace_requested = true).checked()
        => "create, then delete";
    row_54_replaced_replace_with_resource_replaces:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.replace_with_key = Some("replaceWith")).checked()
        => "create, then delete";
    row_54_changed_trigger_replaces:
        Case::recorded(&[("v", 1.0)])
            .goal(|goal| goal.replacement_trigger = Some("two".into()))
            .old(|old| old.replacement_trigger = "one".into())
            .checked()
        => "create, then delete";
    row_54_added_trigger_does_not_replace:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some("two".into())).checked() => "Diff";
    row_54_secret_trigger_is_compared_by_value:
        Case::recorded(&[("v", 1.0)])
            .goal(|goal| goal.replacement_trigger = Some(PropertyValue::secret("one".into())))
            .old(|old| old.replacement_trigger = "one".into()).checked()
        => "Diff";
    row_54_unknown_trigger_is_refused:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some(PropertyValue::UNKNOWN)).checked()
        => "refused: trigger";
    row_54_unknown_trigger_replaces_in_preview:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replacement_trigger = Some(PropertyValue::UNKNOWN))
            .given(|situation| situation.preview = true).checked()
        => "create, then delete";
    row_55_changed_diff_in_preview_updates:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.preview = true).checked().diff(SOME, &[]) => "update";
    row_56_destroy_keeps_entry_until_deleted:
        Case::recorded(&[]).given(|situation| situation.operation = Operation::Destroy) => "keep until deleted";
    row_56_destroy_creates_nothing:
        Case::new().given(|situation| situation.operation = Operation::Destroy) => "skip";
    row_56_destroy_skips_resource_that_depends_on_skipped_one:
        Case::recorded(&[])
            .given(|situation| (situation.operation, situation.depends_on_skipped) = (Operation::Destroy, true))
        => "skip";
    row_56_destroy_updates_providers:
        Case::recorded(&[])
            .given(|situation| (situation.operation, situation.kind) = (Operation::Destroy, ResourceKind::Provider))
        => "Check";
    row_56_destroy_ignores_delete_before_replace:
        Case::recorded(&[]).goal(|goal| goal.delete_before_replace = Some(true))
            .given(|situation| (situation.operation, situation.kind) = (Operation::Destroy, ResourceKind::Provider))
            .checked().diff(SOME, &["v"])
        => "create, then delete";
    replace_keys_without_a_change_have_no_effect:
        Case::recorded(&[("v", 1.0)]).checked().diff(NONE, &["v"]) => "same";
    unknown_diff_of_changed_inputs_updates: Case::recorded(&[("v", 2.0)]).checked().diff(UNKNOWN, &[]) => "update";
    unknown_diff_of_equal_inputs_is_same:
        Case::recorded(&[("v", 1.0)]).checked().diff(UNKNOWN, &[]) => "same";
    unknown_diff_with_replace_keys_replaces:
        Case::recorded(&[("v", 2.0)]).checked().diff(UNKNOWN, &["v"]) => "create, then delete";
    changed_path_of_replace_on_changes_replaces:
        Case::recorded(&[("v", 2.0)]).goal(|goal| goal.replace_on_changes = vec!["v".into()]).checked().diff(SOME, &[])
        => "create, then delete";
    nested_path_of_replace_on_changes_does_not_match_top_level_name:
        Case::recorded(&[("v", 2.0)]).goal(|goal| goal.replace_on_changes = vec!["v.x".into()]).checked()
            .diff(SOME, &[])
        => "update";
    star_in_replace_on_changes_matches_init_errors:
        Case::recorded(&[("v", 1.0)]).goal(|goal| goal.replace_on_changes = vec!["*".into()])
            .old(|old| old.init_errors = vec!["cold".into()]).checked().diff(NONE, &[])
        => "create, then delete";
    component_that_became_custom_is_replaced:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.provider = ProviderChange::Kind).checked()
        => "create, then delete";
    row_50_component_with_changed_inputs_is_updated:
        Case::recorded(&[("v", 2.0)]).given(|situation| situation.kind = ResourceKind::Component) => "update";
    row_50_component_with_equal_inputs_is_same:
        Case::recorded(&[("v", 1.0)]).given(|situation| situation.kind = ResourceKind::Component) => "same";
    row_50_new_component_is_created_without_check:
        Case::new().given(|situation| situation.kind = ResourceKind::Component) => "create";
    row_39_dependent_replacement_out_of_scope_is_created_without_check:
        Case::recorded(&[]).dependent_replacement().given(|situation| situation.in_scope = false) => "recreate";
}

#[test]
fn row_34_ignored_changes_are_reset_before_check_against_olds() {
    let case = Case::recorded(&[("v", 7.0)]).goal(|goal| goal.ignore_changes = vec!["v".into()]);
    let Decision::Query(ProviderQuery::CheckAgainstOlds { news }) = case.decision() else {
        panic!("{:?}", case.decision())
    };
    assert_eq!(*news, props(&[("v", 7.0)]));
}

#[test]
fn detailed_diff_with_replace_kind_replaces() {
    let mut case = Case::recorded(&[]).checked().diff(SOME, &[]);
    let detailed = [("v".to_owned(), PropertyDiff { kind: DiffKind::UpdateReplace, input_diff: true })];
    case.replies.diff.as_mut().expect("the case has a reply to Diff").detailed_diff = Some(detailed.into());
    assert_eq!(case.next(), "create, then delete");
}

#[test]
fn detailed_diff_keys_are_property_paths() {
    let nested =
        |value: f64| PropertyMap::from([("a b".to_owned(), PropertyValue::List(vec![props(&[("x", value)]).into()]))]);
    let (names, detailed) = crate::decisions::change::compare(&nested(1.0), &nested(2.0));
    assert_eq!(names, ["a b"]);
    assert_eq!(detailed.keys().collect::<Vec<_>>(), [r#"["a b"][0].x"#]);
}
