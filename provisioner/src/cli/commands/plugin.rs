//! `sc plugin`: the provider plugins that stacks declare.

use bridge::install::VerifiedPackage;
use bridge::plugin::{PluginConfig, PluginSource};
use bridge::source::without_credentials;
use clap::{Args, Subcommand};
use provisioner::operation::{InstalledPlugin, OperationError};

use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::Exit;
use crate::cli::runs::plugin_settings;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::{Stacks, read_stacks};
use crate::cli::table::table;
use crate::cli::ui::Ui;

/// Install and list provider plugins
#[derive(Debug, Args)]
pub(crate) struct PluginCommand {
    #[command(subcommand)]
    pub(crate) verb: PluginVerb,
}

/// Subcommands of `sc plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// Download and verify the plugins that the stacks declare, without starting them
    ///
    /// Plugins in the cache are not downloaded again. Prints the checksum of each installed plugin for the current
    /// platform: set it as `checksum` in server.yaml to pin the plugin, so that no other file is ever run. A `local`
    /// plugin without a `checksum` has none to print.
    Install(InstallArgs),
    /// List the plugins that the stacks declare: version, source, and whether a checksum pins them
    Ls(LsArgs),
}

/// Arguments of `sc plugin install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
}

/// Arguments of `sc plugin ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &PluginCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        PluginVerb::Ls(args) => list(ui, global, args),
        PluginVerb::Install(args) => install(ui, global, args).await,
    }
}

async fn install(ui: &Ui, global: &GlobalArgs, args: &InstallArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let settings = plugin_settings(&stacks)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None };
    session::run(ui, options, async |session| {
        let mut rows = Vec::new();
        let mut failed = Vec::new();
        for stack in stacks.requested() {
            let events = session.sink(&stack.name, None);
            for InstalledPlugin { plugin, package } in settings.install(stack, &events, &session.signals).await? {
                match package {
                    Ok(package) => rows.push((stack.name.as_str(), plugin, package)),
                    Err(error) => failed.push(OperationError::Plugins(error)),
                }
            }
        }
        session.pause();
        if ui.results_are_json() {
            let lines = rows.iter().map(|(stack, plugin, package)| installed_as_json(stack, plugin, package));
            ui.print(&lines.map(Line::plain).collect::<Vec<_>>())?;
        } else if !rows.is_empty() {
            let rows = rows.iter().map(|(stack, plugin, package)| installed_as_row(stack, plugin, package));
            ui.print(&table(&["STACK", "PLUGIN", "REVISION", "CHECKSUM"], &rows.collect::<Vec<_>>()))?;
        }
        // The last error is returned as the error of the command.
        let last = failed.pop();
        for error in failed {
            ui.fail(&error.into());
        }
        last.map_or(Ok(Exit::Done), |error| Err(error.into()))
    })
    .await
}

fn installed_as_row(stack: &str, plugin: &PluginConfig, package: &VerifiedPackage) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        stack.to_owned(),
        plugin.name.to_string(),
        or_dash(package.revision().map(str::to_owned)),
        or_dash(package.digest().map(|digest| digest.to_string())),
    ]
}

fn installed_as_json(stack: &str, plugin: &PluginConfig, package: &VerifiedPackage) -> String {
    serde_json::json!({
        "stack": stack,
        "name": plugin.name.to_string(),
        "source": plugin.source.kind(),
        "revision": package.revision(),
        "checksum": package.digest().map(|digest| digest.to_string()),
        "folder": package.folder().display().to_string(),
    })
    .to_string()
}

fn list(ui: &Ui, global: &GlobalArgs, args: &LsArgs) -> anyhow::Result<Exit> {
    let Stacks { stacks, .. } = read_stacks(ui, global, &args.stacks)?;
    let plugins: Vec<(&str, &PluginConfig)> = stacks
        .iter()
        .flat_map(|stack| stack.plugins.iter().map(|declared| (stack.name.as_str(), &declared.plugin)))
        .collect();
    if ui.results_are_json() {
        let lines: Vec<Line> = plugins.iter().map(|(stack, plugin)| Line::plain(as_json(stack, plugin))).collect();
        ui.print(&lines)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = plugins.iter().map(|(stack, plugin)| as_row(stack, plugin)).collect();
    ui.print(&table(&["STACK", "PLUGIN", "PACKAGE", "VERSION", "PINNED", "SOURCE"], &rows))?;
    Ok(Exit::Done)
}

/// Returns the location of a plugin's source, and the version or revision that it declares.
fn origin(source: &PluginSource) -> (String, &str) {
    match source {
        PluginSource::Local(local) => (local.path.display().to_string(), ""),
        PluginSource::GithubRelease(release) => (without_credentials(&release.repository), &release.tag),
        PluginSource::Git(git) => (without_credentials(&git.url), &git.revision),
    }
}

fn as_row(stack: &str, plugin: &PluginConfig) -> Vec<String> {
    let (place, version) = origin(&plugin.source);
    let pinned = if plugin.source.checksum().is_some() { "yes" } else { "no" };
    let disabled = if plugin.enabled { "" } else { " (disabled)" };
    let source = format!("{} {place}{disabled}", plugin.source.kind());
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    vec![
        stack.to_owned(),
        plugin.name.to_string(),
        plugin.package.to_string(),
        or_dash(version),
        pinned.to_owned(),
        source,
    ]
}

fn as_json(stack: &str, plugin: &PluginConfig) -> String {
    let (place, version) = origin(&plugin.source);
    serde_json::json!({
        "stack": stack,
        "name": plugin.name.to_string(),
        "package": plugin.package.to_string(),
        "enabled": plugin.enabled,
        "source": plugin.source.kind(),
        "location": place,
        "version": version,
        "pinned": plugin.source.checksum().is_some(),
    })
    .to_string()
}
