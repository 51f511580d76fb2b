//! Inputs without the changes that `ignoreChanges` excludes (docs/spec/engine-semantics.md#2.7).

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::path::PropertyPath;

use crate::goal::Goal;
use state::ResourceState;

/// Returns the goal's inputs with each path of `ignoreChanges` reset to its recorded value, and the paths that could
/// not be reset. Paths that cannot be parsed are ignored.
pub(crate) fn apply_ignore_changes(goal: &Goal, old: &ResourceState) -> (Arc<PropertyMap>, Vec<String>) {
    reset_paths(&goal.ignore_changes, &old.inputs, &goal.inputs)
}

/// Returns `news` with each path reset to its value in `olds`, and the paths that could not be reset.
pub(crate) fn reset_paths(
    paths: &[String],
    olds: &PropertyMap,
    news: &Arc<PropertyMap>,
) -> (Arc<PropertyMap>, Vec<String>) {
    let mut inputs = Arc::clone(news);
    let mut failed = Vec::new();
    for text in paths {
        if let Ok(path) = text.parse::<PropertyPath>()
            && !path.reset(olds, Arc::make_mut(&mut inputs))
        {
            failed.push(text.clone());
        }
    }
    (inputs, failed)
}
