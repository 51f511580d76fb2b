//! Stacks that are read from files, for suites that need a program without a process of `sc`.

use std::collections::BTreeMap;
use std::path::Path;

use config::diagnostics::{Diagnostic, SourceFiles};
use config::{ProcessContext, Profile, Repository, Stack, Workspace};
use provisioner::registry::recipes;

/// Reads a stack of the repository in a folder, with the types of `sc` and without environment variables. Returns its
/// diagnostics, too.
///
/// # Errors
/// Returns an error if the repository has no valid default profile.
pub fn read_stack(root: &Path, name: &str) -> anyhow::Result<(Option<Stack>, Vec<Diagnostic>)> {
    let process_context = ProcessContext {
        environment: BTreeMap::new(),
        now: "2024-01-02T03:04:05Z".parse()?,
        time_zone: Some(jiff::tz::TimeZone::UTC),
        account: None,
    };
    let repository = Repository { root: root.to_owned(), git: None };
    let (mut sources, types) = (SourceFiles::default(), recipes::built_in_types());
    let profile = Profile::read("default", &repository, &process_context, &mut sources);
    let profile = profile.map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let workspace = Workspace {
        repository: &repository,
        profile: &profile,
        stacks_dir: None,
        process_context: &process_context,
        types: &types,
    };
    let mut loaded = workspace.load(&[name.to_owned()], &mut sources);
    Ok((loaded.stacks.pop(), loaded.diagnostics))
}

/// Reads a server.yaml and a secrets.yaml as the stack `s` of the project `reef`.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn read_server(server: &str, secrets: &str) -> anyhow::Result<(Option<Stack>, Vec<Diagnostic>)> {
    let folder = tempfile::tempdir()?;
    let stack = folder.path().join(".sc/stacks/s");
    std::fs::create_dir_all(&stack)?;
    std::fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef")?;
    std::fs::write(stack.join("server.yaml"), server)?;
    std::fs::write(stack.join("secrets.yaml"), secrets)?;
    read_stack(folder.path(), "s")
}
