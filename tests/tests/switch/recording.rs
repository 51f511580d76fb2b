//! Registrations of the Go program, as they were recorded, made again (tests/goldens/simple-container/README.md).

use std::collections::BTreeMap;

use bridge::provider::{Alias, AliasParent};
use engine::{Goal, ProgramEnd, ReadGoal, Registered, Registrar};
use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::{PropertyMap, PropertyValue, ResourceReference};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use serde_json::{Map, Value};

/// Text that stands for one of the texts that the recordings leave out.
pub(crate) const LEFT_OUT: &str = "text of the Go program";

/// Recording of one program.
pub(crate) struct Recording(pub(crate) Value);

/// Registered resources by name, in order.
type ByName = BTreeMap<String, Vec<Registered>>;

impl Recording {
    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    pub(crate) fn server(&self) -> &str {
        self.0["server"].as_str().unwrap()
    }

    /// Returns an object of the recording whose members are objects of properties.
    pub(crate) fn properties(&self, member: &str) -> BTreeMap<String, PropertyMap> {
        object(&self.0[member]).iter().map(|(name, value)| (name.clone(), properties(value))).collect()
    }

    /// Returns the inputs of the resources that are imported, by `TYPE::NAME`.
    pub(crate) fn imported(&self) -> BTreeMap<String, PropertyMap> {
        let imported = array(&self.0["registrations"]).iter().filter(|request| request["import"].is_string());
        let key = |request: &Value| format!("{}::{}", text(&request["type"]), text(&request["name"]));
        imported.map(|request| (key(request), properties(&request["inputs"]))).collect()
    }

