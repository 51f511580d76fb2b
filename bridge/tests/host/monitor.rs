//! Tests of the resource monitor service: decoding of requests of component plugins, and encoding of replies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bridge::host::{
    FunctionCall, MethodCall, Monitor, MonitorEndpoint, MonitorError, ProviderSelection, ResourceOutcome, ResourceRead,
    ResourceRegistration, ResourceReply, Subpackage,
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
use tokio::sync::Semaphore;
use tonic::Code;
use tonic::transport::Channel;

const A: &str = "urn:pulumi:s::p::t:i:T::a";
const B: &str = "urn:pulumi:s::p::t:i:T::b";

/// Resource monitor that records its requests and returns the reply set by the test.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) run: RunInfo,
    /// Permits of the registrations that may return; `None`: all.
    pub(crate) hold: Option<Arc<Semaphore>>,
    pub(crate) reply: PropertyMap,
    pub(crate) outcome: Option<ResourceOutcome>,
    pub(crate) stopped: bool,
    pub(crate) registered: Mutex<Vec<ResourceRegistration>>,
    pub(crate) read: Mutex<Vec<ResourceRead>>,
    pub(crate) outputs: Mutex<Vec<(Urn, PropertyMap)>>,
    pub(crate) unsupported: Mutex<Vec<String>>,
    pub(crate) called: Mutex<Vec<MethodCall>>,
}

