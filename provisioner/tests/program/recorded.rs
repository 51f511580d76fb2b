//! Compares the requests of programs with those of the Go program, which were recorded at Pulumi's resource monitor
//! (tests/goldens/simple-container/README.md). `SC_REGISTRATIONS` names a file with further recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bridge::provider::Alias;
use engine::Goal;
use engine::{InvokeGoal, ReadGoal};
use provisioner::registry::recipes;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::{ProviderReference, Urn};
use serde_json::{Map, Value, json};

use crate::fake::{self, FakeDeployment, Run, StackProgram};

/// Recordings that `sc` differs from on purpose, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("gcp-kms: without a location", "`keyLocation` is required: an error at the line of the `config`"),
    ("gcp-bucket: without a location, in production", "`location` is required: an error at its line"),
    ("s3-bucket: a domain without a registrar", "an error at the line of `domain`"),
    ("ecr-repository: one name in two environments", "two different resources of one name: an error before the run"),
    ("gcp-pubsub: one topic in two environments", "two different resources of one name: an error before the run"),
    ("gcp-redis: nothing", "`projectId` and `memorySizeGb` are required: errors at the line of the `config`"),
    ("gcp-cloudsql-postgres: nothing, not even a version", "`projectId` and `version` are required, as above"),
    ("mongodb-atlas: one user as admin and developer", "the same user twice: an error at its line"),
    ("kubernetes-caddy: a service without a status", "the Go program panics; the address in the output is empty"),
    ("kubernetes-caddy: nothing but a kubeconfig", "the Go program panics; all other keys have defaults"),
    ("gcp-artifact-registry: a domain without a registrar", "an error at the line of `domain`"),
    ("gcp-artifact-registry: no project", "`projectId` is required: an error at the line of the `config`"),
    ("cloudflare: one record twice", "an error at the line of the second record"),
    ("cloudflare: a record without a name, a zone that is not found", "both are errors"),
    ("cloudflare: a record without a value", "an error at the line of the record"),
];

/// Converts a value to the format of the recording.
fn to_recorded_value(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Bool(value) => (*value).into(),
        PropertyValue::Number(value) if value.fract() == 0.0 => json!(*value as i64),
        PropertyValue::Number(value) => json!(value),
        PropertyValue::String(text) => text.as_str().into(),
        PropertyValue::List(items) => items.iter().map(to_recorded_value).collect(),
        PropertyValue::Map(map) => members(map),
        PropertyValue::Secret(secret) => json!({ "secret": to_recorded_value(secret.expose()) }),
        PropertyValue::Unknown(_) => json!({ "unknown": true }),
        PropertyValue::Null => Value::Null,
        PropertyValue::Resource(reference) => {
            let mut resource = json!({ "name": reference.urn.name() });
            let id = reference.id.as_ref().map(|id| ResourceId::text(id.known()));
            let version = reference.package_version.as_deref();
            for (name, value) in [("id", id), ("version", version)] {
                if let Some(value) = value {
                    resource[name] = value.into();
                }
            }
            json!({ "resource": resource })
        }
        other => panic!("{other:?}"),
    }
}

/// Converts a value of a recording.
fn from_recorded_value(value: &Value) -> PropertyValue {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(value) => PropertyValue::Number(value.as_f64().unwrap()),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(from_recorded_value).collect::<Vec<_>>().into(),
        Value::Object(members) => match members.get("secret").filter(|_| members.len() == 1) {
            Some(secret) => PropertyValue::secret(from_recorded_value(secret)),
            None => PropertyValue::Map(from_members(value)),
        },
    }
}

fn from_members(value: &Value) -> PropertyMap {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), from_recorded_value(value))).collect()
}

fn members(map: &PropertyMap) -> Value {
    map.iter().map(|(key, value)| (key.clone(), to_recorded_value(value))).collect::<Map<_, _>>().into()
}

fn names<'u>(urns: impl IntoIterator<Item = &'u Urn>) -> Value {
    let mut names: Vec<&str> = urns.into_iter().map(Urn::name).collect();
    names.sort_unstable();
    names.into()
}

