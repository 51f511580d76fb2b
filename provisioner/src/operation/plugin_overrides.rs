//! Local builds that take the place of declared plugins. Nothing of them is recorded: neither in the lock file, nor in a state, whose
//! versions stay those of the declarations.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bridge::plugin::PluginName;

use super::plugin_settings::is_pipeline;
use super::{LockedPlace, PluginSettings, SetupError, Stacks};

/// Local build that takes the place of a declared plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginOverride {
    /// Name of the declared plugin.
    pub name: PluginName,
    /// Executable, or folder with one or with a `PulumiPlugin.yaml`. A relative path starts at the folder of the command.
    pub path: PathBuf,
}

impl PluginSettings {
    /// Sets local builds that take the place of declared plugins. Of several for one plugin, the last one counts.
    ///
    /// # Errors
    /// [`SetupError::UnknownOverride`]; [`SetupError::OverrideRefused`] with `--locked` and in a pipeline, unless the policy allows it.
    pub fn with_overrides(mut self, stacks: &Stacks, overrides: &[PluginOverride]) -> Result<Self, SetupError> {
        let declared: BTreeSet<&PluginName> =
            stacks.stacks.iter().flat_map(|stack| &stack.plugins).map(|declared| &declared.plugin.name).collect();
        let place = match (stacks.fetch_rules.locked, is_pipeline(stacks)) {
            _ if stacks.policy.allows_overrides_everywhere() => None,
            (true, _) => Some(LockedPlace::Option),
            (false, true) => Some(LockedPlace::Pipeline),
            (false, false) => None,
        };
        for PluginOverride { name, path } in overrides {
            if !declared.contains(name) {
                let declared = declared.iter().map(ToString::to_string).collect();
                return Err(SetupError::UnknownOverride { name: name.to_string(), declared });
            }
            if let Some(place) = place {
                return Err(SetupError::OverrideRefused { name: name.to_string(), place });
            }
            self.sources.overrides.insert(name.clone(), stacks.folder.join(path));
        }
        Ok(self)
    }
}
