//! One file per command: its arguments, whose comments are the help, and what it does with the library.

pub(crate) mod cancel;
pub(crate) mod completion;
pub(crate) mod destroy;
pub(crate) mod plugin;
pub(crate) mod preview;
pub(crate) mod provision;
pub(crate) mod refresh;
pub(crate) mod stack;

use super::args::{Cli, Command};
use super::exit::Exit;
use super::ui::Ui;

/// Does what a command says.
pub(crate) async fn run(ui: &Ui, cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Provision(args) => provision::run(ui, &cli.global, &args).await,
        Command::Preview(args) => preview::run(ui, &cli.global, &args).await,
        Command::Refresh(args) => refresh::run(ui, &cli.global, &args).await,
        Command::Destroy(args) => destroy::run(ui, &cli.global, &args).await,
        Command::Cancel(args) => cancel::run(ui, &cli.global, &args).await,
        Command::Stack(command) => stack::run(ui, &cli.global, &command).await,
        Command::Plugin(command) => plugin::run(ui, &cli.global, &command).await,
        Command::Completion(args) => completion::run(args),
    }
}
