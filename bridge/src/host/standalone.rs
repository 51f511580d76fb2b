//! Plugins that run for other programs: hosts attach to them, as [`AttachedPlugin`](super::AttachedPlugin). Nothing is
//! configured here, not even Handshake is called: only Attach, to know whether a host can call it.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::attachment::{Attachment, RootResource, RunLinks};
use super::endpoint::Endpoint;
use super::engine_service::EngineServices;
use super::host_settings::HostSettings;
use super::load_error::{LoadError, failed_to_load};
use super::terraform_bridge::TerraformBridge;
use super::{HostError, HostEvent};
use crate::install::VerifiedPackage;
use crate::launch::{
    AwaitedPlugin, LaunchSpec, Launched, PluginAddress, PluginRegistrations, RegisteredPlugin, attached_connection,
    launch, plugin_environment, process_sandbox, socket_folders,
};
use crate::plugin::{Dialect, GoPlugin, GoPluginTls, PluginConfig, PluginUse, Sandbox};
use crate::process::describe_exit;
use crate::provider::grpc::implements_attach;

/// Limit on the call of Attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(5);

/// Plugin that runs for other programs. Dropping it kills the process that this host has started.
pub struct StandalonePlugin {
    running: Running,
    is_attachable: bool,
    // Dropped after the process: a Go provider exits when the engine service ends.
    _endpoint: Endpoint,
}

enum Running {
    Started(Box<Started>),
    Registered(RegisteredPlugin),
}

struct Started {
    launched: Launched,
    _package: VerifiedPackage,
    _bridge: Option<TerraformBridge>,
}

/// Plugin that another program starts, and that registers here.
pub struct AwaitedRegistration {
    plugin: PluginConfig,
    awaited: AwaitedPlugin,
    endpoint: Endpoint,
}

impl StandalonePlugin {
    /// Fetches, verifies and starts a plugin. A go-plugin server is started without TLS, because a host that attaches to it
    /// does not have the keys; and one with `sandbox: strict` with the restrictions of `basic`, because it could not connect to
    /// the ports of that host.
    ///
    /// # Errors
    /// [`HostError`]; no process is left.
    ///
    /// # Cancellation
    /// The process is killed.
    pub async fn start(settings: &HostSettings, plugin: &PluginConfig) -> Result<Self, HostError> {
        let package = settings.sources.resolve(plugin, &settings.events).await?;
        if matches!(plugin.sandbox, Sandbox::Strict(_)) {
            let message = "it runs in the sandbox `basic`, not `strict`: it has to connect to the host that attaches";
            settings.events.emit(HostEvent::Warning { plugin: plugin.name.to_string(), message: message.to_owned() });
        }
        settings.sources.check_policy(plugin)?;
        let plugin = &for_other_hosts(plugin);
        let program = package.program_origin();
        let bridge = settings.sources.terraform_bridge(plugin, Some(&program), &settings.events).await?;
        let started = Self::launch(settings, plugin, package, bridge).await;
        started.map_err(|error| failed_to_load(plugin, error))
    }

    async fn launch(
        settings: &HostSettings,
        plugin: &PluginConfig,
        package: VerifiedPackage,
        bridge: Option<TerraformBridge>,
    ) -> Result<Self, LoadError> {
        let (attachment, endpoint) = serve_engine(settings, plugin).await.map_err(LoadError::Listen)?;
        let mut environment = plugin_environment(plugin, &settings.project, &settings.environment);
        environment.variables.extend(bridge.iter().map(TerraformBridge::variable));
        for name in &environment.missing {
            let message = format!("the environment variable {name} in passEnv is not set");
            attachment.emit(HostEvent::Warning { plugin: plugin.name.to_string(), message });
        }
        let home = settings.environment.get("HOME").map(Path::new);
        let sandbox = process_sandbox(&plugin.sandbox, &settings.directory, &settings.secret_files, home, &[]);
        let registrations = match plugin.dialect {
            Dialect::Register(_) => Some(registrations(settings).await?),
            Dialect::Pulumi | Dialect::GoPlugin(_) => None,
        };
        let spec = LaunchSpec {
            plugin,
            package: &package,
            directory: settings.directory.clone(),
            environment: environment.variables,
            sandbox: sandbox.map_err(LoadError::Launch)?,
            start_timeout: plugin.start_timeout,
            socket_folders: socket_folders(&settings.environment),
            registrations,
            sink: attachment,
            spawner: &settings.spawner,
        };
        let launched = launch(spec, &plugin.dialect, &endpoint.address()).await.map_err(LoadError::Launch)?;
        let is_attachable = is_attachable(plugin, &launched.address, &endpoint).await;
        let started = Box::new(Started { launched, _package: package, _bridge: bridge });
        Ok(Self { running: Running::Started(started), is_attachable, _endpoint: endpoint })
    }

    /// Returns whether a host can attach to it that requires Attach, as Pulumi does.
    pub fn is_attachable(&self) -> bool {
        self.is_attachable
    }

    /// Returns the address at which it listens, without TLS.
    pub fn address(&self) -> &PluginAddress {
        match &self.running {
            Running::Started(started) => &started.launched.address,
            Running::Registered(registered) => &registered.address,
        }
    }

    /// Returns the version of the application protocol that a go-plugin server has chosen.
    pub fn protocol_version(&self) -> Option<u32> {
        match &self.running {
            Running::Started(started) => started.launched.protocol_version,
            Running::Registered(_) => None,
        }
    }