impl Recorder {
    fn reply(&self, name: &str) -> Result<ResourceReply, MonitorError> {
        if self.stopped {
            return Err(MonitorError("the deployment has stopped".to_owned()));
        }
        Ok(ResourceReply {
            urn: Urn::new("s", "p", None, "t:i:T", name),
            id: ResourceId::new(format!("{name}-1")),
            outputs: Arc::new(self.reply.clone()),
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

    fn report_unsupported(&self, feature: &str) {
        self.unsupported.lock().unwrap().push(feature.to_owned());
    }

    async fn register(&self, request: ResourceRegistration) -> Result<ResourceReply, MonitorError> {
        let name = request.name.clone();
        self.registered.lock().unwrap().push(request);
        if let Some(hold) = &self.hold {
            hold.acquire().await.unwrap().forget();
        }
        self.reply(&name)
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorError> {
        self.outputs.lock().unwrap().push((urn, outputs));
        Ok(())
    }

    async fn read(&self, request: ResourceRead) -> Result<ResourceReply, MonitorError> {
        let name = request.name.clone();
        self.read.lock().unwrap().push(request);
        self.reply(&name)
    }

    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorError> {
        if !request.depends_on.is_empty() {
            return Ok(None);
        }
        let failures = vec![CheckFailure { property: Some("x".into()), reason: "no".into() }];
        Ok(Some(InvokeReply { result: request.arguments, failures }))
    }

    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorError> {
        self.called.lock().unwrap().push(request.clone());
        Ok(CallReply { result: request.arguments, ..CallReply::default() })
    }
}

fn preview() -> RunInfo {
    RunInfo { dry_run: true, ..RunInfo::default() }
}

/// Running resource monitor service with a client.
struct MonitorServer {
    monitor: Arc<Recorder>,
    client: ResourceMonitorClient<Channel>,
    _endpoint: MonitorEndpoint,
}

async fn serve(monitor: Recorder) -> MonitorServer {
    serve_in(monitor, PathBuf::new()).await
}

async fn serve_in(monitor: Recorder, folder: PathBuf) -> MonitorServer {
    let monitor = Arc::new(monitor);
    let endpoint = MonitorEndpoint::serve(Arc::clone(&monitor) as _, folder, Arc::default()).await.unwrap();
    let client = ResourceMonitorClient::connect(format!("http://{}", endpoint.address())).await.unwrap();
    MonitorServer { monitor, client, _endpoint: endpoint }
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

/// Returns an output value that depends on a resource.
fn output_of(urn: &str, value: Option<&str>, secret: bool) -> PropertyValue {
    let value = value.map(PropertyValue::from);
    PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies: vec![urn.parse().unwrap()] }))
}

impl MonitorServer {
    async fn register(&mut self, request: RegisterResourceRequest) -> ResourceRegistration {
        self.client.register_resource(request).await.unwrap();
        self.monitor.registered.lock().unwrap().pop().unwrap()
    }

    async fn register_error(&mut self, request: RegisterResourceRequest) -> (Code, String) {
        let status = self.client.register_resource(request).await.unwrap_err();
        (status.code(), status.message().to_owned())
    }
}

fn names(urns: &[Urn]) -> Vec<&str> {
    urns.iter().map(Urn::name).collect()
}

#[tokio::test]
async fn inputs_without_property_dependencies_depend_on_all_dependencies() {
    let mut server = serve(Recorder::default()).await;
    let inputs = || bag([("v", "1".into()), ("w", "2".into())]);
    let dependencies = vec![A.to_owned(), B.to_owned()];
    let all =
        server.register(RegisterResourceRequest { object: inputs(), dependencies: dependencies.clone(), ..thing() });
    let all = all.await.property_dependencies;
    assert_eq!((names(&all["v"]), names(&all["w"])), (vec!["a", "b"], vec!["a", "b"]));

    let of_v = BTreeMap::from([("v".to_owned(), PropertyDependencies { urns: vec![B.to_owned()] })]);
    let declared = RegisterResourceRequest { object: inputs(), dependencies, property_dependencies: of_v, ..thing() };
    let declared = server.register(declared).await.property_dependencies;
    assert_eq!((names(&declared["v"]), declared.get("w")), (vec!["b"], None));
}

#[tokio::test]
async fn output_values_add_dependencies_and_are_kept_for_remote_components_only() {
    let mut server = serve(Recorder { run: preview(), ..Recorder::default() }).await;
    let list = PropertyValue::List(vec![output_of(A, Some("1"), true), output_of(B, None, false)]);
    let request = RegisterResourceRequest { object: bag([("v", list)]), ..thing() };
    let registered = server.register(request.clone()).await;
    assert_eq!(names(&registered.property_dependencies["v"]), ["a", "b"]);
    let plain = PropertyValue::List(vec![PropertyValue::secret("1".into()), PropertyValue::UNKNOWN]);
    assert_eq!(registered.inputs["v"], plain);

    let remote = RegisterResourceRequest { remote: true, custom: false, ..request };
    let registered = server.register(remote).await;
    assert!(
        matches!(&registered.inputs["v"], PropertyValue::List(items) if matches!(items[0], PropertyValue::Output(_)))
    );
}

#[tokio::test]
async fn method_arguments_have_declared_dependencies_and_those_of_output_values() {
    let mut server = serve(Recorder::default()).await;
    let declared = rpc::resource_call_request::ArgumentDependencies { urns: vec![A.to_owned()] };
    let call = rpc::ResourceCallRequest {
        tok: "t:i:T/m".into(),
        args: bag([("v", output_of(B, Some("1"), false)), ("w", "2".into())]),
        arg_dependencies: BTreeMap::from([("w".to_owned(), declared)]),
        ..Default::default()
    };
    server.client.call(call).await.unwrap();
    let dependencies = server.monitor.called.lock().unwrap().remove(0).argument_dependencies;
    assert_eq!((names(&dependencies["v"]), names(&dependencies["w"])), (vec!["b"], vec!["a"]));
}

#[tokio::test]
async fn asset_path_is_resolved_against_the_working_directory_of_plugins() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "a test asset").unwrap();
    let mut server = serve_in(Recorder::default(), folder.path().to_owned()).await;
    let asset = |hash: &str, path: &str| {
        PropertyValue::Asset(Asset { hash: Some(hash.to_owned()), content: AssetContent::Path(path.to_owned()) })
    };
    let inputs = || bag([("source", asset("", "page.html"))]);
    let expected = asset("e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704", "page.html");
    let registered = server.register(RegisterResourceRequest { object: inputs(), ..thing() }).await;
    assert_eq!(registered.inputs["source"], expected);

