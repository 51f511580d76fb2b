//! `sc plugin mirror`: copies of the locked plugins.

use std::path::PathBuf;

use bridge::install::MirroredAsset;
use bridge::plugin::Platform;
use clap::Args;
use provisioner::operation::MirroredPlugin;
use serde_json::json;

use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::display::{Line, Secrets, bytes};
use crate::cli::exit::Exit;
use crate::cli::listing::table;
use crate::cli::plugins::plugin_settings;
use crate::cli::process::working_folder;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Arguments of `sc plugin mirror`.
#[derive(Debug, Args)]
pub(crate) struct MirrorArgs {
    /// Folder into which the plugins are copied; created if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Copy the assets of this platform, such as linux-arm64; can be repeated [default: all that the lock file has]
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Vec<Platform>,
}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, args: &MirrorArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let folder = working_folder(global.cwd.as_deref())?.join(&args.folder);
    let settings = plugin_settings(&stacks)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let (sink, signals) = (session.sink("", None), &session.signals);
        let report = settings.mirror(&stacks, &args.platform, &folder, &sink, signals).await?;
        session.pause();
        if ui.output.results_are_json() {
            let lines = report.mirrored.iter().flat_map(as_json).map(Line::plain);
            ui.output.print(&lines.collect::<Vec<_>>())?;
        } else {
            let rows: Vec<Vec<String>> = report.mirrored.iter().flat_map(as_rows).collect();
            ui.output.print(&table(&["PLUGIN", "PLATFORM", "SIZE", "STATE", "FILE"], &rows))?;
        }
        let Some(error) = report.error else { return Ok(Exit::Done) };
        let error = anyhow::Error::from(error);
        print_reasons(&ui.output, session, &stacks, &error);
        Err(error)
    })
    .await
}

fn as_rows(MirroredPlugin { plugin, assets }: &MirroredPlugin) -> Vec<Vec<String>> {
    let name = plugin.name.to_string();
    let Some(assets) = assets else {
        let reason = format!("not copied: a source of type {} has no copies, or is not locked", plugin.source.kind());
        return vec![vec![name, String::new(), String::new(), reason, String::new()]];
    };
    let row = |asset: &MirroredAsset| {
        let state = if asset.is_kept { "was there" } else { "copied" };
        vec![
            name.clone(),
            asset.platform.map_or("all".to_owned(), |platform| platform.to_string()),
            bytes(asset.size),
            state.to_owned(),
            asset.path.display().to_string(),
        ]
    };
    assets.iter().map(row).collect()
}

fn as_json(MirroredPlugin { plugin, assets }: &MirroredPlugin) -> Vec<String> {
    let name = plugin.name.as_str();
    let Some(assets) = assets else { return vec![json!({ "plugin": name, "copied": false }).to_string()] };
    let line = |asset: &MirroredAsset| {
        json!({
            "plugin": name,
            "copied": true,
            "platform": asset.platform.map(|platform| platform.to_string()),
            "size": asset.size,
            "wasThere": asset.is_kept,
            "file": asset.path.display().to_string(),
        })
        .to_string()
    };
    assets.iter().map(line).collect()
}
