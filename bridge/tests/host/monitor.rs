//! The monitor as component plugins reach it: what their requests mean, and what they are told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bridge::host::{
    FunctionCall, MethodCall, Monitor, MonitorEndpoint, MonitorRefusal, ResourceAnswer, ResourceOutcome, ResourceRead,
    ResourceRegistration,
};
use bridge::provider::{Alias, AliasParent, CallReply, CheckFailure, InvokeReply, RunInfo};
use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, decode, encode};
use pulumi_proto::property::{Asset, AssetContent, OutputValue, PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::rpc::register_resource_request::{CustomTimeouts, PropertyDependencies, ResourceHooksBinding};
use pulumi_proto::rpc::resource_monitor_client::ResourceMonitorClient;
use pulumi_proto::rpc::{
    self, ReadResourceRequest, RegisterResourceOutputsRequest, RegisterResourceRequest, ResourceInvokeRequest,
};
use pulumi_proto::urn::Urn;
use tonic::Code;
use tonic::transport::Channel;

const A: &str = "urn:pulumi:s::p::t:i:T::a";
const B: &str = "urn:pulumi:s::p::t:i:T::b";

/// A deployment that notes what it is asked, and answers what it is told to.
#[derive(Default)]
struct Recorder {
    run: RunInfo,
    answer: PropertyMap,
    outcome: Option<ResourceOutcome>,
    stopped: bool,
    registered: Mutex<Vec<ResourceRegistration>>,
    read: Mutex<Vec<ResourceRead>>,
    outputs: Mutex<Vec<(Urn, PropertyMap)>>,
    refused: Mutex<Vec<String>>,
    called: Mutex<Vec<MethodCall>>,
}

impl Recorder {
    fn answer(&self, name: &str) -> Result<ResourceAnswer, MonitorRefusal> {
        if self.stopped {
            return Err(MonitorRefusal("the deployment has stopped".to_owned()));
        }
        Ok(ResourceAnswer {
            urn: Urn::new("s", "p", None, "t:i:T", name),
            id: ResourceId::new(format!("{name}-1")),
            outputs: Arc::new(self.answer.clone()),
            dependencies: BTreeMap::from([("out".to_owned(), vec![A.parse().unwrap()])]),
            outcome: self.outcome.unwrap_or(ResourceOutcome::Succeeded),
        })
    }
}

#[async_trait]
impl Monitor for Recorder {
    fn run(&self) -> &RunInfo {
        &self.run
    }

    fn refuse(&self, what: &str) {
        self.refused.lock().unwrap().push(what.to_owned());
    }

    async fn register(&self, request: ResourceRegistration) -> Result<ResourceAnswer, MonitorRefusal> {
        let name = request.name.clone();
        self.registered.lock().unwrap().push(request);
        self.answer(&name)
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorRefusal> {
        self.outputs.lock().unwrap().push((urn, outputs));
        Ok(())
    }

    async fn read(&self, request: ResourceRead) -> Result<ResourceAnswer, MonitorRefusal> {
        let name = request.name.clone();
        self.read.lock().unwrap().push(request);
        self.answer(&name)
    }

    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorRefusal> {
        if !request.depends_on.is_empty() {
            return Ok(None);
        }
        let failures = vec![CheckFailure { property: Some("x".into()), reason: "no".into() }];
        Ok(Some(InvokeReply { result: request.arguments, failures }))
    }

    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorRefusal> {
        self.called.lock().unwrap().push(request.clone());
        Ok(CallReply { result: request.arguments, ..CallReply::default() })
    }
}

fn preview() -> RunInfo {
    RunInfo { dry_run: true, ..RunInfo::default() }
}

/// A monitor, served, and a plugin's end of it.
struct Served {
    monitor: Arc<Recorder>,
    client: ResourceMonitorClient<Channel>,
    _endpoint: MonitorEndpoint,
}

async fn serve(monitor: Recorder) -> Served {
    serve_in(monitor, PathBuf::new()).await
}

async fn serve_in(monitor: Recorder, folder: PathBuf) -> Served {
    let monitor = Arc::new(monitor);
    let endpoint = MonitorEndpoint::serve(Arc::clone(&monitor) as _, folder).await.unwrap();
    let client = ResourceMonitorClient::connect(format!("http://{}", endpoint.address())).await.unwrap();
    Served { monitor, client, _endpoint: endpoint }
}

fn bag<const N: usize>(members: [(&str, PropertyValue); N]) -> Option<Bag> {
    let members: PropertyMap = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Some(encode(&members, &EncodeOptions::EVERYTHING).unwrap())
}

fn opened(bag: Option<Bag>) -> PropertyMap {
    decode(&bag.unwrap(), &DecodeOptions::EVERYTHING).unwrap()
}

fn thing() -> RegisterResourceRequest {
    RegisterResourceRequest {
        r#type: "t:i:T".into(),
        name: "x".into(),
        custom: true,
        accept_secrets: true,
        supports_partial_values: true,
        supports_result_reporting: true,
        ..RegisterResourceRequest::default()
    }
}

/// An output value that came from a resource.
fn from(urn: &str, value: Option<&str>, secret: bool) -> PropertyValue {
    let value = value.map(PropertyValue::from);
    PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies: vec![urn.parse().unwrap()] }))
}

