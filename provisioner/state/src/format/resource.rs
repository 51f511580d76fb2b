//! Stored form of a resource, and its conversion to an entry.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{NameError, ProviderReference, TypeToken, Urn};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::FormatError;
use super::read_value::{ValueError, ValueReader};
use crate::resource::{CustomTimeouts, ResourceState, TimeoutSeconds};

/// Resource of Pulumi's `DeploymentV3`. Every member may be absent or null.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredResource<'a> {
    urn: Option<String>,
    custom: Option<bool>,
    delete: Option<bool>,
    id: Option<String>,
    #[serde(rename = "type")]
    type_token: Option<String>,
    #[serde(borrow)]
    inputs: Option<&'a RawValue>,
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    parent: Option<String>,
    protect: Option<bool>,
    taint: Option<bool>,
    external: Option<bool>,
    dependencies: Option<Vec<String>>,
    init_errors: Option<Vec<String>>,
    provider: Option<String>,
    property_dependencies: Option<BTreeMap<String, Option<Vec<String>>>>,
    pending_replacement: Option<bool>,
    additional_secret_outputs: Option<Vec<String>>,
    aliases: Option<Vec<String>>,
    custom_timeouts: Option<TimeoutSeconds>,
    #[serde(rename = "importID")]
    import_id: Option<String>,
    retain_on_delete: Option<bool>,
    deleted_with: Option<String>,
    replace_with: Option<Vec<String>>,
    created: Option<String>,
    modified: Option<String>,
    source_position: Option<String>,
    stack_trace: Option<Vec<StoredFrame>>,
    ignore_changes: Option<Vec<String>>,
    hide_diff: Option<Vec<String>>,
    replace_on_changes: Option<Vec<String>>,
    #[serde(borrow)]
    replacement_trigger: Option<&'a RawValue>,
    refresh_before_update: Option<bool>,
    view_of: Option<String>,
    resource_hooks: Option<BTreeMap<String, Option<Vec<String>>>>,
    extension_ref: Option<String>,
    #[serde(rename = "snippetID")]
    snippet_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredFrame {
    source_position: Option<String>,
}

/// Converter of stored resources to entries. Entries share equal URNs.
pub(super) struct ResourceReader<'a> {
    values: ValueReader<'a>,
    urns: HashMap<String, Urn>,
    providers: HashMap<String, ProviderReference>,
}

impl<'a> ResourceReader<'a> {
    pub(super) fn new(values: ValueReader<'a>) -> Self {
        Self { values, urns: HashMap::new(), providers: HashMap::new() }
    }

    /// Converts one resource; `index` is its position in the list, for messages.
    pub(super) fn read_entry(
        &mut self,
        index: usize,
        stored: StoredResource<'_>,
    ) -> Result<ResourceState, FormatError> {
        let text = stored.urn.unwrap_or_default();
        let urn = self.urn(&text).map_err(|source| {
            let resource = if text.is_empty() { format!("resource {index}") } else { text.clone() };
            FormatError::Name { resource, member: "urn", source }
        })?;
        let context = ErrorContext { urn: &text };
        Ok(ResourceState {
            urn,
            type_token: TypeToken::new(&stored.type_token.unwrap_or_default()),
            custom: stored.custom.unwrap_or_default(),
            delete: stored.delete.unwrap_or_default(),
            id: stored.id.and_then(ResourceId::new),
            inputs: self.properties(context, "inputs", stored.inputs)?,
            outputs: self.properties(context, "outputs", stored.outputs)?,
            parent: self.optional_urn(context, "parent", stored.parent)?,
            protect: stored.protect.unwrap_or_default(),
            taint: stored.taint.unwrap_or_default(),
            external: stored.external.unwrap_or_default(),
            dependencies: self.urns(context, "dependencies", stored.dependencies)?,
            init_errors: stored.init_errors.unwrap_or_default(),
            provider: self.provider(context, stored.provider)?,
            property_dependencies: stored
                .property_dependencies
                .unwrap_or_default()
                .into_iter()
                .map(|(property, urns)| Ok((property, self.urns(context, "propertyDependencies", urns)?)))
                .collect::<Result<_, FormatError>>()?,
            pending_replacement: stored.pending_replacement.unwrap_or_default(),
            additional_secret_outputs: stored.additional_secret_outputs.unwrap_or_default(),
            aliases: self.urns(context, "aliases", stored.aliases)?,
            custom_timeouts: stored.custom_timeouts.map(CustomTimeouts::from_seconds).unwrap_or_default(),
            import_id: stored.import_id.and_then(ResourceId::new),
            retain_on_delete: stored.retain_on_delete.unwrap_or_default(),
            deleted_with: self.optional_urn(context, "deletedWith", stored.deleted_with)?,
            replace_with: self.urns(context, "replaceWith", stored.replace_with)?,
            created: context.time("created", stored.created)?,
            modified: context.time("modified", stored.modified)?,
            source_position: non_empty(stored.source_position),
            stack_trace: stored
                .stack_trace
                .unwrap_or_default()
                .into_iter()
                .map(|frame| non_empty(frame.source_position))
                .collect(),
            ignore_changes: stored.ignore_changes.unwrap_or_default(),
            hide_diff: stored.hide_diff.unwrap_or_default(),
            replace_on_changes: stored.replace_on_changes.unwrap_or_default(),
            replacement_trigger: match stored.replacement_trigger {
                None => PropertyValue::Null,
                Some(raw) => {
                    self.values.read_value(raw.get()).map_err(|source| context.value("replacementTrigger", source))?
                }
            },
            refresh_before_update: stored.refresh_before_update.unwrap_or_default(),
            view_of: self.optional_urn(context, "viewOf", stored.view_of)?,
            resource_hooks: stored
                .resource_hooks
                .unwrap_or_default()
                .into_iter()
                .map(|(kind, names)| (kind, names.unwrap_or_default()))
                .collect(),
            extension_ref: non_empty(stored.extension_ref),
            snippet_id: non_empty(stored.snippet_id),
        })
    }

