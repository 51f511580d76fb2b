//! Compares the registrations of the program runner with those of Pulumi's YAML host in the recorded calls and states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bridge::host::PackageTypes;
use engine::{Goal, Halted, InvokeGoal, ReadGoal, Registered, Registrar, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue, SECRET_SIGNATURE, SIGNATURE_KEY};
use pulumi_proto::urn::{TypeToken, Urn};
use serde_json::{Map, Value, json};
use state::{ResourceState, Snapshot};
use tests::export;
use tests::program_runner::{Concurrency, ProgramResult, run_program};
use tests::scenario::{Op, PROJECT, STACK, Step};

use crate::scenarios;

/// Registrar that replies to registrations from the recording, and collects differences.
#[derive(Debug)]
struct Replay<'a> {
    name: String,
    step: &'a Step,
    state: Snapshot,
    observed: Mutex<Observed>,
}

#[derive(Debug, Default)]
struct Observed {
    order: Vec<String>,
    outputs: Option<PropertyMap>,
    mismatches: Vec<String>,
}

impl Replay<'_> {
    fn urn(parent: Option<&Urn>, type_token: &TypeToken, name: &str) -> Urn {
        Urn::new(STACK, PROJECT, parent, type_token.as_str(), name)
    }

    fn entry(&self, urn: &Urn) -> Option<&Arc<ResourceState>> {
        self.state.resources.iter().find(|entry| entry.urn == *urn && !entry.delete)
    }

    fn compare_value<T: PartialEq + std::fmt::Debug>(&self, urn: &Urn, what: &str, recorded: T, ours: T) {
        if recorded != ours {
            let mismatch = format!("{} {urn} {what}: recorded {recorded:?}, ours {ours:?}", self.name);
            self.observed.lock().unwrap().mismatches.push(mismatch);
        }
    }

    /// Returns the request of the first recorded call for a resource.
    fn call(&self, rpcs: &[&str], urn: &Urn) -> Option<&Value> {
        let is_it = |rpc: &str, request: &Value| rpcs.contains(&rpc) && request["urn"] == urn.as_str();
        self.step.expect.calls.iter().find(|call| is_it(&call.rpc, &call.request)).map(|call| &call.request)
    }

    fn reply(&self, urn: Urn) -> Registered {
        self.observed.lock().unwrap().order.push(urn.as_str().to_owned());
        match self.entry(&urn) {
            Some(entry) => Registered {
                id: entry.id.clone(),
                outputs: Arc::clone(&entry.outputs),
                ..Registered::without_outputs(urn, RegistrationResult::Succeeded)
            },
            None => Registered::without_outputs(urn, RegistrationResult::Skipped),
        }
    }
}

/// Converts a value to its form on the wire; `secrets`: secrets keep their mark.
fn wire(value: &PropertyValue, secrets: bool) -> Value {
    match value {
        PropertyValue::Secret(secret) if secrets => {
            json!({ SIGNATURE_KEY: SECRET_SIGNATURE, "value": wire(secret.expose(), secrets) })
        }
        PropertyValue::Secret(secret) => wire(secret.expose(), secrets),
        PropertyValue::Map(map) => wire_map(map, secrets),
        PropertyValue::List(items) => items.iter().map(|item| wire(item, secrets)).collect::<Vec<_>>().into(),
        PropertyValue::Null => Value::Null,
        PropertyValue::Bool(value) => json!(value),
        PropertyValue::Number(value) => json!(value),
        PropertyValue::String(text) => json!(text),
        other => panic!("{other:?}"),
    }
}

fn wire_map(map: &PropertyMap, secrets: bool) -> Value {
    let known = map.iter().filter(|(_, value)| !value.contains_unknowns());
    known.map(|(key, value)| (key.clone(), wire(value, secrets))).collect::<Map<_, _>>().into()
}

