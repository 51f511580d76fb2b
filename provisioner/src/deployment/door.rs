//! What a program asks for besides registering: reads, function calls, outputs, default providers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::PackageTypes;
use bridge::provider::{InvokeReply, InvokeRequest, ProviderError};
use futures_util::FutureExt as _;
use hashbrown::HashSet;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, ROOT_STACK_TYPE, TypeToken, Urn};
use tokio::sync::OnceCell;

use crate::events::{Event, Message, Operation, Severity, SourceRef, StepOp};
use crate::state::ResourceState;

use super::decide::aliases;
use super::decide::condemn::Entry;
use super::decide::existing::read_op;
use super::engine::Engine;
use super::goal::Goal;
use super::providers::Instance;
use super::registrar::{InvokeGoal, ReadGoal, Refused, Registered, Registrar, RegistrationResult};
use super::report;
use super::run::Deployment;
use super::step::{Actor, Step};
use super::tables::{Inheritance, Tables};

/// The package that Pulumi's engine itself serves. Of it, only the function that looks up a resource is served here.
pub(crate) const BUILT_IN: &str = "pulumi";

#[async_trait]
impl Registrar for Deployment {
    fn is_preview(&self) -> bool {
        self.engine.preview()
    }

    async fn type_facts(&self, plugins: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Refused> {
        let host = self.engine.providers.host();
        let ask = async |plugin: String| host.type_facts(&plugin).await.map(|types| (plugin, types));
        let signals = &self.engine.signals;
        let types = tokio::select! {
            types = futures_util::future::try_join_all(plugins.into_iter().map(ask)) => types,
            // Nothing new is registered then, whatever it is.
            () = signals.stop.cancelled() => return Err(Refused),
            () = signals.abort.cancelled() => return Err(Refused),
        };
        types.map(|types| types.into_iter().collect()).map_err(|error| {
            let mut message = Message::new(Severity::Error, error.message);
            message.hint = error.hint;
            self.engine.emit(Event::Message(message));
            self.engine.note_break();
            Refused
        })
    }

    async fn register(&self, goal: Goal) -> Result<Registered, Refused> {
        self.engine.job(|engine| async move { engine.register(goal, false).await }.boxed()).await
    }

    async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Refused> {
        let urn = urn.clone();
        self.engine.job(|engine| async move { engine.register_outputs(&urn, outputs).await }.boxed()).await
    }

    async fn read(&self, goal: ReadGoal) -> Result<Registered, Refused> {
        self.engine.job(|engine| async move { engine.read(goal).await }.boxed()).await
    }

    async fn invoke(&self, goal: InvokeGoal) -> Result<PropertyMap, Refused> {
        self.engine.job(|engine| async move { engine.invoke(goal).await }.boxed()).await
    }
}

impl Engine {
    pub(super) async fn register_outputs(&self, urn: &Urn, outputs: PropertyMap) -> Result<(), Refused> {
        let (known, came_to_nothing) = {
            let tables = self.tables();
            (tables.news.get(urn).cloned(), tables.failed.contains(urn) || tables.skipped.contains(urn))
        };
        if known.is_none() && came_to_nothing {
            return Ok(());
        }
        let Some((id, state)) = known else {
            let text = format!("outputs of {urn}, which was not registered");
            self.break_off(urn, None, Message::new(Severity::Error, text));
            return Err(Refused);
        };
        if state.type_token.as_str() == ROOT_STACK_TYPE {
            self.tables().stack_outputs = Some((urn.clone(), outputs));
            return Ok(());
        }
        self.write_outputs(urn, id, &state, outputs).await
    }

    async fn write_outputs(
        &self,
        urn: &Urn,
        id: crate::state::EntryId,
        state: &Arc<ResourceState>,
        outputs: PropertyMap,
    ) -> Result<(), Refused> {
        let new = Arc::new(ResourceState { outputs: Arc::new(outputs), ..(**state).clone() });
        let outputs = || Arc::clone(&new.outputs);
        if new.outputs != state.outputs
            && let Err(error) = self.end(None, |tables| tables.rewrite(id, |state| state.outputs = outputs())).await
        {
            self.break_off(urn, None, Message::new(Severity::Error, report::chain(&error)));
            return Err(Refused);
        }
        self.tables().news.insert(urn.clone(), (id, Arc::clone(&new)));
        self.emit(Event::OutputsRegistered(new));
        Ok(())
    }

