//! Policy: rules about the plugins that may be used, which no repository can loosen (docs/plugins.md#policy).
//!
//! Input: a declared plugin, and how it is used. Output: nothing, or a refusal. Excluded: the file of the policy, the environment.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    DeclaredBy, PlacePattern, PluginConfig, PluginName, PluginPlace, PluginSource, PolicyAge, Sandbox, WantedVersion,
};
use crate::error::Hint;
use crate::message_text::MessageText;

/// Rules about the plugins that may be used. A rule that is `None` allows everything, as all do by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginPolicy {
    /// Path of the file that has the rules, for messages.
    pub file: PathBuf,
    /// `external`: plugins of server.yaml may be used.
    pub external: Option<PolicySetting<bool>>,
    /// `names`: packages that may be used.
    pub names: Option<PolicySetting<BTreeSet<PluginName>>>,
    /// `places`: places that packages may come from.
    pub places: Option<PolicySetting<Vec<PlacePattern>>>,
    /// `require: checksum`: plugins of server.yaml must have a checksum.
    pub requires_checksum: Option<PolicySetting<()>>,
    /// `minimumAge`: age from which on ranges and `latest` accept a release.
    pub minimum_age: Option<PolicySetting<Duration>>,
    /// `allowUndated`: ranges and `latest` may accept what has no time of publication, despite `minimumAge`.
    pub allows_undated: Option<PolicySetting<bool>>,
    /// `overrides`: local builds may take the place of declared plugins.
    pub overrides: Option<PolicySetting<bool>>,
    /// `builds`: plugins may be built.
    pub builds: Option<PolicySetting<bool>>,
    /// `unsandboxed`: plugins may have `sandbox: none`.
    pub unsandboxed: Option<PolicySetting<bool>>,
}

/// Value of a rule, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySetting<T> {
    /// The value.
    pub value: T,
    /// Line of the file that has the rule, from 1.
    pub line: usize,
}

/// Use of a plugin that a policy is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginUse {
    /// Fetch and start of its package, once it is decided which one.
    Package,
    /// Fetch and start of the package that the lock file has for it.
    Locked,
    /// Start of a local build in its place.
    Override,
    /// Use of a process that runs already: nothing is fetched and started.
    Attached,
}

/// Rule of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRule {
    /// `external`.
    External,
    /// `names`.
    Names,
    /// `places`.
    Places,
    /// `require`.
    Require,
    /// `minimumAge`.
    MinimumAge,
    /// `overrides`.
    Overrides,
    /// `builds`.
    Builds,
    /// `unsandboxed`.
    Unsandboxed,
}

impl PolicyRule {
    /// Returns its key in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Names => "names",
            Self::Places => "places",
            Self::Require => "require",
            Self::MinimumAge => "minimumAge",
            Self::Overrides => "overrides",
            Self::Builds => "builds",
            Self::Unsandboxed => "unsandboxed",
        }
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Refusal of a plugin by a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy refuses it: {reason} (`{rule}` in {}, line {line})", file.display())]
pub struct PolicyRefusal {
    /// Name of the plugin.
    pub plugin: PluginName,
    /// Rule that refuses it.
    pub rule: PolicyRule,
    /// File of the policy.
    pub file: PathBuf,
    /// Line of the rule, from 1.
    pub line: usize,
    /// Property of the plugin that the rule does not allow, in words.
    pub reason: String,
    advice: String,
}

impl Hint for PolicyRefusal {
    fn hint(&self) -> Option<MessageText> {
        Some(self.advice.as_str().into())
    }
}

impl PluginPolicy {
    /// Checks that a plugin may be used.
    ///
    /// # Errors
    /// [`PolicyRefusal`] of the first rule that refuses it.
    pub fn check(&self, plugin: &PluginConfig, usage: PluginUse) -> Result<(), PolicyRefusal> {
        self.check_names(plugin)?;
        let is_of_stack = plugin.declared_by == DeclaredBy::Stack;
        match usage {
            // Its user has started it.
            PluginUse::Attached => return Ok(()),
            PluginUse::Package | PluginUse::Locked | PluginUse::Override if is_of_stack => {
                self.check_external(plugin)?
            }
            PluginUse::Package | PluginUse::Locked | PluginUse::Override => {}
        }
        match usage {
            PluginUse::Override => self.check_override(plugin)?,
            PluginUse::Attached | PluginUse::Package | PluginUse::Locked => {
                self.check_place(plugin, &PluginPlace::of(plugin))?;
                if is_of_stack {
                    self.check_checksum(plugin, plugin.source.checksum().is_some())?;
                }
                // A version that is decided has no age.
                if usage != PluginUse::Locked {
                    self.check_dated(plugin)?;
                }
                if plugin.source.build().is_some() {
                    self.check_build(plugin)?;
                }
            }
        }
        self.check_sandbox(plugin)
    }

    /// Checks that a plugin may be built.
    ///
    /// # Errors
    /// [`PolicyRefusal`].
    pub fn check_build(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        let advice = "use a version of the plugin that is ready to run";
        self.check_switch(plugin, self.builds, PolicyRule::Builds, "it has to be built", advice)
    }

    /// Returns the age of releases that the policy demands.
    pub fn release_age(&self) -> Option<PolicyAge> {
        let allows_undated = self.allows_undated.is_some_and(|rule| rule.value);
        self.minimum_age.map(|rule| PolicyAge { minimum: rule.value, allows_undated })
    }

