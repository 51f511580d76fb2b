//! `pulumirpc.ResourceProvider`: decodes, asks the types, encodes. Calls that are not here answer UNIMPLEMENTED, which
//! engines take for "not needed" (provider protocol, section 3.1).

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
use crate::context::Context;
use crate::diff::{diff, ignore};
use crate::engine::Engine;
use crate::resources::resource::{Resource, State};
use crate::root::Root;
use crate::schema::schema;
use crate::value::{from_wire, to_wire};
use crate::{PACKAGE, VERSION, config, functions, resources};

type Answer<T> = Result<Response<T>, Status>;

/// What the services of the process share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// Ends running operations early, and starts no new ones.
    pub(crate) cancelled: CancellationToken,
    configured: OnceLock<Configured>,
}

/// What Configure said; a process has one configuration.
struct Configured {
    root: Arc<Root>,
    /// Whether the engine takes secrets marked as such.
    keep_secrets: bool,
}

impl Shared {
    /// Where files are.
    pub(crate) fn root(&self) -> Result<&Root, Status> {
        self.configured().map(|configured| &*configured.root)
    }

    fn configured(&self) -> Result<&Configured, Status> {
        self.configured.get().ok_or_else(|| Status::failed_precondition("Configure has not been called yet"))
    }

    fn context(&self) -> Result<Context, Status> {
        if self.cancelled.is_cancelled() {
            return Err(Status::aborted("the plugin was told to cancel; nothing new is started"));
        }
        let root = Arc::clone(&self.configured()?.root);
        Ok(Context { root, cancelled: self.cancelled.clone() })
    }

    /// A bag for the answer.
    fn to_wire(&self, bag: &PropertyMap) -> Result<Option<Bag>, Status> {
        // Before Configure there are no secrets: only CheckConfig answers with a bag, and gets its inputs without marks.
        to_wire(bag, self.configured.get().is_none_or(|configured| configured.keep_secrets))
    }
}