impl Served {
    async fn registered(&mut self, request: RegisterResourceRequest) -> ResourceRegistration {
        self.client.register_resource(request).await.unwrap();
        self.monitor.registered.lock().unwrap().pop().unwrap()
    }

    async fn refused(&mut self, request: RegisterResourceRequest) -> (Code, String) {
        let status = self.client.register_resource(request).await.unwrap_err();
        (status.code(), status.message().to_owned())
    }
}

fn names(urns: &[Urn]) -> Vec<&str> {
    urns.iter().map(Urn::name).collect()
}

#[tokio::test]
async fn every_input_depends_on_all_where_the_plugin_does_not_say_on_what() {
    let mut served = serve(Recorder::default()).await;
    let inputs = || bag([("v", "1".into()), ("w", "2".into())]);
    let dependencies = vec![A.to_owned(), B.to_owned()];
    let all =
        served.registered(RegisterResourceRequest { object: inputs(), dependencies: dependencies.clone(), ..thing() });
    let all = all.await.property_dependencies;
    assert_eq!((names(&all["v"]), names(&all["w"])), (vec!["a", "b"], vec!["a", "b"]));

    let of_v = BTreeMap::from([("v".to_owned(), PropertyDependencies { urns: vec![B.to_owned()] })]);
    let said = RegisterResourceRequest { object: inputs(), dependencies, property_dependencies: of_v, ..thing() };
    let said = served.registered(said).await.property_dependencies;
    assert_eq!((names(&said["v"]), said.get("w")), (vec!["b"], None));
}

#[tokio::test]
async fn an_output_value_says_what_its_input_depends_on_and_stays_one_only_for_plugins() {
    let mut served = serve(Recorder { run: preview(), ..Recorder::default() }).await;
    let list = PropertyValue::List(vec![from(A, Some("1"), true), from(B, None, false)]);
    let request = RegisterResourceRequest { object: bag([("v", list)]), ..thing() };
    let registered = served.registered(request.clone()).await;
    assert_eq!(names(&registered.property_dependencies["v"]), ["a", "b"]);
    let plain = PropertyValue::List(vec![PropertyValue::secret("1".into()), PropertyValue::UNKNOWN]);
    assert_eq!(registered.inputs["v"], plain);

    let remote = RegisterResourceRequest { remote: true, custom: false, ..request };
    let registered = served.registered(remote).await;
    assert!(
        matches!(&registered.inputs["v"], PropertyValue::List(items) if matches!(items[0], PropertyValue::Output(_)))
    );
}

#[tokio::test]
async fn the_arguments_of_a_method_depend_on_what_is_said_and_on_what_they_say_themselves() {
    let mut served = serve(Recorder::default()).await;
    let said = rpc::resource_call_request::ArgumentDependencies { urns: vec![A.to_owned()] };
    let call = rpc::ResourceCallRequest {
        tok: "t:i:T/m".into(),
        args: bag([("v", from(B, Some("1"), false)), ("w", "2".into())]),
        arg_dependencies: BTreeMap::from([("w".to_owned(), said)]),
        ..Default::default()
    };
    served.client.call(call).await.unwrap();
    let dependencies = served.monitor.called.lock().unwrap().remove(0).argument_dependencies;
    assert_eq!((names(&dependencies["v"]), names(&dependencies["w"])), (vec!["b"], vec!["a"]));
}

#[tokio::test]
async fn an_asset_gets_its_hash_from_the_file_below_the_folder_of_the_plugins() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "a test asset").unwrap();
    let mut served = serve_in(Recorder::default(), folder.path().to_owned()).await;
    let asset = |hash: &str, path: &str| {
        PropertyValue::Asset(Asset { hash: Some(hash.to_owned()), content: AssetContent::Path(path.to_owned()) })
    };
    let inputs = || bag([("source", asset("", "page.html"))]);
    let expected = asset("e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704", "page.html");
    let registered = served.registered(RegisterResourceRequest { object: inputs(), ..thing() }).await;
    assert_eq!(registered.inputs["source"], expected);

    let outputs = RegisterResourceOutputsRequest { urn: A.to_owned(), outputs: inputs() };
    served.client.register_resource_outputs(outputs).await.unwrap();
    assert_eq!(served.monitor.outputs.lock().unwrap()[0].1["source"], expected);

    let gone = RegisterResourceRequest { object: bag([("source", asset("", "gone"))]), ..thing() };
    let (code, message) = served.refused(gone).await;
    assert!(code == Code::InvalidArgument && message.starts_with("source: cannot read "), "{message}");
}

