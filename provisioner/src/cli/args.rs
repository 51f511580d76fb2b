//! Arguments that several commands share. The other arguments of a command are beside its code.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use bridge::plugin::PluginValueError;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use provisioner::operation::PluginOverride;
use pulumi_proto::resource_id::ResourceId;
use state::JournalMode;

use super::display::Secrets;
use super::signals::TimeLimit;

/// Arguments of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Show more output: debug messages, and long texts in full
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) verbose: bool,
    /// Use the profile `.sc/cfg.<PROFILE>.yaml` [default: default]
    #[arg(short, long, global = true, value_name = "PROFILE", display_order = 901)]
    pub(crate) profile: Option<String>,
    /// Run as if started in this folder
    #[arg(short = 'C', long, global = true, value_name = "FOLDER", display_order = 902)]
    pub(crate) cwd: Option<PathBuf>,
    /// Use colour: `auto` (on a terminal, unless NO_COLOR is set), `always` or `never`
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true,
        display_order = 903
    )]
    pub(crate) color: ColorArg,
    /// Print each event as one line of JSON to standard output, and nothing else
    #[arg(long, global = true, display_order = 904)]
    pub(crate) json: bool,
    /// Fail if the lock file `.sc/sc.lock` does not have a plugin, instead of adding it
    #[arg(long, global = true, display_order = 905)]
    pub(crate) locked: bool,
    /// Take plugins from this machine only, and open no connection for one (SC_OFFLINE)
    #[arg(long, global = true, display_order = 906)]
    pub(crate) offline: bool,
    /// Write where the time of the command goes to this file, in the trace format of Chrome, which ui.perfetto.dev opens
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath, display_order = 907)]
    pub(crate) trace: Option<PathBuf>,
}

/// Use of colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal, unless NO_COLOR is set; CLICOLOR_FORCE is honoured
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// Stacks of a command that works on several.
#[derive(Clone, Debug, Args)]
pub(crate) struct StacksArgs {
    /// Stacks to work on, separated by commas; can be repeated [default: all, each after the stacks it inherits from]
    #[arg(short, long, alias = "stack", value_name = "STACK", value_delimiter = ',')]
    pub(crate) stacks: Vec<String>,
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Stacks of a command that never works on all stacks because none is named.
#[derive(Clone, Debug, Args)]
pub(crate) struct NamedStacksArgs {
    /// Stacks to work on, separated by commas; can be repeated [default: the only stack]
    #[arg(short, long = "stack", alias = "stacks", value_name = "STACK", value_delimiter = ',')]
    pub(crate) stacks: Vec<String>,
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Selection by what has changed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChangedSinceArgs {
    /// Only stacks that have changed since the merge base of HEAD with this branch, tag or commit, and stacks that depend on them.
    /// Untracked files count
    #[arg(long, value_name = "REF")]
    pub(crate) changed_since: Option<String>,
}

/// Stack of a command that works on one.
#[derive(Clone, Debug, Args)]
pub(crate) struct StackArgs {
    /// Stack to work on [default: the only stack]
    #[arg(short, long, alias = "stacks", value_name = "STACK")]
    pub(crate) stack: Option<String>,
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Location of the stacks.
#[derive(Clone, Debug, Args)]
pub(crate) struct DirArgs {
    /// Folder that contains the stacks [default: `stacksDir` of the profile, else .sc/stacks]
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// Local builds that take the place of declared plugins.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OverrideArgs {
    /// Run this local build (an executable, or a folder with one) in place of the declared plugin NAME; can be repeated. Nothing of
    /// it is recorded. Refused with --locked and where CI is set (SC_PLUGIN_OVERRIDE)
    #[arg(long = "plugin", value_name = "NAME=PATH", value_parser = plugin_override, value_hint = clap::ValueHint::AnyPath)]
    pub(crate) overrides: Vec<PluginOverride>,
}

/// Options of a run and of its display.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Skip the refresh before the operation, and rely on the recorded state
    #[arg(short = 'R', long)]
    pub(crate) skip_refresh: bool,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Maximum number of resources to process in parallel
    #[arg(long, value_name = "N", default_value_t = u32::from(engine::DEFAULT_PARALLEL), value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    /// Maximum number of stacks to work on at the same time; --parallel counts for each of them
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel_stacks: u32,
    /// Continue with resources that do not depend on a failed resource, and with other deletes after a failed delete
    #[arg(long)]
    pub(crate) continue_on_error: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Source of the provider configuration for reads and deletes.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ProgramArgs {
    /// In a refresh or destroy, use the provider configuration in server.yaml instead of the recorded one
    #[arg(long)]
    pub(crate) run_program: bool,
}

/// Resources of a stack that an operation may change.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Resource selection")]
pub(crate) struct ScopeArgs {
    /// Operate only on this resource, by name as `sc preview` shows it (`KEY--ENV`), `KEY`, `ENV/KEY`, `TYPE::NAME` or URN; `*`
    /// is a wildcard; can be repeated
    #[arg(short, long, value_name = "RESOURCE", conflicts_with = "exclude")]
    pub(crate) target: Vec<String>,
    /// Operate on dependents of the targets as well
    #[arg(long)]
    pub(crate) target_dependents: bool,
    /// Do not operate on this resource, given as for --target, and do not delete what it depends on; can be repeated
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) exclude: Vec<String>,
    /// Exclude dependents of the excluded resources as well
    #[arg(long, requires = "exclude")]
    pub(crate) exclude_dependents: bool,
}

/// Resources of a stack to replace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Resource selection")]
pub(crate) struct ReplaceArgs {
    /// Replace this resource, given as for --target, even if it has no changes; can be repeated
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) replace: Vec<String>,
    /// Replace this resource; same as --target and --replace together; can be repeated
    #[arg(long, value_name = "RESOURCE", conflicts_with = "exclude")]
    pub(crate) target_replace: Vec<String>,
}

/// Display of values that are masked by default.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShowArgs {
    /// Show secrets in plaintext
    #[arg(long)]
    pub(crate) show_secrets: bool,
}

