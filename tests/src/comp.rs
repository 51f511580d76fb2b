//! Component provider in the same process: constructs `Pair` and `Nest` through a real resource monitor, like the
//! provider of the recordings.
//!
//! The recordings were made with a provider on Pulumi's Python package. This provider replaces it where no package can
//! be installed; the suite `interop_components` runs the recordings with the original provider.

use std::collections::BTreeMap;

use bridge::provider::{Alias, AliasParent, ConstructReply, ConstructRequest};
use pulumi_proto::property::wire::Bag;
use pulumi_proto::property::{PropertyMap, PropertyValue, ResourceReference};
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::rpc;
use pulumi_proto::rpc::register_resource_request::PropertyDependencies;
use pulumi_proto::rpc::resource_monitor_client::ResourceMonitorClient;
use pulumi_proto::rpc::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use pulumi_proto::urn::Urn;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::service::{Reply, decode_properties, encode_properties};

const PAIR: &str = "comp:index:Pair";
const NEST: &str = "comp:index:Nest";
const REEF: &str = "comp:index:Reef";
/// Variable with the address from which the plugin of the package `reef` is.
const PACKAGE_URL: &str = "COMP_PACKAGE_URL";

const SCHEMA: &str = r##"{
    "name": "comp",
    "version": "1.0.0",
    "resources": {
        "comp:index:Pair": {
            "isComponent": true,
            "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}, "secret": {"type": "string"}},
            "requiredInputs": ["value"],
            "properties": {"first": {"type": "string"}, "last": {"$ref": "pulumi.json#/Any"}}
        },
        "comp:index:Nest": {
            "isComponent": true,
            "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}},
            "requiredInputs": ["value"],
            "properties": {"inner": {"$ref": "pulumi.json#/Any"}}
        },
        "comp:index:Reef": {
            "isComponent": true,
            "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}},
            "properties": {"out": {"$ref": "pulumi.json#/Any"}}
        },
        "comp:index:Nothing": {"isComponent": true}
    }
}"##;

/// Returns the provider as a service.
pub fn service() -> ResourceProviderServer<Components> {
    ResourceProviderServer::new(Components)
}

/// Component provider.
#[derive(Clone, Copy, Debug)]
pub struct Components;

#[tonic::async_trait]
impl ResourceProvider for Components {
    async fn get_plugin_info(&self, _: Request<()>) -> Reply<rpc::PluginInfo> {
        Ok(Response::new(rpc::PluginInfo { version: "1.0.0".to_owned() }))
    }

    async fn get_schema(&self, _: Request<rpc::GetSchemaRequest>) -> Reply<rpc::GetSchemaResponse> {
        Ok(Response::new(rpc::GetSchemaResponse { schema: SCHEMA.to_owned() }))
    }

    async fn cancel(&self, _: Request<()>) -> Reply<()> {
        Ok(Response::new(()))
    }

    async fn configure(&self, _: Request<rpc::ConfigureRequest>) -> Reply<rpc::ConfigureResponse> {
        Ok(Response::new(rpc::ConfigureResponse {
            accept_secrets: true,
            accept_resources: true,
            accept_outputs: true,
            supports_preview: true,
            ..Default::default()
        }))
    }

    async fn construct(&self, request: Request<rpc::ConstructRequest>) -> Reply<rpc::ConstructResponse> {
        let request = request.into_inner();
        let address = format!("http://{}", request.monitor_endpoint);
        let monitor =
            ResourceMonitorClient::connect(address).await.map_err(|error| Status::unknown(error.to_string()))?;
        let inputs = decode_properties(request.inputs.clone())?;
        let input = |key: &str| {
            let value = inputs.get(key).cloned().unwrap_or(PropertyValue::Null);
            let mut urns =
                request.input_dependencies.get(key).map(|dependencies| dependencies.urns.clone()).unwrap_or_default();
            let mut found = Vec::new();
            value.collect_dependencies(&mut found);
            urns.extend(found.iter().map(Urn::to_string));
            urns.sort();
            urns.dedup();
            Output { value: value.without_outputs(), urns }
        };
        let mut construction = Construction { monitor };
        let component = rpc::RegisterResourceRequest {
            dependencies: request.dependencies.clone(),
            protect: request.protect,
            ignore_changes: request.ignore_changes.clone(),
            aliases: request.aliases.clone(),
            providers: request.providers.clone(),
            ..component(&request.r#type, &request.name, &request.parent)
        };
        let (urn, outputs) = match request.r#type.as_str() {
            PAIR => construction.pair(component, input("value"), input("secret")).await?,
            NEST => construction.nest(component, input("value")).await?,
            REEF => construction.reef(component, input("value")).await?,
            other => return Err(Status::invalid_argument(format!("unknown component type {other}"))),
        };
        let dependencies = |(key, output): (&String, &Output)| {
            let urns = output.urns.clone();
            (key.clone(), rpc::construct_response::PropertyDependencies { urns })
        };
        Ok(Response::new(rpc::ConstructResponse {
            urn,
            state_dependencies: outputs.iter().map(dependencies).collect(),
            state: Some(encode_outputs(&outputs)?),
        }))
    }
}

