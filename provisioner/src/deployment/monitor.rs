//! The door for component plugins: what they ask while they construct becomes jobs of the deployment.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bridge::host::{
    FunctionCall, MethodCall, Monitor, MonitorRefusal, ResourceAnswer, ResourceOutcome, ResourceRead,
    ResourceRegistration,
};
use bridge::provider::{CallReply, CheckFailure, InvokeReply, RunInfo};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pulumi_proto::property::{PropertyMap, PropertyValue, UNKNOWN_STRING};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::events::{Event, Message, Severity};
use crate::state::CustomTimeouts;

use super::engine::Engine;
use super::goal::Goal;
use super::registrar::{InvokeGoal, ReadGoal, Refused, Registered, RegistrationResult};
use super::report;

/// The function that the engine itself serves.
const GET_RESOURCE: &str = "pulumi:pulumi:getResource";

/// Leads to a deployment as long as there is one.
pub(super) struct Door {
    engine: Weak<Engine>,
    run: RunInfo,
}

impl Door {
    pub(super) fn new(engine: &Arc<Engine>) -> Self {
        Self { engine: Arc::downgrade(engine), run: engine.run_of() }
    }

    async fn job<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Engine>) -> BoxFuture<'static, Result<T, Refused>> + Send,
    ) -> Result<T, MonitorRefusal> {
        let outcome = match self.engine.upgrade() {
            Some(engine) => engine.job(work).await,
            None => Err(Refused),
        };
        outcome.map_err(|refused| MonitorRefusal(refused.to_string()))
    }
}

#[async_trait]
impl Monitor for Door {
    fn run(&self) -> &RunInfo {
        &self.run
    }

    fn refuse(&self, what: &str) {
        let Some(engine) = self.engine.upgrade() else { return };
        let mut message =
            Message::new(Severity::Error, format!("a component asks for {what}, which sc does not serve"));
        message.hint = "make the component without them, or provision this stack with Pulumi".to_owned();
        engine.emit(Event::Message(message));
        engine.note_break();
    }

    async fn register(&self, request: ResourceRegistration) -> Result<ResourceAnswer, MonitorRefusal> {
        let goal = goal(request);
        let is_component = !goal.custom && !goal.remote;
        self.job(move |engine| {
            async move {
                let mut registered = engine.register(goal, false).await?;
                if is_component {
                    // What is recorded of them is of the last run: its plugin says what they are now.
                    registered.outputs = Arc::default();
                }
                Ok(engine.answer(registered))
            }
            .boxed()
        })
        .await
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorRefusal> {
        self.job(|engine| async move { engine.register_outputs(&urn, outputs).await }.boxed()).await
    }

    async fn read(&self, request: ResourceRead) -> Result<ResourceAnswer, MonitorRefusal> {
        let goal = ReadGoal {
            type_token: request.type_token,
            name: request.name,
            id: request.id,
            properties: request.properties,
            parent: request.parent,
            dependencies: request.dependencies,
            provider: request.package.provider,
            additional_secret_outputs: request.additional_secret_outputs,
            version: request.package.version,
            plugin_download_url: request.package.download_url,
            source: None,
        };
        self.job(|engine| {
            async move {
                let registered = engine.read(goal).await?;
                Ok(engine.answer(registered))
            }
            .boxed()
        })
        .await
    }

    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorRefusal> {
        let answer = self.job(|engine| {
            async move {
                if request.token.as_str() == GET_RESOURCE {
                    return Ok(Some(Ok(engine.known_resource(&request.arguments))));
                }
                if engine.waits_for_ids(&request.depends_on) {
                    return Ok(None);
                }
                let mut package = request.package;
                if package.provider.is_none() {
                    package.provider = engine.provider_of_parent(request.parent.as_ref(), request.token.package());
                }
                let goal = InvokeGoal {
                    token: request.token,
                    arguments: request.arguments,
                    provider: package.provider,
                    version: package.version,
                    plugin_download_url: package.download_url,
                };
                engine.ask_function(goal).await.map(Some)
            }
            .boxed()
        });
        answer.await?.transpose().map_err(|error| MonitorRefusal(report::chain(&error)))
    }

    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorRefusal> {
        let goal = InvokeGoal {
            token: request.token,
            arguments: request.arguments,
            provider: request.package.provider,
            version: request.package.version,
            plugin_download_url: request.package.download_url,
        };
        let dependencies = request.argument_dependencies;
        let answer = self.job(|engine| async move { engine.call(goal, dependencies).await }.boxed());
        answer.await?.map_err(|error| MonitorRefusal(report::chain(&error)))
    }
}

impl Engine {
    fn answer(&self, registered: Registered) -> ResourceAnswer {
        let outcome = match registered.result {
            RegistrationResult::Succeeded => ResourceOutcome::Succeeded,
            RegistrationResult::Failed => ResourceOutcome::Failed,
            RegistrationResult::Skipped if self.tables().failed.contains(&registered.urn) => ResourceOutcome::Failed,
            RegistrationResult::Skipped => ResourceOutcome::Unknown,
        };
        ResourceAnswer {
            urn: registered.urn,
            id: registered.id,
            outputs: registered.outputs,
            dependencies: registered.dependencies,
            outcome,
        }
    }