    let outputs = RegisterResourceOutputsRequest { urn: A.to_owned(), outputs: inputs() };
    server.client.register_resource_outputs(outputs).await.unwrap();
    assert_eq!(server.monitor.outputs.lock().unwrap()[0].1["source"], expected);

    let gone = RegisterResourceRequest { object: bag([("source", asset("", "gone"))]), ..thing() };
    let (code, message) = server.register_error(gone).await;
    assert!(code == Code::InvalidArgument && message.starts_with("source: cannot read "), "{message}");
}

#[tokio::test]
async fn read_without_id_is_rejected() {
    let mut server = serve(Recorder::default()).await;
    let request = ReadResourceRequest { r#type: "t:i:T".into(), name: "x".into(), ..ReadResourceRequest::default() };
    let status = server.client.read_resource(request).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "id: missing"));
}

#[tokio::test]
async fn resource_options_are_decoded() {
    let mut server = serve(Recorder::default()).await;
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
    let registered = server.register(request.clone()).await;
    let options = &registered.options;
    let [Alias::Spec { name, type_token, parent: AliasParent::None, .. }, Alias::Urn(urn)] = &options.aliases[..]
    else {
        panic!("{:?}", options.aliases);
    };
    assert_eq!((name.as_deref(), type_token, urn.name()), (Some("old"), &None, "a"));
    assert_eq!((options.custom_timeouts.create, options.custom_timeouts.update), (Some(Duration::from_secs(90)), None));
    assert_eq!(options.delete_before_replace, None, "it is not set");
    assert_eq!(registered.package.provider.unwrap().to_string(), reference);
    assert_eq!(registered.providers["t"].urn.name(), "mine");
    assert_eq!(registered.parent.unwrap().name(), "a");

    let explicit_false = RegisterResourceRequest { delete_before_replace_defined: true, ..request.clone() };
    assert_eq!(server.register(explicit_false).await.options.delete_before_replace, Some(false));
    let old_sdk = RegisterResourceRequest { delete_before_replace: true, ..request };
    assert_eq!(server.register(old_sdk).await.options.delete_before_replace, Some(true));
}

