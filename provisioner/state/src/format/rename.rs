//! Renames the stack in a checkpoint (docs/spec/state-and-secrets.md#8).
//!
//! Works on the JSON, where secrets stay encrypted: no key is needed, and URNs within encrypted values keep the old
//! name.

use bridge::json::nesting;
use pulumi_proto::property::{RESOURCE_SIGNATURE, SIGNATURE_KEY};
use serde::Deserialize as _;
use serde_json::Value;

use super::error::FormatError;
use super::go_json::{self, Escaping};
use super::read::StoredText;
use super::read_value::MAX_TEXT_NESTING;
use crate::store::StackReference;

/// Rewrites the URNs of a checkpoint from one stack to another. The member `stack` is left unchanged, as by Pulumi: it
/// is informational.
///
/// # Errors
/// [`FormatError`] if the text is not a checkpoint, or has an unsupported version or feature.
pub(crate) fn rename_stack(text: &str, from: &StackReference, to: &StackReference) -> Result<String, FormatError> {
    StoredText::parse(text)?;
    let mut file = parse(text).map_err(FormatError::Malformed)?;
    if file["version"] == 0 {
        // Version 0 is read, but never written.
        file["version"] = 3.into();
    }
    let renaming = Renaming { from: StackNames::new(from), to: StackNames::new(to) };
    let checkpoint = file.get_mut("checkpoint");
    let latest = checkpoint.and_then(|checkpoint| match checkpoint.get("latest") {
        Some(_) => checkpoint.get_mut("latest"),
        None => checkpoint.get_mut("Latest"),
    });
    if let Some(latest) = latest {
        for_each_item(latest.get_mut("resources"), |resource| renaming.rename_resource(resource));
        for_each_item(latest.get_mut("pending_operations"), |operation| {
            operation.get_mut("resource").into_iter().for_each(|resource| renaming.rename_resource(resource));
        });
    }
    go_json::to_string(&file, Escaping::Plain).map_err(FormatError::Malformed)
}

/// Parses JSON that contains values of the maximum nesting, which is deeper than the limit of the parser.
fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    if nesting(text.as_bytes()) <= MAX_TEXT_NESTING {
        deserializer.disable_recursion_limit();
    }
    let value = Value::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Parts of URNs that contain the name of a stack.
struct StackNames {
    /// `urn:pulumi:STACK::PROJECT::`
    prefix: String,
    /// Type and name of the root stack resource.
    root: String,
}

impl StackNames {
    fn new(stack: &StackReference) -> Self {
        let (project, stack) = (stack.project(), stack.stack());
        Self {
            prefix: format!("urn:pulumi:{stack}::{project}::"),
            root: format!("pulumi:pulumi:Stack::{project}-{stack}"),
        }
    }
}

struct Renaming {
    from: StackNames,
    to: StackNames,
}

impl Renaming {
    /// Renames the stack in a URN, or in a string that begins with one: a provider reference.
    fn rename_urn(&self, value: &mut Value) {
        let Some(rest) = value.as_str().and_then(|urn| urn.strip_prefix(&self.from.prefix)) else { return };
        let rest = if rest == self.from.root { &self.to.root } else { rest };
        *value = format!("{}{rest}", self.to.prefix).into();
    }

    fn rename_resource(&self, resource: &mut Value) {
        for member in ["urn", "parent", "provider", "deletedWith", "viewOf"] {
            resource.get_mut(member).into_iter().for_each(|urn| self.rename_urn(urn));
        }
        for member in ["dependencies", "replaceWith", "aliases"] {
            for_each_item(resource.get_mut(member), |urn| self.rename_urn(urn));
        }
        for_each_item(resource.get_mut("propertyDependencies"), |urns| {
            for_each_item(Some(urns), |urn| self.rename_urn(urn))
        });
        for member in ["inputs", "outputs", "replacementTrigger"] {
            resource.get_mut(member).into_iter().for_each(|value| self.rename_in_property(value));
        }
    }

    /// Renames the stack in the resource references of a property value. Other strings are left unchanged.
    fn rename_in_property(&self, value: &mut Value) {
        if value.get(SIGNATURE_KEY).and_then(Value::as_str) == Some(RESOURCE_SIGNATURE) {
            value.get_mut("urn").into_iter().for_each(|urn| self.rename_urn(urn));
        } else {
            for_each_item(Some(value), |inner| self.rename_in_property(inner));
        }
    }
}

