//! Health checks of a repository and of the machine: orders the checks, which stand beside the parts that they check.

use std::collections::BTreeSet;
use std::error::Error;

use bridge::error::{Hint, chain};
use bridge::health::HealthCheck;
use bridge::install::{LOCK_FILE, check_cache};
use bridge::message_text::MessageText;
use bridge::plugin::{GitSource, PluginConfig, PluginSource, Sandbox, Transport};
use bridge::process::{HostEnvironment, SandboxSupport, Spawner};
use bridge::source::{Credentials, Git, Repository, check_git_repository, check_proxies, check_release_host};
use config::{ProcessContext, Stack};
use state::StackView;

use super::plugin_settings::is_pipeline;
use super::{PluginSettings, Stacks, cache_folder};

/// Name of the check of the lock file.
const LOCK: &str = "lock file";

/// Checks the machine: git, the cache, the sandbox, and the variables of proxies. Of the plugins of `stacks`, it takes what they need:
/// git, and the sandbox `strict`.
pub async fn check_machine(
    context: &ProcessContext,
    repository: &config::Repository,
    spawner: &Spawner,
    stacks: Option<&Stacks>,
) -> Vec<HealthCheck> {
    let environment = host_environment(context);
    let plugins: Vec<&PluginConfig> = stacks.map(|stacks| enabled(stacks).collect()).unwrap_or_default();
    let needs_git = plugins.iter().any(|plugin| matches!(plugin.source, PluginSource::Git(_)));
    let needs_strict = plugins.iter().any(|plugin| matches!(plugin.sandbox, Sandbox::Strict(_)));
    let mut checks = vec![
        Git::check(&environment, spawner, needs_git).await,
        check_cache(&cache_folder(&context.environment, &repository.root)),
        SandboxSupport::current().check(needs_strict),
    ];
    checks.extend(check_proxies(&environment));
    checks
}

impl PluginSettings {
    /// Checks the lock file and the policy for the plugins of stacks, and the places of their packages, each host once. Places that the
    /// policy refuses are not asked, and none is with `--offline`.
    ///
    /// # Cancellation
    /// Leaves nothing behind.
    pub async fn check_packages(&self, stacks: &Stacks, spawner: &Spawner) -> Vec<HealthCheck> {
        let mut checks = vec![self.check_lock(stacks)];
        let plugins = match self.locked_plugins(stacks) {
            Ok(plugins) => plugins,
            Err(error) => return vec![HealthCheck::bad(LOCK, chain(&error), error.hint().unwrap_or_default())],
        };
        let mut allowed = Vec::new();
        for plugin in plugins {
            match self.check_policy_for(&plugin) {
                None => allowed.push(plugin),
                Some(refused) => checks.push(refused),
            }
        }
        if stacks.fetch_rules.offline {
            let advice = "leave --offline out to check the hosts of packages";
            checks.push(HealthCheck::notable(
                "hosts",
                "not asked: --offline opens no connection for a package",
                advice,
            ));
            return checks;
        }
        let environment = host_environment(&stacks.process_context);
        let credentials = Credentials::new(environment.clone(), spawner.clone(), {
            let masker = std::sync::Arc::clone(&stacks.masker);
            move |token| masker.add_text(token)
        });
        let mut asked = BTreeSet::new();
        for plugin in &allowed {
            match &plugin.source {
                PluginSource::GithubRelease(source) => {
                    let authority = Repository::of(source).map(|repository| repository.authority()).unwrap_or_default();
                    if asked.insert(authority) {
                        checks.push(check_release_host(source, &credentials).await);
                    }
                }
                PluginSource::Git(source) if is_elsewhere(source) && asked.insert(source.url.clone()) => {
                    checks.push(check_git_repository(source, &self.directory, &environment, spawner).await);
                }
                PluginSource::Git(_) | PluginSource::Local(_) | PluginSource::Installed(_) => {}
            }
        }
        checks
    }

    fn check_lock(&self, stacks: &Stacks) -> HealthCheck {
        match self.lock_problems(stacks) {
            Ok(problems) if problems.is_empty() => {
                HealthCheck::good(LOCK, format_args!("{LOCK_FILE} has what the stacks declare"))
            }
            Ok(problems) => {
                let advice = "run `sc plugin lock` on your machine, and commit the file";
                let text = format!("{LOCK_FILE} would change: {}", problems.join("; "));
                // A run adds what is missing; in a pipeline it may not.
                match is_pipeline(stacks) {
                    true => HealthCheck::bad(LOCK, text, advice),
                    false => HealthCheck::notable(LOCK, text, advice),
                }
            }
            Err(error) => HealthCheck::bad(LOCK, chain(&error), error.hint().unwrap_or_default()),
        }
    }

    /// Returns the refusal of a plugin by the policy, if it refuses the plugin.
    fn check_policy_for(&self, plugin: &PluginConfig) -> Option<HealthCheck> {
        let error = self.sources.check_policy(plugin).err()?;
        Some(HealthCheck::bad("policy", chain(&error), error.hint().unwrap_or_default()))
    }
}

impl Stacks {
    /// Checks that the state of a stack can be reached and its secrets be decrypted. Takes no lock. `hint` returns the next step for an error.
    pub async fn check_state(
        &self,
        stack: &Stack,
        hint: fn(&(dyn Error + 'static)) -> Option<MessageText>,
    ) -> HealthCheck {
        let name = format!("state of {}", stack.name);
        let failed =
            |text: String, advice: Option<MessageText>| HealthCheck::bad(&name, text, advice.unwrap_or_default());
        let access = match self.open_access(stack).await {
            Ok(access) => access,
            Err(error) => return failed(chain(&error), hint(&error)),
        };
        let view = match StackView::open(&access).await {
            Ok(view) => view,
            Err(error) => return failed(chain(&error), hint(&error)),
        };
        // Also a state without secrets has a key.
        if let Some(manager) = view.secrets()
            && let Err(error) = manager.crypter().await
        {
            return failed(chain(&error), hint(&error));
        }
        match view {
            StackView { conflict: Some(conflict), .. } => {
                let advice = "`sc state journal ls` lists the journals that do not fit the state";
                failed(chain(&conflict), Some(advice.into()))
            }
            StackView { integrity_error: Some(error), .. } => {
                failed(chain(&error), Some("`sc state repair` shows what it would repair".into()))
            }
            StackView { recovered: Some(_), .. } => HealthCheck::notable(
                &name,
                "read with its key; it has the journal of a run that is active or was interrupted",
                "`sc provision` takes an interrupted run over",
            ),
            StackView { snapshot: Some(snapshot), .. } => {
                let count = snapshot.resources.len();
                HealthCheck::good(&name, format_args!("read with its key; it has {count} resources"))
            }
            StackView { snapshot: None, .. } => {
                HealthCheck::good(&name, "reached; the stack has not been provisioned yet")
            }
        }
    }
}

fn enabled(stacks: &Stacks) -> impl Iterator<Item = &PluginConfig> {
    let declared = stacks.requested().flat_map(|stack| &stack.plugins).map(|declared| &declared.plugin);
    declared.filter(|plugin| plugin.enabled)
}

/// Returns whether a git repository is not on this machine.
fn is_elsewhere(source: &GitSource) -> bool {
    Transport::of(&source.url).is_some_and(|transport| transport != Transport::File)
}

fn host_environment(context: &ProcessContext) -> HostEnvironment {
    HostEnvironment::new(context.environment.iter().map(|(name, value)| (name.into(), value.into())))
}