fn doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(doubles).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), doubles(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[async_trait]
impl Registrar for Replay<'_> {
    fn is_preview(&self) -> bool {
        false
    }

    fn changes_resources(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        usize::MAX
    }

    async fn package_types(&self, _: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted> {
        Ok(BTreeMap::new())
    }

    async fn register(&self, goal: Goal) -> Result<Registered, Halted> {
        let urn = Self::urn(goal.parent.as_ref(), &goal.type_token, &goal.name);
        if let Some(check) = self.call(&["Check", "CheckConfig"], &urn)
            && check["olds"] == json!({})
        {
            let secrets = self.step.script.provider.accept_secrets != Some(false) && !goal.type_token.is_provider();
            let mut inputs = goal.inputs.clone();
            if let Some(version) = goal.version.as_deref().filter(|_| goal.type_token.is_provider()) {
                // The deployment adds the version of a provider resource to its inputs.
                Arc::make_mut(&mut inputs).insert("version".to_owned(), version.into());
            }
            self.compare_value(&urn, "inputs", doubles(&check["news"]), wire_map(&inputs, secrets));
        }
        if let Some(entry) = self.entry(&urn) {
            let set = |urns: &[Urn]| urns.iter().cloned().collect::<BTreeSet<_>>();
            self.compare_value(&urn, "dependencies", set(&entry.dependencies), set(&goal.dependencies));
            let lists = |state: &std::collections::BTreeMap<String, Vec<Urn>>| {
                state.iter().map(|(key, urns)| (key.clone(), set(urns))).collect::<Vec<_>>()
            };
            self.compare_value(
                &urn,
                "property dependencies",
                lists(&entry.property_dependencies),
                lists(&goal.property_dependencies),
            );
            self.compare_value(&urn, "parent", &entry.parent, &goal.parent);
            self.compare_value(&urn, "ignoreChanges", &entry.ignore_changes, &goal.ignore_changes);
            self.compare_value(&urn, "replaceOnChanges", &entry.replace_on_changes, &goal.replace_on_changes);
            self.compare_value(
                &urn,
                "secret outputs",
                &entry.additional_secret_outputs,
                &goal.additional_secret_outputs,
            );
            self.compare_value(&urn, "timeouts", entry.custom_timeouts, goal.custom_timeouts.into());
            self.compare_value(&urn, "replaceWith", &entry.replace_with, &goal.replace_with);
            self.compare_value(
                &urn,
                "trigger",
                &entry.replacement_trigger,
                goal.replacement_trigger.as_ref().unwrap_or(&PropertyValue::Null),
            );
            self.compare_value(&urn, "importID", &entry.import_id, &goal.import_id);
            if goal.deleted_with.is_some() {
                self.compare_value(&urn, "deletedWith", &entry.deleted_with, &goal.deleted_with);
            }
            if goal.provider.is_some() {
                self.compare_value(&urn, "provider", &entry.provider, &goal.provider);
            }
        }
        Ok(self.reply(urn))
    }

    async fn register_outputs(&self, _: &Urn, outputs: PropertyMap) -> Result<(), Halted> {
        self.observed.lock().unwrap().outputs = Some(outputs);
        Ok(())
    }

    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted> {
        let urn = Self::urn(goal.parent.as_ref(), &goal.type_token, &goal.name);
        if let Some(read) = self.call(&["Read"], &urn) {
            self.compare_value(&urn, "id", read["id"].as_str(), goal.id.known().map(|id| id.as_str()));
            self.compare_value(&urn, "properties", doubles(&read["properties"]), wire_map(&goal.properties, true));
        }
        Ok(self.reply(urn))
    }

    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Halted> {
        let invoke = self.step.expect.calls.iter().find(|call| call.rpc == "Invoke").expect("no Invoke was recorded");
        assert_eq!(doubles(&invoke.request["args"]), wire_map(&goal.arguments, true), "{}", self.name);
        Ok([("result".to_owned(), PropertyValue::Map(goal.arguments))].into())
    }
}

#[tokio::test]
async fn program_registers_recorded_resources_in_recorded_order() {
    let mut steps = 0;
    let mut mismatches = Vec::new();
    for scenario in scenarios() {
        for (index, step) in scenario.steps.iter().enumerate() {
            // The calls do not show the registrations of resources that are out of scope or replayed from the state.
            let is_comparable =
                step.flags.target.is_empty() && step.flags.exclude.is_empty() && scenario.plugins.is_empty();
            if step.op != Op::Up || !step.expect.ok || !is_comparable {
                continue;
            }
            steps += 1;
            let name = format!("{}/{index}", scenario.name);
            let state = export::import(&step.expect.state).unwrap();
            let replay = Replay { name, step, state, observed: Mutex::default() };
            for concurrency in [Concurrency::Sequential, Concurrency::Concurrent] {
                assert_eq!(run_program(step, &replay, concurrency).await, ProgramResult::Completed, "{}", replay.name);
                let observed = std::mem::take(&mut *replay.observed.lock().unwrap());
                mismatches.extend(observed.mismatches);
                let outputs = replay.state.stack_outputs().cloned().unwrap_or_default();
                if observed.outputs.as_ref() != Some(&outputs) {
                    mismatches
                        .push(format!("{} outputs: recorded {outputs:?}, ours {:?}", replay.name, observed.outputs));
                }
                let ours: Vec<&String> = observed.order.iter().skip(1).collect();
                let mut recorded: Vec<&str> = Vec::new();
                for call in step.expect.calls.iter().filter(|call| matches!(call.rpc.as_str(), "Check" | "CheckConfig"))
                {
                    let urn = call.request["urn"].as_str().unwrap();
                    if !recorded.contains(&urn) && !urn.ends_with("providers:rec::default") {
                        recorded.push(urn);
                    }
                }
                let checked: Vec<&String> = ours.into_iter().filter(|urn| recorded.contains(&urn.as_str())).collect();
                let recorded: Vec<&str> =
                    recorded.into_iter().filter(|urn| checked.iter().any(|other| other == urn)).collect();
                if checked != recorded {
                    mismatches.push(format!("{} order: recorded {recorded:?}, ours {checked:?}", replay.name));
                }
            }
        }
    }
    assert_eq!(mismatches, Vec::<String>::new());
    assert!(steps > 500, "{steps}");
}
