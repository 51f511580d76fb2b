//! Property values, read and made: secrets and unknowns are wrappers and sentinels that any input may come with.

use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, Unknowns, decode, encode};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

/// A bag as it came. An absent one is empty.
///
/// # Errors
/// INVALID_ARGUMENT for what is no bag of properties, or holds an unknown where none may be.
pub(crate) fn from_wire(bag: Option<Bag>, unknowns: Unknowns) -> Result<PropertyMap, Status> {
    let options = DecodeOptions { unknowns, keep_outputs: false, ..DecodeOptions::EVERYTHING };
    decode(&bag.unwrap_or_default(), &options).map_err(|error| Status::invalid_argument(error.to_string()))
}

/// A bag for the answer. Only a caller that said that it takes secrets gets them marked.
///
/// # Errors
/// INTERNAL for what cannot be encoded; nothing of ours.
pub(crate) fn to_wire(bag: &PropertyMap, keep_secrets: bool) -> Result<Option<Bag>, Status> {
    let options = EncodeOptions { keep_secrets, ..EncodeOptions::EVERYTHING };
    encode(bag, &options).map(Some).map_err(|error| Status::internal(error.to_string()))
}

/// The value inside all secrets.
pub(crate) fn exposed(value: &PropertyValue) -> &PropertyValue {
    match value {
        PropertyValue::Secret(secret) => exposed(secret.expose()),
        other => other,
    }
}

/// The value of a property, out of all secrets; what is null is not there.
pub(crate) fn get<'a>(bag: &'a PropertyMap, name: &str) -> Option<&'a PropertyValue> {
    bag.get(name).map(exposed).filter(|value| **value != PropertyValue::Null)
}

/// A text; `None` where it is absent, unknown, or something else.
pub(crate) fn text<'a>(bag: &'a PropertyMap, name: &str) -> Option<&'a str> {
    get(bag, name)?.as_str()
}

/// A number; `None` where it is absent, unknown, or something else.
pub(crate) fn number(bag: &PropertyMap, name: &str) -> Option<f64> {
    match get(bag, name)? {
        PropertyValue::Number(number) => Some(*number),
        _ => None,
    }
}

/// A boolean; `None` where it is absent, unknown, or something else.
pub(crate) fn boolean(bag: &PropertyMap, name: &str) -> Option<bool> {
    match get(bag, name)? {
        PropertyValue::Bool(value) => Some(*value),
        _ => None,
    }
}

/// What Check has made sure of; a caller that leaves Check out learns it here.
///
/// # Errors
/// INVALID_ARGUMENT if the value is missing.
pub(crate) fn checked<T>(value: Option<T>, name: &str) -> Result<T, Status> {
    value.ok_or_else(|| Status::invalid_argument(format!("property {name} is missing; inputs come out of Check")))
}

/// Whether the property holds a secret.
pub(crate) fn is_secret(bag: &PropertyMap, name: &str) -> bool {
    bag.get(name).is_some_and(PropertyValue::contains_secrets)
}

/// The value, as secret as what it was made of.
pub(crate) fn secret_if(secret: bool, value: PropertyValue) -> PropertyValue {
    if secret { PropertyValue::secret(value) } else { value }
}
