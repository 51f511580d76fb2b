//! Converts snapshots to the JSON of `stack export --show-secrets`, and back.
//!
//! This is a second implementation beside the encoder of `state`, without encryption, manifest, times and source
//! positions. Values that no recording contains (assets, references) are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::{PropertyMap, PropertyValue, SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_STRING};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{TypeToken, Urn};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use state::{OperationKind, PendingOperation, ResourceState, Snapshot};

use crate::scenario::Deployment;

/// Name of the member with a secret's JSON text.
const PLAINTEXT: &str = "plaintext";
/// Mark that replaces every UUID in a recording.
pub const UUID_MARK: &str = "<uuid>";

/// Converts a snapshot to its export.
pub fn export(snapshot: &Snapshot) -> Deployment {
    let pending = |operation: &PendingOperation| json!({"resource": export_resource(&operation.resource), "type": operation.kind.as_str()});
    Deployment {
        resources: snapshot.resources.iter().map(|resource| export_resource(resource)).collect(),
        pending_operations: snapshot.pending_operations.iter().map(pending).collect(),
    }
}

fn export_resource(state: &ResourceState) -> Value {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        let empty = match &value {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Number(_) => false,
        };
        if !empty {
            members.insert(name.to_owned(), value);
        }
    };
    put("urn", json!(state.urn.as_str()));
    put("delete", json!(state.delete));
    put("id", json!(state.id_text()));
    put("type", json!(state.type_token.as_str()));
    put("inputs", export_map(&state.inputs));
    put("outputs", export_map(&state.outputs));
    put("parent", json!(state.parent.as_ref().map(Urn::as_str)));
    put("protect", json!(state.protect));
    put("taint", json!(state.taint));
    put("external", json!(state.external));
    put("dependencies", export_urns(&state.dependencies));
    put("initErrors", json!(state.init_errors));
    put("provider", json!(state.provider.as_ref().map(ToString::to_string)));
    let property_dependencies = state.property_dependencies.iter();
    put(
        "propertyDependencies",
        property_dependencies.map(|(key, urns)| (key.clone(), export_urns(urns))).collect::<Map<_, _>>().into(),
    );
    put("pendingReplacement", json!(state.pending_replacement));
    put("additionalSecretOutputs", json!(state.additional_secret_outputs));
    put("aliases", export_urns(&state.aliases));
    let timeouts = state.custom_timeouts.durations();
    let timeouts = [
        ("create", timeouts.create),
        ("update", timeouts.update),
        ("delete", timeouts.delete),
        ("read", timeouts.read),
    ];
    put(
        "customTimeouts",
        timeouts
            .iter()
            .filter_map(|(name, timeout)| Some(((*name).to_owned(), json!(timeout.as_ref()?.as_secs_f64()))))
            .collect::<Map<_, _>>()
            .into(),
    );
    put("importID", json!(ResourceId::text(state.import_id.as_ref())));
    put("retainOnDelete", json!(state.retain_on_delete));
    put("deletedWith", json!(state.deleted_with.as_ref().map(Urn::as_str)));
    put("replaceWith", export_urns(&state.replace_with));
    put("ignoreChanges", json!(state.ignore_changes));
    put("hideDiff", json!(state.hide_diff));
    put("replaceOnChanges", json!(state.replace_on_changes));
    put("refreshBeforeUpdate", json!(state.refresh_before_update));
    put("viewOf", json!(state.view_of.as_ref().map(Urn::as_str)));
    put("resourceHooks", json!(state.resource_hooks));
    members.insert("custom".to_owned(), json!(state.custom));
    if state.replacement_trigger != PropertyValue::Null {
        members.insert("replacementTrigger".to_owned(), export_value(&state.replacement_trigger));
    }
    members.into()
}

fn export_urns(urns: &[Urn]) -> Value {
    urns.iter().map(Urn::as_str).collect::<Vec<_>>().into()
}

