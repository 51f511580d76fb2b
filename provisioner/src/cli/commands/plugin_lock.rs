//! `sc plugin lock` and `sc plugin update`: what the plugins are, as the lock file records it.

use std::collections::BTreeSet;

use bridge::error::closest;
use bridge::install::{LOCK_FILE, LockChange, LockRule};
use bridge::plugin::{DigestOrigin, Platform, ResolvedPackage};
use clap::Args;
use provisioner::operation::{LockReport, LockRequest, LockedPlugin, PluginSettings, Stacks};

use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::table;
use crate::cli::output::Output;
use crate::cli::plugins::plugin_settings;
use crate::cli::questions::Questions;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, Session, SessionOptions};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Arguments of `sc plugin lock`.
#[derive(Debug, Args)]
pub(crate) struct LockFileArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Change nothing, and fail if the lock file would change
    #[arg(long)]
    pub(crate) check: bool,
    /// Record the assets of this platform as well, such as linux-arm64; can be repeated
    #[arg(long, value_name = "PLATFORM", conflicts_with = "check")]
    pub(crate) platform: Vec<Platform>,
}

/// Arguments of `sc plugin update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Plugins to update [default: all whose version may move: ranges, latest, branches]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Set the version to this tag or commit, which must fit the declared version
    #[arg(long, value_name = "VERSION", requires = "names")]
    pub(crate) to: Option<String>,
    /// Show what would change, and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// Runs `sc plugin lock`.
pub(super) async fn lock(ui: &Ui, global: &GlobalArgs, args: &LockFileArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let is_check = args.check || global.locked;
    let rule = if is_check { LockRule::Locked } else { LockRule::Add };
    let settings = plugin_settings(&stacks)?.with_lock_rule(rule);
    let (asked, questions) = Questions::new(&ui.output);
    let signer_approval = asked.signer_approval();
    let request = LockRequest { platforms: args.platform.clone(), signer_approval, ..LockRequest::default() };
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        if is_check {
            let problems = settings.lock_problems(&stacks)?;
            return report_problems(&ui.output, session, &problems);
        }
        for note in settings.repair_lock().await? {
            ui.output.inform(format_args!("{LOCK_FILE}: {note}"));
        }
        let report = lock_and_ask(ui, &settings, &stacks, &request, questions, session).await?;
        // After an error, the file is as it was, so that the declaration that is mended may still find its entry.
        let removed = if report.error.is_none() { settings.remove_undeclared_locks().await? } else { Vec::new() };
        session.pause();
        for name in removed {
            ui.output.inform(format_args!("{LOCK_FILE}: {name} is removed, since no stack declares it"));
        }
        finish(ui, session, &stacks, report)
    })
    .await
}

/// Runs `sc plugin update`.
pub(super) async fn update(ui: &Ui, global: &GlobalArgs, args: &UpdateArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    check_names(&stacks, &args.names)?;
    if global.locked && !args.dry_run {
        let hint = "leave one of them out, or add --dry-run";
        return Err(CliError::usage("an update changes the lock file, which --locked forbids", hint).into());
    }
    let rule = if args.dry_run { LockRule::Locked } else { LockRule::Add };
    let settings = plugin_settings(&stacks)?.with_lock_rule(rule);
    let (names, to) = (args.names.clone(), args.to.clone());
    let (asked, questions) = Questions::new(&ui.output);
    let signer_approval = asked.signer_approval().filter(|_| !args.dry_run);
    let request = LockRequest { names, updates: true, to, signer_approval, ..LockRequest::default() };
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let report = lock_and_ask(ui, &settings, &stacks, &request, questions, session).await?;
        session.pause();
        if args.dry_run && report.locked.iter().any(|locked| locked.change.is_change) {
            ui.output.inform("nothing was changed: this is what `sc plugin update` would record");
        }
        finish(ui, session, &stacks, report)
    })
    .await
}

/// Records what the plugins mean, and asks the questions about it.
async fn lock_and_ask(
    ui: &Ui,
    settings: &PluginSettings,
    stacks: &Stacks,
    request: &LockRequest,
    questions: Questions,
    session: &Session<'_>,
) -> anyhow::Result<LockReport> {
    let events = session.sink("", None);
    tokio::select! {
        report = settings.lock(stacks, request, &events, &session.signals) => Ok(report?),
        never = questions.ask(&ui.output, session) => match never {},
    }
}

