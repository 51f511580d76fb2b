//! `sc state show`: shows one recorded resource.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use pulumi_proto::duration;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use serde_json::{Value, json};
use state::{OperationKind, ResourceState};

use super::ls::{is_on_entry, status};
use super::view::{Decryption, find_resource, load_for_display};
use crate::cli::args::{GlobalArgs, ShowArgs, StackArgs};
use crate::cli::display::{DiffOptions, DisplayValue, Line, Palette, Redactor, Secrets, map_to_json, values};
use crate::cli::exit::Exit;
use crate::cli::listing::time_and_age;
use crate::cli::ui::Ui;

/// Show a recorded resource: its id, provider, dependencies, options, inputs and outputs
///
/// Shows each entry of the resource, if the state has several, such as one that awaits its deletion. No passphrase is
/// needed without --show-secrets, unless an interrupted run has left a journal with secrets.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Show a bucket, by its name, by its key in server.yaml, and by environment and key:
      sc state show -s aquarium media--prod
      sc state show -s aquarium media
      sc state show -s aquarium prod/media
  Use an output of a resource in a script:
      sc state show -s aquarium media --json | jq -r .outputs.arn")]
pub(crate) struct ShowResourceArgs {
    /// Resource, by name (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN
    #[arg(value_name = "RESOURCE")]
    resource: String,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ShowResourceArgs) -> anyhow::Result<Exit> {
    let secrets = args.show.secrets();
    let decryption = match secrets {
        Secrets::Shown => Decryption::Required,
        Secrets::Masked => Decryption::WithPassphrase,
    };
    let (stacks, snapshot) = load_for_display(ui, global, &args.stack, decryption).await?;
    let urn = find_resource(&snapshot, &args.resource)?;
    let entries = snapshot.resources.iter().filter(|state| state.urn == urn).map(|state| {
        let mut operations = snapshot.pending_operations.iter();
        (state, operations.find(|operation| is_on_entry(operation, state)).map(|operation| operation.kind))
    });
    let operations = snapshot.pending_operations.iter().filter(|operation| operation.resource.urn == urn);
    let operations =
        operations.filter(|operation| !snapshot.resources.iter().any(|state| is_on_entry(operation, state)));
    let shown = entries.chain(operations.map(|operation| (&operation.resource, Some(operation.kind))));
    let mut redactor = Redactor::new(ui.output.masker(), secrets);
    let mut lines = Vec::new();
    for (state, pending) in shown {
        let mut state = Arc::clone(state);
        redactor.resource(&mut state);
        if ui.output.results_are_json() {
            lines.push(Line::plain(as_json(&state, pending, secrets)));
        } else {
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            lines.extend(as_lines(&state, pending, ui.output.diff_options(secrets), stacks.process_context.now));
        }
    }
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

fn as_lines(state: &ResourceState, pending: Option<OperationKind>, options: DiffOptions, now: Timestamp) -> Vec<Line> {
    let mut lines = vec![Line::new().styled(Palette::BOLD, state.urn.name()).text(format!(" ({})", state.type_token))];
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(Line::plain(format!("  {name}:")).pad_to(16).text(value));
        }
    };
    fact("URN", state.urn.to_string());
    fact("id", state.id_text().to_owned());
    fact("status", status(state, pending).join(", "));
    let provider = state.provider.as_ref().map(|provider| provider.urn.clone());
    fact("provider", provider.as_ref().map(resource_text).unwrap_or_default());
    fact("parent", state.parent.as_ref().map(resource_text).unwrap_or_default());
    let dependencies: Vec<String> = state.dependencies.iter().map(resource_text).collect();
    fact("depends on", dependencies.join(", "));
    let time = |time: Option<Timestamp>| time.map(|time| time_and_age(time, now)).unwrap_or_default();
    fact("created", time(state.created));
    fact("modified", time(state.modified));
    for error in &state.init_errors {
        fact("error", error.clone());
    }
    let mut section = |title: &str, content: Vec<Line>| {
        if !content.is_empty() {
            lines.push(Line::plain(format!("  {title}:")));
            lines.extend(content.into_iter().map(|line| Line::plain("  ").join(line)));
        }
    };
    let options_of_resource = resource_options(state, options.secrets);
    let line = |(name, value): &(&str, Value)| Line::plain(format!("  {name}: {value}"));
    section("options", options_of_resource.iter().map(line).collect());
    section("inputs", values(&state.inputs, options));
    section("outputs", values(&state.outputs, options));
    lines
}

/// Returns the name of a resource with its type.
fn resource_text(urn: &Urn) -> String {
    format!("{} ({})", urn.name(), urn.type_token())
}

fn as_json(state: &ResourceState, pending: Option<OperationKind>, secrets: Secrets) -> String {
    let properties = |map: &PropertyMap| map_to_json(&DisplayValue::of_map(map, secrets));
    let options = resource_options(state, secrets).into_iter().map(|(name, value)| (name.to_owned(), value));
    json!({
        "name": state.urn.name(),
        "type": state.type_token.as_str(),
        "id": state.id.as_ref().map(|_| state.id_text()),
        "urn": state.urn.as_str(),
        "status": status(state, pending),
        "provider": state.provider.as_ref().map(|provider| provider.urn.as_str()),
        "parent": state.parent.as_ref().map(Urn::as_str),
        "dependencies": urns_to_json(&state.dependencies),
        "created": state.created.map(|time| time.to_string()),
        "modified": state.modified.map(|time| time.to_string()),
        "initErrors": state.init_errors,
        "options": Value::Object(options.collect()),
        "inputs": properties(&state.inputs),
        "outputs": properties(&state.outputs),
    })
    .to_string()
}

