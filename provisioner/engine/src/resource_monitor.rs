//! The resource monitor: requests of plugins that construct components become jobs of the deployment.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bridge::error::chain_masked;
use bridge::host::{
    FunctionCall, MethodCall, Monitor, MonitorError, ResourceOutcome, ResourceRead, ResourceRegistration, ResourceReply,
};
use bridge::provider::{CallReply, CheckFailure, InvokeReply, RunInfo};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ReferenceId;
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};
use tracing::{Span, debug_span};

use crate::context::Context;
use crate::events::{Message, Severity};
use crate::goal::{Goal, InvokeGoal, ReadGoal};
use crate::options::DeploymentRequest;
use crate::phases::{self, CallError, run_info};
use crate::registrar::{Halted, Registered, RegistrationResult};
use crate::reporter::Failure;

/// Token of the function that the engine itself serves.
const GET_RESOURCE: &str = "pulumi:pulumi:getResource";

/// Resource monitor of a deployment, without ownership: requests are refused once the deployment is dropped.
pub(crate) struct ResourceMonitor {
    context: Weak<Context>,
    run: RunInfo,
}

impl ResourceMonitor {
    /// Creates the resource monitor of a deployment with these options.
    pub(crate) fn new(context: Weak<Context>, request: &DeploymentRequest) -> Self {
        Self { context, run: run_info(request) }
    }

    async fn run_job<T: Send + 'static, E: From<Halted> + Send + 'static>(
        &self,
        span: Span,
        work: impl FnOnce(Arc<Context>) -> BoxFuture<'static, Result<T, E>> + Send,
    ) -> Result<T, E> {
        match self.context.upgrade() {
            Some(context) => context.run_job(span, work).await,
            None => Err(Halted::Stopped.into()),
        }
    }

    /// Returns the error of a function or a method for the plugin that called it. Secrets are masked, as the text is
    /// shortened and the plugin may repeat it: the beginning of a secret would not be masked then.
    fn call_error(&self, error: CallError) -> MonitorError {
        match error {
            CallError::Provider(error) => {
                let Some(context) = self.context.upgrade() else { return halted_error(Halted::Stopped) };
                MonitorError(chain_masked(&error, |text| context.request.masker.mask_message(text)))
            }
            CallError::Halted(halted) => halted_error(halted),
        }
    }
}

#[async_trait]
impl Monitor for ResourceMonitor {
    fn run(&self) -> &RunInfo {
        &self.run
    }

    fn report_unsupported(&self, feature: &str) {
        let Some(context) = self.context.upgrade() else { return };
        let mut message =
            Message::new(Severity::Error, format_args!("a component requires {feature}, which sc does not support"));
        message.hint = Some(
            "change the component so that it does not require this feature, or provision this stack with Pulumi".into(),
        );
        context.report_general_error(message, Failure::Fatal);
    }