/// Constructs a component of any type with one child, `<name>-child` of the type `cloud:index:Thing`, which gets the
/// component's inputs. With an input `registersInputs`, the component itself registers its inputs, and the same outputs, without the
/// information which of them are secret. With an input `childDependency`, the child depends on the URN in it. With an input `ask`, also calls the method `ask` with it as `value`. The receiver of that call
/// is the custom resource or provider with the URN in `receiver` and the id in `receiverId`; without `receiver` there is
/// none.
///
/// # Errors
/// Returns the error of the resource monitor.
pub async fn construct_with_child(request: ConstructRequest) -> Result<ConstructReply, Status> {
    let address = format!("http://{}", request.run.monitor_endpoint.unwrap_or_default());
    let monitor = ResourceMonitorClient::connect(address).await.map_err(|error| Status::unknown(error.to_string()))?;
    let mut construction = Construction { monitor };
    let urn_texts = |urns: &[Urn]| urns.iter().map(Urn::to_string).collect::<Vec<_>>();
    let parent = request.parent.as_ref().map(Urn::to_string).unwrap_or_default();
    let mut own = rpc::RegisterResourceRequest {
        dependencies: urn_texts(&request.dependencies),
        protect: request.options.protect,
        aliases: request.options.aliases.iter().map(alias).collect(),
        providers: request.providers.clone(),
        ..component(&request.type_token, &request.name, &parent)
    };
    let plain: PropertyMap = match request.inputs.contains_key("registersInputs") {
        true => request.inputs.iter().map(|(key, value)| (key.clone(), value.clone().without_wrappers())).collect(),
        false => PropertyMap::new(),
    };
    own.object = Some(encode_properties(&plain)?);
    let registered = construction.register(own).await?;
    if !decode_properties(registered.object)?.is_empty() {
        return Err(Status::internal(
            "the reply to the registration of a component has outputs before RegisterResourceOutputs",
        ));
    }
    let urn = registered.urn;
    let inputs = request.inputs.iter().map(|(key, value)| {
        let mut urns = request.input_dependencies.get(key).cloned().unwrap_or_default();
        value.collect_dependencies(&mut urns);
        (key.as_str(), Output { value: value.clone().without_outputs(), urns: urn_texts(&urns) })
    });
    let mut child = rpc::RegisterResourceRequest {
        r#type: "cloud:index:Thing".to_owned(),
        ..custom_resource(&format!("{}-child", request.name), &urn, inputs)?
    };
    let dependency = request.inputs.get("childDependency").and_then(PropertyValue::as_str);
    child.dependencies.extend(dependency.map(str::to_owned));
    let child = construction.register(child).await?;
    if let Some(value) = request.inputs.get("ask") {
        let without_dependencies =
            |value: &PropertyValue| Output { value: value.clone().without_outputs(), urns: Vec::new() };
        let mut arguments = Outputs::from([("value".to_owned(), without_dependencies(value))]);
        let mut receiver_type = "cloud:index:Thing".to_owned();
        if let Some(urn) = request.inputs.get("receiver").and_then(PropertyValue::as_str) {
            let urn: Urn = urn.parse().map_err(|_| Status::internal("malformed URN"))?;
            urn.type_token().clone_into(&mut receiver_type);
            let id = request.inputs.get("receiverId").cloned().map(PropertyValue::without_outputs);
            let id = id.map(|id| id.as_str().map_or(ReferenceId::Unknown, ReferenceId::from));
            let receiver = ResourceReference { urn, id, package_version: None };
            arguments.insert("__self__".to_owned(), without_dependencies(&PropertyValue::Resource(receiver)));
        }
        construction.call_method(&receiver_type, &arguments).await?;
    }
    let id = Some(child.id.clone()).filter(|id| !id.is_empty());
    let id = id.map_or(PropertyValue::UNKNOWN, |id| id.as_str().into());
    let mut outputs = Outputs::from([("child".to_owned(), Output { value: id.clone(), urns: vec![child.urn] })]);
    outputs.extend(plain.into_iter().map(|(key, value)| (key, Output { value, urns: Vec::new() })));
    construction.register_outputs(&urn, &outputs).await?;
    Ok(ConstructReply {
        urn: urn.parse().map_err(|_| Status::internal("malformed URN"))?,
        state: PropertyMap::from([("child".to_owned(), id)]),
        state_dependencies: BTreeMap::new(),
    })
}