/// Returns an object without its empty members.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    let members = members.into_iter().filter(|(_, value)| !is_empty(value));
    members.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn provider(provider: Option<&ProviderReference>) -> Value {
    provider.map_or("", |provider| provider.urn.name()).into()
}

/// Converts a goal to the format of the recording.
fn registration(goal: &Goal) -> Value {
    let former = goal.aliases.iter().map(|alias| match alias {
        Alias::Spec { type_token: Some(former), .. } => Value::from(former.as_str()),
        other => panic!("{other:?}"),
    });
    let dependencies = goal.property_dependencies.iter().map(|(name, urns)| (name.clone(), names(urns)));
    object([
        ("type", goal.type_token.as_str().into()),
        ("name", goal.name.as_str().into()),
        ("custom", goal.custom.into()),
        ("remote", goal.remote.into()),
        ("inputs", members(&goal.inputs)),
        ("propertyDependencies", dependencies.collect::<Map<_, _>>().into()),
        ("dependencies", names(&goal.dependencies)),
        ("provider", provider(goal.provider.as_ref())),
        ("providers", goal.providers.iter().map(|(name, of)| (name.clone(), provider(Some(of)))).collect()),
        ("additionalSecretOutputs", goal.additional_secret_outputs.clone().into()),
        ("aliases", former.collect()),
        ("ignoreChanges", goal.ignore_changes.clone().into()),
        ("protect", goal.protect.into()),
        ("retainOnDelete", goal.retain_on_delete.into()),
        ("version", goal.version.as_deref().unwrap_or_default().into()),
        ("import", ResourceId::text(goal.import_id.as_ref()).into()),
        ("parent", goal.parent.as_ref().map_or("", Urn::name).into()),
        ("customTimeouts", timeouts(goal.custom_timeouts)),
    ])
}

fn timeouts(timeouts: Timeouts) -> Value {
    let text =
        |limit: Option<Duration>| limit.map(|limit| format!("{}m", limit.as_secs() / 60)).unwrap_or_default().into();
    object([
        ("create", text(timeouts.create)),
        ("update", text(timeouts.update)),
        ("delete", text(timeouts.delete)),
        ("read", text(timeouts.read)),
    ])
}

/// Converts a read to the format of the recording.
fn read(goal: &ReadGoal) -> Value {
    object([
        ("type", goal.type_token.as_str().into()),
        ("name", goal.name.as_str().into()),
        ("id", goal.id.as_str().into()),
        ("provider", provider(goal.provider.as_ref())),
        ("parent", goal.parent.as_ref().map_or("", Urn::name).into()),
    ])
}

/// Converts the call of a function to the format of the recording, without its reply.
fn invoke(goal: &InvokeGoal) -> Value {
    object([
        ("token", goal.token.as_str().into()),
        ("args", members(&goal.arguments)),
        ("provider", provider(goal.provider.as_ref())),
        ("version", goal.version.as_deref().unwrap_or_default().into()),
    ])
}

/// Returns a recorded value as `sc` is meant to send it.
fn intended(value: &Value) -> Value {
    match value {
        // The recorder is no release, so that it has no version to name.
        Value::String(image) if image == "simplecontainer/caddy:latest" => "simplecontainer/caddy:2026.7.2".into(),
        Value::Array(items) => items.iter().map(intended).collect(),
        Value::Object(members) => {
            // An unknown value never reaches a cluster: Pulumi's engine leaves it out in an update. `sc` leaves it out in a
            // preview, too, which would report a change of the deployment each time.
            let is_prefix = members.get("name").is_some_and(|name| name == "CADDYFILE_PREFIX");
            let members = members.iter().filter(|(_, value)| !is_prefix || **value != json!({ "unknown": true }));
            members.map(|(key, value)| (key.clone(), intended(value))).collect::<Map<_, _>>().into()
        }
        value => value.clone(),
    }
}

/// Returns whether values are equal. A text that lands in clusters is one of our own: any text takes its place.
fn is_equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::String(_)) => expected.len() == 1 && expected.contains_key("text"),
        (Value::Object(expected), Value::Object(actual)) => {
            let is_member_equal = |(key, value)| actual.get(key).is_some_and(|actual| is_equal(value, actual));
            expected.len() == actual.len() && expected.iter().all(is_member_equal)
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| is_equal(expected, actual))
        }
        (expected, actual) => expected == actual,
    }
}