fn export_map(map: &PropertyMap) -> Value {
    map.iter().map(|(key, value)| (key.clone(), export_value(value))).collect::<Map<_, _>>().into()
}

fn export_value(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Null => Value::Null,
        PropertyValue::Bool(value) => json!(value),
        PropertyValue::Number(value) => json!(value),
        PropertyValue::String(value) => json!(value),
        PropertyValue::List(items) => items.iter().map(export_value).collect::<Vec<_>>().into(),
        PropertyValue::Map(map) => export_map(map),
        PropertyValue::Secret(secret) => {
            json!({ SIGNATURE_KEY: SECRET_SIGNATURE, PLAINTEXT: export_value(secret.expose()).to_string() })
        }
        PropertyValue::Unknown(_) => json!(UNKNOWN_STRING),
        other => json!({ "unsupported value": format!("{other:?}") }),
    }
}

/// Exported entry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    urn: String,
    custom: bool,
    #[serde(default)]
    delete: bool,
    #[serde(default)]
    id: String,
    #[serde(rename = "type")]
    type_token: String,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    outputs: Map<String, Value>,
    parent: Option<String>,
    #[serde(default)]
    protect: bool,
    #[serde(default)]
    taint: bool,
    #[serde(default)]
    external: bool,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    init_errors: Vec<String>,
    provider: Option<String>,
    #[serde(default)]
    property_dependencies: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pending_replacement: bool,
    #[serde(default)]
    additional_secret_outputs: Vec<String>,
    #[serde(default)]
    custom_timeouts: BTreeMap<String, f64>,
    #[serde(default, rename = "importID")]
    import_id: String,
    #[serde(default)]
    retain_on_delete: bool,
    deleted_with: Option<String>,
    #[serde(default)]
    replace_with: Vec<String>,
    #[serde(default)]
    ignore_changes: Vec<String>,
    #[serde(default)]
    replace_on_changes: Vec<String>,
    #[serde(default)]
    replacement_trigger: Value,
    #[serde(default)]
    refresh_before_update: bool,
}

/// Converts an exported state to a snapshot. Every provider resource gets a UUID of its own in place of the mark.
///
/// # Errors
/// Returns a text about the entry that cannot be read.
pub fn import(deployment: &Deployment) -> Result<Snapshot, String> {
    let mut uuids = Uuids::default();
    let mut entries = Vec::new();
    for resource in &deployment.resources {
        let mut entry = Entry::deserialize(resource).map_err(|error| format!("{error} in {resource}"))?;
        if entry.id == UUID_MARK {
            entry.id = uuids.new_id(&entry.urn, entry.delete);
        }
        entries.push(entry);
    }
    let resources = entries.into_iter().map(|entry| uuids.state(entry)).collect::<Result<_, _>>()?;
    let mut pending_operations = Vec::new();
    for operation in &deployment.pending_operations {
        let entry = Entry::deserialize(&operation["resource"]).map_err(|error| format!("{error} in {operation}"))?;
        let kind = match operation["type"].as_str() {
            Some("creating") => OperationKind::Creating,
            Some("updating") => OperationKind::Updating,
            Some("deleting") => OperationKind::Deleting,
            Some("reading") => OperationKind::Reading,
            Some("importing") => OperationKind::Importing,
            other => return Err(format!("unknown kind of operation: {other:?}")),
        };
        pending_operations.push(PendingOperation { resource: uuids.state(entry)?, kind });
    }
    Ok(Snapshot { resources, pending_operations, ..Snapshot::default() })
}

/// Ids of provider resources, by URN.
#[derive(Default)]
struct Uuids {
    by_urn: BTreeMap<String, String>,
    count: u32,
}

