//! Service `pulumirpc.ResourceProvider`: decodes requests, calls the types, encodes responses. Calls without an
//! implementation return UNIMPLEMENTED, which engines treat as "not needed" (docs/spec/provider-protocol.md#3.1).

use std::sync::{Arc, OnceLock};

use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{Bag, Unknowns};
use pulumi_proto::rpc::resource_provider_server::ResourceProvider;
use pulumi_proto::rpc::{
    CheckRequest, CheckResponse, ConfigureRequest, ConfigureResponse, CreateRequest, CreateResponse, DeleteRequest,
    DiffRequest, DiffResponse, GetSchemaRequest, GetSchemaResponse, InvokeRequest, InvokeResponse, PluginAttach,
    PluginInfo, ProviderHandshakeRequest, ProviderHandshakeResponse, ReadRequest, ReadResponse, UpdateRequest,
    UpdateResponse,
};
use pulumi_proto::urn::Urn;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::check::check;
use crate::diff::{diff, ignore};
use crate::engine::Engine;
use crate::resources::resource::{Resource, State};
use crate::root::{CallContext, Root};
use crate::schema::schema;
use crate::value::{from_wire, to_wire};
use crate::{VERSION, config, functions, resources};

type RpcResult<T> = Result<Response<T>, Status>;

/// State that the services of the process share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// Cancelled when running operations must end early and no new ones may start.
    pub(crate) cancelled: CancellationToken,
    configured: OnceLock<Configured>,
}

/// Configuration of the process, set once by Configure.
struct Configured {
    root: Arc<Root>,
    /// True if the engine accepts secrets.
    keep_secrets: bool,
}

impl Shared {
    /// Returns the root folder.
    pub(crate) fn root(&self) -> Result<&Root, Status> {
        self.configured().map(|configured| &*configured.root)
    }

    fn configured(&self) -> Result<&Configured, Status> {
        self.configured.get().ok_or_else(|| Status::failed_precondition("Configure has not been called yet"))
    }

    fn context(&self) -> Result<CallContext, Status> {
        if self.cancelled.is_cancelled() {
            return Err(Status::aborted("the plugin is being cancelled; no new operation is started"));
        }
        let root = Arc::clone(&self.configured()?.root);
        Ok(CallContext { root, cancelled: self.cancelled.clone() })
    }

    /// Encodes a property map for a response.
    fn to_wire(&self, bag: &PropertyMap) -> Result<Option<Bag>, Status> {
        // Before Configure, engines request properties only by CheckConfig, and send its secrets as plain values.
        to_wire(bag, self.configured.get().is_none_or(|configured| configured.keep_secrets))
    }
}