#[tokio::test]
async fn invalid_field_is_rejected_by_name() {
    let mut server = serve(Recorder::default()).await;
    let timeouts = CustomTimeouts { delete: "soon".into(), ..CustomTimeouts::default() };
    let cases = [
        (RegisterResourceRequest { r#type: String::new(), ..thing() }, "type: missing"),
        (RegisterResourceRequest { parent: "x".into(), ..thing() }, "parent: "),
        (RegisterResourceRequest { dependencies: vec!["x".into()], ..thing() }, "dependencies: "),
        (RegisterResourceRequest { provider: A.into(), ..thing() }, "provider: "),
        (RegisterResourceRequest { custom_timeouts: Some(timeouts), ..thing() }, "customTimeouts.delete: "),
    ];
    for (request, prefix) in cases {
        let (code, message) = server.register_error(request).await;
        assert!(code == Code::InvalidArgument && message.starts_with(prefix), "{message}");
    }
    assert!(server.monitor.registered.lock().unwrap().is_empty());
}

#[tokio::test]
async fn unsupported_features_are_rejected_and_reported() {
    let mut server = serve(Recorder::default()).await;
    let hooks = ResourceHooksBinding { before_create: vec!["h".into()], ..ResourceHooksBinding::default() };
    for request in [
        RegisterResourceRequest { transforms: vec![rpc::Callback::default()], ..thing() },
        RegisterResourceRequest { hooks: Some(hooks), ..thing() },
        RegisterResourceRequest { state_migrations: vec![rpc::Callback::default()], ..thing() },
        RegisterResourceRequest { env_var_mappings: [("A".into(), "B".into())].into(), ..thing() },
    ] {
        let (code, message) = server.register_error(request).await;
        assert!(code == Code::Unimplemented && message.starts_with("sc does not support "), "{message}");
    }
    let client = &mut server.client;
    assert!(client.register_stack_transform(rpc::Callback::default()).await.is_err());
    assert!(client.register_resource_hook(rpc::RegisterResourceHookRequest::default()).await.is_err());
    assert!(client.exists_resource(rpc::ExistsResourceRequest::default()).await.is_err());
    let extension = Some(rpc::Parameterization::default());
    let request = rpc::RegisterPackageRequest { name: "many".into(), extension, ..Default::default() };
    assert!(client.register_package(request).await.is_err());
    let reported = server.monitor.unsupported.lock().unwrap().clone();
    let expected = [
        "transforms",
        "resource hooks",
        "state migrations",
        "environment variable mappings (envVarMappings)",
        "transforms",
        "resource hooks",
        "existence checks of resources (ExistsResource)",
        "extensions of packages",
    ];
    assert_eq!(reported, expected);
    // An empty hooks binding is accepted.
    server.register(RegisterResourceRequest { hooks: Some(ResourceHooksBinding::default()), ..thing() }).await;
}

/// Shows: engine.md#components-of-plugins "A package that the plugin registers (RegisterPackage) and names in later requests
///   (`packageRef`) has a default provider"
#[tokio::test]
async fn registered_package_selects_the_default_provider_of_later_requests() {
    let mut server = serve(Recorder::default()).await;
    let many = |version: &str| rpc::RegisterPackageRequest {
        name: "many".into(),
        version: "1.2.3".into(),
        download_url: "https://x.example/".into(),
        parameterization: Some(rpc::Parameterization {
            name: "reef".into(),
            version: version.into(),
            value: b"coral".to_vec(),
        }),
        ..Default::default()
    };
    let plain = rpc::RegisterPackageRequest { name: "t".into(), version: "2.0.0".into(), ..Default::default() };
    let mut register =
        async |request| server.client.register_package(request).await.map(|reply| reply.into_inner().r#ref);
    let reef = register(many("0.27.1")).await.unwrap();
    assert_eq!(register(many("0.27.1")).await.unwrap(), reef, "an equal package has the same reference");
    let newer = register(many("0.28.0")).await.unwrap();
    let plain = register(plain).await.unwrap();
    assert!(newer != reef && plain != reef);
    for (request, expected) in [
        (rpc::RegisterPackageRequest::default(), "name: missing"),
        (rpc::RegisterPackageRequest { version: "x".into(), ..many("1.0.0") }, "version: "),
        (many("1"), "parameterization.version: "),
    ] {
        let error = register(request).await.unwrap_err();
        assert!(error.code() == Code::InvalidArgument && error.message().starts_with(expected), "{error}");
    }
    let (code, message) = server.register_error(RegisterResourceRequest { package_ref: "1".into(), ..thing() }).await;
    assert_eq!((code, message.as_str()), (Code::InvalidArgument, "packageRef: \"1\" is not registered"));
    let subpackage = Subpackage {
        name: "reef".into(),
        version: "0.27.1".into(),
        base_name: "many".into(),
        base_version: Some("1.2.3".into()),
        value: b"coral".to_vec(),
    };
    let expected = ProviderSelection {
        version: Some("0.27.1".into()),
        download_url: Some("https://x.example".into()),
        subpackage: Some(Arc::new(subpackage)),
        ..ProviderSelection::default()
    };
    let of_plain = ProviderSelection { version: Some("2.0.0".into()), ..ProviderSelection::default() };
    for (package_ref, expected) in [(reef, expected), (plain, of_plain)] {
        let registered = server.register(RegisterResourceRequest { package_ref, ..thing() }).await;
        assert_eq!(registered.package, expected);
    }
}

#[tokio::test]
async fn supported_features_and_deployment_info_are_returned() {
    let config = BTreeMap::from([("t:key".to_owned(), "value".to_owned())]);
    let run = RunInfo { project: "p".into(), stack: "s".into(), config, ..RunInfo::default() };
    let mut server = serve(Recorder { run, ..Recorder::default() }).await;
    for (id, has) in [("secrets", true), ("outputValues", true), ("parameterization", true), ("transforms", false)] {
        let request = rpc::SupportsFeatureRequest { id: id.to_owned() };
        assert_eq!(server.client.supports_feature(request).await.unwrap().into_inner().has_support, has, "{id}");
    }
    let info = server.client.get_deployment_info(()).await.unwrap().into_inner();
    assert_eq!((info.project.as_str(), info.stack.as_str(), info.config["t:key"].as_str()), ("p", "s", "value"));
}

#[tokio::test]
async fn reply_contains_only_values_that_the_caller_accepts() {
    let secret = || PropertyValue::secret("hush".into());
    let half_known = || PropertyValue::List(vec!["1".into(), PropertyValue::UNKNOWN]);
    let reply = PropertyMap::from([("s".to_owned(), secret()), ("l".to_owned(), half_known())]);
    let mut server = serve(Recorder { reply, run: preview(), ..Recorder::default() }).await;
    let all = server.client.register_resource(thing()).await.unwrap().into_inner();
    let outputs = opened(all.object);
    assert_eq!((&outputs["s"], &outputs["l"]), (&secret(), &half_known()));
    assert_eq!((all.id.as_str(), all.property_dependencies["out"].urns[0].as_str()), ("x-1", A));

    let old = RegisterResourceRequest { accept_secrets: false, supports_partial_values: false, ..thing() };
    let outputs = opened(server.client.register_resource(old).await.unwrap().into_inner().object);
    assert_eq!((outputs["s"].as_str(), outputs.get("l")), (Some("hush"), None));
}

#[tokio::test]
async fn failure_is_an_error_for_an_sdk_without_result_reporting() {
    let mut server = serve(Recorder { outcome: Some(ResourceOutcome::Failed), ..Recorder::default() }).await;
    let reply = server.client.register_resource(thing()).await.unwrap().into_inner();
    assert_eq!(reply.result(), rpc::Result::Fail);
    let old = RegisterResourceRequest { supports_result_reporting: false, ..thing() };
    assert_eq!(server.register_error(old).await.0, Code::Unknown);

    let mut server = serve(Recorder { outcome: Some(ResourceOutcome::Unknown), ..Recorder::default() }).await;
    let reply = server.client.register_resource(thing()).await.unwrap().into_inner();
    assert!(reply.unknown && reply.result() == rpc::Result::Success);
}

#[tokio::test]
async fn registration_after_the_deployment_stopped_is_aborted() {
    let mut server = serve(Recorder { stopped: true, ..Recorder::default() }).await;
    let (code, message) = server.register_error(thing()).await;
    assert_eq!((code, message.as_str()), (Code::Aborted, "the deployment has stopped"));
}

#[tokio::test]
async fn reads_invokes_and_outputs_are_passed_to_the_monitor() {
    let mut server = serve(Recorder::default()).await;
    let read = ReadResourceRequest { r#type: "t:i:T".into(), name: "r".into(), id: "1".into(), ..Default::default() };
    assert_eq!(server.client.read_resource(read).await.unwrap().into_inner().id, "r-1");
    assert_eq!(server.monitor.read.lock().unwrap()[0].id.as_str(), "1");

    let invoke = ResourceInvokeRequest { tok: "t:i:f".into(), args: bag([("x", "1".into())]), ..Default::default() };
    let reply = server.client.invoke(invoke.clone()).await.unwrap().into_inner();
    assert_eq!((opened(reply.r#return)["x"].as_str(), reply.failures[0].reason.as_str()), (Some("1"), "no"));
    let with_dependency = ResourceInvokeRequest { depends_on: vec![A.to_owned()], ..invoke };
    assert!(server.client.invoke(with_dependency).await.unwrap().into_inner().unknown);

    let outputs =
        rpc::RegisterResourceOutputsRequest { urn: A.into(), outputs: bag([("o", output_of(B, Some("1"), true))]) };
    server.client.register_resource_outputs(outputs).await.unwrap();
    let (urn, outputs) = server.monitor.outputs.lock().unwrap().pop().unwrap();
    assert_eq!((urn.name(), &outputs["o"]), ("a", &PropertyValue::secret("1".into())));
}
