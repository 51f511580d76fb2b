//! Values of the expressions of a program.

use std::collections::BTreeMap;

use engine::{Registered, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use serde_json::Value;

use crate::scenario::Program;

/// Values of the resources and variables of a program that are registered or computed so far.
pub(super) struct ProgramValues<'a> {
    program: &'a Program,
    preview: bool,
    pub(super) resources: BTreeMap<String, Registered>,
    pub(super) variables: BTreeMap<&'a str, PropertyValue>,
}

impl<'a> ProgramValues<'a> {
    pub(super) fn new(program: &'a Program, preview: bool) -> Self {
        Self { program, preview, resources: BTreeMap::new(), variables: BTreeMap::new() }
    }

    /// Returns whether a resource is registered.
    pub(super) fn is_registered(&self, name: &str) -> bool {
        self.resources.contains_key(name)
    }

    /// Returns the URN of a resource that is registered.
    pub(super) fn urn(&self, name: &str) -> Option<Urn> {
        self.resources.get(name).map(|registered| registered.urn.clone())
    }

    /// Returns the URNs of the resources that a value refers to.
    pub(super) fn urns_in(&self, value: &Value) -> Vec<Urn> {
        let mut names = Vec::new();
        self.program.collect_references(value, &mut names);
        let mut urns: Vec<Urn> = names.iter().filter_map(|name| self.urn(name)).collect();
        urns.sort();
        urns.dedup();
        urns
    }

    /// Returns the values of an object. A literal null is left out; a null value of a reference stays.
    pub(super) fn map<'v>(&self, members: impl IntoIterator<Item = (&'v String, &'v Value)>) -> PropertyMap {
        let given = members.into_iter().filter(|(_, member)| !member.is_null());
        given.map(|(key, member)| (key.clone(), self.value(member))).collect()
    }

    /// Returns the value of an expression.
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
        // A secret unknown output is passed on as a plain unknown.
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

    /// Returns the value of a reference to a missing output.
    fn missing(&self) -> PropertyValue {
        if self.preview { PropertyValue::UNKNOWN } else { PropertyValue::Null }
    }
}
