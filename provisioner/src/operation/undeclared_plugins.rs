//! Plugins that no stack declares, and that recorded resources or components need: loaded from where the state or the component says.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bridge::error::chain;
use bridge::host::{DeclaredPlugin, PluginHost, ProviderRequest, Sources, UndeclaredPackages};
use bridge::install::LockRule;
use bridge::message_text::MessageText;
use bridge::plugin::{PluginConfig, TerraformProviderSource};
use engine::events::{Event, EventSink, Message, Severity};
use state::Snapshot;
use tokio::sync::Mutex;

use super::declared_plugin::undeclared;
use super::opening::unserved_resources;
use super::undeclared_plugin::{UndeclaredDownload, UndeclaredPlugin, recorded_plugins};
use super::{Approval, DownloadApproval, OperationError, StackRun};
use crate::program::Program;

const RECORDED: &str = "recorded resources need";
const COMPONENT: &str = "a component needs";
const PROVIDER: &str = "a provider of the state or of a component needs";

/// Decision whether what no stack declares may be used by a run: on a terminal, the user is asked; a pipeline takes only what the lock file
/// records.
pub(super) struct UndeclaredUse {
    program: Program,
    sources: Sources,
    approval: Option<Arc<dyn DownloadApproval>>,
    events: Arc<dyn EventSink>,
    /// Decisions, by what they are about in words. Held during a question, so that each is asked once.
    decided: Mutex<BTreeMap<String, bool>>,
}

impl UndeclaredUse {
    /// Creates the decisions of a run.
    pub(super) fn new(run: &StackRun) -> Self {
        Self {
            program: run.program.clone(),
            sources: run.plugins.sources.clone(),
            approval: run.plugins.packages.approval.clone(),
            events: Arc::clone(&run.events),
            decided: Mutex::default(),
        }
    }

    fn declares(&self, package: &str) -> bool {
        self.program.stack().plugins.iter().any(|plugin| plugin.package() == package)
    }

    /// Returns whether a plugin may be fetched and started. Tells why it is needed, or why not.
    async fn may_load(&self, needed_by: &'static str, found: &UndeclaredPlugin) -> bool {
        let is_locked = self.sources.locked(&found.plugin).ok().flatten().is_some();
        let is_here = is_locked || self.sources.known_digest(&found.plugin).await.ok().flatten().is_some();
        self.may_use(UndeclaredDownload { needed_by, item: found.words() }, is_locked, is_here).await
    }

    async fn may_use(&self, download: UndeclaredDownload, is_locked: bool, is_here: bool) -> bool {
        let mut decided = self.decided.lock().await;
        if let Some(decided) = decided.get(&download.item) {
            return *decided;
        }
        let may_use = self.decide(&download, is_locked, is_here).await;
        decided.insert(download.item, may_use);
        may_use
    }

    async fn decide(&self, download: &UndeclaredDownload, is_locked: bool, is_here: bool) -> bool {
        if !is_locked && self.sources.lock.rule() == LockRule::ReadOnly {
            self.warn(download, "a pipeline takes it only if the lock file records it");
            return false;
        }
        if let Some(approval) = self.approval.as_ref().filter(|_| !is_here)
            && approval.approve_undeclared(download).await == Approval::Declined
        {
            return false;
        }
        self.warn(download, "it is taken from there");
        true
    }

    fn warn(&self, download: &UndeclaredDownload, more: &str) {
        let UndeclaredDownload { needed_by, item } = download;
        let text = MessageText::new(format_args!("{needed_by} {item}, which no stack declares: {more}"));
        let hint = match *needed_by {
            RECORDED => "declare the plugin in `plugins`, or remove its resources from the state",
            _ => "declare the plugin in `plugins`, so that its version is decided there",
        };
        self.events.emit(Event::Message(Message { hint: Some(hint.into()), ..Message::new(Severity::Warning, text) }));
    }
}

#[async_trait]
impl UndeclaredPackages for UndeclaredUse {
    async fn find(&self, request: &ProviderRequest) -> Option<DeclaredPlugin> {
        let ProviderRequest { package, subpackage, version, download_url, .. } = request;
        // One that is declared is disabled.
        if [Some(package), subpackage.as_ref()].into_iter().flatten().any(|package| self.declares(package)) {
            return None;
        }
        let found = UndeclaredPlugin::new(package, version.as_deref(), download_url.as_deref())?;
        let may_load = self.may_load(COMPONENT, &found).await;
        may_load.then(|| undeclared(found.plugin, self.program.stack()))
    }

    async fn may_place(&self, bridge: &PluginConfig, provider: &TerraformProviderSource) -> bool {
        let is_locked = self.sources.locked_terraform_provider(bridge, provider).ok().flatten().is_some();
        let is_here = is_locked || self.sources.has_terraform_provider(bridge, provider).await.unwrap_or(false);
        let item = format!("the Terraform provider {} {}", provider.provider, provider.version);
        self.may_use(UndeclaredDownload { needed_by: PROVIDER, item }, is_locked, is_here).await
    }
}

impl StackRun {
    /// Loads the plugins that only recorded resources need, from the releases that the state names. On a terminal, the user is asked
    /// first; a pipeline takes only what the lock file records. One that is not to be had is told, and stays missing.
    ///
    /// # Errors
    /// [`OperationError::Stopped`] if the user stopped the operation.
    pub(super) async fn load_recorded_plugins(
        &self,
        host: &PluginHost,
        recorded: &Snapshot,
    ) -> Result<(), OperationError> {
        let undeclared_use = UndeclaredUse::new(self);
        let needed = unserved_resources(host, recorded).map(|(package, _)| package);
        let needed: Vec<String> = needed.filter(|package| !undeclared_use.declares(package)).collect();
        let is_needed = |found: &UndeclaredPlugin| found.packages.iter().any(|package| needed.contains(package));
        for found in recorded_plugins(recorded).into_iter().filter(is_needed) {
            if !undeclared_use.may_load(RECORDED, &found).await {
                // The end of a question by a stop is not a reply.
                if self.signals.stop.is_cancelled() {
                    return Err(OperationError::Stopped);
                }
                continue;
            }
            let adding = host.add(vec![undeclared(found.plugin.clone(), self.program.stack())]);
            let added = tokio::select! {
                added = adding => added,
                () = self.signals.stop.cancelled() => return Err(OperationError::Stopped),
            };
            for (_, error) in added.err().into_iter().flatten() {
                let download = UndeclaredDownload { needed_by: RECORDED, item: found.words() };
                undeclared_use.warn(&download, &format!("it is not to be had: {}", chain(&error)));
            }
        }
        Ok(())
    }
}