    async fn register(&self, request: ResourceRegistration) -> Result<ResourceReply, MonitorError> {
        let goal = goal(request);
        let (type_token, name) = (&goal.type_token, &goal.name);
        let span = debug_span!(parent: None, "job", kind = "register", r#type = %type_token, %name);
        let is_component = !goal.custom && !goal.remote;
        let reply = self.run_job(span, move |ctx| {
            async move {
                let mut registered = phases::register(&ctx, goal).await?;
                if is_component {
                    // Recorded outputs are those of the last run. The plugin of the component registers the new ones.
                    registered.outputs = Arc::default();
                }
                Ok::<_, Halted>(reply(&ctx, registered))
            }
            .boxed()
        });
        reply.await.map_err(halted_error)
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), MonitorError> {
        let span = debug_span!(parent: None, "job", kind = "outputs", %urn);
        let work = |ctx: Arc<Context>| async move { phases::register_outputs(&ctx, &urn, outputs).await }.boxed();
        self.run_job(span, work).await.map_err(halted_error)
    }

    async fn read(&self, request: ResourceRead) -> Result<ResourceReply, MonitorError> {
        let goal = ReadGoal {
            patience: std::time::Duration::ZERO,
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
            subpackage: request.package.subpackage,
            source: None,
        };
        let (type_token, name) = (&goal.type_token, &goal.name);
        let span = debug_span!(parent: None, "job", kind = "read", r#type = %type_token, %name);
        let reply = self.run_job(span, |ctx| {
            async move {
                let registered = phases::read(&ctx, goal).await?;
                Ok::<_, Halted>(reply(&ctx, registered))
            }
            .boxed()
        });
        reply.await.map_err(halted_error)
    }

    async fn invoke(&self, request: FunctionCall) -> Result<Option<InvokeReply>, MonitorError> {
        let span = debug_span!(parent: None, "job", kind = "invoke", function = %request.token);
        let reply = self.run_job(span, |ctx| {
            async move {
                if request.token.as_str() == GET_RESOURCE {
                    return Ok(Some(get_resource(&ctx, &request.arguments)));
                }
                if has_missing_ids(&ctx, &request.depends_on) {
                    return Ok(None);
                }
                let mut package = request.package;
                if package.provider.is_none() {
                    package.provider = provider_of_parent(&ctx, request.parent.as_ref(), request.token.package());
                }
                let goal = InvokeGoal {
                    token: request.token,
                    arguments: request.arguments,
                    provider: package.provider,
                    version: package.version,
                    plugin_download_url: package.download_url,
                    subpackage: package.subpackage,
                    source: None,
                };
                phases::call_function(&ctx, goal).await.map(Some)
            }
            .boxed()
        });
        reply.await.map_err(|error| self.call_error(error))
    }

    async fn call(&self, request: MethodCall) -> Result<CallReply, MonitorError> {
        let goal = InvokeGoal {
            token: request.token,
            arguments: request.arguments,
            provider: request.package.provider,
            version: request.package.version,
            plugin_download_url: request.package.download_url,
            subpackage: request.package.subpackage,
            source: None,
        };
        let dependencies = request.argument_dependencies;
        let span = debug_span!(parent: None, "job", kind = "call", function = %goal.token);
        let reply = self.run_job(span, |ctx| async move { phases::call(&ctx, goal, dependencies).await }.boxed());
        reply.await.map_err(|error| self.call_error(error))
    }
}

fn halted_error(halted: Halted) -> MonitorError {
    MonitorError(halted.to_string())
}

fn reply(ctx: &Context, registered: Registered) -> ResourceReply {
    let outcome = match registered.result {
        RegistrationResult::Succeeded => ResourceOutcome::Succeeded,
        RegistrationResult::Failed => ResourceOutcome::Failed,
        RegistrationResult::Skipped if ctx.state().has_failed(&registered.urn) => ResourceOutcome::Failed,
        RegistrationResult::Skipped => ResourceOutcome::Unknown,
    };
    ResourceReply {
        urn: registered.urn,
        id: registered.id,
        outputs: registered.outputs,
        dependencies: registered.dependencies,
        outcome,
    }
}

/// Returns whether any of these resources, or any custom resource below a component among them, does not exist yet
/// (docs/spec/engine-semantics.md#8.3).
fn has_missing_ids(ctx: &Context, urns: &[Urn]) -> bool {
    let state = ctx.state();
    let mut open: Vec<&Urn> = urns.iter().collect();
    while let Some(urn) = open.pop() {
        match state.registered(urn) {
            Some((_, resource)) if resource.custom && ReferenceId::from(resource.id.as_ref()).known().is_some() => {}
            Some((_, resource)) if !resource.custom => {
                let children = state.all_registered().filter(|(_, child)| child.parent.as_ref() == Some(urn));
                open.extend(children.map(|(_, child)| &child.urn));
            }
            _ => return true,
        }
    }
    false
}

/// Returns the id and the outputs of a resource of this run. SDKs construct resources that they received as references
/// from these.
fn get_resource(ctx: &Context, arguments: &PropertyMap) -> InvokeReply {
    let text = arguments.get("urn").and_then(PropertyValue::as_str).unwrap_or_default();
    let registered = text.parse::<Urn>().ok().and_then(|urn| ctx.state().registered(&urn).cloned());
    let Some((_, resource)) = registered else {
        let reason = format!("{text:?} is not a resource that this run has registered");
        let failures = vec![CheckFailure { property: Some("urn".to_owned()), reason }];
        return InvokeReply { failures, ..InvokeReply::default() };
    };
    let provider = resource.as_provider_reference();
    // Pulumi's engine returns the sentinel for a provider resource of a preview, and an empty text for others.
    let id = provider.as_ref().map_or(resource.id_text(), |provider| provider.id.as_str());
    let result = [
        ("urn", resource.urn.as_str().into()),
        ("id", id.into()),
        ("state", PropertyValue::Map((*resource.outputs).clone())),
    ];
    let result = result.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    InvokeReply { result, failures: Vec::new() }
}

/// Returns the provider that a function of a package inherits from the resource that it is called under.
fn provider_of_parent(ctx: &Context, parent: Option<&Urn>, package: &str) -> Option<ProviderReference> {
    let state = ctx.state();
    let inherited = state.inheritance(parent?)?;
    let serves =
        |reference: &&ProviderReference| TypeToken::new(reference.urn.type_token()).provider_package() == Some(package);
    inherited.provider.as_ref().filter(serves).or_else(|| inherited.providers.get(package)).cloned()
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
        custom_timeouts: options.custom_timeouts,
        import_id: request.import_id,
        retain_on_delete: options.retain_on_delete,
        deleted_with: options.deleted_with,
        replace_with: options.replace_with,
        replacement_trigger: options.replacement_trigger.filter(|trigger| *trigger != PropertyValue::Null),
        hide_diff: request.hide_diff,
        version: request.package.version,
        plugin_download_url: request.package.download_url,
        subpackage: request.package.subpackage,
        ..Goal::component(request.type_token, request.name, request.inputs)
    }
}
