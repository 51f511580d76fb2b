//! Fields of the messages of `pulumirpc.ResourceMonitor`: what each says in types of our own, or a status that names the
//! field that cannot be read.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use pulumi_proto::duration;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, EncodeOptions, Unknowns, encode};
use pulumi_proto::rpc;
use pulumi_proto::urn::{TypeToken, Urn};
use tonic::Status;

use super::monitor::{MonitorRefusal, ResourceAnswer, ResourceOutcome};
use crate::provider::{Alias, AliasParent, CheckFailure};

/// Adds the dependencies that output values in a bag name themselves.
pub(super) fn add_dependencies(known: &mut BTreeMap<String, Vec<Urn>>, bag: &PropertyMap) {
    for (key, value) in bag {
        let mut found = Vec::new();
        value.collect_dependencies(&mut found);
        if !found.is_empty() {
            let known = known.entry(key.clone()).or_default();
            known.extend(found);
            known.sort();
            known.dedup();
        }
    }
}

/// Replaces output values by the values that they hold.
pub(super) fn without_outputs(bag: PropertyMap) -> PropertyMap {
    bag.into_iter().map(|(key, value)| (key, value.without_outputs())).collect()
}

/// The kinds of values that a caller accepts in a reply.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    pub(super) secrets: bool,
    pub(super) resources: bool,
    pub(super) bytes: bool,
    /// Unknowns anywhere in a value; otherwise a value that holds one is left out.
    pub(super) partial: bool,
}

impl Takes {
    pub(super) fn bag(self, values: &PropertyMap) -> Result<Bag, Status> {
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

pub(super) fn result(answer: &ResourceAnswer) -> rpc::Result {
    match answer.outcome {
        ResourceOutcome::Succeeded | ResourceOutcome::Unknown => rpc::Result::Success,
        ResourceOutcome::Failed => rpc::Result::Fail,
    }
}

pub(super) fn alias(alias: rpc::Alias) -> Result<Alias, Status> {
    use rpc::alias::{self, spec};
    Ok(match alias.alias {
        Some(alias::Alias::Urn(urn)) => Alias::Urn(parsed("aliases", &urn)?),
        Some(alias::Alias::Spec(spec)) => Alias::Spec {
            name: given(spec.name),
            type_token: given(spec.r#type),
            stack: given(spec.stack),
            project: given(spec.project),
            parent: match spec.parent {
                Some(spec::Parent::ParentUrn(urn)) if !urn.is_empty() => AliasParent::Urn(parsed("aliases", &urn)?),
                Some(spec::Parent::NoParent(true)) => AliasParent::None,
                Some(spec::Parent::ParentUrn(_) | spec::Parent::NoParent(false)) | None => AliasParent::Same,
            },
        },
        None => return Err(Status::invalid_argument("aliases: an alias that says nothing")),
    })
}

pub(super) fn failures(failures: Vec<CheckFailure>) -> Vec<rpc::CheckFailure> {
    let message = |failure: CheckFailure| rpc::CheckFailure {
        property: failure.property.unwrap_or_default(),
        reason: failure.reason,
    };
    failures.into_iter().map(message).collect()
}

/// A resource type has a name that a URN can hold.
pub(super) fn token(field: &str, text: &str) -> Result<TypeToken, Status> {
    if text.is_empty() {
        return Err(Status::invalid_argument(format!("{field}: missing")));
    }
    Ok(TypeToken::new(text))
}

/// Reads one of `customTimeouts`; `None` where none is set.
pub(super) fn timeout(field: &str, text: &str) -> Result<Option<Duration>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid =
        || Status::invalid_argument(format!("customTimeouts.{field}: {text:?} is not a duration such as 1m30s"));
    let timeout = duration::parse(text).ok_or_else(invalid)?;
    Ok((!timeout.is_zero()).then_some(timeout))
}

/// Returns a text unless it is empty: messages have no other way to leave one out.
pub(super) fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

pub(super) fn urns(field: &str, texts: &[String]) -> Result<Vec<Urn>, Status> {
    texts.iter().map(|text| parsed(field, text)).collect()
}

pub(super) fn optional<T: FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<Option<T>, Status> {
    (!text.is_empty()).then(|| parsed(field, text)).transpose()
}

pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T, Status> {
    text.parse().map_err(|error| Status::invalid_argument(format!("{field}: {error}")))
}

/// SDKs take some codes for the end of the engine and wait for their own: not this one.
pub(super) fn refused(refusal: MonitorRefusal) -> Status {
    Status::aborted(refusal.0)
}
