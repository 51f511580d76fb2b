//! Plugins that no stack declares any more, and that recorded resources need: loaded from where their provider resource in the state says.

use bridge::error::chain;
use bridge::host::PluginHost;
use bridge::install::LockRule;
use bridge::message_text::MessageText;
use engine::events::{Event, Message, Severity};
use state::Snapshot;

use super::opening::unserved_resources;
use super::plugins::undeclared;
use super::recorded_plugin::{RecordedPlugin, recorded_plugins};
use super::{Approval, OperationError, StackRun};

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
        let stack = self.program.stack();
        let is_declared = |package: &str| stack.plugins.iter().any(|plugin| plugin.package() == package);
        let needed = unserved_resources(host, recorded).map(|(package, _)| package);
        let needed: Vec<String> = needed.filter(|package| !is_declared(package)).collect();
        for recorded in recorded_plugins(recorded).into_iter().filter(|plugin| needed.contains(&plugin.name())) {
            if !self.may_load(&recorded).await? {
                continue;
            }
            let adding = host.add(vec![undeclared(recorded.plugin.clone(), stack)]);
            let added = tokio::select! {
                added = adding => added,
                () = self.signals.stop.cancelled() => return Err(OperationError::Stopped),
            };
            for (_, error) in added.err().into_iter().flatten() {
                self.warn(&recorded, &format!("it is not to be had: {}", chain(&error)));
            }
        }
        Ok(())
    }

    /// Returns whether a plugin may be fetched and started. Tells why it is needed, or why not.
    async fn may_load(&self, recorded: &RecordedPlugin) -> Result<bool, OperationError> {
        let sources = &self.plugins.sources;
        let is_locked = sources.locked(&recorded.plugin).ok().flatten().is_some();
        if !is_locked && sources.lock.rule() == LockRule::ReadOnly {
            self.warn(recorded, "a pipeline takes it only if the lock file records it");
            return Ok(false);
        }
        let is_here = is_locked || sources.known_digest(&recorded.plugin).await.ok().flatten().is_some();
        if let Some(approval) = self.plugins.packages.approval.as_ref().filter(|_| !is_here) {
            match approval.approve_recorded(recorded).await {
                Approval::Granted => {}
                Approval::Declined if self.signals.stop.is_cancelled() => return Err(OperationError::Stopped),
                Approval::Declined => return Ok(false),
            }
        }
        self.warn(recorded, "it is taken from there");
        Ok(true)
    }

    fn warn(&self, recorded: &RecordedPlugin, more: &str) {
        let RecordedPlugin { version, repository, .. } = recorded;
        let name = recorded.name();
        let text = MessageText::new(format_args!(
            "recorded resources need the plugin {name} {version}, a release of {repository}, which no stack declares: {more}"
        ));
        let hint = Some("declare the plugin in `plugins`, or remove its resources from the state".into());
        self.events.emit(Event::Message(Message { hint, ..Message::new(Severity::Warning, text) }));
    }
}