impl Uuids {
    /// Returns a new id. If a provider has two entries, references resolve to the one with `is_referenced`, which is
    /// pending delete.
    fn new_id(&mut self, urn: &str, is_referenced: bool) -> String {
        self.count += 1;
        let uuid = format!("00000000-0000-4000-8000-{:012}", self.count);
        if is_referenced || !self.by_urn.contains_key(urn) {
            self.by_urn.insert(urn.to_owned(), uuid.clone());
        }
        uuid
    }

    fn state(&self, entry: Entry) -> Result<Arc<ResourceState>, String> {
        let provider = entry.provider.map(|reference| match reference.strip_suffix(UUID_MARK) {
            Some(urn) => {
                let uuid = self.by_urn.get(urn.trim_end_matches("::"));
                format!("{urn}{}", uuid.map_or(UUID_MARK, String::as_str))
            }
            None => reference,
        });
        let timeout = |name| entry.custom_timeouts.get(name).and_then(|seconds| duration::from_seconds(*seconds));
        Ok(Arc::new(ResourceState {
            delete: entry.delete,
            id: ResourceId::new(entry.id),
            type_token: TypeToken::new(&entry.type_token),
            inputs: Arc::new(import_map(&entry.inputs)?),
            outputs: Arc::new(import_map(&entry.outputs)?),
            parent: entry.parent.map(import_urn).transpose()?,
            protect: entry.protect,
            taint: entry.taint,
            external: entry.external,
            dependencies: import_urns(entry.dependencies)?,
            init_errors: entry.init_errors,
            provider: provider.map(|text| text.parse().map_err(|error| format!("{error}"))).transpose()?,
            property_dependencies: entry
                .property_dependencies
                .into_iter()
                .map(|(key, urns)| Ok((key, import_urns(urns)?)))
                .collect::<Result<_, String>>()?,
            pending_replacement: entry.pending_replacement,
            additional_secret_outputs: entry.additional_secret_outputs,
            custom_timeouts: Timeouts {
                create: timeout("create"),
                update: timeout("update"),
                delete: timeout("delete"),
                read: timeout("read"),
            }
            .into(),
            import_id: ResourceId::new(entry.import_id),
            retain_on_delete: entry.retain_on_delete,
            deleted_with: entry.deleted_with.map(import_urn).transpose()?,
            replace_with: import_urns(entry.replace_with)?,
            ignore_changes: entry.ignore_changes,
            replace_on_changes: entry.replace_on_changes,
            replacement_trigger: import_value(&entry.replacement_trigger)?,
            refresh_before_update: entry.refresh_before_update,
            ..ResourceState::new(import_urn(entry.urn)?, entry.custom)
        }))
    }
}
fn import_urn(text: String) -> Result<Urn, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn import_urns(texts: Vec<String>) -> Result<Vec<Urn>, String> {
    texts.into_iter().map(import_urn).collect()
}

fn import_map(map: &Map<String, Value>) -> Result<PropertyMap, String> {
    map.iter().map(|(key, value)| Ok((key.clone(), import_value(value)?))).collect()
}

fn import_value(value: &Value) -> Result<PropertyValue, String> {
    Ok(match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().ok_or("a number that is not a double")?),
        Value::String(text) if text == UNKNOWN_STRING => PropertyValue::UNKNOWN,
        Value::String(text) => PropertyValue::String(text.clone()),
        Value::Array(items) => PropertyValue::List(items.iter().map(import_value).collect::<Result<_, _>>()?),
        Value::Object(members) => match members.get(SIGNATURE_KEY).and_then(Value::as_str) {
            None => PropertyValue::Map(import_map(members)?),
            Some(SECRET_SIGNATURE) => {
                let text = members.get(PLAINTEXT).and_then(Value::as_str).ok_or("a secret without its text")?;
                let plaintext_value: Value =
                    serde_json::from_str(text).map_err(|error| format!("{error} in a secret"))?;
                PropertyValue::secret_verbatim(import_value(&plaintext_value)?)
            }
            Some(signature) => return Err(format!("a value with the signature {signature}")),
        },
    })
}
