//! Helpers for property values, any of which may be a secret or unknown.

use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, Unknowns, decode, encode};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

/// Decodes a property map. An absent one is empty.
///
/// # Errors
/// INVALID_ARGUMENT for a malformed property map, and for rejected unknowns.
pub(crate) fn from_wire(bag: Option<Bag>, unknowns: Unknowns) -> Result<PropertyMap, Status> {
    let options = DecodeOptions { unknowns, keep_outputs: false, ..DecodeOptions::EVERYTHING };
    decode(&bag.unwrap_or_default(), &options).map_err(|error| Status::invalid_argument(error.to_string()))
}

/// Encodes a property map for a response. Secrets are kept only for an engine that accepts them.
///
/// # Errors
/// INTERNAL for a value that cannot be encoded, which does not happen for values of this package.
pub(crate) fn to_wire(bag: &PropertyMap, keep_secrets: bool) -> Result<Option<Bag>, Status> {
    let options = EncodeOptions { keep_secrets, ..EncodeOptions::EVERYTHING };
    encode(bag, &options).map(Some).map_err(|error| Status::internal(error.to_string()))
}

/// Returns the value inside any secrets.
pub(crate) fn unwrap_secrets(value: &PropertyValue) -> &PropertyValue {
    match value {
        PropertyValue::Secret(secret) => unwrap_secrets(secret.expose()),
        other => other,
    }
}

/// Returns the plain value of a property. `None` if it is absent or null.
pub(crate) fn get<'a>(bag: &'a PropertyMap, name: &str) -> Option<&'a PropertyValue> {
    bag.get(name).map(unwrap_secrets).filter(|value| **value != PropertyValue::Null)
}

/// Returns the text of a property. `None` if it is absent, unknown, or not a string.
pub(crate) fn text<'a>(bag: &'a PropertyMap, name: &str) -> Option<&'a str> {
    get(bag, name)?.as_str()
}

/// Returns the number of a property. `None` if it is absent, unknown, or not a number.
pub(crate) fn number(bag: &PropertyMap, name: &str) -> Option<f64> {
    match get(bag, name)? {
        PropertyValue::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns the boolean of a property. `None` if it is absent, unknown, or not a boolean.
pub(crate) fn boolean(bag: &PropertyMap, name: &str) -> Option<bool> {
    match get(bag, name)? {
        PropertyValue::Bool(value) => Some(*value),
        _ => None,
    }
}

/// Returns a value that Check guarantees, for callers that may have skipped Check.
///
/// # Errors
/// INVALID_ARGUMENT if the value is missing.
pub(crate) fn checked<T>(value: Option<T>, name: &str) -> Result<T, Status> {
    value.ok_or_else(|| Status::invalid_argument(format!("property {name} is missing; inputs must come from Check")))
}

/// Returns true if the property contains a secret.
pub(crate) fn is_secret(bag: &PropertyMap, name: &str) -> bool {
    bag.get(name).is_some_and(PropertyValue::contains_secrets)
}

/// Returns the value, as a secret if `secret` is true.
pub(crate) fn secret_if(secret: bool, value: PropertyValue) -> PropertyValue {
    if secret { PropertyValue::secret(value) } else { value }
}