fn alias(alias: &Alias) -> rpc::Alias {
    use rpc::alias::{Alias as Message, Spec, spec::Parent};
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let message = match alias {
        Alias::Urn(urn) => Message::Urn(urn.to_string()),
        Alias::Spec { name, type_token, stack, project, parent } => Message::Spec(Spec {
            name: text(name),
            r#type: text(type_token),
            stack: text(stack),
            project: text(project),
            parent: match parent {
                AliasParent::Same => None,
                AliasParent::None => Some(Parent::NoParent(true)),
                AliasParent::Urn(urn) => Some(Parent::ParentUrn(urn.to_string())),
            },
        }),
    };
    rpc::Alias { alias: Some(message) }
}

/// Value and the URNs of the resources that it comes from.
#[derive(Clone, Debug)]
struct Output {
    value: PropertyValue,
    urns: Vec<String>,
}

type Outputs = BTreeMap<String, Output>;

struct Construction {
    monitor: ResourceMonitorClient<Channel>,
}

impl Construction {
    /// Registers two custom resources; the second depends on the first.
    async fn pair(
        &mut self,
        component: rpc::RegisterResourceRequest,
        value: Output,
        secret: Output,
    ) -> Result<(String, Outputs), Status> {
        let name = component.name.clone();
        let urn = self.register(component).await?.urn;
        let one = custom_resource(&format!("{name}-one"), &urn, [("v", value), ("w", secret)])?;
        let one = self.register(one).await?;
        let (cid, out) = (output(&one, "cid")?, output(&one, "out")?);
        let two = custom_resource(&format!("{name}-two"), &urn, [("v", out), ("k", cid.clone())])?;
        let two = self.register(two).await?;
        let outputs = Outputs::from([("first".to_owned(), cid), ("last".to_owned(), output(&two, "out")?)]);
        self.register_outputs(&urn, &outputs).await?;
        Ok((urn, outputs))
    }

    /// Registers a pair within a component, and a custom resource that depends on it.
    async fn nest(&mut self, outer: rpc::RegisterResourceRequest, value: Output) -> Result<(String, Outputs), Status> {
        let name = outer.name.clone();
        let urn = self.register(outer).await?.urn;
        let inner = component(PAIR, &format!("{name}-pair"), &urn);
        let null = Output { value: PropertyValue::Null, urns: Vec::new() };
        let (pair, outputs) = self.pair(inner, value, null).await?;
        let last = outputs["last"].clone();
        // A dependency on a component is a dependency on its children.
        let children = [outputs["first"].urns.clone(), last.urns.clone()].concat();
        let mut tail = custom_resource(&format!("{name}-tail"), &urn, [("v", last.clone())])?;
        tail.dependencies = children;
        (tail.delete_before_replace, tail.delete_before_replace_defined) = (true, true);
        self.register(tail).await?;
        debug_assert!(pair.ends_with("-pair"));
        let outputs = Outputs::from([("inner".to_owned(), last)]);
        self.register_outputs(&urn, &outputs).await?;
        Ok((urn, outputs))
    }