/// The service.
pub(crate) struct Provider(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl ResourceProvider for Provider {
    // --- Who we are ---

    async fn handshake(&self, request: Request<ProviderHandshakeRequest>) -> Answer<ProviderHandshakeResponse> {
        let address = request.into_inner().engine_address;
        if !address.is_empty() {
            self.0.engine.learn(&address).map_err(|error| bad_address(&address, &error))?;
        }
        Ok(Response::new(ProviderHandshakeResponse {
            accept_secrets: true,
            accept_resources: true,
            accept_outputs: true,
            ..ProviderHandshakeResponse::default()
        }))
    }

    async fn attach(&self, request: Request<PluginAttach>) -> Answer<()> {
        let address = request.into_inner().address;
        self.0.engine.learn(&address).map_err(|error| bad_address(&address, &error))?;
        Ok(Response::new(()))
    }

    async fn get_plugin_info(&self, _: Request<()>) -> Answer<PluginInfo> {
        Ok(Response::new(PluginInfo { version: VERSION.to_owned() }))
    }

    async fn get_schema(&self, request: Request<GetSchemaRequest>) -> Answer<GetSchemaResponse> {
        let request = request.into_inner();
        if request.version != 0 {
            return Err(Status::invalid_argument(format!("there is no schema of version {}", request.version)));
        }
        if !request.subpackage_name.is_empty() {
            return Err(Status::invalid_argument("this package has no subpackages"));
        }
        Ok(Response::new(GetSchemaResponse { schema: schema().to_string() }))
    }

    async fn cancel(&self, _: Request<()>) -> Answer<()> {
        self.0.cancelled.cancel();
        Ok(Response::new(()))
    }

    // --- Configuration ---

    async fn check_config(&self, request: Request<CheckRequest>) -> Answer<CheckResponse> {
        let news = from_wire(request.into_inner().news, Unknowns::Keep)?;
        let properties = config::PROPERTIES.iter().chain([&config::VERSION]);
        let (inputs, failures) = check("the configuration of files", properties, news, &config::check);
        Ok(Response::new(CheckResponse { inputs: self.0.to_wire(&inputs)?, failures }))
    }

    async fn diff_config(&self, request: Request<DiffRequest>) -> Answer<DiffResponse> {
        let (olds, news) = bags_of_diff(request.into_inner())?;
        Ok(Response::new(diff(config::PROPERTIES.iter().chain([&config::VERSION]), &olds, &news)))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<ConfigureResponse> {
        let request = request.into_inner();
        let args = request.args.map(|args| from_wire(Some(args), Unknowns::Reject)).transpose()?;
        let root = Arc::new(config::read(args.as_ref(), &request.variables)?);
        let configured = Configured { root, keep_secrets: request.accept_secrets };
        if self.0.configured.set(configured).is_err() {
            return Err(Status::failed_precondition("the plugin is configured already"));
        }
        self.0.engine.debug("", "configured").await;
        // Said again for engines that did not shake hands.
        Ok(Response::new(ConfigureResponse {
            accept_secrets: true,
            supports_preview: true,
            accept_resources: true,
            accept_outputs: true,
            ..ConfigureResponse::default()
        }))
    }

    // --- Functions ---

    async fn invoke(&self, request: Request<InvokeRequest>) -> Answer<InvokeResponse> {
        let request = request.into_inner();
        let function = functions::find(&request.tok)?;
        let ctx = self.0.context()?;
        // Engines leave out what they do not know; who sends it all the same means the same.
        let arguments = from_wire(request.args, Unknowns::Drop)?;
        let rule = |name: &str, value: &_| function.check(name, value);
        let (arguments, mut failures) = check(function.token(), function.arguments(), arguments, &rule);
        let mut answer = InvokeResponse::default();
        if failures.is_empty() {
            match blocking(move || function.call(&ctx, &arguments)).await? {
                Ok(results) => answer.r#return = self.0.to_wire(&results)?,
                Err(failure) => failures.push(failure),
            }
        }
        answer.failures = failures;
        Ok(Response::new(answer))
    }

    // --- Resources ---

    async fn check(&self, request: Request<CheckRequest>) -> Answer<CheckResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let news = from_wire(request.news, Unknowns::Keep)?;
        let rule = |name: &str, value: &_| resource.check(name, value);
        let (inputs, failures) = check(resource.token(), resource.inputs(), news, &rule);
        Ok(Response::new(CheckResponse { inputs: self.0.to_wire(&inputs)?, failures }))
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Answer<DiffResponse> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let (olds, news) = bags_of_diff(request)?;
        let mut answer = diff(resource.inputs(), &olds, &news);
        // Should this become a replacement, by our reasons or by the user's: where the new one takes the place of the
        // old one, the old one must go first.
        answer.delete_before_replace = resource
            .place()
            .is_some_and(|place| !answer.diffs.is_empty() && !answer.diffs.iter().any(|changed| changed == place));
        Ok(Response::new(answer))
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<CreateResponse> {
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

    async fn read(&self, request: Request<ReadRequest>) -> Answer<ReadResponse> {
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
        // An answer without anything means that there is no such resource.
        let Some(live) = live else { return Ok(Response::new(ReadResponse::default())) };
        Ok(Response::new(ReadResponse {
            id: live.id,
            properties: self.0.to_wire(&live.outputs)?,
            inputs: self.0.to_wire(&live.inputs)?,
            ..ReadResponse::default()
        }))
    }

    async fn update(&self, request: Request<UpdateRequest>) -> Answer<UpdateResponse> {
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

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<()> {
        let request = request.into_inner();
        let resource = resource(&request.urn, &request.name, &request.r#type)?;
        let ctx = self.0.context()?;
        let id = request.id;
        blocking(move || resource.delete(&ctx, &id)).await?;
        self.0.engine.debug(&request.urn, "deleted").await;
        Ok(Response::new(()))
    }
}

/// The type of the resource that a request is about. `name` and `kind` repeat what the URN says; older engines leave
/// them out.
fn resource(urn: &str, name: &str, kind: &str) -> Result<&'static dyn Resource, Status> {
    let urn: Urn = urn.parse().map_err(|_| Status::invalid_argument(format!("{urn:?} is no URN of {PACKAGE}")))?;
    if (!kind.is_empty() && kind != urn.type_token()) || (!name.is_empty() && name != urn.name()) {
        return Err(Status::invalid_argument(format!("name and type of the request are not those of {urn}")));
    }
    resources::find(urn.type_token())
}

/// Old and new inputs, what is to be ignored taken back. Older engines send no old inputs: all of ours are outputs, too.
fn bags_of_diff(request: DiffRequest) -> Result<(PropertyMap, PropertyMap), Status> {
    let olds = from_wire(request.old_inputs.or(request.olds), Unknowns::Keep)?;
    let mut news = from_wire(request.news, Unknowns::Keep)?;
    ignore(&request.ignore_changes, &olds, &mut news)?;
    Ok((olds, news))
}

/// Runs what waits for the disk where that holds up nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Status::internal(format!("the operation ended in a panic: {error}"))))
}

fn bad_address(address: &str, error: &tonic::transport::Error) -> Status {
    Status::invalid_argument(format!("{address:?} is no address of an engine: {error}"))
}