/// Implementation of the service.
pub(crate) struct Provider(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl ResourceProvider for Provider {
    // --- Identity ---

    async fn handshake(&self, request: Request<ProviderHandshakeRequest>) -> RpcResult<ProviderHandshakeResponse> {
        let address = request.into_inner().engine_address;
        if !address.is_empty() {
            self.0.engine.set_address(&address).map_err(|error| bad_address(&address, &error))?;
        }
        Ok(Response::new(ProviderHandshakeResponse {
            accept_secrets: true,
            accept_resources: true,
            accept_outputs: true,
            ..ProviderHandshakeResponse::default()
        }))
    }

    async fn attach(&self, request: Request<PluginAttach>) -> RpcResult<()> {
        let address = request.into_inner().address;
        self.0.engine.set_address(&address).map_err(|error| bad_address(&address, &error))?;
        Ok(Response::new(()))
    }

    async fn get_plugin_info(&self, _: Request<()>) -> RpcResult<PluginInfo> {
        Ok(Response::new(PluginInfo { version: VERSION.to_owned() }))
    }

    async fn get_schema(&self, request: Request<GetSchemaRequest>) -> RpcResult<GetSchemaResponse> {
        let request = request.into_inner();
        if request.version != 0 {
            return Err(Status::invalid_argument(format!("there is no schema of version {}", request.version)));
        }
        if !request.subpackage_name.is_empty() {
            return Err(Status::invalid_argument("this package has no subpackages"));
        }
        Ok(Response::new(GetSchemaResponse { schema: schema().to_string() }))
    }

    async fn cancel(&self, _: Request<()>) -> RpcResult<()> {
        self.0.cancelled.cancel();
        Ok(Response::new(()))
    }

    // --- Configuration ---

    async fn check_config(&self, request: Request<CheckRequest>) -> RpcResult<CheckResponse> {
        let news = from_wire(request.into_inner().news, Unknowns::Keep)?;
        let properties = config::PROPERTIES.iter().chain([&config::VERSION]);
        let (inputs, failures) = check("the configuration of files", properties, news, &config::check);
        Ok(Response::new(CheckResponse { inputs: self.0.to_wire(&inputs)?, failures }))
    }

    async fn diff_config(&self, request: Request<DiffRequest>) -> RpcResult<DiffResponse> {
        let (olds, news) = bags_of_diff(request.into_inner())?;
        Ok(Response::new(diff(config::PROPERTIES.iter().chain([&config::VERSION]), &olds, &news)))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> RpcResult<ConfigureResponse> {
        let request = request.into_inner();
        let args = request.args.map(|args| from_wire(Some(args), Unknowns::Reject)).transpose()?;
        let root = Arc::new(config::read(args.as_ref(), &request.variables)?);
        let configured = Configured { root, keep_secrets: request.accept_secrets };
        if self.0.configured.set(configured).is_err() {
            return Err(Status::failed_precondition("the plugin is configured already"));
        }
        self.0.engine.debug("", "configured").await;
        // Repeated for engines that do not call Handshake.
        Ok(Response::new(ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: true,
            ..ConfigureResponse::default()
        }))
    }

    // --- Functions ---

    async fn invoke(&self, request: Request<InvokeRequest>) -> RpcResult<InvokeResponse> {
        let request = request.into_inner();
        let function = functions::find(&request.tok)?;
        let ctx = self.0.context()?;
        // Engines omit arguments with unknown values. Unknown values that an engine sends are treated as absent.
        let arguments = from_wire(request.args, Unknowns::Drop)?;
        let rule = |name: &str, value: &_| function.check(name, value);
        let (arguments, mut failures) = check(function.token(), function.arguments(), arguments, &rule);
        let mut response = InvokeResponse::default();
        if failures.is_empty() {
            match blocking(move || function.call(&ctx, &arguments)).await? {
                Ok(results) => response.r#return = self.0.to_wire(&results)?,
                Err(failure) => failures.push(failure),
            }
        }
        response.failures = failures;
        Ok(Response::new(response))
    }

    // --- Resources ---

    async fn check(&self, request: Request<CheckRequest>) -> RpcResult<CheckResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let news = from_wire(request.news, Unknowns::Keep)?;
        let rule = |name: &str, value: &_| resource.check(name, value);
        let (inputs, failures) = check(resource.token(), resource.inputs(), news, &rule);
        Ok(Response::new(CheckResponse { inputs: self.0.to_wire(&inputs)?, failures }))
    }

    async fn diff(&self, request: Request<DiffRequest>) -> RpcResult<DiffResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let (olds, news) = bags_of_diff(request)?;
        let mut response = diff(resource.inputs(), &olds, &news);
        // If a replacement keeps the location, the old resource must be deleted first. This also applies to
        // replacements that the user requests.
        response.delete_before_replace = resource.location().is_some_and(|location| {
            !response.diffs.is_empty() && !response.diffs.iter().any(|changed| changed == location)
        });
        Ok(Response::new(response))
    }

    async fn create(&self, request: Request<CreateRequest>) -> RpcResult<CreateResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let ctx = self.0.context()?;
        if request.preview {
            let outputs = resource.preview(&from_wire(request.properties, Unknowns::Keep)?, None);
            let properties = self.0.to_wire(&outputs)?;
            return Ok(Response::new(CreateResponse { properties, ..CreateResponse::default() }));
        }
        let inputs = from_wire(request.properties, Unknowns::Reject)?;
        let created = blocking(move || resource.create(&ctx, &inputs)).await?;
        self.0.engine.debug(&request.urn, "created").await;
        let properties = self.0.to_wire(&created.outputs)?;
        Ok(Response::new(CreateResponse { id: created.id, properties, ..CreateResponse::default() }))
    }

    async fn read(&self, request: Request<ReadRequest>) -> RpcResult<ReadResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let ctx = self.0.context()?;
        let known = State {
            inputs: from_wire(request.inputs, Unknowns::Reject)?,
            outputs: from_wire(request.properties, Unknowns::Reject)?,
        };
        let id = request.id;
        let live = blocking(move || resource.read(&ctx, &id, &known)).await?;
        self.0.engine.debug(&request.urn, if live.is_some() { "read" } else { "read: not there" }).await;
        // An empty response means that the resource does not exist.
        let Some(live) = live else { return Ok(Response::new(ReadResponse::default())) };
        Ok(Response::new(ReadResponse {
            id: live.id,
            properties: self.0.to_wire(&live.outputs)?,
            inputs: self.0.to_wire(&live.inputs)?,
            ..ReadResponse::default()
        }))
    }

    async fn update(&self, request: Request<UpdateRequest>) -> RpcResult<UpdateResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let ctx = self.0.context()?;
        let outputs = from_wire(request.olds, Unknowns::Reject)?;
        let inputs = match request.old_inputs {
            Some(inputs) => from_wire(Some(inputs), Unknowns::Reject)?,
            None => outputs.clone(),
        };
        let old = State { inputs, outputs };
        let unknowns = if request.preview { Unknowns::Keep } else { Unknowns::Reject };
        let mut news = from_wire(request.news, unknowns)?;
        ignore(&request.ignore_changes, &old.inputs, &mut news)?;
        if request.preview {
            let properties = self.0.to_wire(&resource.preview(&news, Some(&old)))?;
            return Ok(Response::new(UpdateResponse { properties, ..UpdateResponse::default() }));
        }
        let id = request.id;
        let updated = blocking(move || resource.update(&ctx, &id, &old, &news)).await?;
        self.0.engine.debug(&request.urn, "updated").await;
        if let Some(notice) = updated.notice {
            self.0.engine.info(&request.urn, notice).await;
        }
        let properties = self.0.to_wire(&updated.outputs)?;
        Ok(Response::new(UpdateResponse { properties, ..UpdateResponse::default() }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> RpcResult<()> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let ctx = self.0.context()?;
        let id = request.id;
        blocking(move || resource.delete(&ctx, &id)).await?;
        self.0.engine.debug(&request.urn, "deleted").await;
        Ok(Response::new(()))
    }
}

