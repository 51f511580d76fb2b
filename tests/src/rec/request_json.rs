//! Requests in the JSON form of protobuf, as the recordings contain them: default values are absent.
//!
//! The random seed and the endpoint for the status of a resource are left out, as they differ from run to run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use pulumi_proto::property::wire::Bag;
use pulumi_proto::rpc;
use serde_json::{Map, Number, json};

/// Request that can be converted.
pub(crate) trait RequestJson {
    fn request_json(&self) -> serde_json::Value;
}

/// Members of a message that differ from their defaults.
#[derive(Default)]
struct Members(Map<String, serde_json::Value>);

impl Members {
    fn text(self, name: &str, text: &str) -> Self {
        self.member(name, (!text.is_empty()).then(|| text.into()))
    }

    fn flag(self, name: &str, flag: bool) -> Self {
        self.member(name, flag.then_some(true.into()))
    }

    fn number(self, name: &str, value: f64) -> Self {
        self.member(name, (value != 0.0).then(|| number(value)))
    }

    fn bag(self, name: &str, bag: &Option<Bag>) -> Self {
        self.member(name, bag.as_ref().map(bag_json))
    }

    fn list(self, name: &str, list: &[String]) -> Self {
        self.member(name, (!list.is_empty()).then(|| json!(list)))
    }

    fn member(mut self, name: &str, value: Option<serde_json::Value>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value)));
        self
    }

    fn done(self) -> serde_json::Value {
        self.0.into()
    }
}

fn bag_json(bag: &Bag) -> serde_json::Value {
    bag.open().map_or_else(|error| error.to_string().into(), |bag| struct_json(&bag))
}

fn struct_json(bag: &Struct) -> serde_json::Value {
    bag.fields.iter().map(|(key, value)| (key.clone(), value_json(value))).collect::<Map<_, _>>().into()
}

fn value_json(value: &Value) -> serde_json::Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(value)) => (*value).into(),
        Some(Kind::NumberValue(value)) => number(*value),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::StructValue(bag)) => struct_json(bag),
        Some(Kind::ListValue(list)) => list.values.iter().map(value_json).collect::<Vec<_>>().into(),
    }
}

/// Converts a number; whole numbers have no fraction, as in protobuf's JSON.
fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9e15 && !(value == 0.0 && value.is_sign_negative()) {
        return (value as i64).into();
    }
    Number::from_f64(value).map_or_else(|| value.to_string().into(), serde_json::Value::Number)
}

impl RequestJson for () {
    fn request_json(&self) -> serde_json::Value {
        json!({})
    }
}

impl RequestJson for rpc::ParameterizeRequest {
    fn request_json(&self) -> serde_json::Value {
        use rpc::parameterize_request::{Parameters, ParametersArgs, ParametersValue};
        let (name, parameters) = match &self.parameters {
            None => return json!({}),
            Some(Parameters::Args(ParametersArgs { args })) => ("args", Members::default().list("args", args)),
            Some(Parameters::Value(ParametersValue { name, version, value })) => {
                let members = Members::default().text("name", name).text("version", version);
                ("value", members.text("value", &BASE64.encode(value)))
            }
        };
        Members::default().member(name, Some(parameters.done())).done()
    }
}

impl RequestJson for rpc::CheckRequest {
    fn request_json(&self) -> serde_json::Value {
        let autonaming = self.autonaming.as_ref().map(|options| {
            let mode = options.mode();
            let mode = if mode as i32 == 0 { "" } else { mode.as_str_name() };
            Members::default().text("proposedName", &options.proposed_name).text("mode", mode).done()
        });
        Members::default()
            .text("urn", &self.urn)
            .bag("olds", &self.olds)
            .bag("news", &self.news)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .member("autonaming", autonaming)
            .done()
    }
}

impl RequestJson for rpc::DiffRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default()
            .text("id", &self.id)
            .text("urn", &self.urn)
            .bag("olds", &self.olds)
            .bag("news", &self.news)
            .list("ignoreChanges", &self.ignore_changes)
            .bag("oldInputs", &self.old_inputs)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .done()
    }
}

impl RequestJson for rpc::ConfigureRequest {
    fn request_json(&self) -> serde_json::Value {
        let variables = self.variables.iter().collect::<std::collections::BTreeMap<_, _>>();
        Members::default()
            .member("variables", (!variables.is_empty()).then(|| json!(variables)))
            .bag("args", &self.args)
            .flag("acceptSecrets", self.accept_secrets)
            .flag("acceptResources", self.accept_resources)
            .flag("sendsOldInputs", self.sends_old_inputs)
            .flag("sendsOldInputsToDelete", self.sends_old_inputs_to_delete)
            .text("id", self.id.as_deref().unwrap_or_default())
            .text("urn", self.urn.as_deref().unwrap_or_default())
            .text("name", self.name.as_deref().unwrap_or_default())
            .text("type", self.r#type.as_deref().unwrap_or_default())
            .done()
    }
}

impl RequestJson for rpc::CreateRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default()
            .text("urn", &self.urn)
            .bag("properties", &self.properties)
            .number("timeout", self.timeout)
            .flag("preview", self.preview)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .done()
    }
}

impl RequestJson for rpc::ReadRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default()
            .text("id", &self.id)
            .text("urn", &self.urn)
            .bag("properties", &self.properties)
            .bag("inputs", &self.inputs)
            .number("timeout", self.timeout)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .done()
    }
}

impl RequestJson for rpc::UpdateRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default()
            .text("id", &self.id)
            .text("urn", &self.urn)
            .bag("olds", &self.olds)
            .bag("news", &self.news)
            .number("timeout", self.timeout)
            .list("ignoreChanges", &self.ignore_changes)
            .flag("preview", self.preview)
            .bag("oldInputs", &self.old_inputs)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .done()
    }
}

impl RequestJson for rpc::DeleteRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default()
            .text("id", &self.id)
            .text("urn", &self.urn)
            .bag("properties", &self.properties)
            .number("timeout", self.timeout)
            .bag("oldInputs", &self.old_inputs)
            .text("name", &self.name)
            .text("type", &self.r#type)
            .done()
    }
}

impl RequestJson for rpc::InvokeRequest {
    fn request_json(&self) -> serde_json::Value {
        Members::default().text("tok", &self.tok).bag("args", &self.args).flag("preview", self.preview).done()
    }
}