    /// Returns the number of its process, if the system shows it.
    pub fn process_id(&self) -> Option<i32> {
        match &self.running {
            Running::Started(started) => Some(started.launched.process.id()),
            Running::Registered(registered) => registered.process,
        }
    }

    /// Ends the process that this host has started after an abort: only by the signal on which it ends, and SIGKILL after
    /// `grace`.
    pub async fn abort(&self, grace: Duration) {
        if let Running::Started(started) = &self.running {
            started.launched.ending.abort(&started.launched.process, grace).await;
        }
    }

    /// Waits until it has exited or deregistered, and returns what happened, as in `it exited (exit status 1)`.
    pub async fn ended(&self) -> String {
        let deregistered = || "it has deregistered".to_owned();
        match &self.running {
            Running::Started(started) => tokio::select! {
                status = started.launched.process.wait_for_exit() => format!("it exited ({})", describe_exit(status)),
                () = started.launched.deregistered.cancelled() => deregistered(),
            },
            Running::Registered(registered) => tokio::select! {
                () = registered.exited() => "it exited".to_owned(),
                () = registered.deregistered.cancelled() => deregistered(),
            },
        }
    }

    /// Ends the process that this host has started, with `grace` between the last signal that it can handle and SIGKILL.
    /// Returns once no process of its group is left.
    pub async fn end(&self, grace: Duration) {
        if let Running::Started(started) = &self.running {
            started.launched.ending.end(&started.launched.process, grace).await;
        }
    }
}

impl AwaitedRegistration {
    /// Expects the registration of a plugin, whose package is neither fetched nor started.
    ///
    /// # Errors
    /// [`HostError`] if the socket for registrations or the engine service cannot be opened.
    pub async fn expect(settings: &HostSettings, plugin: &PluginConfig) -> Result<Self, HostError> {
        settings.sources.check_use(plugin, PluginUse::Attached)?;
        let expect = async {
            let (attachment, endpoint) = serve_engine(settings, plugin).await.map_err(LoadError::Listen)?;
            let registrations = registrations(settings).await?;
            let awaited = AwaitedPlugin::expect(&registrations, plugin, &(attachment as _), &endpoint.address());
            let awaited = awaited.map_err(|error| LoadError::Launch(error.into()))?;
            Ok(Self { plugin: plugin.clone(), awaited, endpoint })
        };
        expect.await.map_err(|error| failed_to_load(plugin, error))
    }

    /// Returns the variables of the process: names and values.
    pub fn environment(&self) -> &[(&'static str, OsString)] {
        self.awaited.environment()
    }

    /// Waits until the plugin has registered.
    ///
    /// # Errors
    /// [`HostError`]: the first registration is refused.
    ///
    /// # Cancellation
    /// The right to register ends.
    pub async fn registered(self) -> Result<StandalonePlugin, HostError> {
        let registered = self.awaited.registered().await;
        let registered = registered.map_err(|error| failed_to_load(&self.plugin, LoadError::Launch(error.into())))?;
        let is_attachable = is_attachable(&self.plugin, &registered.address, &self.endpoint).await;
        Ok(StandalonePlugin { running: Running::Registered(registered), is_attachable, _endpoint: self.endpoint })
    }
}

/// Returns whether a plugin implements Attach, as far as it says. The address that it gets is that of the engine that it has already. A
/// go-plugin server is not asked: hosts attach to it without Attach.
async fn is_attachable(plugin: &PluginConfig, address: &PluginAddress, endpoint: &Endpoint) -> bool {
    if matches!(plugin.dialect, Dialect::GoPlugin(_)) {
        return true;
    }
    let connection = attached_connection(address.clone());
    implements_attach(&connection, &endpoint.address(), ATTACH_LIMIT).await.unwrap_or(true)
}

/// Serves the services of an engine without a run. Their messages and the output of the plugin are events.
async fn serve_engine(settings: &HostSettings, plugin: &PluginConfig) -> std::io::Result<(Arc<Attachment>, Endpoint)> {
    let links = RunLinks { events: Arc::clone(&settings.events), root_resource: RootResource::default() };
    let attachment = Arc::new(Attachment::new(plugin.name.as_str(), Some(links)));
    let engine = EngineServices::serve(Arc::clone(&attachment), settings.pool.connection_guard()).await?;
    Ok((attachment, engine.endpoint))
}

async fn registrations(settings: &HostSettings) -> Result<PluginRegistrations, LoadError> {
    let folders = socket_folders(&settings.environment);
    settings.pool.registrations(&folders).await.map_err(LoadError::ListenForRegistrations)
}

/// Returns the declaration with which a plugin starts for other hosts.
fn for_other_hosts(plugin: &PluginConfig) -> PluginConfig {
    let mut plugin = plugin.clone();
    if let Dialect::GoPlugin(settings) = plugin.dialect {
        plugin.dialect = Dialect::GoPlugin(GoPlugin { tls: GoPluginTls::None, ..settings });
    }
    if matches!(plugin.sandbox, Sandbox::Strict(_)) {
        plugin.sandbox = Sandbox::Basic;
    }
    plugin
}

impl fmt::Debug for StandalonePlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandalonePlugin").field("address", self.address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for AwaitedRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitedRegistration").field("plugin", &self.plugin.name).finish_non_exhaustive()
    }
}
