//! `sc plugin prune`: removes packages from the cache that were not used.

use std::time::{Duration, SystemTime};

use bridge::install::{PruneRules, PrunedPackage, prune_cache};
use clap::Args;
use config::Repository;
use provisioner::operation::cache_folder;

use crate::cli::args::{GlobalArgs, age, size};
use crate::cli::display::{Line, bytes};
use crate::cli::exit::Exit;
use crate::cli::listing::table;
use crate::cli::process::{process_context, working_folder};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

const DAY: u64 = 24 * 60 * 60;

/// Arguments of `sc plugin prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove packages that were not used for this time, such as 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = age, required_unless_present = "max_size")]
    pub(crate) older_than: Option<Duration>,
    /// Remove the packages that were not used for the longest time, until the rest has at most this size, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,
    /// Show what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, args: &PruneArgs) -> anyhow::Result<Exit> {
    let repository = Repository::discover(&working_folder(global.cwd.as_deref())?);
    let folder = cache_folder(&process_context().environment, &repository.root);
    let rules = PruneRules { older_than: args.older_than, max_size: args.max_size, is_dry_run: args.dry_run };
    let what = format!("reading the packages in {}", folder.display());
    let pruned = show_while(&ui.output, &what, prune_cache(&folder, rules)).await?;
    if ui.output.results_are_json() {
        ui.output.print(&pruned.iter().map(|package| Line::plain(as_json(package))).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    if pruned.is_empty() {
        ui.output.inform(format_args!("nothing in {} is to be removed", folder.display()));
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = pruned.iter().map(as_row).collect();
    ui.output.print(&table(&["PACKAGE", "SIZE", "LAST USED", "STATE"], &rows))?;
    let removed = pruned.iter().filter(|package| !package.is_in_use);
    let (count, freed) = removed.fold((0, 0), |(count, size), package| (count + 1, size + package.size));
    let packages = if count == 1 { "package" } else { "packages" };
    let verb = if args.dry_run { "would be removed" } else { "removed" };
    ui.output.inform(format_args!("{count} {packages} {verb}, {}", bytes(freed)));
    Ok(Exit::Done)
}

fn as_row(package: &PrunedPackage) -> Vec<String> {
    let PrunedPackage { digest, sources, size, last_used, is_in_use } = package;
    let name = match sources.first() {
        Some(source) if sources.len() == 1 => source.clone(),
        Some(source) => format!("{source} and {} more", sources.len() - 1),
        None => digest.to_string(),
    };
    let days = SystemTime::now().duration_since(*last_used).unwrap_or_default().as_secs() / DAY;
    let used = match days {
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        days => format!("{days} days ago"),
    };
    let state = if *is_in_use { "in use, stays" } else { "unused" };
    vec![name, bytes(*size), used, state.to_owned()]
}

fn as_json(package: &PrunedPackage) -> String {
    let PrunedPackage { digest, sources, size, last_used, is_in_use } = package;
    let last_used = last_used.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    serde_json::json!({
        "digest": digest.to_string(),
        "sources": sources,
        "size": size,
        "lastUsed": last_used,
        "inUse": is_in_use,
    })
    .to_string()
}
