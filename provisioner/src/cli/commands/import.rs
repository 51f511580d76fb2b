//! `sc import`: records existing resources in the state.

use clap::Args;
use provisioner::operation;
use provisioner::program::NoImport;
use pulumi_proto::resource_id::ResourceId;

use crate::cli::args::{GlobalArgs, ShowArgs, StackArgs};
use crate::cli::exit::{Changes, CliError, Exit};
use crate::cli::runs::{Runs, on_stacks};
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Record resources that exist already
///
/// Each resource is described in server.yaml, and is named as `sc preview` shows it. Its provider reads it by its id,
/// and what it reads is recorded. Nothing in the cloud is changed: run `sc preview` afterwards, and make server.yaml
/// say what there is.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Take over a server that was made by hand:
      sc import -s aquarium web--prod=i-0abc123

  And see what server.yaml would change about it:
      sc preview -s aquarium")]
pub(crate) struct ImportArgs {
    /// Resources with the ids that their provider knows them by
    #[arg(required = true, value_name = "RESOURCE=ID", value_parser = resource_and_id)]
    resources: Vec<(String, ResourceId)>,
    #[command(flatten)]
    stack: StackArgs,
    /// Read at most this many resources at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    #[command(flatten)]
    show: ShowArgs,
}

/// Reads `RESOURCE=ID`. An id may hold more of these signs.
pub(crate) fn resource_and_id(text: &str) -> Result<(String, ResourceId), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let parts = parts.and_then(|(name, id)| Some((name.to_owned(), ResourceId::new(id)?)));
    parts.ok_or_else(|| "write it as RESOURCE=ID, such as web--prod=i-0abc123".to_owned())
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ImportArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let runs = Runs::reading(args.parallel, args.show, Changes::expected(false));
    on_stacks(ui, &stacks, runs, async |run, _| {
        let goals = args.resources.iter().map(|(name, id)| run.program.import(name, id).map_err(refused));
        let goals = goals.collect::<Result<_, _>>()?;
        Ok(Some(operation::import(run, goals).await?))
    })
    .await
}

fn refused(no: NoImport) -> CliError {
    let hint = match &no {
        NoImport::Unknown { close: Some(close), .. } => format!("did you mean {close}?"),
        NoImport::Unknown { close: None, .. } => "describe it in server.yaml first".to_owned(),
        NoImport::CoreType { .. } => "its own options say how existing things are taken over".to_owned(),
    };
    CliError::usage(no.to_string(), hint)
}
