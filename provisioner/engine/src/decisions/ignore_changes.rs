//! Inputs with the changes undone that do not count (engine semantics, section 2.7).

use std::sync::Arc;

use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::path::PropertyPath;

use crate::goal::Goal;
use state::ResourceState;

/// The goal's inputs with every path of `ignoreChanges` set back to its recorded value, and the paths that could not
/// be set back. Paths that cannot be read are left alone.
pub(crate) fn ignoring_changes(goal: &Goal, old: &ResourceState) -> (Arc<PropertyMap>, Vec<String>) {
    reset(&goal.ignore_changes, &old.inputs, &goal.inputs)
}

/// `news` with every path set back to its value in `olds`, and the paths that could not be set back.
pub(crate) fn reset(paths: &[String], olds: &PropertyMap, news: &Arc<PropertyMap>) -> (Arc<PropertyMap>, Vec<String>) {
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