    /// Registers a custom resource of the package `reef`, which `rec` serves with parameters.
    async fn reef(&mut self, outer: rpc::RegisterResourceRequest, value: Output) -> Result<(String, Outputs), Status> {
        let parameterization = rpc::Parameterization {
            name: "reef".to_owned(),
            version: "0.27.1".to_owned(),
            value: b"reef@0.27.1".to_vec(),
        };
        let package = rpc::RegisterPackageRequest {
            name: "rec".to_owned(),
            version: "1.0.0".to_owned(),
            download_url: std::env::var(PACKAGE_URL).unwrap_or_default(),
            parameterization: Some(parameterization),
            ..Default::default()
        };
        let package_ref = self.monitor.register_package(package).await?.into_inner().r#ref;
        let name = outer.name.clone();
        let urn = self.register(outer).await?.urn;
        let child = rpc::RegisterResourceRequest {
            r#type: "reef:index:Thing".to_owned(),
            package_ref,
            ..custom_resource(&format!("{name}-child"), &urn, [("v", value)])?
        };
        let child = self.register(child).await?;
        let outputs = Outputs::from([("out".to_owned(), output(&child, "out")?)]);
        self.register_outputs(&urn, &outputs).await?;
        Ok((urn, outputs))
    }

    async fn register(
        &mut self,
        request: rpc::RegisterResourceRequest,
    ) -> Result<rpc::RegisterResourceResponse, Status> {
        Ok(self.monitor.register_resource(request).await?.into_inner())
    }

    async fn call_method(&mut self, receiver_type: &str, arguments: &Outputs) -> Result<(), Status> {
        let args = Some(encode_outputs(arguments)?);
        let tok = format!("{receiver_type}/ask");
        self.monitor.call(rpc::ResourceCallRequest { tok, args, ..Default::default() }).await?;
        Ok(())
    }

    async fn register_outputs(&mut self, urn: &str, outputs: &Outputs) -> Result<(), Status> {
        let outputs = Some(encode_outputs(outputs)?);
        self.monitor
            .register_resource_outputs(rpc::RegisterResourceOutputsRequest { urn: urn.to_owned(), outputs })
            .await?;
        Ok(())
    }
}

fn component(type_token: &str, name: &str, parent: &str) -> rpc::RegisterResourceRequest {
    rpc::RegisterResourceRequest {
        r#type: type_token.to_owned(),
        name: name.to_owned(),
        parent: parent.to_owned(),
        accept_secrets: true,
        accept_resources: true,
        supports_partial_values: true,
        supports_result_reporting: true,
        alias_specs: true,
        ..Default::default()
    }
}

fn custom_resource<'a>(
    name: &str,
    parent: &str,
    inputs: impl IntoIterator<Item = (&'a str, Output)>,
) -> Result<rpc::RegisterResourceRequest, Status> {
    let inputs: Outputs = inputs
        .into_iter()
        .filter(|(_, output)| output.value != PropertyValue::Null)
        .map(|(key, output)| (key.to_owned(), output))
        .collect();
    let mut dependencies: Vec<String> = inputs.values().flat_map(|output| output.urns.clone()).collect();
    dependencies.sort();
    dependencies.dedup();
    let of_property =
        |(key, output): (&String, &Output)| (key.clone(), PropertyDependencies { urns: output.urns.clone() });
    Ok(rpc::RegisterResourceRequest {
        custom: true,
        dependencies,
        property_dependencies: inputs.iter().map(of_property).collect(),
        object: Some(encode_outputs(&inputs)?),
        ..component("rec:index:Thing", name, parent)
    })
}

/// Returns an output of a registered resource; a missing output is unknown.
fn output(registered: &rpc::RegisterResourceResponse, key: &str) -> Result<Output, Status> {
    let outputs = decode_properties(registered.object.clone())?;
    let value = outputs.get(key).cloned().unwrap_or(PropertyValue::UNKNOWN);
    Ok(Output { value, urns: vec![registered.urn.clone()] })
}

fn encode_outputs(outputs: &Outputs) -> Result<Bag, Status> {
    encode_properties(&outputs.iter().map(|(key, output)| (key.clone(), output.value.clone())).collect())
}
