//! Arguments that several commands share. The other arguments of a command are beside its code.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::display::Secrets;

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Show more: debug messages, long texts whole
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) verbose: bool,
    /// Read the profile `.sc/cfg.<PROFILE>.yaml` [default: default]
    #[arg(short, long, global = true, value_name = "PROFILE", display_order = 901)]
    pub(crate) profile: Option<String>,
    /// Work as if started in this folder
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
    /// Write each event as one line of JSON to standard output, and nothing else there
    #[arg(long, global = true, display_order = 904)]
    pub(crate) json: bool,
}

/// When colour is used.
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

/// Which stacks a command is about, where it may be several.
#[derive(Clone, Debug, Args)]
pub(crate) struct StacksArgs {
    /// Stacks to work on, separated by commas or given several times [default: all, inherited ones first]
    #[arg(short, long, alias = "stack", value_name = "STACK", value_delimiter = ',')]
    pub(crate) stacks: Vec<String>,
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Which stack a command is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct StackArgs {
    /// Stack to work on [default: the only one there is]
    #[arg(short, long, alias = "stacks", value_name = "STACK")]
    pub(crate) stack: Option<String>,
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Where the stacks are.
#[derive(Clone, Debug, Args)]
pub(crate) struct DirArgs {
    /// Folder that holds the stacks [default: `stacksDir` of the profile, else .sc/stacks]
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// How a run works and what it shows.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Do not read first what the cloud really looks like
    #[arg(short = 'R', long)]
    pub(crate) skip_refresh: bool,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Work on at most this many resources at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: u32,
    /// Go on with what does not depend on a resource that failed, deletes included
    #[arg(long)]
    pub(crate) continue_on_error: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Whether what only reads or deletes goes by server.yaml, too.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ProgramArgs {
    /// Read and delete by the plugins as server.yaml configures them now, not by what is recorded of them
    #[arg(long)]
    pub(crate) run_program: bool,
}

/// Which resources of a stack are touched.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Part of a stack")]
pub(crate) struct ScopeArgs {
    /// Touch only this resource, by its name or URN; `*` stands for anything; may be given several times
    #[arg(short, long, value_name = "RESOURCE", conflicts_with = "exclude")]
    pub(crate) target: Vec<String>,
    /// Also touch what depends on a target
    #[arg(long)]
    pub(crate) target_dependents: bool,
    /// Touch all but this resource, by its name or URN, and keep what it needs; may be given several times
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) exclude: Vec<String>,
    /// Neither touch what depends on an excluded resource
    #[arg(long, requires = "exclude")]
    pub(crate) exclude_dependents: bool,
}

/// Which resources of a stack are made anew.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Part of a stack")]
pub(crate) struct ReplaceArgs {
    /// Replace this resource even if nothing about it has changed, by its name or URN; may be given several times
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) replace: Vec<String>,
    /// Replace this resource, and touch no other: --target and --replace at once
    #[arg(long, value_name = "RESOURCE", conflicts_with = "exclude")]
    pub(crate) target_replace: Vec<String>,
}

/// What is shown that usually is not.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShowArgs {
    /// Show secrets in clear
    #[arg(long)]
    pub(crate) show_secrets: bool,
}

impl ShowArgs {
    pub(crate) fn secrets(self) -> Secrets {
        if self.show_secrets { Secrets::Shown } else { Secrets::Masked }
    }
}

/// Whether changes are shown property by property.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DiffArgs {
    /// Show what changes property by property; `--diff=false` shows only the names of the properties
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

/// Answers given beforehand.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Do not ask, go on
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Parses a duration in Go's format: `90s`, `1h30m`, `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = pulumi_proto::duration::parse(text).filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| "not a duration such as 90s, 30m or 1h30m".to_owned())
}