impl ShowArgs {
    pub(crate) fn secrets(self) -> Secrets {
        if self.show_secrets { Secrets::Shown } else { Secrets::Masked }
    }
}

/// Detail of the displayed changes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DiffArgs {
    /// Show changed properties with their old and new values; `--diff=false` shows only their names
    #[arg(
        short = 'D',
        long,
        alias = "detailed-diff",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        hide_possible_values = true,
    )]
    pub(crate) diff: bool,
}

/// Treatment of a state that has lost its resources.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct EmptyStateArgs {
    /// Continue from a state without resources, although the previous state (`.bak`) has some and no run removed them
    #[arg(long)]
    pub(crate) allow_empty: bool,
}

/// Wait for the lock of a stack that another run has.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LockArgs {
    /// Maximum time to wait for the lock of a stack that another run has: 90s, 10m [default: fail at once, with exit code 4]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lock_timeout: Option<Duration>,
}

/// Guarantee that a run waits for before it goes on.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct JournalArgs {
    /// Lines of the journal that the run waits for, until they are in the store, or on the disk of a store in a folder: those
    /// that announce a creation, all, or none [default: as server.yaml has it, else intents in a bucket or a database, and local
    /// in a folder]
    #[arg(long, value_name = "MODE", value_parser = journal_mode())]
    pub(crate) journal: Option<JournalMode>,
}

fn journal_mode() -> impl TypedValueParser<Value = JournalMode> {
    PossibleValuesParser::new(JournalMode::ALL.map(JournalMode::as_str)).try_map(|name| JournalMode::from_str(&name))
}

/// Limit on the time of a command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TimeLimitArgs {
    /// Stop like Ctrl-C, with exit code 1, if the command takes longer than this from its start on: 90s, 30m, 1h30m
    #[arg(short = 'O', long, value_name = "DURATION", value_parser = duration)]
    pub(crate) execution_timeout: Option<Duration>,
    /// Abort if running calls do not end within this time after the execution timeout
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) stop_grace: Duration,
}

impl TimeLimitArgs {
    /// Returns the limit, if one was given.
    pub(crate) fn limit(self) -> Option<TimeLimit> {
        self.execution_timeout.map(|timeout| TimeLimit { timeout, grace: self.stop_grace })
    }
}

/// Rules for changes that delete or replace resources.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct GuardArgs {
    /// Apply the changes without a preview and without asking for confirmation
    #[arg(short = 'S', long, conflicts_with = "preview")]
    pub(crate) skip_preview: bool,
    /// Apply the changes without asking for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Fail before the first change if the run deletes, replaces or no longer finds more than N resources [default:
    /// `maxDeletes` of the provisioner]
    #[arg(long, value_name = "N")]
    pub(crate) max_deletes: Option<u64>,
}

/// Treatment of resources that a refresh does not find.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct MissingArgs {
    /// Remove resources that the refresh does not find from the state, even if they are protected, or all of a provider.
    /// --yes does not do that
    #[arg(long)]
    pub(crate) accept_missing: bool,
}

/// Resolution of the pending creates of interrupted runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PendingArgs {
    /// Import the resource of a pending create of an interrupted run, with its id; can be repeated. A preview only shows it
    #[arg(long, value_name = "RESOURCE=ID", value_parser = resource_and_id)]
    pub(crate) import_pending_creates: Vec<(String, ResourceId)>,
    /// Remove all pending creates from the state. `sc` does not check whether the resources exist: check that before. A preview only
    /// shows it
    #[arg(long)]
    pub(crate) clear_pending_creates: bool,
}

/// Message of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MessageArgs {
    /// Message that the history of the stack keeps [default: the title of the commit]
    #[arg(short, long, value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
}

/// Confirmation that is given on the command line.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Proceed without asking for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Parses a duration in Go's format: `90s`, `1h30m`, `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = pulumi_proto::duration::parse(text).filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| "not a duration such as 90s, 30m or 1h30m".to_owned())
}

/// Parses a number of days (`30d`), or a duration in Go's format.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let days = days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    days.map_or_else(|| duration(text), Ok).map_err(|_| "not an age such as 30d or 12h".to_owned())
}

/// Parses a size with a decimal unit, in bytes: `500MB`, `2GB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let units = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
    let parsed =
        units.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?.trim().parse::<u64>(), bytes)));
    let size = parsed.and_then(|(number, bytes)| number.ok()?.checked_mul(bytes));
    size.ok_or_else(|| "not a size such as 500MB or 2GB".to_owned())
}

/// Parses `NAME=PATH`, a local build in place of a declared plugin. The path may contain `=`.
pub(crate) fn plugin_override(text: &str) -> Result<PluginOverride, String> {
    let parts = text.split_once('=').filter(|(_, path)| !path.is_empty());
    let (name, path) = parts.ok_or("expected NAME=PATH, such as random=../pulumi-random/bin")?;
    let name = name.parse().map_err(|error: PluginValueError| error.to_string())?;
    Ok(PluginOverride { name, path: path.into() })
}

/// Parses `RESOURCE=ID`. The id may contain `=`.
pub(crate) fn resource_and_id(text: &str) -> Result<(String, ResourceId), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let parts = parts.and_then(|(name, id)| Some((name.to_owned(), ResourceId::new(id)?)));
    parts.ok_or_else(|| "expected RESOURCE=ID, such as web--prod=i-0abc123".to_owned())
}
