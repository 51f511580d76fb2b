//! A snapshot to the text of a checkpoint.

use std::collections::BTreeSet;

use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::Urn;

use super::features::{self, Feature};
use super::json::{
    Escaping, Members, indented, write_json, write_list, write_map, write_named, write_string, write_texts,
};
use super::magic;
use super::write_value::{Sealing, ValueWriter};
use crate::state::resource::ResourceState;
use crate::state::secrets::SecretsError;
use crate::state::snapshot::{Manifest, SecretsDescription, Snapshot};

/// Roughly what a resource takes.
const BYTES_PER_RESOURCE: usize = 2048;

/// Writes a checkpoint.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be sealed.
pub(in crate::state) fn write_checkpoint(
    stack: &str,
    snapshot: Option<&Snapshot>,
    sealing: Sealing<'_>,
) -> Result<String, SecretsError> {
    let mut writer = ResourceWriter::new(sealing);
    let mut body = String::new();
    let mut members = Members::open(&mut body);
    members.text("stack", stack);
    if let Some(snapshot) = snapshot {
        writer.deployment(members.name("latest"), snapshot)?;
    }
    members.close();
    Ok(versioned(writer, "checkpoint", &body))
}

/// Writes what `pulumi stack export` shows and `pulumi stack import` takes.
///
/// # Errors
/// [`SecretsError`] if a secret cannot be sealed.
pub(in crate::state) fn write_export(
    snapshot: Option<&Snapshot>,
    sealing: Sealing<'_>,
) -> Result<String, SecretsError> {
    let mut writer = ResourceWriter::new(sealing);
    let mut body = String::new();
    match snapshot {
        Some(snapshot) => writer.deployment(&mut body, snapshot)?,
        None => body.push_str("null"),
    }
    Ok(indented(&versioned(writer, "deployment", &body)))
}

/// Puts the version before what shows which it has to be.
fn versioned(writer: ResourceWriter<'_>, name: &'static str, body: &str) -> String {
    let features: Vec<_> = writer.features().iter().map(|feature| feature.name()).collect();
    let mut text = String::with_capacity(body.len() + 256);
    let mut members = Members::open(&mut text);
    members.name("version").push(if features.is_empty() { '3' } else { '4' });
    members.filled_texts("features", &features);
    members.name(name).push_str(body);
    members.close();
    text
}

/// Writes resources one by one, and notices which features they use.
pub(in crate::state) struct ResourceWriter<'a> {
    values: ValueWriter<'a>,
    features: BTreeSet<Feature>,
}

impl<'a> ResourceWriter<'a> {
    pub(in crate::state) fn new(sealing: Sealing<'a>) -> Self {
        Self { values: ValueWriter::new(sealing), features: BTreeSet::new() }
    }

    fn features(mut self) -> BTreeSet<Feature> {
        if self.values.wrote_bytes {
            self.features.insert(Feature::ByteString);
        }
        self.features
    }

    fn deployment(&mut self, out: &mut String, snapshot: &Snapshot) -> Result<(), SecretsError> {
        out.reserve(snapshot.resources.len() * BYTES_PER_RESOURCE);
        let mut members = Members::open(out);
        write_manifest(members.name("manifest"), &snapshot.manifest);
        if let Some(secrets) = &snapshot.secrets {
            write_secrets(members.name("secrets_providers"), secrets);
        }
        if !snapshot.resources.is_empty() {
            let mut result = Ok(());
            write_list(members.name("resources"), &snapshot.resources, |out, resource| {
                if result.is_ok() {
                    result = self.resource(out, resource);
                }
            });
            result?;
        }
        if !snapshot.pending_operations.is_empty() {
            let mut result = Ok(());
            write_list(members.name("pending_operations"), &snapshot.pending_operations, |out, operation| {
                let mut members = Members::open(out);
                if result.is_ok() {
                    result = self.resource(members.name("resource"), &operation.resource);
                }
                members.text("type", operation.kind.as_str());
                members.close();
            });
            result?;
        }
        write_map(members.name("metadata"), &snapshot.rest.metadata, Escaping::Plain);
        self.rest(&mut members, snapshot);
        members.close();
        Ok(())
    }

    fn rest(&mut self, members: &mut Members<'_>, snapshot: &Snapshot) {
        let rest = &snapshot.rest;
        if !rest.snippets.is_empty() {
            self.features.insert(Feature::Snippets);
            write_list(members.name("snippets"), &rest.snippets, |out, snippet| {
                write_json(out, snippet, Escaping::Plain);
            });
        }
        if !rest.extensions.is_empty() {
            write_named(members.name("extensions"), &rest.extensions, |out, extension| {
                write_json(out, extension, Escaping::Plain);
            });
        }
    }

