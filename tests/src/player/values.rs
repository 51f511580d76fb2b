//! What the expressions of a program come to.

use std::collections::BTreeMap;

use engine::{Registered, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use serde_json::Value;

use crate::scenario::Program;

/// What the program knows so far.
pub(super) struct Known<'a> {
    program: &'a Program,
    preview: bool,
    pub(super) resources: BTreeMap<String, Registered>,
    pub(super) variables: BTreeMap<&'a str, PropertyValue>,
}

impl<'a> Known<'a> {
    pub(super) fn new(program: &'a Program, preview: bool) -> Self {
        Self { program, preview, resources: BTreeMap::new(), variables: BTreeMap::new() }
    }

    /// Whether a resource has got its answer.
    pub(super) fn has(&self, name: &str) -> bool {
        self.resources.contains_key(name)
    }

    /// The URN of a resource that has got its answer.
    pub(super) fn urn(&self, name: &str) -> Option<Urn> {
        self.resources.get(name).map(|registered| registered.urn.clone())
    }

    /// The URNs of the resources that a value refers to.
    pub(super) fn urns_in(&self, value: &Value) -> Vec<Urn> {
        let mut names = Vec::new();
        self.program.named_in(value, &mut names);
        let mut urns: Vec<Urn> = names.iter().filter_map(|name| self.urn(name)).collect();
        urns.sort();
        urns.dedup();
        urns
    }

    /// The values of an object. A null that is written down is left out; one that a reference comes to stays.
    pub(super) fn map<'v>(&self, members: impl IntoIterator<Item = (&'v String, &'v Value)>) -> PropertyMap {
        let given = members.into_iter().filter(|(_, member)| !member.is_null());
        given.map(|(key, member)| (key.clone(), self.value(member))).collect()
    }

    /// The value of an expression.
    pub(super) fn value(&self, expression: &Value) -> PropertyValue {
        match expression {
            Value::Null => PropertyValue::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => number.as_f64().unwrap_or(f64::NAN).into(),
            Value::String(text) => text.as_str().into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect::<Vec<_>>().into(),
            Value::Object(members) => match (members.get("$ref"), members.get("$secret")) {
                (Some(Value::String(path)), _) => self.reference(path),
                (_, Some(inside)) => PropertyValue::secret(self.value(inside)),
                _ => self.map(members).into(),
            },
        }
    }

    fn reference(&self, path: &str) -> PropertyValue {
        let mut parts = path.split('.');
        let name = parts.next().unwrap_or_default();
        let start = match (self.variables.get(name), self.resources.get(name)) {
            (Some(value), _) => value.clone(),
            (None, Some(resource)) if resource.result != RegistrationResult::Succeeded => PropertyValue::UNKNOWN,
            (None, Some(resource)) => match parts.next() {
                Some("id") if !resource.outputs.contains_key("id") => {
                    resource.id.as_ref().map_or(PropertyValue::UNKNOWN, |id| id.as_str().into())
                }
                Some("urn") => resource.urn.as_str().into(),
                Some(output) => resource.outputs.get(output).cloned().unwrap_or_else(|| self.missing()),
                None => self.missing(),
            },
            (None, None) => self.missing(),
        };
        let value = parts.fold(start, |value, part| self.member(value, part));
        // An unknown output is passed on as a plain unknown even if it is secret.
        match value {
            PropertyValue::Secret(secret) if matches!(secret.expose(), PropertyValue::Unknown(_)) => {
                PropertyValue::UNKNOWN
            }
            value => value,
        }
    }

    fn member(&self, value: PropertyValue, name: &str) -> PropertyValue {
        match value {
            PropertyValue::Map(mut members) => members.remove(name).unwrap_or_else(|| self.missing()),
            PropertyValue::Secret(secret) => PropertyValue::secret(self.member(secret.into_exposed(), name)),
            PropertyValue::Unknown(_) => value,
            _ => self.missing(),
        }
    }

    /// What a reference comes to whose output is not there.
    fn missing(&self) -> PropertyValue {
        if self.preview { PropertyValue::UNKNOWN } else { PropertyValue::Null }
    }
}
