//! `sc plugin`: the provider plugins that stacks declare.

use clap::{Args, Subcommand};

use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;

/// List the provider plugins
#[derive(Debug, Args)]
pub(crate) struct PluginCommand {
    #[command(subcommand)]
    pub(crate) verb: PluginVerb,
}

/// What is done with plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// List the plugins that the stacks declare: version, where from, whether installed and verified
    Ls(LsArgs),
}

/// Arguments of `sc plugin ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
}

/// Does it.
pub(crate) async fn run(_ui: &Ui, _global: &GlobalArgs, _args: &PluginCommand) -> anyhow::Result<Exit> {
    Err(super::unfinished("plugin"))
}