/// Calls `visit` for each element of a list or a map.
fn for_each_item(value: Option<&mut Value>, visit: impl FnMut(&mut Value)) {
    match value {
        Some(Value::Array(items)) => items.iter_mut().for_each(visit),
        Some(Value::Object(members)) => members.values_mut().for_each(visit),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulumi_proto::urn::{ProviderReference, Urn};

    use super::super::read_value::MAX_NESTING;
    use super::super::{SecretDecryption, SecretEncryption, write_checkpoint};
    use super::*;
    use crate::resource::ResourceState;
    use crate::snapshot::{OperationKind, PendingOperation, Snapshot};

    fn renamed(text: &str) -> String {
        let (from, to) = (StackReference::new("reef", "dev").unwrap(), StackReference::new("shore", "west").unwrap());
        rename_stack(text, &from, &to).unwrap()
    }

    #[test]
    fn rename_changes_urns_and_no_other_strings() {
        let dev = r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev","latest":{"resources":[
            {"urn":"urn:pulumi:dev::reef::pulumi:pulumi:Stack::reef-dev"},
            {"urn":"urn:pulumi:dev::reef::t:m:T::reef-dev","parent":"urn:pulumi:dev::reef::pulumi:pulumi:Stack::reef-dev",
             "provider":"urn:pulumi:dev::reef::pulumi:providers:t::p::id","dependencies":["urn:pulumi:dev::other::t:m:T::x"],
             "propertyDependencies":{"v":["urn:pulumi:dev::reef::t:m:T::x"],"w":null},"id":"urn:pulumi:dev::reef::t:m:T::x",
             "inputs":{"text":"urn:pulumi:dev::reef::t:m:T::x","reference":[
               {"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","urn":"urn:pulumi:dev::reef::t:m:T::x"}]}}]
            ,"pending_operations":[{"resource":{"urn":"urn:pulumi:dev::reef::t:m:T::y"},"type":"creating"}]}}}"#;
        let west = renamed(dev);
        let west: Value = serde_json::from_str(&west).unwrap();
        let latest = &west["checkpoint"]["latest"];
        let resource = &latest["resources"][1];
        assert_eq!(west["checkpoint"]["stack"], "organization/reef/dev");
        assert_eq!(latest["resources"][0]["urn"], "urn:pulumi:west::shore::pulumi:pulumi:Stack::shore-west");
        assert_eq!(resource["urn"], "urn:pulumi:west::shore::t:m:T::reef-dev");
        assert_eq!(resource["parent"], latest["resources"][0]["urn"]);
        assert_eq!(resource["provider"], "urn:pulumi:west::shore::pulumi:providers:t::p::id");
        assert_eq!(resource["dependencies"][0], "urn:pulumi:dev::other::t:m:T::x", "another project");
        assert_eq!(resource["propertyDependencies"]["v"][0], "urn:pulumi:west::shore::t:m:T::x");
        assert_eq!(resource["id"], "urn:pulumi:dev::reef::t:m:T::x");
        assert_eq!(resource["inputs"]["text"], "urn:pulumi:dev::reef::t:m:T::x");
        assert_eq!(resource["inputs"]["reference"][0]["urn"], "urn:pulumi:west::shore::t:m:T::x");
        assert_eq!(latest["pending_operations"][0]["resource"]["urn"], "urn:pulumi:west::shore::t:m:T::y");
    }

    #[test]
    fn rename_changes_each_reference_of_entries_and_pending_operations() {
        let urn = |name: &str| Urn::new("dev", "reef", None, "t:m:T", name);
        let provider = Urn::new("dev", "reef", None, "pulumi:providers:t", "provider");
        let state = Arc::new(ResourceState {
            provider: Some(ProviderReference::new(provider, "1")),
            parent: Some(urn("parent")),
            dependencies: vec![urn("dependency")],
            property_dependencies: [("v".to_owned(), vec![urn("of v")])].into(),
            deleted_with: Some(urn("deleted with")),
            replace_with: vec![urn("replaced with")],
            view_of: Some(urn("viewed")),
            ..ResourceState::new(urn("entry"), true)
        });
        let pending = PendingOperation { resource: Arc::clone(&state), kind: OperationKind::Updating };
        let snapshot = Snapshot { resources: vec![state], pending_operations: vec![pending], ..Snapshot::default() };
        let text = write_checkpoint("organization/reef/dev", Some(&snapshot), SecretEncryption::NoKey, 0).unwrap();
        let renamed = renamed(&text);
        let read = StoredText::parse(&renamed).unwrap().read(SecretDecryption::NoKey).unwrap().snapshot.unwrap();
        let stacks = |snapshot: &Snapshot| {
            let references = snapshot.all_resources().flat_map(|state| state.references());
            references.map(|(relation, urn)| format!("{relation} {}", urn.stack())).collect::<Vec<_>>()
        };
        let expected: Vec<String> = stacks(&snapshot).iter().map(|shown| shown.replace("dev", "west")).collect();
        assert_eq!((stacks(&read), expected.len()), (expected, 14));
    }

    #[test]
    fn deepest_value_is_renamed_and_a_deeper_one_is_an_error() {
        let checkpoint = |depth| {
            let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let resource = format!("{{\"urn\":\"urn:pulumi:dev::reef::t:m:T::x\",\"inputs\":{nested}}}");
            format!("{{\"version\":3,\"checkpoint\":{{\"latest\":{{\"resources\":[{resource}]}}}}}}")
        };
        let escaped = checkpoint(MAX_NESTING).replace("T::x", "T::\\\"[[");
        assert!(renamed(&escaped).contains("urn:pulumi:west::shore::t:m:T::"));
        let stacks =
            [("reef", "dev"), ("reef", "west")].map(|(project, name)| StackReference::new(project, name).unwrap());
        rename_stack(&checkpoint(100_000), &stacks[0], &stacks[1]).unwrap_err();
    }

    #[test]
    fn rename_sets_the_version_of_a_stack_without_deployment() {
        let bare = r#"{"version":0,"checkpoint":{"stack":"organization/reef/dev"}}"#;
        assert_eq!(renamed(bare), r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev"}}"#);
        let stacks =
            [("reef", "dev"), ("reef", "west")].map(|(project, name)| StackReference::new(project, name).unwrap());
        let refused = rename_stack(r#"{"version":5}"#, &stacks[0], &stacks[1]);
        assert!(matches!(refused, Err(FormatError::TooNew(5))));
    }
}
