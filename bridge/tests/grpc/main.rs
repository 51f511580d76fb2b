//! Tests of the gRPC provider against a server in the same process: messages on the wire, and decoded replies.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod configuration;
mod failures;
mod lost_replies;
mod payloads;
mod recording_provider;
mod replies;

use std::sync::Arc;

use bridge::provider::Capabilities;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use pulumi_proto::property::wire::Bag;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;

/// Capabilities of a provider that accepts all kinds of values.
const ALL: Capabilities = Capabilities {
    accept_secrets: true,
    accept_resources: true,
    accept_outputs: true,
    accept_byte_strings: true,
    supports_preview: true,
    supports_autonaming: true,
};

fn urn() -> Urn {
    "urn:pulumi:dev::t::rec:index:Thing::a".parse().unwrap()
}

fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn shared<const N: usize>(members: [(&str, PropertyValue); N]) -> Arc<PropertyMap> {
    Arc::new(bag(members))
}

fn secret(value: &str) -> PropertyValue {
    PropertyValue::secret(value.into())
}

/// Returns an encoded map of strings.
fn texts<const N: usize>(members: [(&str, &str); N]) -> Bag {
    let value = |text: &str| Value { kind: Some(Kind::StringValue(text.to_owned())) };
    Struct { fields: members.into_iter().map(|(key, text)| (key.to_owned(), value(text))).collect() }.into()
}