    /// Returns whether the policy allows overrides by a rule of its own, also where they are refused otherwise.
    pub fn allows_overrides_everywhere(&self) -> bool {
        self.overrides.is_some_and(|rule| rule.value)
    }

    fn check_external(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        let advice = "remove it from `plugins`, or ask who maintains the policy";
        self.check_switch(plugin, self.external, PolicyRule::External, "it is a plugin of server.yaml", advice)
    }

    fn check_names(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        let Some(names) = self.names.as_ref().filter(|names| !names.value.contains(&plugin.package)) else {
            return Ok(());
        };
        let reason = format!("its package is {}", plugin.package);
        let advice = allowed(names.value.iter());
        Err(self.refusal(plugin, PolicyRule::Names, names.line, reason, advice))
    }

    fn check_place(&self, plugin: &PluginConfig, place: &PluginPlace) -> Result<(), PolicyRefusal> {
        let is_allowed = |patterns: &[PlacePattern]| patterns.iter().any(|pattern| pattern.matches(place));
        let Some(places) = self.places.as_ref().filter(|places| !is_allowed(&places.value)) else { return Ok(()) };
        let reason = match place {
            PluginPlace::Local => "its place is local: a file or a folder".to_owned(),
            PluginPlace::Installed => "its place is installed: a folder of plugins of this machine".to_owned(),
            PluginPlace::Repository(place) => format!("its place is {place}"),
            PluginPlace::Ambiguous(address) => {
                format!("its place {address:?} has parts that programs read differently")
            }
        };
        Err(self.refusal(plugin, PolicyRule::Places, places.line, reason, allowed(places.value.iter())))
    }

    /// Checks that what the parameters of a plugin name may come from a place, `HOST/PATH`.
    ///
    /// # Errors
    /// [`PolicyRefusal`].
    pub fn check_repository(&self, plugin: &PluginConfig, place: &str) -> Result<(), PolicyRefusal> {
        self.check_place(plugin, &PluginPlace::Repository(place.to_owned()))
    }

    fn check_checksum(&self, plugin: &PluginConfig, has_checksum: bool) -> Result<(), PolicyRefusal> {
        let Some(rule) = self.requires_checksum.filter(|_| !has_checksum) else { return Ok(()) };
        let advice = match plugin.source.wanted() {
            Some(WantedVersion::Range(_) | WantedVersion::Latest) => {
                "name a tag in source.version, and its checksum in source.checksum"
            }
            _ => "set source.checksum, which the author of the plugin or `sc plugin ls` tells",
        };
        Err(self.refusal(plugin, PolicyRule::Require, rule.line, "it has no checksum", advice))
    }

    /// Refuses ranges over places that tell no time of publication, if the policy demands an age.
    fn check_dated(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        let is_dated = match &plugin.source {
            PluginSource::Git(git) => !matches!(git.version, WantedVersion::Range(_)),
            // The server says of each release when it was published.
            PluginSource::Local(_) | PluginSource::GithubRelease(_) | PluginSource::Installed(_) => true,
        };
        let allows_undated = self.allows_undated.is_some_and(|rule| rule.value);
        let Some(rule) = self.minimum_age.filter(|_| !is_dated && !allows_undated) else { return Ok(()) };
        let reason = "its version is a range over tags of git, which tells no time of publication";
        Err(self.refusal(plugin, PolicyRule::MinimumAge, rule.line, reason, "name a tag or a commit in source.version"))
    }

    /// Checks an override: unless a rule allows it, it is a `local` plugin without a checksum.
    fn check_override(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        let advice = "leave out --plugin, and unset SC_PLUGIN_OVERRIDE";
        self.check_switch(plugin, self.overrides, PolicyRule::Overrides, "a local build takes its place", advice)?;
        if self.allows_overrides_everywhere() {
            return Ok(());
        }
        self.check_place(plugin, &PluginPlace::Local)?;
        self.check_checksum(plugin, false)
    }

    fn check_sandbox(&self, plugin: &PluginConfig) -> Result<(), PolicyRefusal> {
        if plugin.sandbox != Sandbox::None {
            return Ok(());
        }
        let advice = "set `sandbox: basic` or `sandbox: strict`";
        self.check_switch(plugin, self.unsandboxed, PolicyRule::Unsandboxed, "it has `sandbox: none`", advice)
    }

    fn check_switch(
        &self,
        plugin: &PluginConfig,
        setting: Option<PolicySetting<bool>>,
        rule: PolicyRule,
        reason: &str,
        advice: &str,
    ) -> Result<(), PolicyRefusal> {
        match setting {
            Some(PolicySetting { value: false, line }) => Err(self.refusal(plugin, rule, line, reason, advice)),
            Some(PolicySetting { value: true, .. }) | None => Ok(()),
        }
    }

    fn refusal(
        &self,
        plugin: &PluginConfig,
        rule: PolicyRule,
        line: usize,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> PolicyRefusal {
        let (plugin, file) = (plugin.name.clone(), self.file.clone());
        PolicyRefusal { plugin, rule, file, line, reason: reason.into(), advice: advice.into() }
    }
}

/// Returns the hint that lists what a rule allows.
fn allowed(values: impl Iterator<Item = impl ToString>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    match values.is_empty() {
        true => "the rule has an empty list: it allows none".to_owned(),
        false => format!("the rule allows: {}", values.join(", ")),
    }
}

#[cfg(test)]
mod tests;