    /// Registers and reads everything, each once what it needs is registered, and exports the outputs.
    pub(crate) async fn run(&self, registrar: &dyn Registrar) -> ProgramEnd {
        let root = Goal::component(TypeToken::new("pulumi:pulumi:Stack"), "reef-s", PropertyMap::new());
        let Ok(root) = registrar.register(root).await else { return ProgramEnd::Failed };
        let mut registered = ByName::from([("reef-s".to_owned(), vec![root.clone()])]);
        let requests = ["registrations", "reads"].map(|member| array(&self.0[member]));
        let mut waiting: Vec<&Value> = requests.into_iter().flatten().collect();
        let mut components = Vec::new();
        while !waiting.is_empty() {
            let ready = waiting.iter().position(|request| {
                needs(request).iter().all(|(name, count)| {
                    let of_name = registered.get(*name).map_or(0, Vec::len);
                    of_name >= *count
                })
            });
            let Some(ready) = ready else { panic!("{}: {waiting:?} need what is not registered", self.name()) };
            let request = waiting.remove(ready);
            let result = if request["inputs"].is_null() && request["id"].is_string() {
                registrar.read(read(request, &registered)).await
            } else {
                registrar.register(goal(request, &registered)).await
            };
            let Ok(result) = result else { return ProgramEnd::Failed };
            components.extend(request["registeredOutputs"].as_object().map(|outputs| (result.urn.clone(), outputs)));
            registered.entry(text(&request["name"]).to_owned()).or_default().push(result);
        }
        for (urn, outputs) in components {
            let outputs = outputs.iter().map(|(key, value)| (key.clone(), output(key, value, &registered)));
            if registrar.register_outputs(&urn, outputs.collect()).await.is_err() {
                return ProgramEnd::Failed;
            }
        }
        match registrar.register_outputs(&root.urn, properties(&self.0["exports"])).await {
            Ok(()) => ProgramEnd::Completed,
            Err(_) => ProgramEnd::Failed,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

fn texts(value: &Value) -> Vec<String> {
    array(value).iter().map(|item| text(item).to_owned()).collect()
}

/// Returns the names that a request needs, with the number of resources of each.
fn needs(request: &Value) -> BTreeMap<&str, usize> {
    let mut needed = BTreeMap::new();
    for name in array(&request["dependencies"]) {
        *needed.entry(text(name)).or_default() += 1;
    }
    let others = object(&request["propertyDependencies"]).values().flat_map(array);
    let others = others.chain(object(&request["providers"]).values());
    let others = others.chain(["parent", "provider"].map(|member| &request[member])).map(text);
    for name in others.filter(|name| !name.is_empty()) {
        needed.entry(name).or_insert(1);
    }
    needed
}

/// Returns the URNs of the names. A name that appears again means the next resource of this name.
fn urns(names: &Value, registered: &ByName) -> Vec<Urn> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let urn = |name| {
        let index = seen.entry(name).or_default();
        *index += 1;
        registered[name][*index - 1].urn.clone()
    };
    array(names).iter().map(text).map(urn).collect()
}

fn provider(name: &Value, registered: &ByName) -> Option<ProviderReference> {
    registered.get(text(name)).map(|of_name| of_name[0].as_provider_reference())
}

fn goal(request: &Value, registered: &ByName) -> Goal {
    let inputs = object(&request["inputs"]).iter().filter(|(_, input)| input["unknown"] != true);
    let inputs = inputs.map(|(key, input)| (key.clone(), value(input))).collect();
    let mut goal = Goal::component(TypeToken::new(text(&request["type"])), text(&request["name"]), inputs);
    goal.custom = request["custom"] == true;
    goal.remote = request["remote"] == true;
    goal.parent = registered.get(text(&request["parent"])).map(|parent| parent[0].urn.clone());
    goal.dependencies = urns(&request["dependencies"], registered);
    let by_property = object(&request["propertyDependencies"]).iter();
    goal.property_dependencies = by_property.map(|(key, names)| (key.clone(), urns(names, registered))).collect();
    goal.provider = provider(&request["provider"], registered);
    let passed = object(&request["providers"]).iter();
    goal.providers = passed.filter_map(|(key, name)| Some((key.clone(), provider(name, registered)?))).collect();
    goal.protect = request["protect"].as_bool();
    goal.retain_on_delete = request["retainOnDelete"].as_bool();
    goal.ignore_changes = texts(&request["ignoreChanges"]);
    goal.additional_secret_outputs = texts(&request["additionalSecretOutputs"]);
    goal.import_id = ResourceId::new(text(&request["import"]));
    goal.version = request["version"].as_str().map(str::to_owned);
    let former = texts(&request["aliases"]).into_iter().map(|former| Alias::Spec {
        name: None,
        type_token: Some(former),
        stack: None,
        project: None,
        parent: AliasParent::Same,
    });
    goal.aliases = former.collect();
    let timeout = |member: &str| duration::parse(text(&request["customTimeouts"][member]));
    goal.custom_timeouts = Timeouts {
        create: timeout("create"),
        update: timeout("update"),
        delete: timeout("delete"),
        read: timeout("read"),
    };
    goal
}

fn read(request: &Value, registered: &ByName) -> ReadGoal {
    ReadGoal {
        patience: std::time::Duration::ZERO,
        type_token: TypeToken::new(text(&request["type"])),
        name: text(&request["name"]).to_owned(),
        id: ReferenceId::from(text(&request["id"])),
        properties: PropertyMap::new(),
        parent: registered.get(text(&request["parent"])).map(|parent| parent[0].urn.clone()),
        dependencies: Vec::new(),
        provider: provider(&request["provider"], registered),
        additional_secret_outputs: Vec::new(),
        version: None,
        plugin_download_url: None,
        subpackage: None,
        source: None,
    }
}

fn properties(value: &Value) -> PropertyMap {
    let known = object(value).iter().filter(|(_, value)| value["unknown"] != true);
    known.map(|(key, value)| (key.clone(), self::value(value))).collect()
}

/// Converts a value of the recording. A text that is left out becomes [`LEFT_OUT`].
fn value(recorded: &Value) -> PropertyValue {
    match recorded {
        Value::Null => PropertyValue::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap()),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Value::Object(members) if members.len() == 1 && members.contains_key("secret") => {
            PropertyValue::secret(value(&members["secret"]))
        }
        Value::Object(members) if members.len() == 1 && members.contains_key("text") => LEFT_OUT.into(),
        Value::Object(members) => {
            let known = members.iter().filter(|(_, member)| member["unknown"] != true);
            PropertyValue::Map(known.map(|(key, member)| (key.clone(), value(member))).collect())
        }
    }
}

/// Converts an output of a component. A reference means the resource of the type that the output is named after.
fn output(key: &str, recorded: &Value, registered: &ByName) -> PropertyValue {
    let Some(reference) = recorded.get("resource") else { return value(recorded) };
    let is_meant = |resource: &&Registered| {
        resource.urn.type_token().rsplit(':').next().is_some_and(|name| name.eq_ignore_ascii_case(key))
    };
    let resource = registered[text(&reference["name"])].iter().find(is_meant).unwrap();
    PropertyValue::Resource(ResourceReference {
        urn: resource.urn.clone(),
        id: Some(ReferenceId::from(resource.id.as_ref())),
        package_version: reference["version"].as_str().map(str::to_owned),
    })
}