/// Returns an error if a name is that of no plugin.
pub(super) fn check_names(stacks: &Stacks, names: &[String]) -> anyhow::Result<()> {
    let declared: BTreeSet<&str> =
        stacks.requested().flat_map(|stack| &stack.plugins).map(|plugin| plugin.name()).collect();
    let Some(name) = names.iter().find(|name| !declared.contains(name.as_str())) else { return Ok(()) };
    let hint = match closest(name, declared.iter().copied()) {
        Some(similar) => format!("did you mean {similar}?"),
        None if declared.is_empty() => "no stack declares a plugin".to_owned(),
        None => format!("the plugins are {}", declared.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(CliError::usage(format_args!("no stack declares the plugin {name}"), hint).into())
}

fn report_problems(output: &Output, session: &Session<'_>, problems: &[String]) -> anyhow::Result<Exit> {
    session.pause();
    if problems.is_empty() {
        output.inform(format_args!("{LOCK_FILE} has what the stacks declare"));
        return Ok(Exit::Done);
    }
    for problem in problems {
        output.warn(problem.as_str());
    }
    let hint = "run `sc plugin lock` on your machine, and commit the lock file";
    Err(CliError::failed(format_args!("{LOCK_FILE} would change"), hint).into())
}

/// Prints what is recorded, and returns the error of the plugins that are not.
pub(super) fn finish(ui: &Ui, session: &Session<'_>, stacks: &Stacks, report: LockReport) -> anyhow::Result<Exit> {
    let LockReport { locked, error } = report;
    if ui.output.results_are_json() {
        ui.output.print(&locked.iter().map(|locked| Line::plain(as_json(locked))).collect::<Vec<_>>())?;
    } else if locked.is_empty() && error.is_none() {
        ui.output.inform("no plugin has a version to record");
    } else if !locked.is_empty() {
        let rows: Vec<Vec<String>> = locked.iter().map(as_row).collect();
        ui.output.print(&table(&["PLUGIN", "WANTED", "BEFORE", "LOCKED", "RELEASED", "VERIFIED BY"], &rows))?;
    }
    let Some(error) = error else { return Ok(Exit::Done) };
    let error = anyhow::Error::from(error);
    print_reasons(&ui.output, session, stacks, &error);
    Err(error)
}

/// Returns the tag, else the commit in the length in which git shows it.
fn revision(package: &ResolvedPackage) -> String {
    match (package.tag(), package) {
        (Some(tag), _) => tag.to_owned(),
        (None, package) => package.revision().chars().take(12).collect(),
    }
}

/// Returns where the digests are from, and for how many platforms there is one.
fn evidence(package: &ResolvedPackage) -> String {
    let ResolvedPackage::Release(release) = package else { return "commit".to_owned() };
    let origins: BTreeSet<_> = release.assets.values().filter_map(|asset| Some(asset.digest?.1)).collect();
    let origins: Vec<&str> = origins.into_iter().map(DigestOrigin::as_str).collect();
    let count = release.assets.len();
    format!("{} ({count} platform{})", origins.join(", "), if count == 1 { "" } else { "s" })
}

fn released(package: &ResolvedPackage) -> Option<&str> {
    match package {
        ResolvedPackage::Release(release) => release.released.as_deref(),
        ResolvedPackage::Local | ResolvedPackage::Commit(_) => None,
    }
}

fn as_row(LockedPlugin { plugin, change }: &LockedPlugin) -> Vec<String> {
    let LockChange { key, before, after, is_change } = change;
    let before = match before {
        Some(before) if revision(before) != revision(after) => revision(before),
        // The same tag, with more platforms or another content.
        Some(before) if *is_change && before != after => format!("{} (changed)", revision(before)),
        Some(_) => "=".to_owned(),
        None => "-".to_owned(),
    };
    vec![
        plugin.name.to_string(),
        key.wanted.to_string(),
        before,
        revision(after),
        released(after).map_or("-".to_owned(), |time| time.split('T').next().unwrap_or(time).to_owned()),
        evidence(after),
    ]
}

fn as_json(LockedPlugin { plugin, change }: &LockedPlugin) -> String {
    let LockChange { key, before, after, is_change } = change;
    serde_json::json!({
        "name": plugin.name.to_string(),
        "source": key.source,
        "wanted": key.wanted.to_string(),
        "before": before.as_ref().map(ResolvedPackage::revision),
        "revision": after.revision(),
        "tag": after.tag(),
        "released": released(after),
        "changed": is_change,
    })
    .to_string()
}
