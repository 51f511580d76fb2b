//! Conversion of fields of the messages of `pulumirpc.ResourceMonitor` to our own types. Each error is a status that
//! names the invalid field.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use pulumi_proto::duration;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, EncodeOptions, Unknowns, encode};
use pulumi_proto::rpc;
use pulumi_proto::urn::{TypeToken, Urn};
use tonic::Status;

use super::monitor::{MonitorError, ResourceOutcome, ResourceReply};
use crate::provider::{Alias, AliasParent, CheckFailure};

/// Adds the dependencies of the output values in a property map.
pub(super) fn add_dependencies(dependencies: &mut BTreeMap<String, Vec<Urn>>, bag: &PropertyMap) {
    for (key, value) in bag {
        let mut found = Vec::new();
        value.collect_dependencies(&mut found);
        if !found.is_empty() {
            let known = dependencies.entry(key.clone()).or_default();
            known.extend(found);
            known.sort();
            known.dedup();
        }
    }
}

/// Replaces output values by their values.
pub(super) fn without_outputs(bag: PropertyMap) -> PropertyMap {
    bag.into_iter().map(|(key, value)| (key, value.without_outputs())).collect()
}

/// Kinds of values that a caller accepts in a reply.
#[derive(Clone, Copy)]
pub(super) struct AcceptedValues {
    pub(super) secrets: bool,
    pub(super) resources: bool,
    pub(super) bytes: bool,
    /// True if values may contain unknowns. Otherwise a value that contains one is omitted.
    pub(super) partial: bool,
}

impl AcceptedValues {
    pub(super) fn encode(self, values: &PropertyMap) -> Result<Bag, Status> {
        let options = EncodeOptions {
            unknowns: Unknowns::Keep,
            keep_secrets: self.secrets,
            keep_resources: self.resources,
            keep_outputs: false,
            keep_bytes: self.bytes,
            elide_assets: false,
        };
        let encoded = if self.partial {
            encode(values, &options)
        } else {
            let known = values.iter().filter(|(_, value)| !value.contains_unknowns());
            encode(&known.map(|(key, value)| (key.clone(), value.clone())).collect(), &options)
        };
        encoded.map_err(|error| Status::internal(error.to_string()))
    }
}

pub(super) fn result_of(reply: &ResourceReply) -> rpc::Result {
    match reply.outcome {
        ResourceOutcome::Succeeded | ResourceOutcome::Unknown => rpc::Result::Success,
        ResourceOutcome::Failed => rpc::Result::Fail,
    }
}

pub(super) fn parse_alias(alias: rpc::Alias) -> Result<Alias, Status> {
    use rpc::alias::{self, spec};
    Ok(match alias.alias {
        Some(alias::Alias::Urn(urn)) => Alias::Urn(parse_field("aliases", &urn)?),
        Some(alias::Alias::Spec(spec)) => Alias::Spec {
            name: non_empty(spec.name),
            type_token: non_empty(spec.r#type),
            stack: non_empty(spec.stack),
            project: non_empty(spec.project),
            parent: match spec.parent {
                Some(spec::Parent::ParentUrn(urn)) if !urn.is_empty() => {
                    AliasParent::Urn(parse_field("aliases", &urn)?)
                }
                Some(spec::Parent::NoParent(true)) => AliasParent::None,
                Some(spec::Parent::ParentUrn(_) | spec::Parent::NoParent(false)) | None => AliasParent::Same,
            },
        },
        None => return Err(Status::invalid_argument("aliases: an alias is empty")),
    })
}

pub(super) fn failures(failures: Vec<CheckFailure>) -> Vec<rpc::CheckFailure> {
    let message = |failure: CheckFailure| rpc::CheckFailure {
        property: failure.property.unwrap_or_default(),
        reason: failure.reason,
    };
    failures.into_iter().map(message).collect()
}

/// Parses a type token, which must not be empty.
pub(super) fn parse_type_token(field: &str, text: &str) -> Result<TypeToken, Status> {
    if text.is_empty() {
        return Err(Status::invalid_argument(format!("{field}: missing")));
    }
    Ok(TypeToken::new(text))
}

/// Parses a field of `customTimeouts`; `None` if it is empty or zero.
pub(super) fn parse_timeout(field: &str, text: &str) -> Result<Option<Duration>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid =
        || Status::invalid_argument(format!("customTimeouts.{field}: {text:?} is not a duration such as 1m30s"));
    let timeout = duration::parse(text).ok_or_else(invalid)?;
    Ok((!timeout.is_zero()).then_some(timeout))
}

/// Returns a text; `None` if it is empty, which stands for a missing field in messages.
pub(super) fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

pub(super) fn parse_urns(field: &str, texts: &[String]) -> Result<Vec<Urn>, Status> {
    texts.iter().map(|text| parse_field(field, text)).collect()
}

pub(super) fn parse_optional<T: FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<Option<T>, Status> {
    (!text.is_empty()).then(|| parse_field(field, text)).transpose()
}

pub(super) fn parse_field<T: FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T, Status> {
    text.parse().map_err(|error| Status::invalid_argument(format!("{field}: {error}")))
}

/// Returns the status for a rejected call. SDKs interpret some other codes as the exit of the engine and wait to be
/// killed.
pub(super) fn aborted(error: MonitorError) -> Status {
    Status::aborted(error.0)
}