    /// Whether a custom resource among these, or under a component among them, does not exist yet (section 8.3).
    fn waits_for_ids(&self, urns: &[Urn]) -> bool {
        let tables = self.tables();
        let mut open: Vec<&Urn> = urns.iter().collect();
        while let Some(urn) = open.pop() {
            match tables.news.get(urn) {
                Some((_, state)) if state.custom && !matches!(state.id.as_str(), "" | UNKNOWN_STRING) => {}
                Some((_, state)) if !state.custom => {
                    let children = tables.news.values().filter(|(_, child)| child.parent.as_ref() == Some(urn));
                    open.extend(children.map(|(_, child)| &child.urn));
                }
                _ => return true,
            }
        }
        false
    }

    /// What SDKs make a resource of that they were given a reference to: its id and outputs, if it is of this run.
    fn known_resource(&self, arguments: &PropertyMap) -> InvokeReply {
        let text = arguments.get("urn").and_then(PropertyValue::as_str).unwrap_or_default();
        let known = text.parse::<Urn>().ok().and_then(|urn| self.tables().news.get(&urn).cloned());
        let Some((_, state)) = known else {
            let reason = format!("{text:?} is not a resource that this run has registered");
            let failures = vec![CheckFailure { property: "urn".to_owned(), reason }];
            return InvokeReply { failures, ..InvokeReply::default() };
        };
        let result = [
            ("urn", state.urn.as_str().into()),
            ("id", state.id.as_str().into()),
            ("state", PropertyValue::Map((*state.outputs).clone())),
        ];
        let result = result.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        InvokeReply { result, failures: Vec::new() }
    }

    /// The provider that a function of a package takes from the resource it is called under.
    fn provider_of_parent(&self, parent: Option<&Urn>, package: &str) -> Option<ProviderReference> {
        let tables = self.tables();
        let inherited = tables.goals.get(parent?)?;
        let serves = |reference: &&ProviderReference| {
            TypeToken::new(reference.urn.type_token()).provider_package() == Some(package)
        };
        inherited.provider.as_ref().filter(serves).or_else(|| inherited.providers.get(package)).cloned()
    }
}

fn goal(request: ResourceRegistration) -> Goal {
    let options = request.options;
    Goal {
        custom: request.custom,
        remote: request.remote,
        parent: request.parent,
        dependencies: request.dependencies,
        property_dependencies: request.property_dependencies,
        provider: request.package.provider,
        providers: request.providers,
        protect: options.protect,
        delete_before_replace: options.delete_before_replace,
        ignore_changes: options.ignore_changes,
        replace_on_changes: options.replace_on_changes,
        additional_secret_outputs: options.additional_secret_outputs,
        aliases: options.aliases,
        custom_timeouts: CustomTimeouts {
            create: options.timeouts.create,
            update: options.timeouts.update,
            delete: options.timeouts.delete,
            read: options.timeouts.read,
        },
        import_id: request.import_id,
        retain_on_delete: options.retain_on_delete,
        deleted_with: options.deleted_with,
        replace_with: options.replace_with,
        replacement_trigger: options.replacement_trigger.unwrap_or(PropertyValue::Null),
        hide_diff: request.hide_diff,
        version: request.package.version,
        plugin_download_url: request.package.download_url,
        ..Goal::component(request.type_token, request.name, request.inputs)
    }
}
