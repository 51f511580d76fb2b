//! Commands, one file each: arguments, whose comments are the help text, and the calls to the library.

pub(crate) mod cancel;
pub(crate) mod completion;
pub(crate) mod destroy;
pub(crate) mod import;
pub(crate) mod plugin;
pub(crate) mod preview;
pub(crate) mod provision;
pub(crate) mod refresh;
pub(crate) mod schema_gen;
pub(crate) mod stack;
pub(crate) mod state;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory as _, Parser, Subcommand};

use super::args::GlobalArgs;
use super::exit::Exit;
use super::ui::Ui;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Provisions what a server.yaml describes, with Pulumi's own providers and a state that Pulumi can read.
///
/// `sc` reads the stacks below `.sc/stacks`, starts the provider plugins that they declare, and makes the cloud match.
/// No Pulumi installation is needed.
#[derive(Debug, Parser)]
#[command(name = "sc", version, styles = STYLES, max_term_width = 100, propagate_version = false)]
#[command(after_help = "Run `sc help <COMMAND>` for all about a command, with examples.")]
#[command(after_long_help = "\
Exit codes:
    0  done (a preview that shows changes is done, too)
    1  failed
    2  wrong usage, or a question that could not be asked
    3  whoever read the output has gone (broken pipe)
    4  somebody else is working on the stack
    7  there are changes, and --expect-no-changes was given
  130  stopped by a signal with work left undone
  255  a bug in sc

Results go to standard output, all else to standard error. Secrets are masked everywhere unless --show-secrets is given.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Provision(provision::ProvisionArgs),
    Preview(preview::PreviewArgs),
    Refresh(refresh::RefreshArgs),
    Destroy(destroy::DestroyArgs),
    Import(import::ImportArgs),
    Cancel(cancel::CancelArgs),
    Stack(stack::StackCommand),
    State(state::StateCommand),
    Plugin(plugin::PluginCommand),
    SchemaGen(schema_gen::SchemaGenArgs),
    Completion(completion::CompletionArgs),
}

/// Runs a command.
pub(crate) async fn run(ui: &Ui, cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Provision(args) => provision::run(ui, &cli.global, &args).await,
        Command::Preview(args) => preview::run(ui, &cli.global, &args).await,
        Command::Refresh(args) => refresh::run(ui, &cli.global, &args).await,
        Command::Destroy(args) => destroy::run(ui, &cli.global, &args).await,
        Command::Import(args) => import::run(ui, &cli.global, &args).await,
        Command::Cancel(args) => cancel::run(ui, &cli.global, &args).await,
        Command::Stack(command) => stack::run(ui, &cli.global, &command).await,
        Command::State(command) => state::run(ui, &cli.global, &command).await,
        Command::Plugin(command) => plugin::run(ui, &cli.global, &command).await,
        Command::SchemaGen(args) => schema_gen::run(ui, &cli.global, &args).await,
        Command::Completion(args) => completion::run(Cli::command(), args),
    }
}

#[cfg(test)]
mod tests;