fn urns_to_json(urns: &[Urn]) -> Value {
    urns.iter().map(|urn| urn.as_str()).collect()
}

/// Returns the options of a resource that are set, with their names in server.yaml.
fn resource_options(state: &ResourceState, secrets: Secrets) -> Vec<(&'static str, Value)> {
    let timeouts = state.custom_timeouts.durations();
    let timeouts = [
        ("create", timeouts.create),
        ("update", timeouts.update),
        ("delete", timeouts.delete),
        ("read", timeouts.read),
    ];
    let timeouts = timeouts.into_iter().filter(|(_, timeout)| timeout.is_some());
    let timeouts: serde_json::Map<String, Value> =
        timeouts.map(|(name, timeout)| (name.to_owned(), duration::format(timeout).into())).collect();
    let trigger = match &state.replacement_trigger {
        PropertyValue::Null => Value::Null,
        trigger => DisplayValue::of(trigger, secrets).to_json(),
    };
    let options = [
        ("protect", json!(state.protect)),
        ("retainOnDelete", json!(state.retain_on_delete)),
        ("deletedWith", json!(state.deleted_with.as_ref().map(Urn::as_str))),
        ("replaceWith", urns_to_json(&state.replace_with)),
        ("ignoreChanges", json!(state.ignore_changes)),
        ("replaceOnChanges", json!(state.replace_on_changes)),
        ("hideDiffs", json!(state.hide_diff)),
        ("additionalSecretOutputs", json!(state.additional_secret_outputs)),
        ("replacementTrigger", trigger),
        ("import", json!(state.import_id.as_ref().map(ToString::to_string))),
        ("customTimeouts", Value::Object(timeouts)),
    ];
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    options.into_iter().filter(|(_, value)| is_set(value)).collect()
}

#[cfg(test)]
mod tests {
    use pulumi_proto::duration::Timeouts;
    use pulumi_proto::resource_id::ResourceId;
    use state::CustomTimeouts;

    use super::*;

    fn urn(type_and_name: &str) -> Urn {
        format!("urn:pulumi:dev::reef::{type_and_name}").parse().unwrap()
    }

    fn bucket() -> ResourceState {
        let map = |pairs: &[(&str, PropertyValue)]| {
            Arc::new(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<PropertyMap>())
        };
        let provider = format!("{}::u-1", urn("pulumi:providers:aws::aws"));
        ResourceState {
            id: ResourceId::new("media-1"),
            inputs: map(&[("acl", "private".into()), ("key", PropertyValue::secret("hush".into()))]),
            outputs: map(&[("arn", "arn:media".into())]),
            parent: Some(urn("pulumi:pulumi:Stack::reef-dev")),
            provider: Some(provider.parse().unwrap()),
            dependencies: vec![urn("aws:kms:Key::key--prod")],
            protect: true,
            ignore_changes: vec!["tags".to_owned()],
            custom_timeouts: CustomTimeouts::from(Timeouts {
                create: Some(std::time::Duration::from_secs(300)),
                ..Timeouts::default()
            }),
            created: Some("2026-11-21T00:49:38.8Z".parse().unwrap()),
            ..ResourceState::new(urn("aws:s3:Bucket::media--prod"), true)
        }
    }

    #[test]
    fn resource_is_shown_as_lines_with_secrets_masked() {
        let options = DiffOptions { secrets: Secrets::Masked, full: false };
        let now = "2026-11-21T00:52:38Z".parse().unwrap();
        let lines = as_lines(&bucket(), Some(OperationKind::Updating), options, now);
        let text: String = lines.iter().map(|line| line.render(false) + "\n").collect();
        insta::assert_snapshot!(text, @r#"
        media--prod (aws:s3:Bucket)
          URN:          urn:pulumi:dev::reef::aws:s3:Bucket::media--prod
          id:           media-1
          status:       protected, pending operation: updating
          provider:     aws (pulumi:providers:aws)
          parent:       reef-dev (pulumi:pulumi:Stack)
          depends on:   key--prod (aws:kms:Key)
          created:      2026-11-21 00:49:38 UTC (3 minutes ago)
          options:
            protect: true
            ignoreChanges: ["tags"]
            customTimeouts: {"create":"300s"}
          inputs:
            acl: "private"
            key: [secret]
          outputs:
            arn: "arn:media"
        "#);
    }

    #[test]
    fn resource_is_shown_as_json_with_secrets_on_request() {
        insta::assert_snapshot!(as_json(&bucket(), None, Secrets::Masked), @r#"{"name":"media--prod","type":"aws:s3:Bucket","id":"media-1","urn":"urn:pulumi:dev::reef::aws:s3:Bucket::media--prod","status":["protected"],"provider":"urn:pulumi:dev::reef::pulumi:providers:aws::aws","parent":"urn:pulumi:dev::reef::pulumi:pulumi:Stack::reef-dev","dependencies":["urn:pulumi:dev::reef::aws:kms:Key::key--prod"],"created":"2026-11-21T00:49:38.8Z","modified":null,"initErrors":[],"options":{"protect":true,"ignoreChanges":["tags"],"customTimeouts":{"create":"300s"}},"inputs":{"acl":"private","key":"[secret]"},"outputs":{"arn":"arn:media"}}"#);
        assert!(as_json(&bucket(), None, Secrets::Shown).contains("hush"));
    }
}