    fn properties(
        &mut self,
        context: ErrorContext<'_>,
        member: &'static str,
        raw: Option<&RawValue>,
    ) -> Result<Arc<PropertyMap>, FormatError> {
        let Some(raw) = raw else { return Ok(Arc::default()) };
        self.values.read_map(raw.get()).map(Arc::new).map_err(|source| context.value(member, source))
    }

    fn urn(&mut self, text: &str) -> Result<Urn, NameError> {
        if let Some(urn) = self.urns.get(text) {
            return Ok(urn.clone());
        }
        let urn = Urn::from_str(text)?;
        self.urns.insert(text.to_owned(), urn.clone());
        Ok(urn)
    }

    fn optional_urn(
        &mut self,
        context: ErrorContext<'_>,
        member: &'static str,
        text: Option<String>,
    ) -> Result<Option<Urn>, FormatError> {
        non_empty(text).map(|text| self.urn(&text)).transpose().map_err(|source| context.name(member, source))
    }

    fn urns(
        &mut self,
        context: ErrorContext<'_>,
        member: &'static str,
        texts: Option<Vec<String>>,
    ) -> Result<Vec<Urn>, FormatError> {
        let texts = texts.unwrap_or_default();
        texts.iter().map(|text| self.urn(text)).collect::<Result<_, _>>().map_err(|source| context.name(member, source))
    }

    fn provider(
        &mut self,
        context: ErrorContext<'_>,
        text: Option<String>,
    ) -> Result<Option<ProviderReference>, FormatError> {
        let Some(text) = non_empty(text) else { return Ok(None) };
        if let Some(reference) = self.providers.get(&text) {
            return Ok(Some(reference.clone()));
        }
        let mut reference = ProviderReference::from_str(&text).map_err(|source| context.name("provider", source))?;
        if let Some(urn) = self.urns.get(reference.urn.as_str()) {
            reference.urn = urn.clone();
        }
        self.providers.insert(text, reference.clone());
        Ok(Some(reference))
    }
}

/// Returns a member unless it is empty: Pulumi treats an empty member as a missing one.
pub(super) fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Resource that an error message names.
#[derive(Clone, Copy)]
struct ErrorContext<'a> {
    urn: &'a str,
}

impl ErrorContext<'_> {
    fn name(self, member: &'static str, source: NameError) -> FormatError {
        FormatError::Name { resource: self.urn.to_owned(), member, source }
    }

    fn value(self, member: &'static str, source: ValueError) -> FormatError {
        FormatError::Value { resource: self.urn.to_owned(), member, source }
    }

    fn time(self, member: &'static str, text: Option<String>) -> Result<Option<Timestamp>, FormatError> {
        let Some(text) = text else { return Ok(None) };
        match text.parse() {
            Ok(time) => Ok(Some(time)),
            Err(source) => Err(FormatError::Time { resource: self.urn.to_owned(), member, text, source }),
        }
    }
}