    /// Writes the outputs of the stack at the end of a run (section 8.5): all of them after a success; after a failure
    /// the old ones stay beneath the new, so that none is lost.
    pub(super) async fn settle_stack_outputs(&self) {
        let held_back = self.tables().stack_outputs.take();
        let Some((urn, mut outputs)) = held_back else { return };
        let known = self.tables().news.get(&urn).cloned();
        let Some((id, state)) = known else { return };
        if self.has_failed() {
            for (key, value) in &*state.outputs {
                outputs.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        // A failure has been told already.
        self.write_outputs(&urn, id, &state, outputs).await.ok();
    }

    pub(super) async fn read(self: &Arc<Self>, goal: ReadGoal) -> Result<Registered, Refused> {
        if self.halted() {
            return Err(Refused);
        }
        self.tell_secrets(&goal.properties);
        let (stack, project) = (&self.options.stack, &self.options.project);
        let urn = Urn::new(stack, project, goal.parent.as_ref(), goal.type_token.as_str(), &goal.name);
        let reference = match &goal.provider {
            Some(reference) => reference.clone(),
            None => {
                let (version, url) = (&goal.version, &goal.plugin_download_url);
                self.default_provider(&urn, goal.type_token.package(), version, url, goal.source).await?
            }
        };
        let _slot = self.slots.acquire().await.ok();
        if self.halted() {
            return Err(Refused);
        }
        let deciding = self.deciding.read().await;
        let instance = self.instance(&reference, &urn, goal.source).await?;
        let old = {
            let mut tables = self.tables();
            let inheritance = Inheritance {
                protect: false,
                retain_on_delete: false,
                deleted_with: None,
                provider: Some(reference.clone()),
                providers: BTreeMap::new(),
            };
            let twice = tables.goals.insert(urn.clone(), inheritance).is_some();
            tables.decided.insert(urn.clone());
            if twice { Err(()) } else { Ok(tables.old_of_read(&urn, &goal)) }
        };
        let Ok(old) = old else {
            self.break_off(&urn, goal.source, Message::new(Severity::Error, format!("{urn} is registered twice")));
            return Err(Refused);
        };
        let mut new = ResourceState::new(urn.clone(), true);
        new.external = true;
        new.id = goal.id.clone().unwrap_or_default();
        new.inputs = Arc::new(goal.properties);
        new.parent = goal.parent;
        new.dependencies = goal.dependencies;
        new.provider = Some(reference);
        new.additional_secret_outputs = goal.additional_secret_outputs;
        let is_update = self.options.operation == Operation::Update;
        let is_skipped = {
            let tables = &mut *self.tables();
            let needs = |missing: &HashSet<Urn>| new.references().any(|urn| missing.contains(urn));
            let (failed, missing) = (needs(&tables.failed), !is_update && needs(&tables.skipped));
            if failed {
                tables.failed.insert(urn.clone());
            } else if missing {
                tables.skipped.insert(urn.clone());
            }
            failed || missing
        };
        if is_skipped {
            self.settle(&urn);
            return Ok(Registered::without_outputs(urn, RegistrationResult::Skipped));
        }
        if is_update {
            self.refuse_skipped_dependencies(&new, goal.source)?;
        }
        self.refuse_circle(old.as_ref(), goal.source, || new.clone())?;
        let op = read_op(old.as_ref().map(|(_, old)| &**old), goal.id.as_deref());
        let mut step = Step::new(op, urn.clone());
        step.old = old;
        step.new = Some(Arc::new(new));
        step.actor = Actor::Instance(instance);
        step.source = goal.source;
        let mut chain = vec![step];
        if op == StepOp::ReadReplacement {
            self.tables().replaced.insert(urn.clone());
            chain.push(Step::new(StepOp::Replace, urn.clone()));
        }
        drop(deciding);
        let mut found = None;
        for step in chain {
            match self.execute(step).await {
                Ok(Some(entry)) => found = Some(entry),
                Ok(None) => {}
                Err(_) if self.options.continue_on_error => {
                    let result = RegistrationResult::Failed;
                    return Ok(Registered::without_outputs(urn, result));
                }
                Err(_) => return Err(Refused),
            }
        }
        let (entry, state) = found.ok_or(Refused)?;
        self.tables().news.insert(urn.clone(), (entry, Arc::clone(&state)));
        Ok(Registered::as_recorded(urn, &state))
    }

    async fn invoke(self: &Arc<Self>, goal: InvokeGoal) -> Result<PropertyMap, Refused> {
        let package = goal.token.package().to_owned();
        let reply = self.ask_function(goal).await?.map_err(|error| {
            self.tell_failed_call(package.clone(), &error);
            Refused
        })?;
        if reply.failures.is_empty() {
            return Ok(reply.result);
        }
        let urn = Urn::root_stack(&self.options.stack, &self.options.project);
        for failure in &reply.failures {
            let message = report::refused_input(&urn, failure);
            self.complain(&urn, None, Message { plugin: Some(package.clone()), ..message });
        }
        self.note_break();
        Err(Refused)
    }

    /// Asks a provider for the result of a function. With unknown configuration nothing is asked, and nothing is known.
    /// Who asked says what a failure means.
    pub(super) async fn ask_function(
        self: &Arc<Self>,
        goal: InvokeGoal,
    ) -> Result<Result<InvokeReply, ProviderError>, Refused> {
        if self.halted() {
            return Err(Refused);
        }
        let package = goal.token.package().to_owned();
        self.tell_secrets(&goal.arguments);
        let instance = self.instance_for(&package, &goal).await?;
        let answer = async {
            let Some(provider) = instance.ready().await? else { return Ok(InvokeReply::default()) };
            let request = InvokeRequest {
                token: goal.token.as_str().to_owned(),
                arguments: Arc::new(goal.arguments),
                preview: self.preview(),
            };
            provider.invoke(request).await
        };
        Ok(answer.await)
    }

    /// Who serves a function of a package, or a method.
    pub(super) async fn instance_for(
        self: &Arc<Self>,
        package: &str,
        goal: &InvokeGoal,
    ) -> Result<Arc<Instance>, Refused> {
        let urn = Urn::root_stack(&self.options.stack, &self.options.project);
        let reference = match &goal.provider {
            Some(reference) => reference.clone(),
            None => self.default_provider(&urn, package, &goal.version, &goal.plugin_download_url, None).await?,
        };
        self.instance(&reference, &urn, None).await
    }

    /// Tells of a function that failed: the run cannot go on.
    fn tell_failed_call(&self, package: String, error: &ProviderError) {
        let mut message = Message::new(Severity::Error, report::chain(error));
        message.plugin = Some(package);
        self.emit(Event::Message(message));
        self.note_break();
    }

    /// The default provider of a package, registered once for each version and place it may come from (section 2.2).
    pub(super) async fn default_provider(
        self: &Arc<Self>,
        urn: &Urn,
        package: &str,
        version: &str,
        download_url: &str,
        source: Option<SourceRef>,
    ) -> Result<ProviderReference, Refused> {
        if let Some(refusal) = self.refuses_defaults(package) {
            self.break_off(urn, source, refusal);
            return Err(Refused);
        }
        let cell = self.lazy_provider(format!("{package}|{version}|{download_url}"));
        let registered = cell
            .get_or_init(|| async {
                let mut inputs: PropertyMap = self
                    .options
                    .config
                    .iter()
                    .filter(|entry| entry.namespace == package)
                    .map(|entry| {
                        let value = PropertyValue::from(entry.value.as_str());
                        (entry.name.clone(), if entry.secret { PropertyValue::secret(value) } else { value })
                    })
                    .collect();
                if !version.is_empty() {
                    inputs.insert(super::providers::VERSION_KEY.to_owned(), version.into());
                }
                let name = default_name(version, download_url);
                let mut goal = Goal::custom(TypeToken::provider(package), name, inputs);
                goal.plugin_download_url = download_url.to_owned();
                Box::pin(self.register(goal, true)).await.ok()
            })
            .await;
        registered.as_ref().map(Registered::as_provider_reference).ok_or(Refused)
    }

    /// The place of a provider that is registered by the first who wants it.
    pub(super) fn lazy_provider(&self, key: String) -> Arc<OnceCell<Option<Registered>>> {
        let mut cells = self.lazy_providers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(cells.entry(key).or_default())
    }

    /// Why a package gets no default provider, if it gets none.
    fn refuses_defaults(&self, package: &str) -> Option<Message> {
        let (text, hint) = if package == BUILT_IN {
            let text = "the package pulumi (StackReference, Stash) is not served".to_owned();
            (text, "make the component without it, or provision this stack with Pulumi")
        } else {
            match self.is_disabled(package) {
                Ok(false) => return None,
                Ok(true) => {
                    let text =
                        format!("default providers of {package} are disabled by pulumi:disable-default-providers");
                    (text, "name a provider with the option `provider`")
                }
                Err(error) => {
                    let text = format!("pulumi:disable-default-providers cannot be used: {error}");
                    (text, "make it a JSON list of package names, such as '[\"aws\"]', or '[\"*\"]'")
                }
            }
        };
        Some(Message { hint: hint.to_owned(), ..Message::new(Severity::Error, text) })
    }

    fn is_disabled(&self, package: &str) -> Result<bool, serde_json::Error> {
        let disabled = self
            .options
            .config
            .iter()
            .find(|entry| entry.namespace == "pulumi" && entry.name == "disable-default-providers");
        // An empty list may be an empty text.
        let names: Vec<String> = match disabled.filter(|entry| !entry.value.is_empty()) {
            Some(entry) => serde_json::from_str(&entry.value)?,
            None => Vec::new(),
        };
        Ok(names.iter().map(|name| name.trim()).any(|name| name == "*" || name == package))
    }
}

impl Tables {
    /// What a read was before: of the names that registrations look under, those that it has by its parent.
    fn old_of_read(&mut self, urn: &Urn, goal: &ReadGoal) -> Option<Entry> {
        let named = Goal {
            parent: goal.parent.clone(),
            ..Goal::custom(goal.type_token.clone(), goal.name.clone(), PropertyMap::new())
        };
        let candidates = aliases::candidates(urn, &named, |urn| self.alias_of.get(urn));
        let (old, loaded) = candidates.into_iter().find_map(|candidate| Some((self.old(&candidate)?, candidate)))?;
        if loaded != *urn {
            if self.is_registered(&loaded) {
                return None;
            }
            self.aliased.insert(loaded.clone(), urn.clone());
            self.alias_of.insert(urn.clone(), loaded);
        }
        Some(old)
    }
}

/// `default`, then the parts of the version, and the place spelled as a name.
pub(super) fn default_name(version: &str, download_url: &str) -> String {
    let mut name = "default".to_owned();
    let (version, build) = version.split_once('+').unwrap_or((version, ""));
    let (core, pre) = version.split_once('-').unwrap_or((version, ""));
    for part in [core, pre, build].into_iter().flat_map(|parts| parts.split('.')).filter(|part| !part.is_empty()) {
        name.push('_');
        name.push_str(part);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let segments = download_url.split('/').filter(|segment| !segment.is_empty());
    // Byte for byte, as it is spelled there.
    let spelled = |byte: u8| if is_plain(char::from(byte)) { char::from(byte) } else { '_' };
    let segments: Vec<String> = segments.map(|segment| segment.bytes().map(spelled).collect()).collect();
    if !segments.is_empty() {
        name.push('_');
        name.push_str(&segments.join("/"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_provider_is_named_by_its_version_and_its_place() {
        let rows = [
            ("", "", "default"),
            ("1.2.3", "", "default_1_2_3"),
            ("1.2.3-alpha.1", "", "default_1_2_3_alpha_1"),
            ("1.2.3-alpha-x.1+abc.7", "", "default_1_2_3_alpha-x_1_abc_7"),
            ("", "github://api.github.com/acme", "default_github_/api.github.com/acme"),
            ("1.2.3", "https://example.com/p?x=1", "default_1_2_3_https_/example.com/p_x_1"),
        ];
        for (version, url, name) in rows {
            assert_eq!(default_name(version, url), name);
        }
    }
}
