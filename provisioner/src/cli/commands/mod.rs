//! Commands, one file each: arguments, whose comments are the help text, and the calls to the library.

pub(crate) mod cancel;
pub(crate) mod completion;
pub(crate) mod destroy;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod plugin;
pub(crate) mod plugin_add;
mod plugin_debug;
mod plugin_details;
mod plugin_lock;
mod plugin_mirror;
mod plugin_prune;
mod plugin_schema;
mod plugin_verify;
pub(crate) mod preview;
pub(crate) mod provision;
pub(crate) mod refresh;
pub(crate) mod schema_gen;
pub(crate) mod secrets;
pub(crate) mod stack;
pub(crate) mod state;
pub(crate) mod validate;

use std::ffi::OsString;

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

/// Provision the resources of a server.yaml with Pulumi providers; the state stays compatible with Pulumi
///
/// `sc` reads the stacks below `.sc/stacks`, starts the provider plugins that they declare, and creates, updates and
/// deletes resources until the cloud matches the stacks. Pulumi does not need to be installed.
#[derive(Debug, Parser)]
#[command(name = "sc", version, styles = STYLES, max_term_width = 100, propagate_version = false)]
#[command(after_help = "Run `sc help <COMMAND>` for the full help of a command, with examples.")]
#[command(after_long_help = "\
Exit codes:
    0  success (also of a preview that shows changes)
    1  failure, or a question was answered with no
    2  wrong usage, or no terminal to ask for confirmation
    3  broken pipe: the reader of the output has closed it
    4  the stack is locked by another run
    7  there are changes, and --expect-no-changes was given
  130  cancelled before the end, such as by Ctrl-C
  255  a bug in sc

Results go to standard output, everything else to standard error. Values that are marked as secret are masked everywhere unless --show-secrets is given.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::InitArgs),
    #[command(visible_alias = "up")]
    Provision(provision::ProvisionArgs),
    Preview(preview::PreviewArgs),
    Plan(plan::PlanCommand),
    Validate(validate::ValidateArgs),
    Refresh(refresh::RefreshArgs),
    Destroy(destroy::DestroyArgs),
    Import(import::ImportArgs),
    Cancel(cancel::CancelArgs),
    Stack(stack::StackCommand),
    /// Show the outputs of a stack; same as `sc stack outputs`
    #[command(hide = true, alias = "outputs")]
    Output(stack::outputs::OutputsArgs),
    State(state::StateCommand),
    Plugin(plugin::PluginCommand),
    Secrets(secrets::SecretsCommand),
    Doctor(doctor::DoctorArgs),
    SchemaGen(schema_gen::SchemaGenArgs),
    Completion(completion::CompletionArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
}

impl Command {
    /// Returns whether the command receives the signals of the process itself.
    pub(crate) fn has_own_signals(&self) -> bool {
        matches!(self, Self::Plugin(command) if matches!(command.verb, plugin::PluginVerb::ServeExample(_)))
    }
}

/// Runs a command.
pub(crate) async fn run(ui: &Ui, cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Init(args) => init::run(&ui.output, &cli.global, &args),
        Command::Provision(args) => provision::run(ui, &cli.global, &args).await,
        Command::Preview(args) => preview::run(ui, &cli.global, &args).await,
        Command::Plan(command) => plan::run(ui, &cli.global, &command).await,
        Command::Validate(args) => validate::run(ui, &cli.global, &args).await,
        Command::Refresh(args) => refresh::run(ui, &cli.global, &args).await,
        Command::Destroy(args) => destroy::run(ui, &cli.global, &args).await,
        Command::Import(args) => import::run(ui, &cli.global, &args).await,
        Command::Cancel(args) => cancel::run(ui, &cli.global, &args).await,
        Command::Stack(command) => stack::run(ui, &cli.global, &command).await,
        Command::Output(args) => stack::outputs::run(ui, &cli.global, &args).await,
        Command::State(command) => state::run(ui, &cli.global, &command).await,
        Command::Plugin(command) => plugin::run(ui, &cli.global, &command).await,
        Command::Secrets(command) => secrets::run(ui, &cli.global, &command).await,
        Command::Doctor(args) => doctor::run(ui, &cli.global, &args).await,
        Command::SchemaGen(args) => schema_gen::run(ui, &cli.global, &args).await,
        Command::Completion(args) => completion::run(args),
        Command::Man(args) => man::run(&ui.output, &cli.global, &args, Cli::command()),
    }
}

/// Prints the words of a completion if a shell asks for them. Returns false for any other run of the program.
pub(crate) fn complete(arguments: &[OsString]) -> bool {
    completion::complete(Cli::command, arguments)
}

#[cfg(test)]
mod tests;
