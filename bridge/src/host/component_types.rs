//! Which types of a package are components: what its schema (GetSchema) marks with `isComponent`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The part of a package schema that says so. What is not named here is skipped unread.
#[derive(Deserialize)]
struct Package<'a> {
    #[serde(borrow, default)]
    resources: BTreeMap<Cow<'a, str>, Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(default)]
    is_component: bool,
}

/// The component types in the text of a schema. Of a text that is no schema there are none: a plugin need not have one.
pub(super) fn read(schema: &str) -> BTreeSet<String> {
    let package: Package<'_> = serde_json::from_str(schema).unwrap_or(Package { resources: BTreeMap::new() });
    let components = package.resources.into_iter().filter(|(_, resource)| resource.is_component);
    components.map(|(token, _)| token.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn components_are_what_the_schema_calls_so() {
        let schema = r#"{"name": "p", "resources": {
            "p:index:A": {"isComponent": true, "inputProperties": {"x": {"type": "string"}}},
            "p:index:B": {"isComponent": false}, "p:index:C": {}}}"#;
        assert_eq!(super::read(schema).into_iter().collect::<Vec<_>>(), ["p:index:A"]);
        for other in ["", "{}", "[]", r#"{"resources": null}"#] {
            assert!(super::read(other).is_empty(), "{other}");
        }
    }
}