/// Returns the resource type of a request. `name` and `kind` repeat parts of the URN; older engines omit them.
fn resource(urn: &str, name: &str, kind: &str) -> Result<&'static dyn Resource, Status> {
    let urn: Urn = urn.parse().map_err(|_| Status::invalid_argument(format!("{urn:?} is not a valid URN")))?;
    if (!kind.is_empty() && kind != urn.type_token()) || (!name.is_empty() && name != urn.name()) {
        return Err(Status::invalid_argument(format!("name and type of the request are not those of {urn}")));
    }
    resources::find(urn.type_token())
}

/// Returns old and new inputs of a Diff, with ignored changes reset. Older engines send no old inputs, so the old
/// outputs are used, which contain all inputs.
fn bags_of_diff(request: DiffRequest) -> Result<(PropertyMap, PropertyMap), Status> {
    let olds = from_wire(request.old_inputs.or(request.olds), Unknowns::Keep)?;
    let mut news = from_wire(request.news, Unknowns::Keep)?;
    ignore(&request.ignore_changes, &olds, &mut news)?;
    Ok((olds, news))
}

/// Runs blocking work on a thread of the blocking pool.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Status::internal(format!("the operation ended in a panic: {error}"))))
}

fn bad_address(address: &str, error: &tonic::transport::Error) -> Status {
    Status::invalid_argument(format!("{address:?} is not the address of an engine: {error}"))
}
