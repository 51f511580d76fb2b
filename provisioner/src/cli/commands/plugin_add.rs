//! `sc plugin add`: an entry of `plugins` in server.yaml, and what it means in the lock file.

use std::path::Path;

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, place_below, read_if_exists, utf8, write_atomically};
use bridge::message_text::MessageText;
use bridge::plugin::{
    GithubReleaseSource, PluginConfig, PluginName, PluginSource, ResolvedPackage, WantedVersion, tag_version,
};
use clap::Args;
use config::{NewPlugin, PluginEditError};
use provisioner::operation::LockRequest;

use super::plugin_lock;
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Secrets;
use crate::cli::exit::{CliError, Exit};
use crate::cli::plugins::plugin_settings;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Prefixes of repositories that are no part of the name of their plugin.
const PREFIXES: [&str; 2] = ["pulumi-resource-", "pulumi-"];

/// Arguments of `sc plugin add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Repository with the releases, and the wanted version: a tag, `latest`, or a range such as ^1.2 [default: the range of the newest release]
    #[arg(value_name = "OWNER/NAME[@VERSION]")]
    pub(crate) target: String,
    /// Name of the plugin [default: that of the repository, without `pulumi-`]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, args: &AddArgs) -> anyhow::Result<Exit> {
    if global.locked {
        let hint = "leave --locked out";
        return Err(CliError::usage("a new plugin changes the lock file, which --locked forbids", hint).into());
    }
    let stacks = read_stack(ui, global, &args.stack)?;
    let (repository, version) = split(&args.target);
    let name = plugin_name(repository, args.name.as_deref())?;
    let wanted = WantedVersion::of_release(version.unwrap_or("latest"));
    let hint = "a range is written as in Cargo: `^1.2`, `~1.4`, `=1.2.3`";
    let wanted = wanted.map_err(|error| CliError::usage(MessageText::of(&error), hint))?;
    let source = PluginSource::GithubRelease(GithubReleaseSource::new(repository.to_owned(), wanted));
    let plugin = PluginConfig::new(name, source);
    let settings = plugin_settings(&stacks)?;
    let Some(stack) = stacks.requested().next().map(|stack| stack.name.clone()) else { return Ok(Exit::Done) };
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    let file = stacks.stacks_folder.join(&stack).join("server.yaml");
    session::run(ui, options, async |session| {
        let resolved = settings.resolve_new(&plugin, &session.sink(&stack, None), &session.signals).await;
        let resolved = resolved.map_err(anyhow::Error::from);
        let resolved = resolved.inspect_err(|error| print_reasons(&ui.output, session, &stacks, error))?;
        let tag = resolved.as_ref().and_then(ResolvedPackage::tag).unwrap_or_default();
        let version = version.map_or_else(|| range_of(tag), str::to_owned);
        let entry = NewPlugin { name: plugin.name.as_str(), repository, version: &version };
        session.pause();
        add(&stacks.repository.root, &file, entry)?;
        ui.output.inform(format_args!("plugin {} {version} is added to {}", plugin.name, file.display()));
        let stacks = read_stack(ui, global, &args.stack)?;
        let request = LockRequest { names: vec![plugin.name.to_string()], ..LockRequest::default() };
        let settings = plugin_settings(&stacks)?;
        let report = settings.lock(&stacks, &request, &session.sink(&stack, None), &session.signals).await?;
        plugin_lock::finish(ui, session, &stacks, report)
    })
    .await
}

/// Adds an entry to a file, which is replaced as a whole.
fn add(repository: &Path, file: &Path, entry: NewPlugin<'_>) -> anyhow::Result<()> {
    let place = match file.strip_prefix(repository) {
        Ok(inside) => place_below(repository, inside)?,
        Err(_) => file.to_owned(),
    };
    let content = read_if_exists(&place, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let text = utf8(content).map_err(bridge::fs::FileError::of("read", &place))?;
    let edited = entry.add_to(&text).map_err(|error| {
        let hint = match &error {
            PluginEditError::Declared(_) => {
                "`sc plugin update` changes the version of a plugin; --name sets another name"
            }
            PluginEditError::Layout(_) => "`sc plugin lock` records what it means afterwards",
        };
        CliError::failed(format_args!("{} cannot be changed: {error}", place.display()), hint)
    })?;
    Ok(write_atomically(&place, edited.as_bytes(), Access::Shared)?)
}

/// Returns the repository and the version of a target. An `@` in an address belongs to it.
fn split(target: &str) -> (&str, Option<&str>) {
    match target.rsplit_once('@') {
        Some((repository, version)) if !repository.is_empty() && !version.contains("://") && !version.is_empty() => {
            (repository, Some(version))
        }
        _ => (target, None),
    }
}

fn plugin_name(repository: &str, declared: Option<&str>) -> anyhow::Result<PluginName> {
    let last = repository.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    let name = PREFIXES.iter().find_map(|prefix| last.strip_prefix(prefix)).unwrap_or(last).to_lowercase();
    let name = declared.unwrap_or(&name);
    name.parse().map_err(|error| CliError::usage(MessageText::of(&error), "--name sets the name of the plugin").into())
}

/// Returns the range of versions that are compatible with that of a tag; `latest` for a tag without a version.
fn range_of(tag: &str) -> String {
    let prefix = tag.rsplit_once('/').map_or(String::new(), |(prefix, _)| format!("{prefix}/"));
    let Some(version) = tag_version(tag) else { return "latest".to_owned() };
    let semver = version.as_semver();
    match (semver.major, semver.minor) {
        (0, minor) => format!("{prefix}^0.{minor}.{}", semver.patch),
        (major, minor) => format!("{prefix}^{major}.{minor}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_a_repository_and_a_version() {
        for (target, expected) in [
            ("pulumi/pulumi-random", ("pulumi/pulumi-random", None)),
            ("pulumi/pulumi-random@^4.16", ("pulumi/pulumi-random", Some("^4.16"))),
            ("acme/reef@reef/v1", ("acme/reef", Some("reef/v1"))),
            ("https://git.example/acme/reef@latest", ("https://git.example/acme/reef", Some("latest"))),
            ("acme/reef@", ("acme/reef@", None)),
        ] {
            assert_eq!(split(target), expected, "{target}");
        }
    }

    #[test]
    fn name_is_that_of_the_repository_without_its_prefix() {
        for (repository, declared, expected) in [
            ("pulumi/pulumi-random", None, Some("random")),
            ("acme/pulumi-resource-reef", None, Some("reef")),
            ("https://git.example/acme/Reef.git", None, Some("reef")),
            ("acme/reef", Some("lake"), Some("lake")),
            ("acme/reef_1.x", None, None),
        ] {
            let found = plugin_name(repository, declared).ok().map(|name| name.to_string());
            assert_eq!(found.as_deref(), expected, "{repository}");
        }
    }

    #[test]
    fn range_is_that_of_compatible_versions() {
        for (tag, expected) in [
            ("v4.19.2", "^4.19"),
            ("0.27.1", "^0.27.1"),
            ("reef/v1.2.3", "reef/^1.2"),
            ("nightly", "latest"),
            ("", "latest"),
        ] {
            assert_eq!(range_of(tag), expected, "{tag}");
        }
    }
}
