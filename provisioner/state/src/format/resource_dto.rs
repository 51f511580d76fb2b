//! Stored form of a resource.

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::Timestamp;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};
use serde::{Serialize, Serializer};

use super::encryption::Encryption;
use super::value_dto::{PropertiesDto, ValueDto};
use crate::resource::{ResourceState, TimeoutSeconds};

/// Resource to be written.
#[derive(Clone, Copy)]
pub(crate) struct ResourceDto<'r, 'e> {
    resource: &'r ResourceState,
    encryption: &'r Encryption<'e>,
}

impl<'r, 'e> ResourceDto<'r, 'e> {
    pub(crate) fn new(resource: &'r ResourceState, encryption: &'r Encryption<'e>) -> Self {
        Self { resource, encryption }
    }
}

impl Serialize for ResourceDto<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Members::of(self.resource, self.encryption).serialize(serializer)
    }
}

/// Resource of Pulumi's `DeploymentV3`, with its members in Pulumi's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Members<'r, 'e> {
    #[serde(serialize_with = "urn")]
    urn: &'r Urn,
    custom: bool,
    #[serde(skip_serializing_if = "is_false")]
    delete: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'r str,
    #[serde(rename = "type")]
    type_token: &'r str,
    #[serde(skip_serializing_if = "PropertiesDto::is_empty")]
    inputs: PropertiesDto<'r, 'e>,
    #[serde(skip_serializing_if = "PropertiesDto::is_empty")]
    outputs: PropertiesDto<'r, 'e>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'r str>,
    #[serde(skip_serializing_if = "is_false")]
    protect: bool,
    #[serde(skip_serializing_if = "is_false")]
    taint: bool,
    #[serde(skip_serializing_if = "is_false")]
    external: bool,
    #[serde(skip_serializing_if = "<[Urn]>::is_empty", serialize_with = "urns")]
    dependencies: &'r [Urn],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    init_errors: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    provider: Option<&'r ProviderReference>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "urns_by_property")]
    property_dependencies: &'r BTreeMap<String, Vec<Urn>>,
    #[serde(skip_serializing_if = "is_false")]
    pending_replacement: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    additional_secret_outputs: &'r [String],
    #[serde(skip_serializing_if = "<[Urn]>::is_empty", serialize_with = "urns")]
    aliases: &'r [Urn],
    #[serde(skip_serializing_if = "TimeoutSeconds::is_empty")]
    custom_timeouts: TimeoutSeconds,
    #[serde(rename = "importID", skip_serializing_if = "str::is_empty")]
    import_id: &'r str,
    #[serde(skip_serializing_if = "is_false")]
    retain_on_delete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_with: Option<&'r str>,
    #[serde(skip_serializing_if = "<[Urn]>::is_empty", serialize_with = "urns")]
    replace_with: &'r [Urn],
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    created: Option<&'r Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    modified: Option<&'r Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_position: Option<&'r str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "frames")]
    stack_trace: &'r [Option<String>],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    ignore_changes: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hide_diff: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    replace_on_changes: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement_trigger: Option<ValueDto<'r, 'e>>,
    #[serde(skip_serializing_if = "is_false")]
    refresh_before_update: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    view_of: Option<&'r str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resource_hooks: &'r BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension_ref: Option<&'r str>,
    #[serde(rename = "snippetID", skip_serializing_if = "Option::is_none")]
    snippet_id: Option<&'r str>,
}

impl<'r, 'e> Members<'r, 'e> {
    fn of(resource: &'r ResourceState, encryption: &'r Encryption<'e>) -> Self {
        let trigger = Some(&resource.replacement_trigger).filter(|trigger| **trigger != PropertyValue::Null);
        Self {
            urn: &resource.urn,
            custom: resource.custom,
            delete: resource.delete,
            id: resource.id_text(),
            type_token: resource.type_token.as_str(),
            inputs: PropertiesDto::new(&resource.inputs, encryption),
            outputs: PropertiesDto::new(&resource.outputs, encryption),
            parent: resource.parent.as_ref().map(Urn::as_str),
            protect: resource.protect,
            taint: resource.taint,
            external: resource.external,
            dependencies: &resource.dependencies,
            init_errors: &resource.init_errors,
            provider: resource.provider.as_ref(),
            property_dependencies: &resource.property_dependencies,
            pending_replacement: resource.pending_replacement,
            additional_secret_outputs: &resource.additional_secret_outputs,
            aliases: &resource.aliases,
            custom_timeouts: resource.custom_timeouts.seconds(),
            import_id: ResourceId::text(resource.import_id.as_ref()),
            retain_on_delete: resource.retain_on_delete,
            deleted_with: resource.deleted_with.as_ref().map(Urn::as_str),
            replace_with: &resource.replace_with,
            created: resource.created.as_ref(),
            modified: resource.modified.as_ref(),
            source_position: resource.source_position.as_deref(),
            stack_trace: &resource.stack_trace,
            ignore_changes: &resource.ignore_changes,
            hide_diff: &resource.hide_diff,
            replace_on_changes: &resource.replace_on_changes,
            replacement_trigger: trigger.map(|trigger| ValueDto::new(trigger, encryption)),
            refresh_before_update: resource.refresh_before_update,
            view_of: resource.view_of.as_ref().map(Urn::as_str),
            resource_hooks: &resource.resource_hooks,
            extension_ref: resource.extension_ref.as_deref(),
            snippet_id: resource.snippet_id.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameDto<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source_position: Option<&'r str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn urn<S: Serializer>(urn: &Urn, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(urn.as_str())
}

fn urns<S: Serializer>(urns: &[Urn], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(urns.iter().map(Urn::as_str))
}

fn urns_by_property<S: Serializer>(map: &BTreeMap<String, Vec<Urn>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().map(|(property, urns)| (property, UrnsDto(urns))))
}

struct UrnsDto<'r>(&'r [Urn]);

impl Serialize for UrnsDto<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        urns(self.0, serializer)
    }
}

fn optional_text<S: Serializer>(value: &Option<&impl Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn frames<S: Serializer>(positions: &[Option<String>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(positions.iter().map(|position| FrameDto { source_position: position.as_deref() }))
}
