//! Diff, for every type: what changed, and does the change need another resource?

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

/// Compares two bags of inputs, property by property. An unknown value counts as a change.
pub(crate) fn diff<'a>(
    properties: impl IntoIterator<Item = &'a Property>,
    olds: &PropertyMap,
    news: &PropertyMap,
) -> DiffResponse {
    let mut answer = DiffResponse { has_detailed_diff: true, ..DiffResponse::default() };
    answer.set_changes(DiffChanges::DiffNone);
    let mut detailed = BTreeMap::new();
    for property in properties {
        let name = property.name.to_owned();
        let Some(kind) = change(property, olds, news) else {
            if property.replaces {
                answer.stables.push(name);
            }
            continue;
        };
        if matches!(kind, Kind::AddReplace | Kind::DeleteReplace | Kind::UpdateReplace) {
            answer.replaces.push(name.clone());
        }
        answer.set_changes(DiffChanges::DiffSome);
        answer.diffs.push(name.clone());
        // The old values are to be found in the old inputs, not in the outputs.
        detailed.insert(name, PropertyDiff { kind: kind.into(), input_diff: true });
    }
    answer.detailed_diff = detailed;
    answer
}

fn change(property: &Property, olds: &PropertyMap, news: &PropertyMap) -> Option<Kind> {
    let (old, new) = (get(olds, property.name), get(news, property.name));
    let kind = match (old, new) {
        (None, None) => return None,
        (None, Some(_)) => Kind::Add,
        (Some(_), None) => Kind::Delete,
        // The same value, but secret from now on (or no more): recorded anew, and never a reason to replace.
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

/// Takes back in `news` what is to be ignored. Engines have done so before Check; doing it again changes nothing.
///
/// # Errors
/// INVALID_ARGUMENT for what is no property path.
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

    const TABLE: [Property; 2] = [
        Property::required("path", property::Kind::String, "").replaces(),
        Property::optional("content", property::Kind::String, ""),
    ];

    fn bag(path: &str, content: Option<PropertyValue>) -> PropertyMap {
        let content = content.map(|content| ("content".to_owned(), content));
        content.into_iter().chain([("path".to_owned(), path.into())]).collect()
    }

    /// `name:kind` of each change, then what replaces.
    fn shown(olds: &PropertyMap, news: &PropertyMap) -> String {
        let answer = diff(&TABLE, olds, news);
        assert_eq!(answer.changes() == DiffChanges::DiffSome, !answer.detailed_diff.is_empty());
        assert_eq!(answer.diffs.len(), answer.detailed_diff.len());
        let changes = answer.detailed_diff.iter().map(|(name, change)| format!("{name}:{:?} ", change.kind()));
        format!("{}[{}]", changes.collect::<String>(), answer.replaces.join(","))
    }

    #[test]
    fn changes_are_told_apart_by_kind_and_by_what_they_need() {
        let old = bag("a", Some("x".into()));
        assert_eq!(shown(&old, &old), "[]");
        assert_eq!(shown(&old, &bag("b", Some("x".into()))), "path:UpdateReplace [path]");
        assert_eq!(shown(&old, &bag("a", Some("y".into()))), "content:Update []");
        assert_eq!(shown(&old, &bag("a", None)), "content:Delete []");
        assert_eq!(shown(&old, &bag("a", Some(PropertyValue::Null))), "content:Delete []");
        assert_eq!(shown(&bag("a", None), &old), "content:Add []");
    }

    #[test]
    fn an_unknown_value_counts_as_a_change() {
        let old = bag("a", Some("x".into()));
        assert_eq!(shown(&old, &bag("a", Some(PropertyValue::UNKNOWN))), "content:Update []");
        let mut unknown_path = old.clone();
        unknown_path.insert("path".into(), PropertyValue::UNKNOWN);
        assert_eq!(shown(&old, &unknown_path), "path:UpdateReplace [path]");
    }

    #[test]
    fn becoming_secret_is_an_update_and_never_replaces() {
        let (old, mut new) = (bag("a", Some("x".into())), bag("a", Some(PropertyValue::secret("x".into()))));
        new.insert("path".into(), PropertyValue::secret("a".into()));
        assert_eq!(shown(&old, &new), "content:Update path:Update []");
        assert_eq!(shown(&new, &new), "[]");
    }

    #[test]
    fn what_is_ignored_keeps_its_old_value() {
        let old = bag("a", Some("x".into()));
        let mut new = bag("b", Some("y".into()));
        ignore(&["content".into()], &old, &mut new).unwrap();
        assert_eq!(shown(&old, &new), "path:UpdateReplace [path]");
        ignore(&["*".into()], &old, &mut new).unwrap();
        assert_eq!(shown(&old, &new), "[]");
        assert!(ignore(&[".".into()], &old, &mut new).is_err());
    }
}