#[tokio::test]
async fn what_is_to_be_read_has_an_id() {
    let mut served = serve(Recorder::default()).await;
    let request = ReadResourceRequest { r#type: "t:i:T".into(), name: "x".into(), ..ReadResourceRequest::default() };
    let status = served.client.read_resource(request).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "id: missing"));
}

#[tokio::test]
async fn options_arrive_as_they_were_meant() {
    let mut served = serve(Recorder::default()).await;
    let renamed = rpc::alias::Spec {
        name: "old".into(),
        parent: Some(rpc::alias::spec::Parent::NoParent(true)),
        ..rpc::alias::Spec::default()
    };
    let reference = "urn:pulumi:s::p::pulumi:providers:t::mine::id";
    let request = RegisterResourceRequest {
        aliases: vec![rpc::Alias { alias: Some(rpc::alias::Alias::Spec(renamed)) }],
        alias_ur_ns: vec![A.to_owned()],
        custom_timeouts: Some(CustomTimeouts { create: "1m30s".into(), ..CustomTimeouts::default() }),
        provider: reference.to_owned(),
        providers: BTreeMap::from([("t".to_owned(), reference.to_owned())]),
        parent: A.to_owned(),
        ..thing()
    };
    let registered = served.registered(request.clone()).await;
    let options = &registered.options;
    let [Alias::Spec { name, type_token, parent: AliasParent::None, .. }, Alias::Urn(urn)] = &options.aliases[..]
    else {
        panic!("{:?}", options.aliases);
    };
    assert_eq!((name.as_deref(), type_token, urn.name()), (Some("old"), &None, "a"));
    assert_eq!((options.timeouts.create, options.timeouts.update), (Some(Duration::from_secs(90)), None));
    assert_eq!(options.delete_before_replace, None, "it was not said");
    assert_eq!(registered.package.provider.unwrap().to_string(), reference);
    assert_eq!(registered.providers["t"].urn.name(), "mine");
    assert_eq!(registered.parent.unwrap().name(), "a");

    let said = RegisterResourceRequest { delete_before_replace_defined: true, ..request.clone() };
    assert_eq!(served.registered(said).await.options.delete_before_replace, Some(false));
    let of_old = RegisterResourceRequest { delete_before_replace: true, ..request };
    assert_eq!(served.registered(of_old).await.options.delete_before_replace, Some(true));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_the_field_that_does_not() {
    let mut served = serve(Recorder::default()).await;
    let timeouts = CustomTimeouts { delete: "soon".into(), ..CustomTimeouts::default() };
    let cases = [
        (RegisterResourceRequest { r#type: String::new(), ..thing() }, "type: missing"),
        (RegisterResourceRequest { parent: "x".into(), ..thing() }, "parent: "),
        (RegisterResourceRequest { dependencies: vec!["x".into()], ..thing() }, "dependencies: "),
        (RegisterResourceRequest { provider: A.into(), ..thing() }, "provider: "),
        (RegisterResourceRequest { custom_timeouts: Some(timeouts), ..thing() }, "customTimeouts.delete: "),
    ];
    for (request, words) in cases {
        let (code, message) = served.refused(request).await;
        assert!(code == Code::InvalidArgument && message.starts_with(words), "{message}");
    }
    assert!(served.monitor.registered.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_only_programs_can_have_is_refused_by_name_and_the_user_is_told() {
    let mut served = serve(Recorder::default()).await;
    let hooks = ResourceHooksBinding { before_create: vec!["h".into()], ..ResourceHooksBinding::default() };
    for request in [
        RegisterResourceRequest { transforms: vec![rpc::Callback::default()], ..thing() },
        RegisterResourceRequest { hooks: Some(hooks), ..thing() },
        RegisterResourceRequest { package_ref: "1".into(), ..thing() },
        RegisterResourceRequest { state_migrations: vec![rpc::Callback::default()], ..thing() },
        RegisterResourceRequest { env_var_mappings: [("A".into(), "B".into())].into(), ..thing() },
    ] {
        let (code, message) = served.refused(request).await;
        assert!(code == Code::Unimplemented && message.starts_with("sc does not serve "), "{message}");
    }
    let client = &mut served.client;
    assert!(client.register_stack_transform(rpc::Callback::default()).await.is_err());
    assert!(client.register_resource_hook(rpc::RegisterResourceHookRequest::default()).await.is_err());
    assert!(client.exists_resource(rpc::ExistsResourceRequest::default()).await.is_err());
    let told = served.monitor.refused.lock().unwrap().clone();
    let expected = [
        "transforms",
        "resource hooks",
        "parameterized packages",
        "state migrations",
        "other names for environment variables (envVarMappings)",
        "transforms",
        "resource hooks",
        "whether a resource exists (ExistsResource)",
    ];
    assert_eq!(told, expected);
    // Hooks that are said to be none are none.
    served.registered(RegisterResourceRequest { hooks: Some(ResourceHooksBinding::default()), ..thing() }).await;
}

#[tokio::test]
async fn sdks_hear_which_features_there_are() {
    let config = BTreeMap::from([("t:key".to_owned(), "value".to_owned())]);
    let run = RunInfo { project: "p".into(), stack: "s".into(), config, ..RunInfo::default() };
    let mut served = serve(Recorder { run, ..Recorder::default() }).await;
    for (id, has) in [("secrets", true), ("outputValues", true), ("transforms", false), ("resourceHooks", false)] {
        let request = rpc::SupportsFeatureRequest { id: id.to_owned() };
        assert_eq!(served.client.supports_feature(request).await.unwrap().into_inner().has_support, has, "{id}");
    }
    let info = served.client.get_deployment_info(()).await.unwrap().into_inner();
    assert_eq!((info.project.as_str(), info.stack.as_str(), info.config["t:key"].as_str()), ("p", "s", "value"));
}

#[tokio::test]
async fn an_answer_holds_what_the_caller_understands() {
    let secret = || PropertyValue::secret("hush".into());
    let half_known = || PropertyValue::List(vec!["1".into(), PropertyValue::UNKNOWN]);
    let answer = PropertyMap::from([("s".to_owned(), secret()), ("l".to_owned(), half_known())]);
    let mut served = serve(Recorder { answer, run: preview(), ..Recorder::default() }).await;
    let all = served.client.register_resource(thing()).await.unwrap().into_inner();
    let outputs = opened(all.object);
    assert_eq!((&outputs["s"], &outputs["l"]), (&secret(), &half_known()));
    assert_eq!((all.id.as_str(), all.property_dependencies["out"].urns[0].as_str()), ("x-1", A));

    let old = RegisterResourceRequest { accept_secrets: false, supports_partial_values: false, ..thing() };
    let outputs = opened(served.client.register_resource(old).await.unwrap().into_inner().object);
    assert_eq!((outputs["s"].as_str(), outputs.get("l")), (Some("hush"), None));
}

#[tokio::test]
async fn a_failure_is_an_error_for_who_cannot_read_results() {
    let mut served = serve(Recorder { outcome: Some(ResourceOutcome::Failed), ..Recorder::default() }).await;
    let told = served.client.register_resource(thing()).await.unwrap().into_inner();
    assert_eq!(told.result(), rpc::Result::Fail);
    let old = RegisterResourceRequest { supports_result_reporting: false, ..thing() };
    assert_eq!(served.refused(old).await.0, Code::Unknown);

    let mut served = serve(Recorder { outcome: Some(ResourceOutcome::Unknown), ..Recorder::default() }).await;
    let told = served.client.register_resource(thing()).await.unwrap().into_inner();
    assert!(told.unknown && told.result() == rpc::Result::Success);
}

#[tokio::test]
async fn once_the_deployment_has_stopped_no_sdk_takes_that_for_its_own_end() {
    let mut served = serve(Recorder { stopped: true, ..Recorder::default() }).await;
    let (code, message) = served.refused(thing()).await;
    assert_eq!((code, message.as_str()), (Code::Aborted, "the deployment has stopped"));
}

#[tokio::test]
async fn reads_functions_and_outputs_go_through() {
    let mut served = serve(Recorder::default()).await;
    let read = ReadResourceRequest { r#type: "t:i:T".into(), name: "r".into(), id: "1".into(), ..Default::default() };
    assert_eq!(served.client.read_resource(read).await.unwrap().into_inner().id, "r-1");
    assert_eq!(served.monitor.read.lock().unwrap()[0].id.as_str(), "1");

    let invoke = ResourceInvokeRequest { tok: "t:i:f".into(), args: bag([("x", "1".into())]), ..Default::default() };
    let told = served.client.invoke(invoke.clone()).await.unwrap().into_inner();
    assert_eq!((opened(told.r#return)["x"].as_str(), told.failures[0].reason.as_str()), (Some("1"), "no"));
    let waiting = ResourceInvokeRequest { depends_on: vec![A.to_owned()], ..invoke };
    assert!(served.client.invoke(waiting).await.unwrap().into_inner().unknown);

    let outputs =
        rpc::RegisterResourceOutputsRequest { urn: A.into(), outputs: bag([("o", from(B, Some("1"), true))]) };
    served.client.register_resource_outputs(outputs).await.unwrap();
    let (urn, outputs) = served.monitor.outputs.lock().unwrap().pop().unwrap();
    assert_eq!((urn.name(), &outputs["o"]), ("a", &PropertyValue::secret("1".into())));
}