/// Prepares a recorded object for the comparison: without empty members and sorted where the order has no meaning.
fn recorded(value: &Value) -> Value {
    let value = &intended(value);
    let members = value.as_object().unwrap().iter().filter(|(key, _)| !["answer", "refused"].contains(&key.as_str()));
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    members
        .filter(|(_, value)| !is_empty(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns a value as text, with the members of objects sorted.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(key, value)| (key, sorted(value))).collect();
            let members: Vec<_> = members.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Returns the differences between two lists of requests.
fn differences(kind: &str, actual: impl IntoIterator<Item = Value>, expected: &Value) -> Vec<String> {
    let mut actual: Vec<Value> = actual.into_iter().collect();
    let mut differences = Vec::new();
    for expected in expected.as_array().into_iter().flatten().map(recorded) {
        match actual.iter().position(|actual| is_equal(&expected, actual)) {
            Some(index) => drop(actual.swap_remove(index)),
            None => differences.push(format!("{kind} missing:    {}", sorted(&expected))),
        }
    }
    differences.extend(actual.iter().map(|actual| format!("{kind} unexpected: {}", sorted(actual))));
    differences.sort_by_key(|text| text.split_once("\"name\":").map(|(_, rest)| rest.to_owned()));
    differences
}

/// Compares the exports. The engine marks secrets that the recorder does not, so that a mark more is no difference.
fn differing_exports(actual: &PropertyMap, expected: &Value) -> Vec<String> {
    let actual = members(actual);
    let (actual, expected) = (actual.as_object().unwrap(), expected.as_object().unwrap());
    let exposed = |value: &Value| value.get("secret").unwrap_or(value).clone();
    let keys: BTreeSet<&String> = actual.keys().chain(expected.keys()).collect();
    keys.into_iter()
        .filter_map(|key| {
            let (ours, theirs) = (actual.get(key), expected.get(key));
            let is_equal = ours.map(exposed) == theirs.map(exposed);
            let keeps_secret = theirs.is_none_or(|theirs| theirs.get("secret").is_none())
                || ours.is_some_and(|ours| ours.get("secret").is_some());
            (!is_equal || !keeps_secret).then(|| format!("export {key}: {ours:?} instead of {theirs:?}"))
        })
        .collect()
}

/// Compares the APIs that are switched on. `sc` asks once where the Go program asks again.
fn differing_apis(actual: &[String], expected: &Value) -> Option<String> {
    let actual: BTreeSet<&str> = actual.iter().map(String::as_str).collect();
    let expected: BTreeSet<&str> = expected.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    (actual != expected).then(|| format!("APIs {actual:?} instead of {expected:?}"))
}

/// Returns the recorded registrations. Of those that the Go program makes twice, `sc` makes the first.
fn without_repetitions(case: &Value) -> Value {
    let twice = case["twice"].as_array().cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let registrations = case["registrations"].as_array().into_iter().flatten();
    let is_first =
        |goal: &&Value| !twice.contains(&goal["name"]) || seen.insert(sorted(&json!([goal["type"], goal["name"]])));
    registrations.filter(is_first).cloned().collect()
}

/// Returns the program of a case; `None` if it is that of a key, and the stack asks for none.
fn subject(case: &Value) -> Result<Option<StackProgram>, String> {
    let server = case["server"].as_str().unwrap();
    if case["mode"] == "secrets-provider" {
        let text = |name: &str, default: &'static str| case[name].as_str().unwrap_or(default).to_owned();
        return StackProgram::key(server, &text("project", "reef"), &text("stack", "s"));
    }
    StackProgram::try_complete(server, recipes::built_in_types(), recipes::core_types()).map(Some)
}

/// Runs the program of a case, and returns the differences.
async fn compare(case: &Value) -> Vec<String> {
    let subject = match subject(case) {
        Ok(Some(subject)) => subject,
        Ok(None) if case["registrations"] == json!([]) => return Vec::new(),
        Ok(None) => return vec!["no program".to_owned()],
        Err(_) if !case["error"].is_null() => return Vec::new(),
        Err(diagnostics) => return vec![diagnostics],
    };
    let mut deployment = FakeDeployment::default();
    if case["preview"] == true {
        deployment.run = Run::Preview;
    }
    for (name, outputs) in case["outputs"].as_object().into_iter().flatten() {
        deployment.outputs.insert(name.clone(), from_members(outputs));
    }
    for (token, reply) in case["answers"].as_object().into_iter().flatten() {
        deployment.replies.insert(token.clone(), from_members(reply));
    }
    for (name, reason) in case["refuse"].as_object().into_iter().flatten() {
        deployment.refused.insert(name.clone(), reason.as_str().unwrap().to_owned());
    }
    for (name, reason) in case["failApis"].as_object().into_iter().flatten() {
        deployment.refused_apis.insert(name.clone(), reason.as_str().unwrap().to_owned());
    }
    let result = subject.program.run(&deployment, &deployment).await;

    let has_failed = result.end == engine::ProgramEnd::Failed;
    let mut differences = Vec::new();
    if has_failed == case["error"].is_null() {
        differences.push(format!("{:?} instead of {}", subject.render(&result.diagnostics), case["error"]));
    }
    let goals = deployment.goals.lock().unwrap();
    let component_outputs = deployment.component_outputs.lock().unwrap();
    let registered = goals.iter().filter(|goal| goal.parent.is_some()).map(|goal| {
        let mut registration = registration(goal);
        let outputs = component_outputs.iter().find(|(urn, _)| *urn == fake::urn(goal));
        if let Some((_, outputs)) = outputs {
            registration["registeredOutputs"] = members(outputs);
        }
        registration
    });
    differences.extend(self::differences("registration", registered, &without_repetitions(case)));
    let invokes = deployment.invokes.lock().unwrap();
    differences.extend(self::differences("invoke", invokes.iter().map(invoke), &case["invokes"]));
    let reads = deployment.reads.lock().unwrap();
    differences.extend(self::differences("read", reads.iter().map(read), &case["reads"]));
    differences.extend(differing_apis(&deployment.apis.lock().unwrap(), &case["apis"]));
    let mut outputs = deployment.stack_outputs.lock().unwrap().clone().unwrap_or_default();
    // The Go program exports these or not, by chance.
    let racing = case["racingExports"].as_array().into_iter().flatten();
    outputs.retain(|name, _| racing.clone().all(|racing| racing != name.as_str()));
    if !has_failed {
        differences.extend(differing_exports(&outputs, &case["exports"]));
    }
    differences
}

fn cases() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations");
    let further = std::env::var_os("SC_REGISTRATIONS").map(PathBuf::from);
    let files = [folder.join("buckets.json"), folder.join("cases.json")].into_iter().chain(further);
    let cases = files.flat_map(|file| serde_json::from_str::<Vec<Value>>(&fs::read_to_string(file).unwrap()).unwrap());
    cases.map(|case| (case["name"].as_str().unwrap().to_owned(), case)).collect()
}

/// Shows: comparison.md#what-is-the-same "the same resources, names, inputs and outputs"
#[tokio::test]
async fn registrations_match_recordings_of_go_program() {
    let (recipes, keys) = (recipes::core_types(), recipes::keys());
    let (types, keys): (BTreeSet<&str>, BTreeSet<&str>) = (recipes.names().collect(), keys.names().collect());
    let (mut compared, mut failures) = (0, Vec::new());
    for (name, case) in cases() {
        let type_name = name.split_once(':').map(|(type_name, _)| type_name);
        let is_excepted = EXCEPTIONS.iter().any(|(excepted, _)| *excepted == name);
        let is_known = match case["mode"].as_str() {
            None => type_name.is_none_or(|type_name| types.contains(type_name)),
            Some("secrets-provider") => type_name.is_some_and(|type_name| keys.contains(type_name)),
            Some(_) => false,
        };
        if !is_known || is_excepted {
            continue;
        }
        compared += 1;
        let differences = compare(&case).await;
        if !differences.is_empty() {
            failures.push(format!("{name}\n  {}", differences.join("\n  ")));
        }
    }
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    assert!(compared >= 30, "{compared}");
}
