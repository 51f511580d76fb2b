//! `sc import`: records existing resources in the state.

use bridge::message_text::MessageText;
use clap::Args;
use provisioner::operation;
use provisioner::program::ImportLookupError;
use pulumi_proto::resource_id::ResourceId;

use crate::cli::access::{check_passphrases, create_buckets};
use crate::cli::args::{
    EmptyStateArgs, GlobalArgs, JournalArgs, LockArgs, MessageArgs, OverrideArgs, ShowArgs, StackArgs, TimeLimitArgs,
    resource_and_id,
};
use crate::cli::exit::{Changes, CliError, Exit};
use crate::cli::runs::Runs;
use crate::cli::stack_runs::on_stacks;
use crate::cli::stacks::read_stack;
use crate::cli::ui::Ui;

/// Import existing resources into the state of a stack
///
/// Declare each resource in server.yaml first. On the command line, give its name as `sc preview` shows it
/// (`KEY--ENV`), or `KEY`, `ENV/KEY` or `TYPE::NAME`. Its provider reads it by its id, and its properties are recorded. Nothing in the cloud is changed. Run
/// `sc preview` afterwards, and edit server.yaml until no changes are left.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Import a server that was created by hand:
      sc import -s aquarium web--prod=i-0abc123

  Show its differences from server.yaml:
      sc preview -s aquarium")]
pub(crate) struct ImportArgs {
    /// Resources to import, each with its id at the provider
    #[arg(required = true, value_name = "RESOURCE=ID", value_parser = resource_and_id)]
    resources: Vec<(String, ResourceId)>,
    #[command(flatten)]
    stack: StackArgs,
    /// Maximum number of resources to read in parallel
    #[arg(long, value_name = "N", default_value_t = u32::from(engine::DEFAULT_PARALLEL), value_parser = clap::value_parser!(u32).range(1..))]
    parallel: u32,
    #[command(flatten)]
    empty: EmptyStateArgs,
    #[command(flatten)]
    time: TimeLimitArgs,
    #[command(flatten)]
    lock: LockArgs,
    #[command(flatten)]
    journal: JournalArgs,
    #[command(flatten)]
    message: MessageArgs,
    #[command(flatten)]
    show: ShowArgs,
    /// Do not ask: download packages that core types need
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    overrides: OverrideArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ImportArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let mut runs = Runs::for_import(args.parallel, args.show, args.time, Changes::from_expect_no_changes(false));
    runs.options.allow_empty = args.empty.allow_empty;
    runs.message = Some(args.message.clone());
    (runs.lock, runs.journal, runs.yes) = (args.lock, args.journal, args.yes);
    runs.overrides = args.overrides.clone();
    check_passphrases(&ui.output, &stacks)?;
    create_buckets(&ui.output, &stacks).await?;
    on_stacks(ui, &stacks, runs, async |run, _| {
        let goals = args.resources.iter().map(|(name, id)| run.program.import(name, id).map_err(import_error));
        let goals = goals.collect::<Result<_, _>>()?;
        Ok(Some(operation::import(run, goals).await?))
    })
    .await
}

fn import_error(error: ImportLookupError) -> CliError {
    let hint = match &error {
        ImportLookupError::Unknown { similar: Some(similar), .. } => {
            MessageText::new(format_args!("did you mean {similar}?"))
        }
        ImportLookupError::Unknown { similar: None, .. } => "declare it in server.yaml first".into(),
        ImportLookupError::Several { .. } => "give the name of one of them".into(),
        ImportLookupError::CoreType { .. } => "core resources cannot be imported by id; to adopt the bucket of a \
                                               `gcp-bucket`, set `adopt` in its `config`"
            .into(),
    };
    CliError::usage(MessageText::of(&error), hint)
}
