//! Components that their plugins make: Construct and Call (engine semantics, section 2.15).
//!
//! The plugin registers the component and its children through the monitor; no step stands for the Construct itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::MonitorEndpoint;
use bridge::provider::{
    CallReply, CallRequest, ConstructReply, ConstructRequest, Provider, ProviderError, ResourceOptions, RunInfo,
    Timeouts,
};
use pulumi_proto::property::{PropertyMap, PropertyValue, ReferenceId, UNKNOWN_STRING};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use crate::events::{Message, Severity};

use super::engine::Engine;
use super::goal::Goal;
use super::monitor::Door;
use super::registrar::{InvokeGoal, Refused, Registered, RegistrationResult};
use super::report;

/// What file backends call the organization of a stack.
const ORGANIZATION: &str = "organization";

impl Engine {
    /// Has a component made by its plugin.
    pub(super) async fn construct(self: &Arc<Self>, goal: Goal, urn: Urn) -> Result<Registered, Refused> {
        if self.hangs_on_a_failure(&goal) {
            let mut tables = self.tables();
            tables.failed.insert(urn.clone());
            tables.unmade.insert(urn.clone());
            return Ok(Registered::without_outputs(urn, RegistrationResult::Skipped));
        }
        let reference = goal.provider.clone().ok_or(Refused)?;
        let source = goal.source;
        self.tables().constructed_at.extend(source.map(|source| (urn.clone(), source)));
        let instance = self.instance(&reference, &urn, source).await?;
        if self.halted() {
            return Err(Refused);
        }
        let answer = match instance.ready().await {
            Ok(Some(provider)) => self.ask_for_construction(provider, &goal).await,
            // Its configuration is not known yet: nobody can say what the component holds (section 8.4).
            Ok(None) => {
                let known = Goal {
                    parent: goal.parent,
                    source,
                    ..Goal::component(goal.type_token, goal.name, PropertyMap::new())
                };
                let registered = Box::pin(self.register(known, false)).await?;
                return Ok(Registered::without_outputs(registered.urn, registered.result));
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(ConstructReply { urn, state, state_dependencies }) => Ok(Registered {
                urn,
                id: None,
                outputs: Arc::new(state.into_iter().map(|(key, value)| (key, value.without_outputs())).collect()),
                dependencies: state_dependencies,
                result: RegistrationResult::Succeeded,
            }),
            // A child that failed has been told of, and its plugin's words on that say nothing new.
            Err(_) if self.halted() => Err(Refused),
            Err(error) => {
                let message = Message {
                    plugin: Some(goal.type_token.package().to_owned()),
                    ..Message::new(Severity::Error, report::chain(&error))
                };
                self.complain(&urn, source, message);
                self.note_failure();
                self.tables().unmade.insert(urn.clone());
                self.failed(urn)
            }
        }
    }

    fn hangs_on_a_failure(&self, goal: &Goal) -> bool {
        let tables = self.tables();
        let by_property = goal.property_dependencies.values().flatten();
        let by_option = goal.deleted_with.iter().chain(&goal.replace_with);
        let mut needed = goal.parent.iter().chain(&goal.dependencies).chain(by_property).chain(by_option);
        needed.any(|urn| tables.failed.contains(urn))
    }

    async fn ask_for_construction(
        self: &Arc<Self>,
        provider: &Arc<dyn Provider>,
        goal: &Goal,
    ) -> Result<ConstructReply, ProviderError> {
        let providers = goal.providers.iter();
        let timeouts = goal.custom_timeouts;
        let request = ConstructRequest {
            run: self.run_info("Construct").await?,
            type_token: goal.type_token.as_str().to_owned(),
            name: goal.name.clone(),
            parent: goal.parent.clone(),
            inputs: Arc::clone(&goal.inputs),
            input_dependencies: goal.property_dependencies.clone(),
            providers: providers.map(|(package, reference)| (package.clone(), reference.to_string())).collect(),
            dependencies: goal.dependencies.clone(),
            options: ResourceOptions {
                aliases: goal.aliases.clone(),
                protect: goal.protect,
                additional_secret_outputs: goal.additional_secret_outputs.clone(),
                timeouts: Timeouts {
                    create: timeouts.create,
                    update: timeouts.update,
                    delete: timeouts.delete,
                    read: timeouts.read,
                },
                deleted_with: goal.deleted_with.clone(),
                delete_before_replace: goal.delete_before_replace,
                ignore_changes: goal.ignore_changes.clone(),
                replace_on_changes: goal.replace_on_changes.clone(),
                retain_on_delete: goal.retain_on_delete,
                replace_with: goal.replace_with.clone(),
                replacement_trigger: Some(goal.replacement_trigger.clone())
                    .filter(|trigger| *trigger != PropertyValue::Null),
            },
        };
        provider.construct(request).await
    }

    /// Calls a method. With unknown configuration nothing is asked, and nothing is known. Who asked says what a failure
    /// means.
    pub(super) async fn call(
        self: &Arc<Self>,
        goal: InvokeGoal,
        argument_dependencies: BTreeMap<String, Vec<Urn>>,
    ) -> Result<Result<CallReply, ProviderError>, Refused> {
        if self.halted() {
            return Err(Refused);
        }
        let token = TypeToken::new(goal.token.as_str().split('/').next().unwrap_or_default());
        let goal = match self.receiver(&token, &goal) {
            Ok(provider) => InvokeGoal { provider, ..goal },
            Err(message) => {
                let error = ProviderError::Failed { method: "Call", message, indeterminate: false };
                return Ok(Err(error));
            }
        };
        let package = token.provider_package().unwrap_or_else(|| token.package()).to_owned();
        self.tell_secrets(&goal.arguments);
        let instance = self.instance_for(&package, &goal).await?;
        let answer = async {
            let Some(provider) = instance.ready().await? else { return Ok(CallReply::default()) };
            let request = CallRequest {
                run: self.run_info("Call").await?,
                token: goal.token.as_str().to_owned(),
                arguments: Arc::new(goal.arguments),
                argument_dependencies,
            };
            provider.call(request).await
        };
        Ok(answer.await)
    }

    /// The provider that is to serve a method: `pulumi:providers:PACKAGE/METHOD` is one of the provider resource that it is
    /// called on; else the one that is named, or that of the resource it is called on. `None`: the default one.
    fn receiver(&self, token: &TypeToken, goal: &InvokeGoal) -> Result<Option<ProviderReference>, String> {
        let of = |value: &PropertyValue| match value {
            PropertyValue::Resource(reference) => match &reference.id {
                Some(ReferenceId::Known(id)) => Some((reference.urn.clone(), Some(id.clone()))),
                // As a preview calls what does not exist yet.
                Some(ReferenceId::Unknown) => Some((reference.urn.clone(), Some(UNKNOWN_STRING.to_owned()))),
                None => Some((reference.urn.clone(), None)),
            },
            PropertyValue::Map(members) => {
                let text = |key| members.get(key).and_then(PropertyValue::as_str);
                Some((text("urn")?.parse().ok()?, text("id").map(str::to_owned)))
            }
            _ => None,
        };
        let receiver = goal.arguments.get("__self__").cloned().map(PropertyValue::without_outputs);
        let receiver = receiver.as_ref().map(|value| of(value).ok_or(value));
        if token.is_provider() {
            return match receiver {
                Some(Ok((urn, Some(id)))) => Ok(Some(ProviderReference::new(urn, id.as_str()))),
                _ => Err(format!("the method {} is of a provider, and __self__ is none", goal.token)),
            };
        }
        if goal.provider.is_some() {
            return Ok(goal.provider.clone());
        }
        let Some(receiver) = receiver else { return Ok(None) };
        let (urn, _) = receiver.map_err(|_| format!("the method {} is called on what is no resource", goal.token))?;
        let tables = self.tables();
        let known = tables.goals.get(&urn).ok_or_else(|| format!("{urn} is not a resource of this run"))?;
        let serves = |reference: &&ProviderReference| {
            TypeToken::new(reference.urn.type_token()).provider_package() == Some(token.package())
        };
        Ok(known.provider.as_ref().filter(serves).cloned())
    }

    /// What Construct and Call say about the run; starts the monitor at the first one.
    async fn run_info(self: &Arc<Self>, method: &'static str) -> Result<RunInfo, ProviderError> {
        let directory = self.providers.host().directory().to_owned();
        let serve = || MonitorEndpoint::serve(Arc::new(Door::new(self)), directory);
        let endpoint = self.monitor.get_or_try_init(serve).await;
        let endpoint = endpoint.map_err(|error| ProviderError::Failed {
            method,
            message: format!("cannot listen for what the plugin registers: {error}"),
            indeterminate: false,
        })?;
        Ok(RunInfo { monitor_endpoint: endpoint.address(), ..self.run_of() })
    }

    /// The same without the address of the monitor.
    pub(super) fn run_of(&self) -> RunInfo {
        let options = &self.options;
        let name = |entry: &super::options::ConfigEntry| format!("{}:{}", entry.namespace, entry.name);
        RunInfo {
            project: options.project.clone(),
            stack: options.stack.clone(),
            config: options.config.iter().map(|entry| (name(entry), entry.value.clone())).collect(),
            config_secret_keys: options.config.iter().filter(|entry| entry.secret).map(name).collect(),
            dry_run: self.preview(),
            parallel: i32::try_from(options.parallel).unwrap_or(i32::MAX),
            monitor_endpoint: String::new(),
            organization: ORGANIZATION.to_owned(),
        }
    }
}
