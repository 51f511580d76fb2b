//! Loading of stacks with all that they depend on.

use config::diagnostics::SourceFiles;
use config::{LoadedStacks, Reading, Workspace};

/// Loads stacks, and the stacks that come before them. A stack is known to depend on another one only once it is read, so what was read
/// is read again with more stacks until none is missing.
pub(super) fn load_with_dependencies(
    workspace: &Workspace<'_>,
    reading: Reading,
    mut names: Vec<String>,
    sources: &mut SourceFiles,
) -> LoadedStacks {
    let before = sources.clone();
    loop {
        let loaded = workspace.load_as(reading, &names, sources);
        let known = names.len();
        for name in dependencies(&loaded) {
            if !names.contains(&name) && workspace.stacks_folder().join(&name).join("server.yaml").is_file() {
                names.push(name);
            }
        }
        if names.len() == known {
            return loaded;
        }
        sources.clone_from(&before);
    }
}

/// Returns the names of the stacks that loaded ones depend on. Some of them may not exist.
fn dependencies(loaded: &LoadedStacks) -> Vec<String> {
    let inherited = loaded.inheritance.iter().map(|link| &link.from);
    let read = loaded.stacks.iter().chain(&loaded.incomplete).flat_map(|stack| &stack.outputs_read);
    inherited.chain(read.map(|read| &read.stack)).cloned().collect()
}
