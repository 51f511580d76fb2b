//! Diff of all types: finds changed properties, and changes that need a replacement.

use std::collections::BTreeMap;

use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::rpc::DiffResponse;
use pulumi_proto::rpc::PropertyDiff;
use pulumi_proto::rpc::diff_response::DiffChanges;
use pulumi_proto::rpc::property_diff::Kind;
use tonic::Status;

use crate::property::Property;
use crate::value::get;

/// Compares old and new inputs, property by property. An unknown value counts as a change.
pub(crate) fn diff<'a>(
    properties: impl IntoIterator<Item = &'a Property>,
    olds: &PropertyMap,
    news: &PropertyMap,
) -> DiffResponse {
    let mut response = DiffResponse { has_detailed_diff: true, ..DiffResponse::default() };
    response.set_changes(DiffChanges::DiffNone);
    let mut detailed = BTreeMap::new();
    for property in properties {
        let name = property.name.to_owned();
        let Some(kind) = change(property, olds, news) else {
            if property.replaces {
                response.stables.push(name);
            }
            continue;
        };
        if matches!(kind, Kind::AddReplace | Kind::DeleteReplace | Kind::UpdateReplace) {
            response.replaces.push(name.clone());
        }
        response.set_changes(DiffChanges::DiffSome);
        response.diffs.push(name.clone());
        // The paths refer to the old inputs, not to the outputs.
        detailed.insert(name, PropertyDiff { kind: kind.into(), input_diff: true });
    }
    response.detailed_diff = detailed;
    response
}

fn change(property: &Property, olds: &PropertyMap, news: &PropertyMap) -> Option<Kind> {
    let (old, new) = (get(olds, property.name), get(news, property.name));
    let kind = match (old, new) {
        (None, None) => return None,
        (None, Some(_)) => Kind::Add,
        (Some(_), None) => Kind::Delete,
        // A change of secretness alone is an update, never a replacement.
        (Some(old), Some(new)) if old == new && !matches!(new, PropertyValue::Unknown(_)) => {
            let secret = |bag: &PropertyMap| bag.get(property.name).is_some_and(PropertyValue::is_secret);
            return (secret(olds) != secret(news)).then_some(Kind::Update);
        }
        (Some(_), Some(_)) => Kind::Update,
    };
    Some(match (kind, property.replaces) {
        (Kind::Add, true) => Kind::AddReplace,
        (Kind::Delete, true) => Kind::DeleteReplace,
        (Kind::Update, true) => Kind::UpdateReplace,
        (kind, _) => kind,
    })
}

/// Resets ignored properties of `news` to their old values. Engines do this before Check too; repeating it is harmless.
///
/// # Errors
/// INVALID_ARGUMENT for an invalid property path.
pub(crate) fn ignore(paths: &[String], olds: &PropertyMap, news: &mut PropertyMap) -> Result<(), Status> {
    for text in paths {
        let path: PropertyPath =
            text.parse().map_err(|error| Status::invalid_argument(format!("ignoreChanges: {text:?}: {error}")))?;
        path.reset(olds, news);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property;

    const PROPERTIES: [Property; 2] = [
        Property::required("path", property::Kind::String, "").replaces(),
        Property::optional("content", property::Kind::String, ""),
    ];

    fn bag(path: &str, content: Option<PropertyValue>) -> PropertyMap {
        let content = content.map(|content| ("content".to_owned(), content));
        content.into_iter().chain([("path".to_owned(), path.into())]).collect()
    }

    /// Returns `name:kind` of each change, and the properties that need a replacement.
    fn describe(olds: &PropertyMap, news: &PropertyMap) -> String {
        let response = diff(&PROPERTIES, olds, news);
        assert_eq!(response.changes() == DiffChanges::DiffSome, !response.detailed_diff.is_empty());
        assert_eq!(response.diffs.len(), response.detailed_diff.len());
        let changes = response.detailed_diff.iter().map(|(name, change)| format!("{name}:{:?} ", change.kind()));
        format!("{}[{}]", changes.collect::<String>(), response.replaces.join(","))
    }

    #[test]
    fn diff_reports_kind_of_each_change_and_replacements() {
        let old = bag("a", Some("x".into()));
        assert_eq!(describe(&old, &old), "[]");
        assert_eq!(describe(&old, &bag("b", Some("x".into()))), "path:UpdateReplace [path]");
        assert_eq!(describe(&old, &bag("a", Some("y".into()))), "content:Update []");
        assert_eq!(describe(&old, &bag("a", None)), "content:Delete []");
        assert_eq!(describe(&old, &bag("a", Some(PropertyValue::Null))), "content:Delete []");
        assert_eq!(describe(&bag("a", None), &old), "content:Add []");
    }

    #[test]
    fn unknown_value_counts_as_a_change() {
        let old = bag("a", Some("x".into()));
        assert_eq!(describe(&old, &bag("a", Some(PropertyValue::UNKNOWN))), "content:Update []");
        let mut unknown_path = old.clone();
        unknown_path.insert("path".into(), PropertyValue::UNKNOWN);
        assert_eq!(describe(&old, &unknown_path), "path:UpdateReplace [path]");
    }

    #[test]
    fn change_of_secretness_is_an_update_without_replacement() {
        let (old, mut new) = (bag("a", Some("x".into())), bag("a", Some(PropertyValue::secret("x".into()))));
        new.insert("path".into(), PropertyValue::secret("a".into()));
        assert_eq!(describe(&old, &new), "content:Update path:Update []");
        assert_eq!(describe(&new, &new), "[]");
    }

    #[test]
    fn ignored_property_keeps_its_old_value() {
        let old = bag("a", Some("x".into()));
        let mut new = bag("b", Some("y".into()));
        ignore(&["content".into()], &old, &mut new).unwrap();
        assert_eq!(describe(&old, &new), "path:UpdateReplace [path]");
        ignore(&["*".into()], &old, &mut new).unwrap();
        assert_eq!(describe(&old, &new), "[]");
        assert!(ignore(&[".".into()], &old, &mut new).is_err());
    }
}