    /// Appends one resource.
    ///
    /// # Errors
    /// [`SecretsError`] if a secret cannot be sealed.
    pub(in crate::state) fn resource(
        &mut self,
        out: &mut String,
        resource: &ResourceState,
    ) -> Result<(), SecretsError> {
        features::collect(&mut self.features, resource);
        let mut members = Members::open(out);
        members.text("urn", resource.urn.as_str());
        members.name("custom").push_str(if resource.custom { "true" } else { "false" });
        members.flag("delete", resource.delete);
        members.filled_text("id", &resource.id);
        members.text("type", resource.type_token.as_str());
        for (name, map) in [("inputs", &resource.inputs), ("outputs", &resource.outputs)] {
            if !map.is_empty() {
                self.values.map(members.name(name), map)?;
            }
        }
        optional_urn(&mut members, "parent", resource.parent.as_ref());
        members.flag("protect", resource.protect);
        members.flag("taint", resource.taint);
        members.flag("external", resource.external);
        filled_urns(&mut members, "dependencies", &resource.dependencies);
        members.filled_texts("initErrors", &resource.init_errors);
        if let Some(provider) = &resource.provider {
            members.text("provider", &provider.to_string());
        }
        if !resource.property_dependencies.is_empty() {
            write_named(members.name("propertyDependencies"), &resource.property_dependencies, |out, urns| {
                write_urns(out, urns);
            });
        }
        members.flag("pendingReplacement", resource.pending_replacement);
        members.filled_texts("additionalSecretOutputs", &resource.additional_secret_outputs);
        filled_urns(&mut members, "aliases", &resource.aliases);
        timeouts(&mut members, resource);
        members.filled_text("importID", &resource.import_id);
        members.flag("retainOnDelete", resource.retain_on_delete);
        optional_urn(&mut members, "deletedWith", resource.deleted_with.as_ref());
        filled_urns(&mut members, "replaceWith", &resource.replace_with);
        for (name, time) in [("created", resource.created), ("modified", resource.modified)] {
            if let Some(time) = time {
                members.text(name, &time.to_string());
            }
        }
        members.filled_text("sourcePosition", &resource.source_position);
        if !resource.stack_trace.is_empty() {
            write_list(members.name("stackTrace"), &resource.stack_trace, |out, position| {
                let mut frame = Members::open(out);
                frame.filled_text("sourcePosition", position);
                frame.close();
            });
        }
        members.filled_texts("ignoreChanges", &resource.ignore_changes);
        members.filled_texts("hideDiff", &resource.hide_diff);
        members.filled_texts("replaceOnChanges", &resource.replace_on_changes);
        if resource.replacement_trigger != PropertyValue::Null {
            self.values.value(members.name("replacementTrigger"), &resource.replacement_trigger)?;
        }
        members.flag("refreshBeforeUpdate", resource.refresh_before_update);
        optional_urn(&mut members, "viewOf", resource.view_of.as_ref());
        if !resource.resource_hooks.is_empty() {
            write_named(members.name("resourceHooks"), &resource.resource_hooks, |out, names| {
                write_texts(out, names);
            });
        }
        members.filled_text("extensionRef", &resource.extension_ref);
        members.filled_text("snippetID", &resource.snippet_id);
        members.close();
        Ok(())
    }
}

fn write_manifest(out: &mut String, manifest: &Manifest) {
    let mut members = Members::open(out);
    members.text("time", &manifest.time);
    members.text("magic", &magic(&manifest.version));
    members.text("version", &manifest.version);
    members.close();
}

/// The manager's own encoder escapes everything that Go can escape.
fn write_secrets(out: &mut String, secrets: &SecretsDescription) {
    let mut members = Members::open(out);
    members.text("type", &secrets.kind);
    if !secrets.state.is_null() {
        write_json(members.name("state"), &secrets.state, Escaping::Html);
    }
    members.close();
}

fn timeouts(members: &mut Members<'_>, resource: &ResourceState) {
    let timeouts = resource.custom_timeouts;
    if timeouts == crate::state::resource::CustomTimeouts::default() {
        return;
    }
    let mut inner = Members::open(members.name("customTimeouts"));
    inner.filled_number("create", timeouts.create);
    inner.filled_number("update", timeouts.update);
    inner.filled_number("delete", timeouts.delete);
    inner.filled_number("read", timeouts.read);
    inner.close();
}

fn optional_urn(members: &mut Members<'_>, name: &'static str, urn: Option<&Urn>) {
    if let Some(urn) = urn {
        members.text(name, urn.as_str());
    }
}

fn filled_urns(members: &mut Members<'_>, name: &'static str, urns: &[Urn]) {
    if !urns.is_empty() {
        write_urns(members.name(name), urns);
    }
}

fn write_urns(out: &mut String, urns: &[Urn]) {
    write_list(out, urns, |out, urn| write_string(out, urn.as_str(), Escaping::Plain));
}
